//! Collecting from processes that the test starts itself.

#![allow(clippy::unwrap_used)]

use ascertain_capture::collect::{Options, add, choose_address, collect, collect_with, describe};
use ascertain_capture::process;
use ascertain_model::wants::{Address, EndpointWant, FileWant, Wants};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends a process when the test does.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SERVER: &str = r#"
import http.server, sys, json
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        key = self.headers.get('authorization') == 'Bearer sesame77'
        status = 200 if key or self.path == '/health' else 401
        body = json.dumps({'path': self.path, 'key': self.headers.get('authorization'), 'origin': self.headers.get('origin')}).encode()
        self.send_response(status)
        self.send_header('content-length', str(len(body)))
        self.send_header('x-key', 'sesame77')
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): sys.stderr.write('asked with sesame77 for ' + self.path + '\n'); sys.stderr.flush()
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
print(s.server_address[1], flush=True)
s.serve_forever()
"#;

fn wants() -> Wants {
    let endpoint = |artifact: &str, path: &str, without_key| EndpointWant {
        artifact: artifact.into(),
        path: path.into(),
        limit: 1 << 20,
        without_key,
        unless: None,
    };
    Wants {
        environment: vec!["FAKE_*".into()],
        secret_flags: vec!["--api-key".into()],
        secret_env: vec!["FAKE_API_KEY".into()],
        secret_keys: vec!["api-key".into()],
        endpoints: vec![
            endpoint("health.json", "/health", false),
            endpoint("props.json", "/props", false),
            endpoint("props_no_key.json", "/props", true),
        ],
        ..Wants::default()
    }
}

fn options(pid: u32) -> Options {
    Options { pid: Some(pid), target: format!("pid:{pid}"), timeout: Duration::from_secs(5), ..Options::default() }
}

#[test]
fn a_live_server_with_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("server log.txt");
    let config = dir.path().join("config.ini");
    std::fs::write(&config, "api-key = ini-secret-5\nctx = 1\n").unwrap();
    let mut child = Running(
        Command::new("python3")
            .args(["-c", SERVER, "--api-key", "sesame77,other88"])
            .env("FAKE_API_KEY", "envkey99")
            .env("FAKE_CTX", "512")
            .env("OTHER", "dropped")
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap(),
    );
    let pid = child.0.id();
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port: u16 = line.trim().parse().unwrap();
    let mut wants = wants();
    wants.address = Some(Address::Tcp { host: "0.0.0.0".into(), port: 8080, tls: false });
    wants.files = vec![
        FileWant { artifact: "config.ini".into(), path: config.to_str().unwrap().into(), limit: 1 << 20 },
        FileWant { artifact: "absent.ini".into(), path: "/nonexistent/x.ini".into(), limit: 1 << 20 },
    ];
    let facts = process::facts(pid).unwrap();
    let mut options = options(pid);
    options.api_key = Some("sesame77".into());
    let plan = describe(&wants, Some(&facts), &options).join("\n");
    assert!(plan.contains(&format!("/proc/{pid}/cmdline")) && plan.contains("/props (without the API key)"), "{plan}");
    assert!(plan.contains("config.ini") && !plan.contains("sesame77"), "{plan}");

    let (mut capture, redactor) = collect_with(&wants, Some(&facts), &options);
    let text = |name: &str| String::from_utf8_lossy(capture.bytes(name).unwrap_or_default()).into_owned();
    assert!(text("proc_cmdline.json").contains("\"[redacted]\""));
    assert!(
        text("proc_environ.json").contains("FAKE_CTX=512")
            && text("proc_environ.json").contains("FAKE_API_KEY=[redacted]")
    );
    assert!(!text("proc_environ.json").contains("OTHER"));
    assert!(text("proc_status.txt").contains(&format!("Pid:\t{pid}")));
    assert!(text("maps_files.txt").contains("python"));
    assert!(text("process.json").contains("start_ticks"));
    assert!(text("listeners.json").contains(&port.to_string()));
    assert!(text("config.ini").contains("api-key = [redacted]") && text("config.ini").contains("ctx = 1"));
    assert!(text("health.json").contains("http://ascertain.invalid"), "{}", text("health.json"));
    assert!(text("props.json").contains("Bearer [redacted]"), "{}", text("props.json"));
    assert!(text("props_no_key.json").starts_with("{\"_status\": 401, \"_body\": \""), "{}", text("props_no_key.json"));
    let headers: serde_json::Value = serde_json::from_slice(capture.bytes("http_headers.json").unwrap()).unwrap();
    assert_eq!(headers["props_no_key.json"]["status"], 401);
    assert!(
        headers["props.json"]["headers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|pair| pair[0] == "x-key" && pair[1] == "[redacted]")
    );
    assert_eq!(capture.gap("absent.ini").map(|gap| gap.reason.as_str()), Some("not_present"));
    assert!(capture.entry("config.ini").unwrap().changed_ms.is_some());
    let entry = capture.entry("log.txt").unwrap();
    assert!(entry.source.ends_with("server log.txt"), "{entry:?}");
    assert!(entry.partial.as_deref().unwrap().contains("standard error only"), "{entry:?}");
    assert!(capture.manifest.remarks.iter().any(|remark| remark.kind == "address"), "{:?}", capture.manifest);
    assert_eq!(capture.manifest.start.as_ref().map(|start| start.pid), Some(pid));
    add(&mut capture, &redactor, "extra.json", "http://x", b"{\"k\":\"ini-secret-5 envkey99\"}");

    let path = dir.path().join("c.tgz");
    ascertain_capture::pack::write(&capture, &path).unwrap();
    let mut unpacked = String::new();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_end(&mut bytes).unwrap();
    unpacked.push_str(&String::from_utf8_lossy(&bytes));
    for secret in ["sesame77", "other88", "envkey99", "ini-secret-5"] {
        assert!(!unpacked.contains(secret), "{secret}");
    }
    assert_eq!(ascertain_capture::pack::read(&path).unwrap(), capture);
}

