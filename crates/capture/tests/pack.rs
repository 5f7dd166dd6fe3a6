//! The capture file: what goes in comes out, and nothing else does.

#![allow(clippy::unwrap_used)]

use ascertain_capture::pack::{self, Error};
use ascertain_capture::seal::{seal, sha256};
use ascertain_model::capture::{Artifact, ArtifactGap, Capture, Manifest, SCHEMA};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn capture() -> Capture {
    let gap = Artifact {
        name: "props.json".into(),
        source: "http://127.0.0.1:1/props".into(),
        bytes: None,
        sha256: None,
        at_ms: 3,
        changed_ms: None,
        partial: None,
        gap: Some(ArtifactGap { reason: "refused".into(), text: "nobody there".into(), remedy: None }),
    };
    let manifest = Manifest {
        schema: SCHEMA.into(),
        tool: "ascertain 0.1.0".into(),
        target: "pid:1".into(),
        host: None,
        start: None,
        taken: Some("2026-01-01T00:00:00.000Z".into()),
        taken_ms: None,
        artifacts: vec![gap],
        remarks: Vec::new(),
    };
    let artifacts = BTreeMap::from([
        ("log.txt".to_owned(), (0..=255u8).cycle().take(5000).collect::<Vec<u8>>()),
        ("empty.txt".to_owned(), Vec::new()),
        ("a.json".to_owned(), b"{}".to_vec()),
    ]);
    let mut capture = Capture { manifest, artifacts };
    seal(&mut capture);
    capture
}

/// An archive made by hand.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    gzip(&tar.into_inner().unwrap())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Capture, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.capture.tgz");
    std::fs::write(&path, bytes).unwrap();
    pack::read(&path)
}

fn write(capture: &Capture) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.capture.tgz");
    pack::write(capture, &path).unwrap();
    std::fs::read(&path).unwrap()
}

#[test]
fn round_trip_and_the_same_bytes_every_time() {
    let capture = capture();
    let bytes = write(&capture);
    assert_eq!(bytes, write(&capture));
    let back = read(&bytes).unwrap();
    assert_eq!(back, capture);
    assert_eq!(write(&back), bytes);
}

#[test]
fn the_file_is_private_and_replaces_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c");
    std::fs::write(&path, b"old").unwrap();
    pack::write(&capture(), &path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let missing = dir.path().join("no/where");
    assert!(matches!(pack::write(&capture(), &missing), Err(Error::Io { .. })));
    assert!(matches!(pack::read(&missing), Err(Error::Io { .. })));
    assert!(matches!(pack::read(dir.path()), Err(Error::Io { .. })));
}

#[test]
fn ordinary_tools_can_unpack_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.tgz");
    pack::write(&capture(), &path).unwrap();
    let listing = std::process::Command::new("tar").arg("tzf").arg(&path).output().unwrap();
    assert_eq!(String::from_utf8(listing.stdout).unwrap(), "manifest.json\na.json\nempty.txt\nlog.txt\n");
    let out = dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    assert!(std::process::Command::new("tar").arg("xzf").arg(&path).arg("-C").arg(&out).status().unwrap().success());
    let (stored, back) = ascertain_capture::read_any(&out, &[], &Default::default()).unwrap();
    assert_eq!(stored, ascertain_capture::Stored::Directory);
    assert_eq!(back, capture());
    std::fs::write(out.join("a.json"), b"[]").unwrap();
    let error = ascertain_capture::read_any(&out, &[], &Default::default()).unwrap_err().to_string();
    assert!(error.contains("a.json") && error.contains("was changed"), "{error}");
}

#[test]
fn every_truncation_and_every_flipped_bit_is_noticed() {
    let capture = capture();
    let bytes = write(&capture);
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "cut at {length}");
    }
    assert!(matches!(read(&bytes[..bytes.len() / 2]), Err(Error::Truncated { .. })));
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        if let Ok(back) = read(&bytes) {
            assert_eq!(back, capture, "flipped at {at}");
        }
    }
}

#[test]
fn other_files_are_named_for_what_they_are() {
    for bytes in [&b""[..], b"x", b"PK\x03\x04....", b"{\"schema\":1}"] {
        assert!(matches!(read(bytes), Err(Error::NotGzip { .. })));
    }
    assert!(matches!(
        read(&gzip(b"just text")),
        Err(Error::Truncated { .. } | Error::Damaged { .. } | Error::NoManifest { .. })
    ));
    assert!(matches!(read(&archive(&[("a.txt", b"x")])), Err(Error::NoManifest { .. })));
    assert!(matches!(read(&archive(&[])), Err(Error::NoManifest { .. })));
    assert!(matches!(read(&archive(&[("manifest.json", b"{")])), Err(Error::Manifest { .. })));
    let newer = br#"{"schema":"ascertain.capture/2"}"#;
    let error = read(&archive(&[("manifest.json", newer)])).unwrap_err();
    assert!(matches!(error, Error::Schema { .. }), "{error}");
    assert!(error.to_string().contains("ascertain.capture/2") && error.to_string().contains("ascertain.capture/1"));
}

fn manifest(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let entries: Vec<String> = entries
        .iter()
        .map(|(name, bytes)| {
            format!(r#"{{"name":{name:?},"source":"s","bytes":{},"sha256":"{}"}}"#, bytes.len(), sha256(bytes))
        })
        .collect();
    format!(r#"{{"schema":"ascertain.capture/1","tool":"t","target":"x","artifacts":[{}]}}"#, entries.join(","))
        .into_bytes()
}

#[test]
fn members_must_be_those_of_the_manifest() {
    let good = manifest(&[("a.txt", b"aa")]);
    assert!(read(&archive(&[("manifest.json", &good), ("a.txt", b"aa")])).is_ok());
    let error = read(&archive(&[("manifest.json", &good)])).unwrap_err();
    assert!(matches!(&error, Error::Missing { name, .. } if name == "a.txt"), "{error}");
    for changed in [&b"ab"[..], b"aaa"] {
        let error = read(&archive(&[("manifest.json", &good), ("a.txt", changed)])).unwrap_err();
        assert!(matches!(&error, Error::Mismatch { name, .. } if name == "a.txt"), "{error}");
    }
    for extra in ["b.txt", "../a.txt", "/etc/passwd", "a/../../b", ".hidden", "manifest.json"] {
        let members: [(&str, &[u8]); 3] = [("manifest.json", &good), ("a.txt", b"aa"), (extra, b"x")];
        assert!(matches!(read(&archive(&members)), Err(Error::Unexpected { .. })), "{extra}");
        let evil = manifest(&[(extra, b"x")]);
        assert!(read(&archive(&[("manifest.json", &evil), (extra, b"x")])).is_err() || extra == "b.txt", "{extra}");
    }
    let members: [(&str, &[u8]); 3] = [("manifest.json", &good), ("a.txt", b"aa"), ("a.txt", b"aa")];
    assert!(matches!(read(&archive(&members)), Err(Error::Unexpected { .. })));
}

#[test]
fn links_are_refused() {
    let good = manifest(&[("a.txt", b"")]);
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(good.len() as u64);
    tar.append_data(&mut header, "manifest.json", good.as_slice()).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "a.txt", Path::new("/etc/passwd")).unwrap();
    assert!(matches!(read(&gzip(&tar.into_inner().unwrap())), Err(Error::Unexpected { .. })));
}

#[test]
fn a_capture_that_was_not_sealed_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c");
    let mut changed = capture();
    changed.artifacts.insert("log.txt".into(), b"other".to_vec());
    assert!(matches!(pack::write(&changed, &path), Err(Error::Mismatch { .. })));
    assert!(!path.exists());
}
