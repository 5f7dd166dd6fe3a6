//! Who listens where: from an address to the process that answers there, and back.

use crate::process;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};

/// A TCP socket that accepts connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// Address it is bound to; `0.0.0.0` or `::` for all.
    pub address: IpAddr,
    /// Port.
    pub port: u16,
    /// Inode, by which `/proc/PID/fd` names it.
    pub inode: u64,
}

/// A UNIX socket that accepts connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixListener {
    /// Path, or `@name` in the abstract name space.
    pub path: String,
    /// Inode.
    pub inode: u64,
}

/// Who holds a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// These processes: more than one where the socket was inherited or the port is shared.
    Pid(Vec<u32>),
    /// Nobody listens there.
    None,
    /// Somebody does, but the holder may not be seen.
    Unknown,
    /// The address is not one of this host.
    Elsewhere,
}

/// The sockets of the network this thread is in.
const OURS: &str = "/proc/thread-self/net";

/// The TCP sockets that accept connections in our own network namespace.
pub fn listeners() -> Vec<Listener> {
    tables(OURS)
}

/// The TCP sockets on which one process accepts connections, in whatever network namespace it lives. `None`: its
/// descriptors may not be read, or it is gone.
pub fn listening_of(pid: u32) -> Option<Vec<Listener>> {
    let inodes = inodes_of(pid)?;
    let mut found = tables(&format!("/proc/{pid}/net"));
    found.retain(|listener| inodes.contains(&listener.inode));
    Some(found)
}

/// The UNIX sockets on which one process accepts connections.
pub fn unix_listening_of(pid: u32) -> Option<Vec<UnixListener>> {
    let inodes = inodes_of(pid)?;
    let table = std::fs::read(format!("/proc/{pid}/net/unix")).ok()?;
    let mut found = parse_unix(&String::from_utf8_lossy(&table));
    found.retain(|listener| inodes.contains(&listener.inode));
    Some(found)
}

/// Who answers at `host:port`. The name is resolved where it is not an address.
pub fn owner_of(port: u16, host: &str) -> Owner {
    let Some(addresses) = local_addresses(host, port) else { return Owner::Elsewhere };
    let inodes: BTreeSet<u64> = listeners()
        .into_iter()
        .filter(|listener| listener.port == port && addresses.iter().any(|address| answers(listener.address, *address)))
        .map(|listener| listener.inode)
        .collect();
    holders(&inodes)
}

/// Who holds a UNIX socket.
pub fn owner_of_unix(path: &str) -> Owner {
    let table = std::fs::read(format!("{OURS}/unix")).unwrap_or_default();
    let inodes = parse_unix(&String::from_utf8_lossy(&table))
        .into_iter()
        .filter(|listener| listener.path == path)
        .map(|listener| listener.inode)
        .collect();
    holders(&inodes)
}

/// Whether two processes share a network namespace. `None`: it may not be seen.
pub fn same_network(pid: u32) -> Option<bool> {
    let theirs = process::link(pid, "ns/net").ok()?;
    // That of this thread: another may have entered another one.
    let ours = std::fs::read_link("/proc/thread-self/ns/net").ok()?;
    Some(*theirs == *ours.to_string_lossy())
}