#[test]
fn where_the_log_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let shell = |script: String| {
        let child = Running(
            Command::new("bash")
                .args(["-c", &script])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let mut child = child;
        let mut pid = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut pid).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        (child, pid.trim().parse::<u32>().unwrap())
    };
    let log_of = |pid| {
        let capture = collect(&Wants::default(), None, &options(pid));
        (
            capture.entry("log.txt").unwrap().clone(),
            String::from_utf8_lossy(capture.bytes("log.txt").unwrap_or_default()).into_owned(),
        )
    };
    // Both streams in one file.
    let (_child, pid) = shell(format!("echo $$; exec > {0} 2>&1; echo both; exec sleep 30", file("both")));
    let (entry, text) = log_of(pid);
    assert_eq!((text.as_str(), &entry.partial, &entry.source), ("both\n", &None, &file("both")));
    assert!(entry.changed_ms.is_some());
    // A file that was removed.
    let (_child, pid) = shell(format!("echo $$; exec > {0} 2>&1; echo gone; rm {0}; exec sleep 30", file("gone")));
    let (entry, text) = log_of(pid);
    assert_eq!(text, "gone\n");
    assert!(entry.source.ends_with("(deleted)"));
    // Through a pipe to tee.
    let (_child, pid) =
        shell(format!("echo $$; exec > >(exec tee {0} > /dev/null) 2>&1; echo piped; exec sleep 30", file("tee")));
    let (entry, text) = log_of(pid);
    assert_eq!((text.as_str(), &entry.source), ("piped\n", &file("tee")), "{entry:?}");
    // Nowhere.
    let (_child, pid) = shell("echo $$; exec > /dev/null 2>&1; exec sleep 30".to_owned());
    let (entry, _) = log_of(pid);
    let gap = entry.gap.unwrap();
    assert!(gap.text.contains("/dev/null") && gap.remedy.unwrap().contains("--log FILE"));
    // Two different files.
    let (_child, pid) =
        shell(format!("echo $$; exec > {} 2> {}; echo o; echo e >&2; exec sleep 30", file("o"), file("e")));
    let capture = collect(&Wants::default(), None, &options(pid));
    assert_eq!((capture.bytes("log.txt"), capture.bytes("log_stdout.txt")), (Some(&b"e\n"[..]), Some(&b"o\n"[..])));
    // What the user names comes before all, what the process was told before its streams.
    std::fs::write(file("told"), "told").unwrap();
    std::fs::write(file("named"), "named").unwrap();
    let wants = Wants { log_file: Some(file("told")), ..Wants::default() };
    assert_eq!(collect(&wants, None, &options(pid)).bytes("log.txt"), Some(&b"told"[..]));
    let named = Options { log: Some(file("named").into()), ..options(pid) };
    assert_eq!(collect(&wants, None, &named).bytes("log.txt"), Some(&b"named"[..]));
    let named = Options { log: Some(file("absent").into()), ..options(pid) };
    assert_eq!(collect(&wants, None, &named).gap("log.txt").unwrap().reason, "not_present");
}

