//! Evidence directories.

#![allow(clippy::unwrap_used)]

use ascertain_capture::directory::{Error, read};
use ascertain_capture::{SecretNames, pack};
use std::path::Path;

const NAMES: &[&str] = &["meta.json", "log.txt", "proc_*", "props.json", "metrics_*.txt", "*.ini", "*.sse"];

fn secrets() -> SecretNames {
    SecretNames { flags: vec!["--api-key".into()], env: vec!["ENGINE_API_KEY".into()], keys: vec!["api-key".into()] }
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

#[test]
fn secrets_of_one_file_are_taken_out_of_all() {
    let dir = directory(&[
        ("meta.json", r#"{"name":"mine","argv":["s","--api-key","k1,k2"],"env":{"ENGINE_API_KEY":"e1"}}"#),
        ("proc_cmdline.json", r#"["s","--api-key","k1,k2"]"#),
        ("proc_status.txt", "Name:\ts\nPid:\t4711\nPPid:\t1\n"),
        ("log.txt", "api_keys: ****k1\nslot task1 blk1 k2 c9 e1\n"),
        ("config.ini", "[*]\napi-key = c9\n"),
        ("props.json", r#"{"a":"k1"}"#),
        ("other.bin", "k1"),
    ]);
    let capture = read(dir.path(), NAMES, &secrets()).unwrap();
    for (name, bytes) in &capture.artifacts {
        let text = String::from_utf8_lossy(bytes);
        for secret in ["k1\"", "k1,", " k1", "*k1", "k2", "c9", "e1\"", " e1"] {
            assert!(!text.contains(secret), "{name}: {text}");
        }
    }
    let log = String::from_utf8_lossy(capture.bytes("log.txt").unwrap()).into_owned();
    assert!(log.contains("task1 blk1 [redacted] [redacted] [redacted]"), "{log}");
    assert!(capture.bytes("other.bin").is_none());
    assert_eq!(capture.manifest.target, "mine");
    assert_eq!(capture.manifest.start.as_ref().map(|start| start.pid), Some(4711));
    let path = dir.path().join("c.tgz");
    pack::write(&capture, &path).unwrap();
    assert_eq!(pack::read(&path).unwrap(), capture);
}

#[test]
fn broken_json_names_file_and_place() {
    let dir = directory(&[("props.json", "{\n \"a\": 1\n \"b\": 2\n}")]);
    let error = read(dir.path(), NAMES, &secrets()).unwrap_err();
    assert!(matches!(&error, Error::Json { line: 3, column: 2, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("props.json:3:2") && text.contains("expected `,` or `}`"), "{text}");
    for text in ["", "<html>", "{\"a\":", "\u{0}"] {
        let dir = directory(&[("props.json", text)]);
        assert!(matches!(read(dir.path(), NAMES, &secrets()), Err(Error::Json { .. })));
    }
    let deep = "[".repeat(100_000);
    let dir = directory(&[("props.json", deep.as_str())]);
    assert!(matches!(read(dir.path(), NAMES, &secrets()), Err(Error::Json { .. })));
}

#[test]
fn nothing_to_read() {
    let dir = directory(&[("readme.md", "x"), ("expected.toml", "x")]);
    let error = read(dir.path(), NAMES, &secrets()).unwrap_err();
    assert!(error.to_string().contains("meta.json, log.txt"), "{error}");
    assert!(matches!(read(dir.path(), &["*"], &secrets()), Ok(capture) if capture.artifacts.len() == 1));
    assert!(matches!(read(Path::new("/nonexistent"), NAMES, &secrets()), Err(Error::Io { .. })));
}

#[test]
fn links_and_folders_are_not_followed() {
    let dir = directory(&[("meta.json", "{}")]);
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("log.txt")).unwrap();
    std::fs::create_dir(dir.path().join("props.json")).unwrap();
    let capture = read(dir.path(), NAMES, &secrets()).unwrap();
    assert_eq!(capture.artifacts.len(), 1);
    assert!(capture.gap("log.txt").is_some() && capture.gap("props.json").is_some());
}

/// Recordings of real servers, where they are at hand: `ASCERTAIN_RECORDINGS` names a directory of evidence
/// directories. Those whose name begins with `api-key` were given the keys `k1` and `k2`.
#[test]
fn recordings_of_real_servers() {
    let Some(all) = std::env::var_os("ASCERTAIN_RECORDINGS") else { return };
    let all = std::fs::read_dir(all).unwrap();
    let names = ["*.json", "log.txt", "log_lv4.txt", "proc_*", "*.txt", "*.sse", "*.ini"];
    let mut count = 0;
    for dir in all.flatten().filter(|entry| entry.path().is_dir()) {
        let capture = read(&dir.path(), &names, &secrets()).unwrap();
        count += 1;
        let keyed = dir.file_name().to_string_lossy().starts_with("api-key");
        for (name, bytes) in &capture.artifacts {
            let raw = std::fs::read(dir.path().join(name)).unwrap();
            assert!(keyed || *bytes == raw, "{:?}: {name} was changed without need", dir.path());
            if keyed {
                let text = String::from_utf8_lossy(bytes);
                let hit =
                    text.split(|c: char| !c.is_ascii_alphanumeric()).find(|token| *token == "k1" || *token == "k2");
                assert_eq!(hit, None, "{:?}: {name}", dir.path());
                if name.ends_with(".json") {
                    serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
                }
            }
        }
    }
    assert!(count > 0);
}
