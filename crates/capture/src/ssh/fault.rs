//! Why another host could not be reached or used, and what to do next.

use super::Destination;

/// A failure on the way to another host or there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Fault {
    /// What failed and why.
    pub text: String,
    /// What to do next, one line each.
    pub hints: Vec<String>,
}

impl Fault {
    pub(super) fn new(text: impl Into<String>) -> Fault {
        Fault { text: text.into(), hints: Vec::new() }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hints.push(hint.into());
        self
    }

    /// The host answered something, and that is the fault.
    pub(super) fn on(host: &Destination, text: impl std::fmt::Display) -> Fault {
        Fault::new(format!("on {host}: {text}"))
    }

    /// A connection that stood, and ended in the middle.
    pub(super) fn lost(host: &Destination, stderr: &str) -> Fault {
        let said = excerpt(stderr);
        let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
        Fault::new(format!("{host} stopped answering: the connection was lost{said}"))
            .hint("is it up, and is the network between? try again; give it more time: --timeout SECONDS")
    }

    /// What `ssh` ended with, from what it wrote to standard error. OpenSSH has one exit code for all its failures;
    /// the words are those of OpenSSH 7.4 to 9.9, which are never translated.
    pub(super) fn of_ssh(host: &Destination, code: Option<i32>, stderr: &str, sudo: bool) -> Fault {
        let says = |words: &str| stderr.contains(words);
        let cannot = |why: &str| Fault::new(format!("cannot reach {host}: {why}"));
        if says("REMOTE HOST IDENTIFICATION HAS CHANGED") {
            return cannot("it shows another host key than the one that is known: it was set up anew, or it is not the host you mean")
                .hint(format!("find out which; if the new key is right: ssh-keygen -R {}, then log in once by hand", known_as(host)));
        }
        if says("Host key verification failed") || says("host key is known for") {
            return cannot("its host key is not known, and nothing is accepted unseen")
                .hint(format!("log in once by hand and compare the key it shows: ssh {}", by_hand_host(host)));
        }
        if says("Permission denied (")
            || says("Too many authentication failures")
            || says("No more authentication methods")
        {
            return cannot("permission denied: it accepts none of the keys that were offered")
                .hint("load the key (ssh-add), name it in ~/.ssh/config (IdentityFile), or name the user: ssh://USER@HOST/…")
                .hint("passwords and passphrases are never asked for");
        }
        if says("Could not resolve hostname") {
            return cannot("there is no host of that name")
                .hint("write it as ssh knows it: a Host of ~/.ssh/config, a name of the network, or an address");
        }
        if says("Connection refused") {
            return cannot("connection refused: no SSH server listens there")
                .hint("is it the right port? ssh://HOST:PORT/…");
        }
        if says("timed out") || says("Timeout, server") || says("No route to host") || says("Network is unreachable") {
            let why =
                if says("No route") || says("unreachable") { "there is no way to it" } else { "it does not answer" };
            return cannot(&format!("{why} (is it down?)"))
                .hint("is it up, and are you in the right network (VPN, jump host)?")
                .hint("give it more time: --timeout SECONDS");
        }
        if says("Bad configuration option") || says("Can't open user config file") || says("terminating, ") {
            return Fault::new(format!("ssh does not accept its configuration: {}", excerpt(stderr)))
                .hint("mend ~/.ssh/config or ASCERTAIN_SSH");
        }
        if sudo && let Some(line) = stderr.lines().find(|line| line.contains("sudo")) {
            let fault = if says("password is required") || says("terminal is required") || says("must have a tty") {
                Fault::on(host, "sudo wants a password, and none is ever asked for")
                    .hint("allow it without one there (NOPASSWD in sudoers), log in as root, or leave out --sudo")
            } else {
                Fault::on(host, format!("sudo does not do it: {}", line.trim()))
                    .hint("log in as root, or leave out --sudo")
            };
            return fault;
        }
        if code == Some(255) || code.is_none() {
            let said = excerpt(stderr);
            let why = if said.is_empty() { "the connection was closed".to_owned() } else { said };
            return cannot(&why).hint(format!("try it by hand: ssh {} true", by_hand(host)));
        }
        let said = excerpt(stderr);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        Fault::on(host, format!("no POSIX shell could be started (exit code {}{said})", code.unwrap_or_default()))
            .hint(format!("this must print ok: echo ok | ssh {} 'sh -c \"head -c 3\"'", by_hand(host)))
    }
}

/// How a person would write the host for `ssh`.
fn by_hand(host: &Destination) -> String {
    format!("-o BatchMode=yes {}", by_hand_host(host))
}

fn by_hand_host(host: &Destination) -> String {
    let port = host.port.map(|port| format!("-p {port} ")).unwrap_or_default();
    let user = host.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    format!("{port}{user}{}", host.host)
}

/// How `known_hosts` names it.
fn known_as(host: &Destination) -> String {
    match host.port {
        Some(port) if port != 22 => format!("'[{}]:{port}'", host.host),
        _ => host.host.clone(),
    }
}

/// The last thing it said.
pub(super) fn excerpt(stderr: &str) -> String {
    let line = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(300).collect()
}