#[test]
fn a_server_that_never_answers_leaves_gaps_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let all: Vec<_> = listener.incoming().collect();
        drop(all);
    });
    let options = Options {
        address: Some(Address::Tcp { host: "127.0.0.1".into(), port, tls: false }),
        timeout: Duration::from_millis(300),
        ..Options::default()
    };
    let begun = Instant::now();
    let capture = collect(&wants(), None, &options);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(capture.gap("props.json").unwrap().reason, "timed_out");
    assert_eq!(capture.gap("proc_cmdline.json").unwrap().reason, "not_present");
    assert_eq!(capture.gap("log.txt").unwrap().reason, "not_present");
}

#[test]
fn html_and_endless_bodies() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut buffer = [0; 2048];
                let n = stream.read(&mut buffer).unwrap_or(0);
                if buffer[..n].starts_with(b"GET /health") {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>hi</html>");
                } else {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                    while stream.write_all(&[b'{'; 65536]).is_ok() {}
                }
            });
        }
    });
    let options = Options { address: Some(Address::Tcp { host: "::".into(), port, tls: false }), ..Options::default() };
    let capture = collect(&wants(), None, &options);
    assert_eq!(capture.bytes("health.json"), Some(&b"<html>hi</html>"[..]));
    assert_eq!(capture.gap("props.json").unwrap().reason, "too_large");
}

#[test]
fn another_process_on_the_port_is_noticed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Not a relative of this process.
    let mut child = Command::new("bash")
        .args(["-c", "setsid sleep 20 >/dev/null 2>&1 & echo $!"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    child.stdout.take().unwrap().read_to_string(&mut pid).unwrap();
    child.wait().unwrap();
    let pid: u32 = pid.trim().parse().unwrap();
    let wants =
        Wants { address: Some(Address::Tcp { host: "127.0.0.1".into(), port, tls: false }), ..Wants::default() };
    let chosen = choose_address(&wants, Some(pid), &options(pid));
    let _ = Command::new("kill").arg(pid.to_string()).status();
    assert_eq!(chosen.address, Ok(wants.address.unwrap()));
    assert_eq!(chosen.remarks.len(), 1);
    assert_eq!(chosen.remarks[0].kind, "identity");
    assert!(chosen.remarks[0].text.contains(&std::process::id().to_string()), "{:?}", chosen.remarks);
}

#[test]
fn a_process_that_is_gone() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    let capture = collect(&wants(), None, &options(pid));
    assert!(capture.artifacts.is_empty(), "{:?}", capture.artifacts.keys());
    assert!(capture.gap("proc_cmdline.json").is_some() && capture.gap("props.json").is_some());
}

/// A process in other namespaces, as in a container. Needs root; passes without a look where that is lacking.
#[test]
fn a_process_in_other_namespaces() {
    let script = "mount -t tmpfs none /mnt && echo inner > /mnt/x.ini && ln -s /mnt/x.ini /mnt/link.ini && echo $$ && exec sleep 30";
    let mut child = Running(
        Command::new("unshare")
            .args(["-m", "-n", "bash", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let mut pid = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    let Ok(pid) = pid.trim().parse::<u32>() else { return };
    let file = |artifact: &str, path: &str| FileWant { artifact: artifact.into(), path: path.into(), limit: 99 };
    let mut wants = wants();
    wants.files = vec![file("x.ini", "/mnt/x.ini"), file("link.ini", "/mnt/link.ini")];
    wants.address = Some(Address::Tcp { host: "127.0.0.1".into(), port: 9, tls: false });
    let capture = collect(&wants, None, &options(pid));
    assert_eq!(capture.bytes("x.ini"), Some(&b"inner\n"[..]), "{:?}", capture.entry("x.ini"));
    assert_eq!(capture.bytes("link.ini"), Some(&b"inner\n"[..]));
    assert_eq!(capture.entry("x.ini").unwrap().source, format!("/proc/{pid}/root/mnt/x.ini"));
    assert!(capture.gap("props.json").unwrap().text.contains("another network"));
}
