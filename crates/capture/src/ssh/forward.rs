//! A forward to a port of the other host: a socket here, and for each connection to it one `ssh -W`, which is over
//! when the connection is. Over a master connection one takes a few milliseconds.

use super::session::{Session, keep_end};
use super::{Client, fault};
use ascertain_model::wants::Address;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// So many connections may be open at once.
const MOST: usize = 32;

/// A forward; it ends when dropped, and its connections with it.
pub struct Forward {
    path: std::path::PathBuf,
    state: Arc<Mutex<State>>,
    _directory: tempfile::TempDir,
}

#[derive(Default)]
struct State {
    children: Vec<Child>,
    ended: bool,
    said: Vec<u8>,
    /// Connections whose standard error is still open.
    unread: usize,
}

impl Forward {
    /// Listens here for connections to `host:port` there. The host is that of the server's address.
    pub fn open(session: &Session, host: &str, port: u16) -> std::io::Result<Forward> {
        let directory = super::session::private_directory()?;
        let path = directory.path().join("http");
        let listener = UnixListener::bind(&path)?;
        let state = Arc::new(Mutex::new(State::default()));
        let (client, shared, host) = (session.client().clone(), Arc::clone(&state), host.to_owned());
        std::thread::Builder::new().name("forward".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                if !serve(&client, &shared, &host, port, stream) {
                    return;
                }
            }
        })?;
        Ok(Forward { path, state, _directory: directory })
    }

    /// Our end.
    pub fn address(&self) -> Address {
        Address::Unix { path: self.path.to_string_lossy().into_owned() }
    }

    /// What `ssh` last complained about, such as that the other host forbids forwards.
    pub fn complaint(&self) -> Option<String> {
        // It may say why a moment after it closed the connection.
        for _ in 0..50 {
            let state = self.state.lock().ok()?;
            if !state.said.is_empty() {
                return Some(fault::excerpt(&String::from_utf8_lossy(&state.said)));
            }
            if state.unread == 0 {
                return None;
            }
            drop(state);
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// How it would be done, for people.
    pub fn shown(client: &Client, host: &str, port: u16) -> String {
        Client::shown(&client.stream(host, port))
    }
}

/// Starts one connection; `false` when it is over.
fn serve(client: &Client, shared: &Arc<Mutex<State>>, host: &str, port: u16, stream: UnixStream) -> bool {
    let Ok(mut state) = shared.lock() else { return false };
    if state.ended {
        return false;
    }
    state.children.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
    let Ok(input) = stream.try_clone() else { return true };
    if state.children.len() >= MOST {
        let _ = stream.shutdown(Shutdown::Both);
        return true;
    }
    let (input, output) = (OwnedFd::from(input), OwnedFd::from(stream));
    let mut command = client.stream(host, port);
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::piped());
    if let Ok(mut child) = command.spawn() {
        if let Some(error) = child.stderr.take() {
            let shared = Arc::clone(shared);
            state.unread += 1;
            std::thread::spawn(move || {
                let said = Mutex::new(Vec::new());
                keep_end(error, &said);
                if let (Ok(mut state), Ok(said)) = (shared.lock(), said.into_inner()) {
                    state.unread -= 1;
                    if !said.is_empty() {
                        state.said = said;
                    }
                }
            });
        }
        state.children.push(child);
    }
    true
}

impl Drop for Forward {
    fn drop(&mut self) {
        if let Ok(mut state) = self.state.lock() {
            state.ended = true;
            for child in &mut state.children {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        // Wakes the thread that waits for connections, so that it sees that it is over.
        let _ = UnixStream::connect(&self.path);
    }
}
