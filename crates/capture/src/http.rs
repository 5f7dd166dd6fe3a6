//! A small HTTP/1.1 client that cannot be made to hang or to eat memory.
//!
//! One connection per request; no redirects, no proxies, no decompression, nothing from the environment. Every limit
//! holds for the whole exchange: a server that never answers, drips a byte a second, sends without end or lies about
//! its length costs at most `total` time and `max_body` memory.

use ascertain_model::wants::Address;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout, timeout_at};

/// What to send.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// `GET`, `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers, without `Host`.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: Vec<u8>,
}

impl Request {
    /// A GET without headers.
    pub fn get(path: impl Into<String>) -> Self {
        Request { method: "GET".into(), path: path.into(), ..Request::default() }
    }
}

/// How much an exchange may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the first look-up of the name to the last byte of the body.
    pub total: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// Bytes of body.
    pub max_body: u64,
}

impl Limits {
    /// One deadline for all phases.
    pub fn within(total: Duration, max_body: u64) -> Self {
        Limits { connect: total, total, idle: total, max_body }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Headers in order; values that are not text are decoded as well as can be.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// The connection ended before the body was complete.
    pub truncated: bool,
    /// From the beginning to the last byte.
    pub elapsed: Duration,
}

/// Where in an exchange time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Looking up the name.
    Resolve,
    /// Waiting for the connection.
    Connect,
    /// Waiting for status and headers.
    Head,
    /// Waiting for (more of) the body.
    Body,
}

impl Phase {
    /// What was waited for.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Resolve => "the address of the host",
            Phase::Connect => "the connection",
            Phase::Head => "the first byte of the answer",
            Phase::Body => "the rest of the answer",
        }
    }
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The address is of a kind that is not spoken.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The request cannot be sent.
    #[error("cannot send the request: {0}")]
    Invalid(String),
    /// The name has no address.
    #[error("cannot find the address of {host}: {why}")]
    Resolve {
        /// Host name.
        host: String,
        /// What the system said.
        why: String,
    },
    /// Nobody listens there.
    #[error("connection to {address} refused: nobody listens there")]
    Refused {
        /// Address.
        address: String,
    },
    /// The socket may not be opened.
    #[error("not permitted to connect to {address}: run as the user of the server or as root")]
    NotPermitted {
        /// Address.
        address: String,
    },
    /// The connection could not be made for another reason.
    #[error("cannot connect to {address}: {why}")]
    Connect {
        /// Address.
        address: String,
        /// What the system said.
        why: String,
    },
    /// A deadline passed.
    #[error("no answer within {} ms: waited for {}, {received} bytes had come", after.as_millis(), phase.name())]
    TimedOut {
        /// What was waited for.
        phase: Phase,
        /// How long the exchange had lasted.
        after: Duration,
        /// Bytes of body received until then.
        received: u64,
    },
    /// The body is longer than allowed.
    #[error("the answer is longer than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The connection was closed before there was an answer.
    #[error("the server closed the connection without an answer")]
    Closed,
    /// What came is not HTTP/1.
    #[error("the answer is not HTTP/1.1: {0}")]
    Protocol(String),
}

impl HttpError {
    /// The reason as it stands in the gap of an artifact.
    pub fn reason(&self) -> &'static str {
        match self {
            HttpError::Unsupported(_) => "not_supported",
            HttpError::Invalid(_) | HttpError::Protocol(_) => "malformed",
            HttpError::Resolve { .. } => "not_present",
            HttpError::Refused { .. } | HttpError::Connect { .. } | HttpError::Closed => "refused",
            HttpError::NotPermitted { .. } => "not_permitted",
            HttpError::TimedOut { .. } => "timed_out",
            HttpError::TooLarge { .. } => "too_large",
        }
    }
}

/// Sends one request and waits for the whole answer.
pub fn exchange(address: &Address, request: &Request, limits: Limits) -> Result<Response, HttpError> {
    let mut all = get_many(address, vec![(request.clone(), limits)]);
    all.pop().unwrap_or(Err(HttpError::Closed))
}

/// Sends several requests at once, each over a connection of its own. The answers come in the order of the requests.
pub fn get_many(address: &Address, requests: Vec<(Request, Limits)>) -> Vec<Result<Response, HttpError>> {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failed = HttpError::Invalid(format!("cannot start: {error}"));
            return requests.iter().map(|_| Err(failed.clone())).collect();
        }
    };
    let answers = runtime.block_on(async {
        let running: Vec<_> = requests
            .into_iter()
            .map(|(request, limits)| {
                let address = address.clone();
                tokio::spawn(async move { one(&address, &request, limits).await })
            })
            .collect();
        let mut answers = Vec::with_capacity(running.len());
        for task in running {
            answers.push(task.await.unwrap_or_else(|error| Err(HttpError::Protocol(error.to_string()))));
        }
        answers
    });
    // A look-up of a name that hangs must not keep us.
    runtime.shutdown_background();
    answers
}

/// What an address looks like to a person: `http://host:port`, `unix:/path`.
pub fn shown(address: &Address) -> String {
    match address {
        Address::Tcp { host, port, tls } => {
            let scheme = if *tls { "https" } else { "http" };
            format!("{scheme}://{}:{port}", in_brackets(reachable(host)))
        }
        Address::Unix { path } => format!("unix:{path}"),
    }
}

/// A host to connect to, for a host that was configured to listen: "all addresses" is reached over loopback.
pub fn reachable(host: &str) -> &str {
    match host.trim_start_matches('[').trim_end_matches(']') {
        "" | "0.0.0.0" | "*" => "127.0.0.1",
        "::" => "::1",
        host => host,
    }
}

