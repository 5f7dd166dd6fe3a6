//! The HTTP client against servers that misbehave.

#![allow(clippy::unwrap_used)]

use ascertain_capture::http::{HttpError, Limits, Phase, Request, exchange, get_many};
use ascertain_model::wants::Address;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Serves every connection with `answer` until the test ends.
fn serve(answer: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer);
                answer(stream);
            });
        }
    });
    Address::Tcp { host: "127.0.0.1".into(), port, tls: false }
}

fn limits(ms: u64) -> Limits {
    Limits::within(Duration::from_millis(ms), 1 << 20)
}

fn get(address: &Address, limits: Limits) -> Result<ascertain_capture::http::Response, HttpError> {
    let begun = Instant::now();
    let answer = exchange(address, &Request::get("/"), limits);
    assert!(begun.elapsed() < limits.total + Duration::from_secs(1), "took {:?}", begun.elapsed());
    answer
}

#[test]
fn an_ordinary_answer() {
    let address = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok");
    });
    let answer = get(&address, limits(2000)).unwrap();
    assert_eq!((answer.status, answer.body.as_slice(), answer.truncated), (200, &b"ok"[..], false));
    assert!(answer.headers.contains(&("x-a".into(), "b".into())));
}

#[test]
fn one_that_never_answers() {
    let address = serve(|_stream| std::thread::sleep(Duration::from_secs(5)));
    assert!(matches!(get(&address, limits(200)), Err(HttpError::TimedOut { phase: Phase::Head, .. })));
}

#[test]
fn one_that_drips() {
    let address = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(40));
        }
    });
    let answer = get(&address, limits(300));
    assert!(matches!(answer, Err(HttpError::TimedOut { phase: Phase::Body, received: 1..50, .. })), "{answer:?}");
}

#[test]
fn one_that_drips_its_headers_or_never_ends_them() {
    let address = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert!(matches!(get(&address, limits(300)), Err(HttpError::TimedOut { phase: Phase::Head, .. })));
    let address = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ");
        while stream.write_all(&[b'x'; 8192]).is_ok() {}
    });
    assert!(matches!(get(&address, limits(5000)), Err(HttpError::Protocol(_))));
    let address = serve(|mut stream| while stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {});
    assert!(get(&address, limits(300)).is_err());
}

#[test]
fn one_that_sends_without_end_or_announces_too_much() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n"] {
        let address = serve(move |mut stream| {
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(&[b'x'; 65536]).is_ok() {}
        });
        assert_eq!(get(&address, limits(5000)), Err(HttpError::TooLarge { limit: 1 << 20 }));
    }
}

#[test]
fn one_that_lies_about_the_length() {
    let address = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
    });
    let answer = get(&address, limits(2000)).unwrap();
    assert!(answer.truncated);
    assert_eq!(answer.body, b"short");
    let address = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more");
    });
    assert_eq!(get(&address, limits(2000)).unwrap().body, b"ok");
    for length in ["-1", "99999999999999999999999", "x"] {
        let address = serve(move |mut stream| {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        });
        assert!(get(&address, limits(1000)).is_err());
    }
}

#[test]
fn ones_that_do_not_speak_http() {
    let address = serve(|mut stream| {
        let _ = stream.write_all(b"<html>hello</html>\r\n\r\n");
    });
    assert!(matches!(get(&address, limits(1000)), Err(HttpError::Protocol(_))));
    let address = serve(drop);
    assert_eq!(get(&address, limits(1000)), Err(HttpError::Closed));
    let address = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnope");
    });
    assert!(get(&address, limits(1000)).map_or(true, |answer| answer.truncated));
}

#[test]
fn nobody_there() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = Address::Tcp { host: "localhost".into(), port, tls: false };
    assert!(matches!(get(&address, limits(1000)), Err(HttpError::Refused { .. })));
    assert!(matches!(
        get(&Address::Unix { path: "/nonexistent".into() }, limits(1000)),
        Err(HttpError::Refused { .. })
    ));
    let address = Address::Tcp { host: "h".into(), port, tls: true };
    assert_eq!(get(&address, limits(1000)).unwrap_err().to_string(), "TLS endpoints are not supported yet");
}

#[test]
fn many_at_once_in_order_and_over_all_addresses() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut buffer = [0; 4096];
                let n = stream.read(&mut buffer).unwrap_or(0);
                let path = String::from_utf8_lossy(&buffer[..n]).split(' ').nth(1).unwrap_or("").to_owned();
                std::thread::sleep(Duration::from_millis(if path == "/0" { 250 } else { 100 }));
                let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}", path.len());
            });
        }
    });
    let address = Address::Tcp { host: "0.0.0.0".into(), port, tls: false };
    let begun = Instant::now();
    let requests = (0..8).map(|n| (Request::get(format!("/{n}")), limits(5000))).collect();
    let answers = get_many(&address, requests);
    assert!(begun.elapsed() < Duration::from_millis(700), "{:?}", begun.elapsed());
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap().body, format!("/{n}").into_bytes());
    }
}

#[test]
fn over_a_unix_socket() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer);
        let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno");
    });
    let answer = get(&Address::Unix { path: path.to_str().unwrap().into() }, limits(2000)).unwrap();
    assert_eq!(answer.status, 401);
}
