//! `[user@]host[:port]`, checked so strictly that nothing in it can mean anything to `ssh` or to a shell.

use std::fmt;

/// Another host, as the user named it: a name of its SSH configuration, of the network, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The user to log in as, if not the one that the configuration says.
    pub user: Option<String>,
    /// The host, without brackets.
    pub host: String,
    /// The port, if not the one that the configuration says.
    pub port: Option<u16>,
}

/// Why it is no destination. Names the part, never its content: the user may have put a password there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// `user:password@`.
    #[error("a password in an ssh:// target is not used: log in with a key or an agent")]
    Password,
    /// The user.
    #[error("the user in it may hold letters, digits and _ . - + \\ @ $ only, and must not begin with -")]
    User,
    /// The host.
    #[error(
        "the host in it may hold letters, digits and _ . - only (an IPv6 address in brackets), and must not begin with -"
    )]
    Host,
    /// The port.
    #[error("the port in it must be a number from 1 to 65535")]
    Port,
}

impl Destination {
    /// Reads `[user@]host[:port]`.
    pub fn parse(text: &str) -> Result<Destination, Invalid> {
        let (user, place) = match text.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, text),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(Invalid::Password);
        }
        // A name of a domain may hold a backslash or an at sign, that of a machine account ends in a dollar sign.
        let is_user = |user: &str| {
            (1..=255).contains(&user.len())
                && !user.starts_with('-')
                && user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-+\\@$".contains(&byte))
        };
        if user.is_some_and(|user| !is_user(user)) {
            return Err(Invalid::User);
        }
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or(Invalid::Host)?;
                let (address, zone) = host.split_once('%').map_or((host, None), |(host, zone)| (host, Some(zone)));
                let is_zone = |zone: &str| !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_alphanumeric());
                if address.parse::<std::net::Ipv6Addr>().is_err() || !zone.is_none_or(is_zone) {
                    return Err(Invalid::Host);
                }
                match rest.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if rest.is_empty() => (host, None),
                    None => return Err(Invalid::Port),
                }
            }
            None => {
                let (host, port) = place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port)));
                let is_host = (1..=255).contains(&host.len())
                    && !host.starts_with('-')
                    && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
                if !is_host {
                    return Err(Invalid::Host);
                }
                (host, port)
            }
        };
        let port = match port {
            None => None,
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok().filter(|port| *port > 0).ok_or(Invalid::Port)?)
            }
            Some(_) => return Err(Invalid::Port),
        };
        Ok(Destination { user: user.map(str::to_owned), host: host.to_owned(), port })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_one() {
        for text in ["llm-two", "root@llm-two", "root@10.0.0.7:2222", "me@[fe80::1%eth0]:22", "[::1]", "a_b.example"] {
            assert_eq!(Destination::parse(text).map(|one| one.to_string()).as_deref(), Ok(text));
        }
        let domain = Destination::parse("name@corp@host").unwrap();
        assert_eq!((domain.user.as_deref(), domain.host.as_str()), (Some("name@corp"), "host"));
    }

    #[test]
    fn what_is_none() {
        for (text, why) in [
            ("", Invalid::Host),
            ("-oProxyCommand=id", Invalid::Host),
            ("root@-oProxyCommand=id", Invalid::Host),
            ("-l@host", Invalid::User),
            ("@host", Invalid::User),
            ("a b@host", Invalid::User),
            ("$(id)@host", Invalid::User),
            ("root:secret@host", Invalid::Password),
            ("host name", Invalid::Host),
            ("host;id", Invalid::Host),
            ("host\n", Invalid::Host),
            ("ho`id`st", Invalid::Host),
            ("%h", Invalid::Host),
            ("[::1", Invalid::Host),
            ("[host]", Invalid::Host),
            ("[::1]x", Invalid::Port),
            ("[::1%-e]", Invalid::Host),
            ("host:", Invalid::Port),
            ("host:0", Invalid::Port),
            ("host:+22", Invalid::Port),
            ("host:65536", Invalid::Port),
            ("::1", Invalid::Host),
        ] {
            assert_eq!(Destination::parse(text), Err(why), "{text:?}");
        }
    }
}