/// Takes this thread, and those it starts from now on, into the network of a process, such as that of a container:
/// there its own addresses mean what they mean to it. There is no way back. Needs to be root.
pub fn enter_network(pid: u32) -> std::io::Result<()> {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    let network = std::fs::File::open(process::path(pid, "ns/net"))?;
    move_into_link_name_space(std::os::fd::AsFd::as_fd(&network), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

fn holders(inodes: &BTreeSet<u64>) -> Owner {
    if inodes.is_empty() {
        return Owner::None;
    }
    let found: Vec<u32> = process::pids()
        .into_iter()
        .filter(|pid| inodes_of(*pid).is_some_and(|held| !held.is_disjoint(inodes)))
        .collect();
    // A socket that nobody seems to hold is held by a process we may not look into.
    if found.is_empty() { Owner::Unknown } else { Owner::Pid(found) }
}

/// Inodes of the sockets a process holds. `None`: not permitted, or gone.
fn inodes_of(pid: u32) -> Option<BTreeSet<u64>> {
    let entries = std::fs::read_dir(process::path(pid, "fd")).ok()?;
    Some(
        entries
            .flatten()
            .filter_map(|entry| {
                let target = std::fs::read_link(entry.path()).ok()?;
                target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
            })
            .collect(),
    )
}

/// The addresses of a host that are ours; `None` if none is.
fn local_addresses(host: &str, port: u16) -> Option<Vec<IpAddr>> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let candidates: Vec<IpAddr> = if let Ok(address) = host.parse() {
        vec![address]
    } else if host.is_empty() || host == "localhost" || host.ends_with(".localhost") {
        vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
    } else {
        (host, port).to_socket_addrs().ok()?.map(|address| address.ip()).collect()
    };
    // An address is ours if it can be bound to. Nothing is sent.
    let ours: Vec<IpAddr> = candidates
        .into_iter()
        .filter(|address| address.is_unspecified() || address.is_loopback() || UdpSocket::bind((*address, 0)).is_ok())
        .collect();
    (!ours.is_empty()).then_some(ours)
}

/// Whether a socket bound to one address answers connections to another.
pub(crate) fn answers(bound: IpAddr, asked: IpAddr) -> bool {
    let plain = |address: IpAddr| address.to_canonical();
    let (bound, asked) = (plain(bound), plain(asked));
    if bound == asked || asked.is_unspecified() {
        return true;
    }
    match bound {
        IpAddr::V4(bound) => bound.is_unspecified() && asked.is_ipv4(),
        // Unless it says otherwise, an IPv6 socket takes IPv4 too.
        IpAddr::V6(bound) => bound.is_unspecified(),
    }
}

fn tables(directory: &str) -> Vec<Listener> {
    let mut found = Vec::new();
    for name in ["tcp", "tcp6"] {
        if let Ok(table) = std::fs::read_to_string(format!("{directory}/{name}")) {
            found.extend(table.lines().skip(1).filter_map(parse_tcp));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// One line of `/proc/net/tcp`: `sl local_address rem_address st … uid timeout inode`. Only state 0A listens.
pub(crate) fn parse_tcp(line: &str) -> Option<Listener> {
    let mut fields = line.split_ascii_whitespace();
    let local = fields.nth(1)?;
    if fields.nth(1)? != "0A" {
        return None;
    }
    let inode = fields.nth(5)?.parse().ok()?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    // Words of 32 bits in the byte order of the host.
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0u8; 16];
            for (index, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(index * 8)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(Listener { address, port, inode })
}

/// `/proc/net/unix`: `Num RefCount Protocol Flags Type St Inode Path`. Flag 0x10000 accepts connections.
fn parse_unix(table: &str) -> Vec<UnixListener> {
    table.lines().skip(1).filter_map(parse_unix_line).collect()
}

/// One line of it.
pub(crate) fn parse_unix_line(line: &str) -> Option<UnixListener> {
    let mut fields = line.splitn(7, ' ');
    let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
    // The inode is padded to a width of five; the path may hold spaces.
    let rest = fields.nth(2)?.trim_start();
    let (inode, path) = rest.split_once(' ')?;
    let inode = inode.parse().ok()?;
    (flags & 0x10000 != 0 && !path.is_empty()).then(|| UnixListener { path: path.to_owned(), inode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn lines_of_the_kernel() {
        let line = "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0        0 4711 1 0";
        assert_eq!(parse_tcp(line), Some(Listener { address: "127.0.0.1".parse().unwrap(), port: 8080, inode: 4711 }));
        assert_eq!(parse_tcp(&line.replace(" 0A ", " 01 ")), None);
        let line =
            "  1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 9 1";
        assert_eq!(parse_tcp(line).map(|listener| listener.address), Some("::1".parse().unwrap()));
        assert_eq!(parse_tcp("garbage"), None);
    }

    #[test]
    fn from_port_to_process_and_back() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let me = std::process::id();
        assert!(listening_of(me).unwrap().iter().any(|listener| listener.port == port));
        for host in ["127.0.0.1", "localhost", "0.0.0.0"] {
            let Owner::Pid(pids) = owner_of(port, host) else { panic!("{host}") };
            assert!(pids.contains(&me));
        }
        assert_eq!(owner_of(port, "192.0.2.1"), Owner::Elsewhere);
        assert_eq!(same_network(me), Some(true));
        drop(socket);
        assert_eq!(owner_of(port, "127.0.0.1"), Owner::None);
    }

    #[test]
    fn short_inodes_are_padded() {
        let table = "Num\n0000: 00000002 00000000 00010000 0001 01  1057 /run/a b\n0000: 00000003 00000000 00000000 0001 03  1056\n";
        assert_eq!(parse_unix(table), [UnixListener { path: "/run/a b".into(), inode: 1057 }]);
    }

    #[test]
    fn unix_sockets() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a b.sock");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let found = unix_listening_of(std::process::id()).unwrap();
        assert!(found.iter().any(|listener| listener.path == path.to_str().unwrap()), "{found:?}");
        assert_eq!(owner_of_unix(path.to_str().unwrap()), Owner::Pid(vec![std::process::id()]));
    }
}
