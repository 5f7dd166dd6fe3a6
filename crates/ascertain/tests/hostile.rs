//! What must be withstood: hostile servers, hostile evidence, damaged captures, and secrets wherever they stand.
//!
//! Whatever comes: no panic, no hang, no escape sequence, no secret, and no `confirmed` that nothing honest supports.

use ascertain_testkit::golden;
use serde_json::{Value as Json, json};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Seek, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ascertain");

/// Nothing may take longer, in a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);
/// Nor more memory than this, in KiB.
const MEMORY: u64 = 200 << 10;

/// What a run left, and what it took.
struct Ran {
    code: i32,
    out: String,
    err: String,
    took: Duration,
    peak_kib: u64,
}

fn run<S: AsRef<OsStr>>(args: &[S]) -> Ran {
    run_with(args, &[])
}

/// Runs the program and watches its memory. A run that lasts far too long is ended.
fn run_with<S: AsRef<OsStr>>(args: &[S], env: &[(&str, &str)]) -> Ran {
    let mut out = tempfile::tempfile().expect("a file");
    let mut err = tempfile::tempfile().expect("a file");
    let mut command = Command::new(PROGRAM);
    command.args(args).env_remove("NO_COLOR").env("COLUMNS", "80").envs(env.iter().copied());
    command.stdin(Stdio::null()).stdout(out.try_clone().expect("a file")).stderr(err.try_clone().expect("a file"));
    let begun = Instant::now();
    let mut child = command.spawn().expect("the program starts");
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let status = loop {
        let status = fs::read_to_string(&status_file).unwrap_or_default();
        let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        peak_kib = peak_kib.max(high.unwrap_or(0));
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if begun.elapsed() > 4 * PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("hangs: {:?}", args.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = begun.elapsed();
    let text = |file: &mut fs::File| {
        let mut text = Vec::new();
        file.rewind().expect("a file");
        file.read_to_end(&mut text).expect("a file");
        String::from_utf8(text).expect("output is UTF-8")
    };
    let (out, err) = (text(&mut out), text(&mut err));
    let code = status.code().unwrap_or_else(|| panic!("ended by a signal: {status} {err}"));
    assert!(code <= 4 && !err.contains("panicked at"), "{code}: {err}");
    Ran { code, out, err, took, peak_kib }
}

impl Ran {
    /// Neither slow nor greedy.
    fn modest(self, what: &str) -> Ran {
        assert!(self.took < PATIENCE, "{what} took {:?}", self.took);
        assert!(self.peak_kib < MEMORY, "{what} took {} KiB", self.peak_kib);
        self
    }

    /// It could not do its job and says so: one message, nothing else.
    fn refused(self, what: &str) -> Ran {
        let began: String = self.out.chars().take(200).collect();
        assert_eq!((self.code, began.as_str()), (2, ""), "{what}: {}", self.err);
        assert!(self.err.starts_with("error: "), "{what}: {}", self.err);
        assert_safe(what, &self.err);
        self
    }

    fn report(&self, what: &str) -> Json {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{what}: not JSON: {error}: {}{}", self.out, self.err))
    }
}

fn confirmed(report: &Json) -> Vec<String> {
    let claims = report["claims"].as_array().expect("claims");
    claims
        .iter()
        .filter(|claim| claim["verdict"] == "confirmed")
        .map(|claim| format!("{} by {}", claim["setting"], claim["evidence"]))
        .collect()
}

/// Nothing a terminal obeys, nothing that reorders what it shows.
fn assert_safe(what: &str, text: &str) {
    let bad = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    if let Some(c) = text.chars().find(bad) {
        let line = text.lines().find(|line| line.contains(c)).unwrap_or("");
        panic!("{what}: {:?} in {:?}", c, line);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// A process that looks like a server, and an endpoint behind it

/// A process that looks like a server, stopped when dropped: a copy of the shell under the server's name, which runs
/// its "model". Its endpoint is a thread of this test, which is its parent and so no stranger on its port.
struct Pretender {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Pretender {
    fn start(args: &[&str], env: &[(&str, &str)], log: &[u8]) -> Pretender {
        let folder = tempfile::tempdir().expect("a folder");
        let server = folder.path().join("llama-server");
        fs::copy("/bin/sh", &server).expect("a copy of the shell");
        fs::write(folder.path().join("model.gguf"), "while :; do sleep 1; done\n").expect("a model");
        let path = folder.path().join("log.txt");
        fs::write(&path, log).expect("a log");
        let open = || fs::OpenOptions::new().append(true).open(&path).expect("a log");
        let mut command = Command::new(server);
        command
            .args(["-m", "model.gguf"])
            .args(args)
            .envs(env.iter().copied())
            .env("HOME", folder.path())
            .env_remove("XDG_CONFIG_HOME");
        let child = command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(open())
            .stderr(open())
            .spawn()
            .expect("a shell");
        for _ in 0..500 {
            if fs::read(format!("/proc/{}/cmdline", child.id()))
                .is_ok_and(|line| line.windows(12).any(|part| part == b"llama-server"))
            {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Pretender { child, _folder: folder }
    }

    fn target(&self) -> String {
        format!("pid:{}", self.child.id())
    }
}

impl Drop for Pretender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until the test ends; the answer is the port. Each request's path is handed over.
fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = std::sync::Arc::clone(&answer);
            std::thread::spawn(move || {
                let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
                let _ = stream.set_write_timeout(Some(Duration::from_secs(10)));
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                answer(head.split(' ').nth(1).unwrap_or(""), &mut stream);
            });
        }
    });
    port.to_string()
}

fn respond(stream: &mut TcpStream, kind: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// What the server's operator asked for: much of what an endpoint can speak about.
const ASKED: &[&str] = &[
    "-c",
    "4096",
    "-np",
    "4",
    "--spec-type",
    "draft-mtp",
    "--metrics",
    "--slots",
    "--props",
    "--alias",
    "qwen",
    "-b",
    "512",
    "--host",
    "127.0.0.1",
    "--port",
];

/// Verifies a pretender whose endpoint answers like this; the answer is the report.
fn against(what: &str, answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Json {
    let port = serve(answer);
    let server = Pretender::start(&[ASKED, &[port.as_str()]].concat(), &[], b"");
    let target = server.target();
    let ran = run(&["verify", target.as_str(), "--timeout", "1", "--format", "json"]).modest(what);
    assert_safe(what, &ran.out);
    let report = ran.report(what);
    let text = run(&["verify", target.as_str(), "--timeout", "1", "-v"]).modest(what);
    assert_safe(what, &text.out);
    let state = report["invocation"]["state"].as_str();
    assert!(matches!(state, Some("running" | "silent")), "{what}: {report:#}");
    // What serves nobody is no success to a script.
    assert!(state == Some("running") || report["exit_code"] == 1, "{what}: {report:#}");
    assert_eq!(report["claims"].as_array().map(Vec::len), Some(11), "{what}: {report:#}");
    report
}

/// And nothing is confirmed by it.
fn nothing_from(what: &str, answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Json {
    let report = against(what, answer);
    assert_eq!(confirmed(&report), Vec::<String>::new(), "{what}");
    report
}

#[test]
fn an_endpoint_that_never_answers() {
    let report = nothing_from("silence", |_, _| std::thread::sleep(Duration::from_secs(20)));
    let notes: Vec<String> =
        report["witnesses"].as_array().expect("witnesses").iter().map(|witness| witness["note"].to_string()).collect();
    assert!(notes.iter().any(|note| note.contains("--timeout")), "{notes:?}");
}

#[test]
fn an_endpoint_that_drips() {
    nothing_from("drips the head", |_, stream| {
        for byte in b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n".iter().cycle() {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    nothing_from("drips the body", |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while stream.write_all(b"[").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

#[test]
fn an_endpoint_that_answers_two_gigabytes() {
    const HUGE: u64 = 2 << 30;
    let pour = |stream: &mut TcpStream, head: &str, chunked: bool| {
        let _ = stream.write_all(head.as_bytes());
        let block = vec![b' '; 64 << 10];
        let mut sent = 0;
        while sent < HUGE {
            let framed = if chunked { stream.write_all(b"10000\r\n") } else { Ok(()) };
            if framed
                .and_then(|()| stream.write_all(&block))
                .and_then(|()| if chunked { stream.write_all(b"\r\n") } else { Ok(()) })
                .is_err()
            {
                return;
            }
            sent += block.len() as u64;
        }
    };
    nothing_from("2 GB, as announced", move |_, stream| {
        pour(stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\n\r\n"), false)
    });
    nothing_from("2 GB until the end", move |_, stream| {
        pour(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", false)
    });
    nothing_from("2 GB in chunks", move |_, stream| {
        pour(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true)
    });
    nothing_from("2 GB of head", move |_, stream| pour(stream, "HTTP/1.1 200 OK\r\nX-Long: ", false));
}

#[test]
fn an_endpoint_that_lies_about_its_length() {
    let props = props("4096", "4", "\"qwen\"");
    let (short, long, chunk) = (props.clone(), props.clone(), props);
    // The end is missing: half an answer is no answer, even if what came is JSON.
    nothing_from("announces more than it sends", move |_, stream| {
        let _ = stream.write_all(
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", short.len() + 100, &short[..short.len() - 1])
                .as_bytes(),
        );
    });
    nothing_from("announces less than it sends", move |_, stream| {
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{long}").as_bytes());
    });
    nothing_from("two lengths", move |_, stream| {
        let _ = stream.write_all(
            format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: {}\r\n\r\n{chunk}", chunk.len())
                .as_bytes(),
        );
    });
    nothing_from("a chunk of 2^63 bytes", |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n{}");
    });
    nothing_from("no HTTP", |_, stream| drop(stream.write_all(b"\x16\x03\x01\x02\x00SSH-2.0-x\r\n")));
    nothing_from("closes at once", |_, _| {});
}

#[test]
fn web_pages_everywhere_confirm_nothing() {
    let page = b"<!doctype html><html><body>n_ctx 4096 qwen draft-mtp {\"n_ctx\": 4096}</body></html>";
    let report = nothing_from("HTML with 200 on every path", |_, stream| respond(stream, "text/html", page));
    for claim in report["claims"].as_array().expect("claims") {
        assert!(claim["rung"].is_null(), "{claim:#}");
    }
    nothing_from("HTML that calls itself JSON", |_, stream| respond(stream, "application/json", page));
    nothing_from("nothing with 200", |_, stream| respond(stream, "application/json", b""));
    nothing_from("text with 200", |_, stream| respond(stream, "text/plain; version=0.0.4", b"Welcome\nto nginx!\n"));
    let mut wrong = Vec::new();
    for body in ["null", "[]", "{}", "0", "\"\"", "true", "[[[]]]", "{\"status\":\"ok\"}"] {
        let report = against(body, move |_, stream| respond(stream, "application/json", body.as_bytes()));
        wrong.extend(confirmed(&report).into_iter().map(|line| format!("{body}: {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = serve(|_, stream| respond(stream, "application/json", props("4096", "4", "\"qwen\"").as_bytes()));
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let elsewhere = elsewhere.clone();
        nothing_from(status, move |path, stream| {
            let _ = stream.write_all(
                format!(
                    "HTTP/1.1 {status}\r\nLocation: http://127.0.0.1:{elsewhere}{path}\r\nContent-Length: 0\r\n\r\n"
                )
                .as_bytes(),
            );
        });
    }
    nothing_from("a redirect to itself", |path, stream| {
        let _ =
            stream.write_all(format!("HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\n\r\n").as_bytes());
    });
}

/// An answer of `/props` with these JSON texts in it.
fn props(n_ctx: &str, slots: &str, alias: &str) -> String {
    format!(
        "{{\"default_generation_settings\":{{\"n_ctx\":{n_ctx},\"params\":{{}}}},\"total_slots\":{slots},\"model_alias\":{alias},\
         \"model_path\":\"other.gguf\",\"build_info\":\"b11434-x\"}}"
    )
}

/// Answers `/props` like this and everything else with 404.
fn only_props(body: Vec<u8>) -> impl Fn(&str, &mut TcpStream) + Send + Sync + 'static {
    move |path, stream| {
        if path == "/props" {
            respond(stream, "application/json", &body);
        } else {
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
    }
}

#[test]
fn answers_that_are_not_what_they_should_be() {
    nothing_from(
        "invalid UTF-8",
        only_props([b"{\"model_alias\":\"qwen\xff\xfe\",\"total_slots\":", &b"\xc3\x28}"[..]].concat()),
    );
    nothing_from("a million brackets", only_props(vec![b'['; 1_000_000]));
    nothing_from("a million objects", only_props(b"{\"a\":".repeat(200_000)));
    nothing_from("a million closed brackets", only_props([vec![b'['; 500_000], vec![b']'; 500_000]].concat()));
    let nested = format!("{{\"default_generation_settings\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    nothing_from("deep inside", only_props(nested.into_bytes()));
    nothing_from("a byte order mark", only_props([b"\xef\xbb\xbf", props("1", "1", "\"x\"").as_bytes()].concat()));
    nothing_from("NULs", only_props(vec![0; 100_000]));
    nothing_from(
        "more after the end",
        only_props(format!("{}{}", props("4096", "4", "\"qwen\""), props("1", "1", "\"x\"")).into_bytes()),
    );
    for number in [
        "1e999",
        "-1e999",
        "99999999999999999999999999",
        "-4096",
        "4096.5",
        "0x1000",
        "NaN",
        "1e-400",
        "18446744073709551615",
        "9223372036854775808",
    ] {
        nothing_from(number, only_props(props(number, number, "\"x\"").into_bytes()));
    }
    nothing_from("a number of a megabyte", only_props(props(&"9".repeat(1 << 20), "-4", "\"x\"").into_bytes()));
}

#[test]
fn fields_of_another_type_confirm_nothing() {
    let answer = |path: &str, stream: &mut TcpStream| {
        let body = match path {
            "/props" => json!({
                "default_generation_settings": { "n_ctx": "4096", "params": ["speculative.types", "draft-mtp"], "speculative": "true" },
                "total_slots": -4, "model_path": ["model.gguf"], "model_alias": { "qwen": "qwen" },
                "endpoint_metrics": "yes", "endpoint_slots": [], "endpoint_props": {}, "build_info": 11434,
            }),
            "/slots" => json!({ "0": { "id": 0, "n_ctx": 4096, "speculative": true }, "n_ctx": 4096 }),
            "/v1/models" => json!({ "data": { "id": "qwen", "meta": { "n_ctx": "4096" } }, "models": "qwen" }),
            "/metrics" => json!({ "llamacpp:n_decode_total": 12 }),
            _ => json!({ "status": 1 }),
        };
        respond(stream, "application/json", body.to_string().as_bytes());
    };
    nothing_from("wrong types", answer);
}

#[test]
fn elements_of_another_type_confirm_nothing() {
    nothing_from("arrays of everything", |path, stream| {
        let body = match path {
            "/slots" => {
                json!(["a", 1, null, [], { "n_ctx": [4096] }, { "n_ctx": null, "speculative": "true", "id": -1 }])
            }
            _ => json!([{ "n_ctx": 4096 }]),
        };
        respond(stream, "application/json", body.to_string().as_bytes());
    });
}

/// An honest server writes no key twice. What is confirmed from such an answer must at least not hide the other value.
#[test]
fn a_key_that_stands_twice_confirms_nothing() {
    for twice in ["\"total_slots\":4,\"total_slots\":1", "\"total_slots\":1,\"total_slots\":4"] {
        let report = against(twice, only_props(format!("{{{twice},\"build_info\":\"b11434-x\"}}").into_bytes()));
        for claim in report["claims"].as_array().expect("claims") {
            for evidence in claim["evidence"]
                .as_array()
                .expect("evidence")
                .iter()
                .filter(|evidence| evidence["locus"]["label"] == "/total_slots")
            {
                let (excerpt, value) =
                    (evidence["excerpt"].as_str().unwrap_or(""), evidence["value"].as_str().unwrap_or("?"));
                assert!(
                    excerpt.ends_with(value),
                    "{twice}: the proof shows another value than the one that was judged: {evidence:#}"
                );
            }
        }
        assert_eq!(confirmed(&report), Vec::<String>::new(), "{twice}");
    }
}

#[test]
fn metrics_that_are_none() {
    for (what, body) in [
        (
            "numbers",
            "llamacpp:n_decode_total NaN\nllamacpp:requests_processing -Inf\nllamacpp:prompt_tokens_total 1e999\n"
                .to_string(),
        ),
        ("labels without end", format!("llamacpp:x{{{}\n", "a=\"".repeat(100_000))),
        ("one line", "llamacpp:".repeat(100_000)),
        ("comments only", "# HELP\n# TYPE\n".repeat(10_000)),
    ] {
        let report = against(what, move |path, stream| match path {
            "/metrics" => respond(stream, "text/plain", body.as_bytes()),
            _ => drop(stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")),
        });
        // That an endpoint which looks like metrics answers may confirm that there is one, and no more.
        let others: Vec<String> =
            confirmed(&report).into_iter().filter(|line| !line.starts_with("\"metrics\"")).collect();
        assert_eq!(others, Vec::<String>::new(), "{what}");
    }
}

#[test]
fn what_a_server_says_is_not_obeyed_by_the_terminal() {
    let evil = "\u{1b}[2J\u{1b}]52;c;Zm9v\u{7}\u{202e}\u{9b}31m\u{7f}\r";
    let report = against("escapes in fields", move |path, stream| {
        let body = match path {
            "/props" => {
                json!({ "model_alias": format!("qwen{evil}"), "model_path": format!("model{evil}.gguf"), "build_info": format!("b1{evil}"), "total_slots": 4 })
            }
            "/v1/models" => json!({ "data": [{ "id": evil }] }),
            _ => json!({ "error": { "message": evil } }),
        };
        respond(stream, "application/json", body.to_string().as_bytes());
    });
    assert!(confirmed(&report).iter().all(|line| line.starts_with("\"parallel\"")), "{:?}", confirmed(&report));
    against("escapes in headers", move |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 500 \x1b[2J\r\nServer: \x1b]0;x\x07\r\nContent-Length: 4\r\n\r\n\x1b[2J");
    });
}

#[test]
fn an_address_that_no_engine_holds_is_refused() {
    let port = serve(|_, stream| respond(stream, "text/html", b"<html>"));
    let url = format!("http://127.0.0.1:{port}");
    let ran = run(&["verify", url.as_str(), "--timeout", "1"]).modest("no engine").refused("no engine");
    assert!(ran.err.contains("is no engine that ascertain knows"), "{}", ran.err);
}

#[test]
fn exercise_against_a_hostile_server_confirms_nothing() {
    let port = serve(|_, stream| respond(stream, "text/html", b"<html>ok</html>"));
    let server = Pretender::start(&[ASKED, &[port.as_str()]].concat(), &[], b"");
    let target = server.target();
    let report = run(&["verify", target.as_str(), "--exercise", "--timeout", "1", "--format", "json"])
        .modest("exercise")
        .report("exercise");
    assert_eq!(confirmed(&report), Vec::<String>::new());
    for claim in report["claims"].as_array().expect("claims").iter().filter(|claim| !claim["effect"].is_null()) {
        assert_ne!(claim["effect"]["verdict"], "confirmed");
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Evidence directories

/// A copy of a golden capture that may be spoilt.
fn evidence(name: &str) -> (tempfile::TempDir, PathBuf) {
    let all = golden("llamacpp").expect("the recordings are there");
    let (_, source) = all.into_iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no recording {name}"));
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join(name);
    fs::create_dir(&copy).expect("a folder");
    for entry in fs::read_dir(source).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), copy.join(entry.file_name())).expect("a copy");
    }
    (folder, copy)
}

fn verify_json(path: &Path) -> Ran {
    run(&[OsStr::new("verify"), path.as_os_str(), OsStr::new("--format"), OsStr::new("json")])
}

/// What the verdicts are, without where the proof stands.
fn verdicts(report: &Json) -> Vec<(String, String, String)> {
    let of = |claim: &Json, field: &str| claim[field].to_string();
    report["claims"]
        .as_array()
        .expect("claims")
        .iter()
        .map(|claim| (of(claim, "setting"), of(claim, "verdict"), of(claim, "effective")))
        .collect()
}

/// Everything that can be had of a target, each with its name: both formats, every ladder, and a packed capture.
fn everything(target: &OsStr) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, ran: Ran| {
        all.push((format!("{name}: stdout"), ran.out));
        all.push((format!("{name}: stderr"), ran.err));
    };
    let word = OsStr::new;
    let with = |command: &str, more: &[&OsStr]| {
        let rest = [&[target][..], more, &[word("--timeout"), word("1")]].concat();
        run(&[&[word(command)][..], &rest].concat())
    };
    add("json", with("verify", &[word("--format"), word("json")]));
    add("text", with("verify", &[]));
    add("verbose", with("verify", &[word("-v")]));
    add("no such setting", with("explain", &[word("no_such_setting")]));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("packed.tgz");
    let packed = with("capture", &[word("-o"), file.as_os_str()]);
    assert_eq!(packed.code, 0, "{}", packed.err);
    add("capture", packed);

    // The ladders of the capture, without a process for each.
    let capture = ascertain::target::stored(&file).expect("a capture");
    let report = ascertain::verify(&capture, false).expect("a report");
    for claim in &report.claims {
        let mut out = Vec::new();
        let paint = ascertain::render::Paint { colour: false, width: 80 };
        ascertain::render::explain::write(&report, claim, paint, &mut out).expect("memory");
        ascertain::render::json::write(claim, &mut out).expect("memory");
        all.push((format!("explain {}", claim.setting), String::from_utf8(out).expect("UTF-8")));
    }
    all.push(("manifest".into(), serde_json::to_string(&capture.manifest).expect("a manifest")));
    for (name, bytes) in &capture.artifacts {
        all.push((format!("artifact {name}"), String::from_utf8_lossy(bytes).into_owned()));
    }
    all
}

fn assert_all_safe(what: &str, target: &Path) {
    for (name, text) in everything(target.as_os_str()) {
        // A capture keeps the bytes as they were; only what is shown must be safe.
        if !name.starts_with("artifact ") && name != "manifest" {
            assert_safe(&format!("{what}: {name}"), &text);
        }
    }
}

#[test]
fn broken_json_names_the_file_and_the_line() {
    let (_folder, path) = evidence("mtp");
    for name in [
        "completion.json",
        "http_headers.json",
        "listeners.json",
        "process.json",
        "checkpoint.json",
        "exercise_speculation_0.json",
        "config.json",
    ] {
        fs::write(path.join(name), "{}").expect("a file");
    }
    let mut names: Vec<String> = fs::read_dir(&path)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.retain(|name| name.ends_with(".json") && name != "config.json");
    assert!(names.len() >= 14, "{names:?}");
    for name in names {
        let whole = fs::read(path.join(&name)).expect("a file");
        for (broken, line) in [
            (&b"{\n\"a\": 1,\n oops"[..], Some(":3:")),
            (b"", Some(":1:")),
            (b"\x00\x00", None),
            (b"{} {}", Some(":1:")),
            (b"<html>", None),
            (b"\"\xff\"", None),
        ] {
            fs::write(path.join(&name), broken).expect("a file");
            let ran = verify_json(&path).modest(&name).refused(&name);
            assert!(ran.err.contains(&format!("{name}{}", line.unwrap_or(":"))), "{name}: {}", ran.err);
            assert!(ran.err.contains("not JSON"), "{name}: {}", ran.err);
        }
        fs::write(path.join(&name), "[".repeat(1_000_000)).expect("a file");
        assert!(verify_json(&path).modest(&name).refused(&name).err.contains(&name));
        fs::write(path.join(&name), whole).expect("a file");
    }
    // What nobody reads may be anything.
    fs::write(path.join("config.json"), "{").expect("a file");
    assert_ne!(verify_json(&path).code, 2);
}

#[test]
fn json_of_another_shape_is_no_crash_and_confirms_nothing_more() {
    let (_folder, path) = evidence("mtp");
    let honest: Vec<_> = verdicts(&verify_json(&path).report("mtp"))
        .into_iter()
        .filter(|(_, verdict, _)| verdict == "\"confirmed\"")
        .collect();
    for name in [
        "meta.json",
        "proc_cmdline.json",
        "proc_environ_llama.json",
        "health.json",
        "props.json",
        "slots_before.json",
        "slots_after.json",
        "v1_models.json",
        "completion.json",
        "chat.json",
        "process.json",
        "listeners.json",
        "http_headers.json",
        "checkpoint.json",
        "exercise_speculation_0.json",
    ] {
        let whole = fs::read(path.join(name)).ok();
        for odd in [
            "null",
            "[]",
            "{}",
            "0",
            "-1",
            "1e308",
            "\"x\"",
            "true",
            "[null]",
            "[[],{}]",
            "[1,\"a\"]",
            "{\"argv\":{\"a\":1},\"env\":[],\"rc\":\"x\",\"ready\":1,\"name\":[]}",
            "{\"_status\":\"200\",\"_body\":7}",
            "{\"_status\":99999999999,\"_body\":\"\"}",
            "{\"_status\":-1}",
        ] {
            fs::write(path.join(name), odd).expect("a file");
            // In this process: there are hundreds.
            let capture = ascertain::target::stored(&path).unwrap_or_else(|error| panic!("{name} {odd}: {error}"));
            let report = ascertain::verify(&capture, false).expect("a report");
            let report = serde_json::to_value(report).expect("JSON");
            if name != "proc_cmdline.json" && name != "meta.json" {
                for found in verdicts(&report).into_iter().filter(|(_, verdict, _)| verdict == "\"confirmed\"") {
                    assert!(
                        honest.contains(&found),
                        "{name} {odd}: {found:?} is confirmed only since the file is broken"
                    );
                }
            }
        }
        match whole {
            Some(whole) => fs::write(path.join(name), whole).expect("a file"),
            None => fs::remove_file(path.join(name)).expect("a file"),
        }
    }
}

#[test]
fn empty_files_are_no_testimony() {
    let (_folder, path) = evidence("mtp");
    for name in
        ["log.txt", "metrics_before.txt", "metrics_after.txt", "chat_stream.sse", "proc_status.txt", "maps_files.txt"]
    {
        fs::write(path.join(name), "").expect("a file");
    }
    for name in [
        "props.json",
        "slots_before.json",
        "slots_after.json",
        "v1_models.json",
        "completion.json",
        "chat.json",
        "health.json",
    ] {
        let _ = fs::remove_file(path.join(name));
    }
    let report = verify_json(&path).modest("empty").report("empty");
    assert_eq!(confirmed(&report), Vec::<String>::new());
}

/// What a terminal would obey: colours, clearing, the clipboard, the title, one-byte CSI, backspaces, direction overrides.
const EVIL: &str =
    "\u{1b}[31m\u{1b}[2J\u{1b}]52;c;Zm9v\u{7}\u{1b}]0;t\u{1b}\\\u{9b}1A\u{8}\u{8}\u{7f}\u{202e}\u{2066}\u{200f}\r";

#[test]
fn logs_are_shown_not_obeyed() {
    for name in ["mtp", "draft-md-without-spec-type", "bad-flag", "config-ini", "ctx-gt-train"] {
        let (_folder, path) = evidence(name);
        let log = fs::read_to_string(path.join("log.txt")).expect("a log");
        for (what, changed) in [
            ("at the ends of lines", log.replace('\n', &format!("{EVIL}\n"))),
            ("at the beginnings", log.lines().map(|line| format!("{EVIL}{line}\n")).collect()),
            ("in quotes", log.replace('\'', &format!("{EVIL}'"))),
            ("around every blank", log.replace(' ', &format!("{EVIL} "))),
            ("in names", log.replace("draft", &format!("dr{EVIL}aft")).replace("gguf", &format!("gg{EVIL}uf"))),
        ] {
            fs::write(path.join("log.txt"), changed).expect("a log");
            assert_all_safe(&format!("{name}, {what}"), &path);
        }
    }
}

#[test]
fn arguments_environment_and_files_are_shown_not_obeyed() {
    let (_folder, path) = evidence("mtp");
    let argv = json!([
        "/opt/llama-server",
        "-m",
        format!("/models/a{EVIL}\nb.gguf"),
        "--spec-type",
        format!("draft-mtp{EVIL}"),
        "--alias",
        format!("{EVIL}\n\n✓ CONFIRMED  As intended"),
        format!("--no-such{EVIL}"),
        "x",
        format!("--spec-type{EVIL}={EVIL}"),
        "",
        "\n",
        "--",
        "-",
        format!("-c\n4096"),
        "--port",
        format!("{EVIL}1"),
        "--host",
        format!("h{EVIL}"),
        "--chat-template",
        format!("{{{{{EVIL}}}}}"),
        "--api-prefix",
        format!("/{EVIL}"),
        "--log-file",
        format!("/{EVIL}"),
    ]);
    fs::write(path.join("proc_cmdline.json"), argv.to_string()).expect("a file");
    let environ = json!([
        format!("LLAMA_ARG_CTX_SIZE=4096{EVIL}"),
        format!("LLAMA_ARG_{EVIL}=x"),
        "LLAMA_ARG_N_PARALLEL=\n4\n",
        "=",
        "",
        "HOME"
    ]);
    fs::write(path.join("proc_environ_llama.json"), environ.to_string()).expect("a file");
    let config = format!(
        "[*]\nctx-size = 1{EVIL}\nalias{EVIL} = {EVIL}\n[{EVIL}]\n= x\nx\n\u{0}\n;\n[\n]\nspec-type = draft-mtp\nspec-type = none\n"
    );
    fs::write(path.join("config.ini"), config).expect("a file");
    let meta = json!({ "name": format!("mtp{EVIL}\n\n✓ CONFIRMED"), "argv": ["llama-server"], "env": { EVIL: EVIL }, "ready": true });
    fs::write(path.join("meta.json"), meta.to_string()).expect("a file");
    let props = json!({ "model_alias": EVIL, "model_path": EVIL, "build_info": format!("b1{EVIL}"), "chat_template": EVIL, "total_slots": 4, EVIL: EVIL });
    fs::write(path.join("props.json"), props.to_string()).expect("a file");
    fs::write(path.join("v1_models.json"), json!({ "data": [{ "id": EVIL, "aliases": [EVIL] }] }).to_string())
        .expect("a file");
    fs::write(path.join("health.json"), json!({ "_status": 503, "_body": EVIL }).to_string()).expect("a file");
    fs::write(path.join("metrics_after.txt"), format!("llamacpp:x{{a=\"{EVIL}\"}} 1\n{EVIL} {EVIL}\n"))
        .expect("a file");
    assert_all_safe("everywhere", &path);
    // The first line is ours alone: no name can put a verdict there or anywhere else.
    let text = run(&[OsStr::new("verify"), path.as_os_str()]).out;
    assert!(!text.lines().skip(1).any(|line| line.starts_with("✓ CONFIRMED")), "{text}");
}

#[test]
fn a_server_that_did_not_start_is_shown_not_obeyed() {
    let (_folder, path) = evidence("bad-flag");
    fs::write(path.join("log.txt"), format!("error: invalid argument: {EVIL}--spec-tpye{EVIL}\n{EVIL}\n"))
        .expect("a log");
    fs::write(path.join("meta.json"), json!({ "name": EVIL, "argv": ["llama-server", format!("{EVIL}--spec-tpye{EVIL}")], "env": {}, "ready": false, "rc": -9223372036854775808_i64 }).to_string()).expect("a file");
    assert_all_safe("did not start", &path);
}

#[test]
fn messages_are_safe_too() {
    let evil = format!("/no/{EVIL}\nhint: rm -rf /");
    for args in [vec!["verify", evil.as_str()], vec!["verify", EVIL], vec!["capture", evil.as_str(), "-o", "x"]] {
        run(&args).refused("a name with escapes");
    }
    let (_folder, path) = evidence("mtp");
    run(&[OsStr::new("explain"), path.as_os_str(), OsStr::new(EVIL)]).refused("a setting with escapes");
    // A capture whose first file has such a name.
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("e\u{1b}[2Jvil");
    fs::write(&inner, "x").expect("a file");
    let file = folder.path().join("x.tgz");
    let tar = Command::new("tar").arg("-czf").arg(&file).arg("-C").arg(folder.path()).arg("e\u{1b}[2Jvil").status();
    if tar.is_ok_and(|status| status.success()) {
        let ran = run(&[OsStr::new("verify"), file.as_os_str()]).refused("an archive of something else");
        assert!(ran.err.contains("is not a capture"), "{}", ran.err);
    }
}

#[test]
fn processes_with_odd_names_are_listed_safely() {
    let server = Pretender::start(&["--port", "1", "--alias", &format!("a{EVIL}b")], &[], b"");
    for args in [
        &["list"][..],
        &["list", "--format", "json"],
        &["verify", "no-such-name"],
        &["verify", &server.target(), "--dry-run", "--timeout", "1"],
    ] {
        let ran = run(args);
        assert_safe(&format!("{args:?}"), &ran.out);
        assert_safe(&format!("{args:?}"), &ran.err);
    }
}

#[test]
fn logs_of_every_kind_end_in_a_report() {
    let (_folder, path) = evidence("mtp");
    let log = fs::read(path.join("log.txt")).expect("a log");
    let honest = verdicts(&verify_json(&path).report("mtp"));
    // Line ends of another system change nothing.
    fs::write(path.join("log.txt"), String::from_utf8_lossy(&log).replace('\n', "\r\n")).expect("a log");
    assert_eq!(verdicts(&verify_json(&path).report("CRLF")), honest);

    let mut noise = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |length: usize| -> Vec<u8> {
        (0..length)
            .map(|_| {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                noise.to_le_bytes()[3]
            })
            .collect()
    };
    let huge = [&log[..], &vec![b'x'; 32 << 20]].concat();
    let repeated = [&log[..], &b"0.00.176.344 I srv    load_model: loading model '".repeat(600_000)].concat();
    let lines = [&log[..], &b"0.01.000.000 I srv  update_slots: all slots are idle\n".repeat(200_000)].concat();
    for (what, bytes) in [
        ("one line of 32 MB", huge),
        ("one line that begins like many", repeated),
        ("200 000 lines", lines),
        ("binary", random(4 << 20)),
        ("NULs", vec![0; 1 << 20]),
        ("NULs between", log.iter().flat_map(|byte| [*byte, 0]).collect()),
        ("32 MB of line breaks", vec![b'\n'; 32 << 20]),
        ("carriage returns only", log.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect()),
        ("brackets and escapes", b"\x1b[".repeat(1 << 20)),
        ("an escape without end", [b"\x1b]52;c;", &vec![b'A'; 8 << 20][..]].concat()),
        ("cut in the middle", log[..log.len() / 2].to_vec()),
    ] {
        fs::write(path.join("log.txt"), bytes).expect("a log");
        let ran = verify_json(&path);
        assert!(ran.took < PATIENCE, "{what} took {:?}", ran.took);
        assert!(ran.peak_kib < MEMORY, "{what} took {} KiB", ran.peak_kib);
        assert_safe(what, &ran.out);
        assert_ne!(ran.code, 2, "{what}: {}", ran.err);
        for found in verdicts(&ran.report(what)).into_iter().filter(|(_, verdict, _)| verdict == "\"confirmed\"") {
            assert!(honest.contains(&found), "{what}: {found:?}");
        }
    }
}

#[test]
fn what_is_no_plain_file_is_a_gap() {
    let (_folder, path) = evidence("mtp");
    let log = path.join("log.txt");
    let spoil: [(&str, &dyn Fn()); 5] = [
        ("a FIFO", &|| assert!(Command::new("mkfifo").arg(&log).status().expect("mkfifo").success())),
        ("a link to a device", &|| symlink("/dev/zero", &log).expect("a link")),
        ("a link to nothing", &|| symlink("/no/such/file", &log).expect("a link")),
        ("a link to itself", &|| symlink(&log, &log).expect("a link")),
        ("a folder", &|| fs::create_dir(&log).expect("a folder")),
    ];
    for (what, make) in spoil {
        let _ = fs::remove_file(&log);
        make();
        let ran = verify_json(&path).modest(what);
        assert_ne!(ran.code, 2, "{what}: {}", ran.err);
        let report = ran.report(what);
        let witness = report["witnesses"]
            .as_array()
            .expect("witnesses")
            .iter()
            .find(|witness| witness["name"] == "log")
            .expect("a log")
            .clone();
        assert_ne!(witness["state"], "spoke", "{what}");
        assert!(witness["note"].as_str().is_some_and(|note| note.contains("not a regular file")), "{what}: {witness}");
        assert!(
            run(&[
                OsStr::new("capture"),
                path.as_os_str(),
                OsStr::new("-o"),
                path.join("x.tgz").as_os_str(),
                OsStr::new("--force")
            ])
            .code
                == 0,
            "{what}"
        );
    }
    // The same where a file was named by hand.
    let (_folder, path) = evidence("mtp");
    let fifo = path.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    for odd in [fifo.as_path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
        run(&[OsStr::new("verify"), odd.as_os_str()]).modest("as a target").refused("as a target");
        run(&[OsStr::new("verify"), path.as_os_str(), OsStr::new("--log"), odd.as_os_str()])
            .modest("as a log")
            .refused("as a log");
        let server = Pretender::start(&["--port", "1"], &[], b"");
        run(&[OsStr::new("verify"), OsStr::new(&server.target()), OsStr::new("--log"), odd.as_os_str()])
            .modest("as a log")
            .refused("as a log");
    }
}

#[test]
fn files_that_may_not_be_read_are_named() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    let (folder, path) = evidence("mtp");
    mode(&path.join("props.json"), 0o000);
    let program = folder.path().join("ascertain");
    fs::copy(PROGRAM, &program).expect("a copy");
    mode(folder.path(), 0o755);
    let may_read = fs::read(path.join("props.json")).is_ok();
    let mut command = if may_read { Command::new("setpriv") } else { Command::new(&program) };
    if may_read {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    }
    let Ok(output) = command.arg("verify").arg(&path).stdin(Stdio::null()).output() else {
        eprintln!("skipped: needs setpriv to become another user");
        return;
    };
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if said.starts_with("setpriv:") {
        eprintln!("skipped: {said}");
        return;
    }
    assert!(said.contains("props.json") && said.to_lowercase().contains("permi"), "{said}");
    assert_eq!(output.status.code(), Some(2), "{said}");
}

#[test]
fn thousands_of_files_are_no_burden() {
    let (_folder, path) = evidence("mtp");
    let honest = verify_json(&path).out;
    for index in 0..5_000 {
        fs::write(path.join(format!("other_{index}.json")), "{").expect("a file");
    }
    assert_eq!(verify_json(&path).modest("other files").out, honest);
    for index in 0..3_000 {
        fs::write(path.join(format!("exercise_speculation_{index}.json")), r#"{"request":{},"status":200,"body":{}}"#)
            .expect("a file");
    }
    let ran = verify_json(&path).modest("many exchanges");
    assert_ne!(ran.code, 2, "{}", ran.err);
    for index in 3_000..5_000 {
        fs::write(path.join(format!("exercise_speculation_{index}.json")), r#"{"request":{},"status":200,"body":{}}"#)
            .expect("a file");
    }
    // More than a capture may hold: judged or refused, with a message.
    let ran = verify_json(&path).modest("too many exchanges");
    assert!(ran.code != 2 || ran.err.contains("4096"), "{}", ran.err);
    let packed = run(&[OsStr::new("capture"), path.as_os_str(), OsStr::new("-o"), path.join("x.tgz").as_os_str()])
        .modest("too many to pack");
    assert!(packed.code == 2 && packed.err.contains("4096"), "{} {}", packed.code, packed.err);
}

#[test]
fn names_that_are_no_text_are_passed_over() {
    let (folder, path) = evidence("mtp");
    let honest = verify_json(&path).out;
    fs::write(path.join(OsStr::from_bytes(b"log\xff.txt")), "x").expect("a file");
    fs::write(path.join("\u{1b}[2J.json"), "{").expect("a file");
    assert_eq!(verify_json(&path).out, honest);
    // And a folder may be called anything, where that is text.
    let odd = folder.path().join(format!("x{EVIL}\nx"));
    fs::rename(&path, &odd).expect("a name");
    fs::remove_file(odd.join("meta.json")).expect("a file");
    assert_all_safe("an odd folder", &odd);
}

// ---------------------------------------------------------------------------------------------------------------------
// Capture files

fn packed(name: &str) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let (folder, path) = evidence(name);
    let file = folder.path().join("packed.tgz");
    let ran = run(&[OsStr::new("capture"), path.as_os_str(), OsStr::new("-o"), file.as_os_str()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let bytes = fs::read(&file).expect("a file");
    (folder, file, bytes)
}

#[test]
fn a_truncated_capture_is_refused() {
    let (_folder, file, bytes) = packed("mtp");
    for step in 0..50 {
        let length = bytes.len() * step / 50;
        fs::write(&file, &bytes[..length]).expect("a file");
        let ran = verify_json(&file).modest("truncated").refused("truncated");
        assert!(ran.err.contains("packed.tgz"), "{}", ran.err);
        let wanted = if length < 2 { "is not a capture" } else { "is truncated" };
        assert!(ran.err.contains(wanted), "at {length} of {}: {}", bytes.len(), ran.err);
    }
    for missing in 1..12 {
        fs::write(&file, &bytes[..bytes.len() - missing]).expect("a file");
        verify_json(&file).refused("without its end");
    }
}

#[test]
fn a_changed_capture_is_refused_or_means_the_same() {
    let (_folder, file, bytes) = packed("mtp");
    let honest = verify_json(&file).report("honest");
    let mut refused = 0;
    let places = (0..12).chain((1..60).map(|step| bytes.len() * step / 60)).chain(bytes.len() - 8..bytes.len());
    for place in places {
        for bit in [0x01, 0x80] {
            let mut changed = bytes.clone();
            changed[place] ^= bit;
            fs::write(&file, &changed).expect("a file");
            // In this process: there are hundreds.
            match ascertain::target::stored(&file) {
                Err(failure) => {
                    assert_safe("changed", &failure.to_string());
                    assert!(failure.to_string().contains("packed.tgz"), "{failure}");
                    refused += 1;
                }
                Ok(capture) => {
                    // The gzip header holds a time and a system that mean nothing.
                    assert!(place < 10, "byte {place} of {} may change unnoticed", bytes.len());
                    let report = ascertain::verify(&capture, false).expect("a report");
                    assert_eq!(serde_json::to_value(report).expect("JSON"), honest, "byte {place}");
                }
            }
        }
    }
    assert!(refused > 120, "{refused}");
    let mut changed = bytes;
    let middle = changed.len() / 2;
    changed[middle] ^= 0x10;
    fs::write(&file, &changed).expect("a file");
    verify_json(&file).modest("changed").refused("changed");
}

#[test]
fn a_capture_made_to_harm_is_refused() {
    let (_folder, file, bytes) = packed("mtp");
    let gzip = |input: &[u8]| -> Option<Vec<u8>> {
        let mut child =
            Command::new("gzip").args(["-1", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut stdin = child.stdin.take()?;
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().ok()?;
        writer.join().ok()?.ok()?;
        Some(output.stdout)
    };
    let Some(zeros) = gzip(&vec![0; 64 << 20]) else {
        eprintln!("skipped: needs gzip");
        return;
    };
    fs::write(&file, &zeros).expect("a file");
    verify_json(&file).modest("zeros").refused("zeros");
    // Members that follow one another are one stream to gzip: a few hundred kilobytes that unpack to four gigabytes.
    let bomb = zeros.repeat(64);
    fs::write(&file, &bomb).expect("a file");
    verify_json(&file).modest("a bomb").refused("a bomb");
    fs::write(&file, [&bytes[..], &bomb].concat()).expect("a file");
    let ran = verify_json(&file);
    assert!(ran.peak_kib < MEMORY, "{}", ran.peak_kib);
    for (what, content) in
        [("text", &b"manifest"[..]), ("a zip", b"PK\x03\x04xxxxxxxx"), ("only the magic", b"\x1f\x8b"), ("empty", b"")]
    {
        fs::write(&file, content).expect("a file");
        verify_json(&file).modest(what).refused(what);
    }
}

#[test]
fn an_unpacked_capture_that_was_changed_is_refused() {
    let (folder, file, _) = packed("mtp");
    let unpacked = folder.path().join("unpacked");
    fs::create_dir(&unpacked).expect("a folder");
    if !Command::new("tar").arg("xzf").arg(&file).arg("-C").arg(&unpacked).status().is_ok_and(|status| status.success())
    {
        eprintln!("skipped: needs tar");
        return;
    }
    let honest = verify_json(&file).out;
    assert_eq!(verify_json(&unpacked).out, honest);
    let log = fs::read(unpacked.join("log.txt")).expect("a log");
    fs::write(unpacked.join("log.txt"), [&log[..], b"x\n"].concat()).expect("a log");
    assert!(verify_json(&unpacked).refused("changed").err.contains("log.txt"));
    fs::remove_file(unpacked.join("log.txt")).expect("a log");
    assert!(verify_json(&unpacked).refused("missing").err.contains("log.txt"));
    symlink("/etc/passwd", unpacked.join("log.txt")).expect("a link");
    assert!(verify_json(&unpacked).refused("a link").err.contains("log.txt"));
    fs::write(unpacked.join("manifest.json"), "{\"schema\":\"ascertain.capture/9\\u001b[2J\"}").expect("a file");
    assert!(verify_json(&unpacked).refused("newer").err.contains("ascertain.capture/9"));
    fs::write(unpacked.join("manifest.json"), "{").expect("a file");
    assert!(verify_json(&unpacked).refused("broken").err.contains("manifest.json"));
}

// ---------------------------------------------------------------------------------------------------------------------
// Secrets

/// Where a secret stands: anywhere if it is long, as a word of its own if it is short.
fn leaks(text: &str, secret: &str) -> bool {
    text.match_indices(secret).any(|(at, _)| {
        let joined = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        secret.len() >= 12
            || !(joined(text[..at].chars().next_back()) || joined(text[at + secret.len()..].chars().next()))
    })
}

fn assert_no_secret(what: &str, target: &OsStr, secrets: &[&str]) {
    let mut found = Vec::new();
    for (name, text) in everything(target) {
        for secret in secrets.iter().filter(|secret| leaks(&text, secret)) {
            let line = text.lines().find(|line| leaks(line, secret)).unwrap_or("");
            found.push(format!("{what}: {secret} in {name}: {}", line.chars().take(200).collect::<String>()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// An evidence directory with these words, variables, configuration and log.
fn secretive(argv: &[&str], environ: &[&str], config: &str, log: &str) -> (tempfile::TempDir, PathBuf) {
    let (folder, path) = evidence("mtp");
    let mut words = vec!["/opt/llama-server", "-m", "/models/tiny-qwen35-mtp.gguf", "--metrics", "--port", "41347"];
    words.extend(argv);
    fs::write(path.join("proc_cmdline.json"), json!(words).to_string()).expect("a file");
    fs::write(path.join("proc_environ_llama.json"), json!(environ).to_string()).expect("a file");
    fs::remove_file(path.join("meta.json")).expect("a file");
    if !config.is_empty() {
        fs::write(path.join("config.ini"), config).expect("a file");
    }
    let whole = fs::read_to_string(path.join("log.txt")).expect("a log");
    fs::write(path.join("log.txt"), format!("{whole}{log}")).expect("a log");
    (folder, path)
}

/// Long enough to be replaced anywhere.
const LONG: &str = "quiet-river-7731-Zq9x";

#[test]
fn a_key_never_shows_however_it_was_given() {
    let config = |key: &str, value: &str| format!("[*]\n{key} = {value}\nctx-size = 768\n");
    type Case<'a> = (&'a str, Vec<&'a str>, Vec<&'a str>, String, String, Vec<&'a str>);
    // Name, words, variables, configuration, log, and what must not show.
    let cases: Vec<Case<'_>> = vec![
        ("a flag", vec!["--api-key", "k1"], vec![], String::new(), "key k1 used\n".into(), vec!["k1"]),
        ("a long flag", vec!["--api-key", LONG], vec![], String::new(), format!("x{LONG}y\n"), vec![LONG]),
        (
            "joined with =",
            vec!["--api-key=k1"],
            vec![],
            String::new(),
            "error: invalid argument: --api-key=k1\n".into(),
            vec!["k1"],
        ),
        ("two keys", vec!["--api-key", "k1,k2"], vec![], String::new(), "k1 then k2\n".into(), vec!["k1", "k2"]),
        (
            "given twice",
            vec!["--api-key", "k1", "--api-key", "k2"],
            vec![],
            String::new(),
            String::new(),
            vec!["k1", "k2"],
        ),
        (
            "underscores",
            vec!["--api_key", "k1"],
            vec![],
            String::new(),
            "error: invalid argument: --api_key\n".into(),
            vec!["k1"],
        ),
        ("misspelt", vec!["--apikey", "k1"], vec![], String::new(), String::new(), vec!["k1"]),
        ("a variable", vec![], vec!["LLAMA_API_KEY=k1"], String::new(), "got k1\n".into(), vec!["k1"]),
        (
            "a variable with two",
            vec![],
            vec!["LLAMA_API_KEY=k1,k2"],
            String::new(),
            "got k2\n".into(),
            vec!["k1", "k2"],
        ),
        ("a wrong variable", vec![], vec!["LLAMA_ARG_API_KEY=k1"], String::new(), String::new(), vec!["k1"]),
        (
            "variable and flag",
            vec!["--api-key", "k1"],
            vec!["LLAMA_API_KEY=k2"],
            String::new(),
            String::new(),
            vec!["k1", "k2"],
        ),
        ("config.ini", vec![], vec![], config("api-key", "k1"), "k1\n".into(), vec!["k1"]),
        (
            "config.ini, underscores",
            vec![],
            vec![],
            config("api_key", "k1"),
            "ignoring option 'api_key' = k1\n".into(),
            vec!["k1"],
        ),
        ("config.ini, quoted", vec![], vec![], config("api-key", "\"k1\""), String::new(), vec!["k1"]),
        ("config.ini, variable name", vec![], vec![], config("LLAMA_API_KEY", "k1"), String::new(), vec!["k1"]),
        (
            "user and password in a URL",
            vec!["--model-url", "http://bob:hunter22@host/m.gguf"],
            vec![],
            String::new(),
            "get http://bob:hunter22@host/m.gguf\n".into(),
            vec!["hunter22"],
        ),
        (
            "a token in a URL",
            vec!["--model-url", "https://k1-user@host/m.gguf"],
            vec![],
            String::new(),
            String::new(),
            vec!["k1-user"],
        ),
        (
            "a bearer in the log",
            vec![],
            vec![],
            String::new(),
            "0.02.000.000 D srv  Authorization: Bearer k1\n".into(),
            vec!["k1"],
        ),
        (
            "a long bearer in the log",
            vec![],
            vec![],
            String::new(),
            format!("bearer {LONG}\n\"authorization\": \"Bearer {LONG}\"\n"),
            vec![LONG],
        ),
        (
            "the end of a short key at -lv 4",
            vec!["--api-key", "k1"],
            vec![],
            String::new(),
            "0.00.005.000 D srv          init: api_keys: ****k1\n".into(),
            vec!["k1"],
        ),
        (
            "the end of an unknown key at -lv 4",
            vec![],
            vec![],
            String::new(),
            "0.00.005.000 D srv          init: api_keys: ****k1\n".into(),
            vec!["k1"],
        ),
        (
            "the end of a long key at -lv 4",
            vec!["--api-key", LONG],
            vec![],
            String::new(),
            "0.00.005.000 D srv          init: api_keys: ****Zq9x\n".into(),
            vec![LONG, "Zq9x"],
        ),
        (
            "a command line in the log",
            vec!["--api-key", "k1"],
            vec![],
            String::new(),
            "+ llama-server --api-key k1 --metrics\nargv: [\"--api-key\", \"k1\"]\n".into(),
            vec!["k1"],
        ),
        (
            "a token of a hub",
            vec!["--hf-token", "hf_abcdefghijklmnopqrst"],
            vec!["HF_TOKEN=hf_uvwxyzabcdefghijklmn"],
            String::new(),
            "hf_abcdefghijklmnopqrst\n".into(),
            vec!["hf_abcdefghijklmnopqrst", "hf_uvwxyzabcdefghijklmn"],
        ),
        (
            "characters of their own",
            vec!["--api-key", "p$ss\"w'o\\rd/%41"],
            vec![],
            String::new(),
            "got p$ss\"w'o\\rd/%41\n".into(),
            vec!["p$ss\"w'o\\rd/%41", "p$ss\\\"w'o\\\\rd/%41", "w'o"],
        ),
        (
            "with blanks",
            vec!["--api-key", "open sesame now"],
            vec![],
            String::new(),
            "got open sesame now\n".into(),
            vec!["open sesame now", "sesame"],
        ),
        (
            "beyond ASCII",
            vec!["--api-key", "schlüssel"],
            vec![],
            String::new(),
            "got schlüssel\n".into(),
            vec!["schlüssel", "schl\\u00fcssel"],
        ),
        ("the last word", vec!["--api-key"], vec!["LLAMA_API_KEY=k1"], String::new(), String::new(), vec!["k1"]),
    ];
    for (what, argv, environ, config, log, secrets) in cases {
        let (_folder, path) = secretive(&argv, &environ, &config, &log);
        assert_no_secret(what, path.as_os_str(), &secrets);
    }
}

#[test]
fn a_key_in_answers_never_shows() {
    let (_folder, path) = secretive(&["--api-key", LONG], &[], "", "");
    let slots = json!([{ "id": 0, "n_ctx": 2048, "prompt": format!("my key is {LONG}"), "api_key": "k7" }]);
    fs::write(path.join("slots_before.json"), slots.to_string()).expect("a file");
    fs::write(
        path.join("props.json"),
        json!({ "model_path": format!("/models/{LONG}.gguf"), "model_alias": LONG, LONG: 1 }).to_string(),
    )
    .expect("a file");
    fs::write(
        path.join("health.json"),
        json!({ "_status": 401, "_body": format!("Bearer {LONG} is wrong") }).to_string(),
    )
    .expect("a file");
    fs::write(path.join("metrics_after.txt"), format!("llamacpp:x{{key=\"{LONG}\"}} 1\n")).expect("a file");
    fs::write(path.join("chat_stream.sse"), format!("data: {{\"content\": \"{LONG}\"}}\n\n")).expect("a file");
    let headers = json!({ "health.json": { "status": 200, "headers": [["set-cookie", "session=c00kie-monster-1"], ["authorization", format!("Bearer {LONG}")]] } });
    fs::write(path.join("http_headers.json"), headers.to_string()).expect("a file");
    assert_no_secret("answers", path.as_os_str(), &[LONG, "k7", "c00kie-monster-1"]);
}

#[test]
fn a_log_that_is_handed_in_later_is_redacted_too() {
    let (folder, path) = secretive(&["--api-key", LONG], &[], "", "");
    let log = folder.path().join("later.txt");
    fs::write(
        &log,
        format!("Authorization: Bearer {LONG}\nsrv init: api_keys: ****Zq9x\nloading model '/models/{LONG}.gguf'\n"),
    )
    .expect("a log");
    for more in [&["-v"][..], &["--format", "json"]] {
        let mut args = vec![OsStr::new("verify"), path.as_os_str(), OsStr::new("--log"), log.as_os_str()];
        args.extend(more.iter().map(OsStr::new));
        let ran = run(&args);
        assert!(!leaks(&ran.out, LONG) && !leaks(&ran.err, LONG) && !leaks(&ran.out, "Zq9x"), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn the_key_of_a_live_server_never_shows() {
    let echo = serve(|_, stream| {
        let body = json!({ "error": { "message": format!("key {LONG} k1"), "api_key": "k1" } }).to_string();
        respond(stream, "application/json", body.as_bytes());
    });
    let log = format!("0.00.005.000 D srv          init: api_keys: ****Zq9x\nAuthorization: Bearer {LONG}\nkey k1\n");
    let server = Pretender::start(
        &["--api-key", LONG, "--port", &echo],
        &[("LLAMA_API_KEY", "k1"), ("MY_TOKEN", "unrelated-secret")],
        log.as_bytes(),
    );
    let target = server.target();
    assert_no_secret("live", OsStr::new(&target), &[LONG, "Zq9x", "k1", "unrelated-secret"]);
    for args in [
        &["list"][..],
        &["list", "--format", "json"],
        &["verify", &target, "--dry-run"],
        &["verify", &target, "-v", "--timeout", "1", "--api-key-env", "TEST_KEY"],
        &["verify", &target, "--exercise", "--timeout", "1", "--api-key-env", "TEST_KEY", "--format", "json"],
        &["verify", "no-such-name"],
    ] {
        let ran = run_with(args, &[("TEST_KEY", "sesame-1")]);
        for secret in [LONG, "Zq9x", "k1", "unrelated-secret", "sesame-1"] {
            assert!(!leaks(&ran.out, secret) && !leaks(&ran.err, secret), "{args:?}: {secret}: {}{}", ran.out, ran.err);
        }
    }
    // A password in the address that the user wrote.
    let url = format!("http://bob:hunter22@127.0.0.1:{echo}");
    for args in [
        &["verify", url.as_str(), "--timeout", "1"][..],
        &["verify", "http://bob:hunter22@127.0.0.1:1"],
        &["verify", "http://bob:hunter22@:x"],
        &["verify", "ssh://bob:hunter22@host"],
    ] {
        let ran = run(args).refused("a password in the address");
        assert!(!leaks(&ran.err, "hunter22"), "{args:?}: {}", ran.err);
    }
}