fn in_brackets(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

struct Clock {
    begun: Instant,
    limits: Limits,
}

impl Clock {
    fn end(&self) -> Instant {
        self.begun + self.limits.total
    }

    fn timed_out(&self, phase: Phase, received: u64) -> HttpError {
        HttpError::TimedOut { phase, after: self.begun.elapsed(), received }
    }

    /// The next piece must be there by then.
    fn idle(&self) -> Instant {
        self.end().min(Instant::now() + self.limits.idle)
    }
}

async fn one(address: &Address, request: &Request, limits: Limits) -> Result<Response, HttpError> {
    let clock = Clock { begun: Instant::now(), limits };
    match address {
        Address::Tcp { tls: true, .. } => Err(HttpError::Unsupported("TLS endpoints are not supported yet")),
        Address::Tcp { host, port, tls: false } => {
            let host = reachable(host);
            let stream = connect(host, *port, &clock).await?;
            talk(stream, &format!("{}:{port}", in_brackets(host)), request, &clock).await
        }
        Address::Unix { path } => {
            let by = clock.end().min(clock.begun + limits.connect);
            let stream = match timeout_at(by, UnixStream::connect(path)).await {
                Ok(stream) => stream.map_err(|error| connect_error(format!("unix:{path}"), &error))?,
                Err(_) => return Err(clock.timed_out(Phase::Connect, 0)),
            };
            talk(stream, "localhost", request, &clock).await
        }
    }
}

async fn connect(host: &str, port: u16, clock: &Clock) -> Result<TcpStream, HttpError> {
    let by = clock.end().min(clock.begun + clock.limits.connect);
    let addresses: Vec<SocketAddr> = if let Ok(address) = host.parse::<IpAddr>() {
        let mut addresses = vec![SocketAddr::new(address, port)];
        if address == IpAddr::V6(Ipv6Addr::LOCALHOST) {
            // A socket bound to `::` may answer on a host whose loopback has no IPv6 address.
            addresses.push(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        }
        addresses
    } else if host == "localhost" {
        vec![
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
            SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port),
        ]
    } else {
        let resolve = |why: String| HttpError::Resolve { host: host.to_owned(), why };
        match timeout_at(by, tokio::net::lookup_host((host, port))).await {
            Ok(Ok(found)) => found.take(8).collect(),
            Ok(Err(error)) => return Err(resolve(error.to_string())),
            Err(_) => return Err(clock.timed_out(Phase::Resolve, 0)),
        }
    };
    let mut first = None;
    for address in addresses {
        match timeout_at(by, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => first = first.or(Some(connect_error(address.to_string(), &error))),
            Err(_) => return Err(first.unwrap_or(clock.timed_out(Phase::Connect, 0))),
        }
    }
    Err(first.unwrap_or_else(|| HttpError::Resolve { host: host.to_owned(), why: "it has no address".into() }))
}

fn connect_error(address: String, error: &io::Error) -> HttpError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => HttpError::Refused { address },
        io::ErrorKind::PermissionDenied => HttpError::NotPermitted { address },
        _ => HttpError::Connect { address, why: error.to_string() },
    }
}

async fn talk<S>(stream: S, host: &str, request: &Request, clock: &Clock) -> Result<Response, HttpError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut message = hyper::Request::builder().method(request.method.as_str()).uri(request.path.as_str());
    message = message.header("host", host).header("connection", "close");
    for (name, value) in &request.headers {
        message = message.header(name, value);
    }
    let message = message
        .body(Full::new(Bytes::from(request.body.clone())))
        .map_err(|error| HttpError::Invalid(error.to_string()))?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(256 * 1024)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| protocol(&error))?;
    let driver = Driver(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let answer = match timeout_at(clock.idle(), sender.send_request(message)).await {
        Ok(answer) => answer.map_err(|error| protocol(&error))?,
        Err(_) => return Err(clock.timed_out(Phase::Head, 0)),
    };
    let (head, mut body) = answer.into_parts();
    let too_large = HttpError::TooLarge { limit: clock.limits.max_body };
    if request.method != "HEAD" && hyper::body::Body::size_hint(&body).lower() > clock.limits.max_body {
        return Err(too_large);
    }
    let mut bytes = Vec::new();
    let mut truncated = false;
    loop {
        let frame = match timeout_at(clock.idle(), body.frame()).await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => {
                truncated = true;
                break;
            }
            Err(_) => return Err(clock.timed_out(Phase::Body, bytes.len() as u64)),
        };
        if let Some(data) = frame.data_ref() {
            if bytes.len() as u64 + data.len() as u64 > clock.limits.max_body {
                return Err(too_large);
            }
            bytes.extend_from_slice(data);
        }
        if Instant::now() > clock.end() {
            // Frames that are always ready never let the deadline be polled.
            return Err(clock.timed_out(Phase::Body, bytes.len() as u64));
        }
    }
    // Gives the connection the chance to close in order; nothing depends on it.
    drop((sender, body));
    let _ = timeout(Duration::from_millis(1), tokio::task::yield_now()).await;
    drop(driver);
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    Ok(Response { status: head.status.as_u16(), headers, body: bytes, truncated, elapsed: clock.begun.elapsed() })
}

/// Ends the task that drives a connection when the exchange ends, however it ends.
struct Driver(tokio::task::JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn protocol(error: &hyper::Error) -> HttpError {
    let nothing = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    let reset = std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|source| matches!(source.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe));
    if nothing || reset { HttpError::Closed } else { HttpError::Protocol(error.to_string()) }
}
