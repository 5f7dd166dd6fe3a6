//! The header of a model file in GGUF format: its metadata and the names of its tensors, never its weights.
//!
//! The format is that of the GGUF specification (`ggml/docs/gguf.md`), versions 2 and 3, little-endian. Nothing in the file is
//! believed: every count is checked against what is left of the file, arrays are walked past, and memory grows only
//! with bytes that were really read, up to a limit.

use super::{Context, Found, Witness, gap};
use crate::file;
use ascertain_model::capture::ArtifactGap;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::time::Instant;

pub(super) const WITNESS: Witness = Witness { name: "checkpoint", artifacts, plan, testify };

/// Longer strings are cut.
const MAX_STRING: u64 = 4096;
/// Names and string values together.
const MAX_KEPT: u64 = 16 << 20;
const MAX_PAIRS: u64 = 65_536;
const MAX_NAME: u64 = 65_535;
const MAX_TENSORS: u64 = 10_000_000;
/// So many names of tensors are kept.
const KEPT_TENSORS: u64 = 20_000;
const MAX_DEPTH: u32 = 4;

fn artifacts(context: &Context) -> Vec<String> {
    context.wants.checkpoints.iter().map(|(artifact, _)| artifact.clone()).collect()
}

fn plan(context: &Context) -> Vec<String> {
    let line = |path: &str| format!("read    {} (header only)", context.root.shown(&context.absolute(path)));
    context.wants.checkpoints.iter().map(|(_, path)| line(path)).collect()
}

fn testify(context: &Context, tell: &mut dyn FnMut(Found)) {
    for (artifact, path) in &context.wants.checkpoints {
        let path = context.absolute(path);
        let source = context.root.shown(&path);
        let (file, metadata) = match file::open(&path, &context.root) {
            Ok(opened) => opened,
            Err(error) => {
                let gap = file::gap(&error, &source);
                tell(Found::gap(artifact, source, gap));
                continue;
            }
        };
        match header(file, metadata.len(), context.deadline()) {
            Ok(header) => {
                let mut found = Found::bytes(artifact, source, header.to_string().into_bytes());
                found.entry.changed_ms = file::changed_ms(&metadata);
                tell(found);
            }
            Err(fault) => {
                let gap = fault.gap(&source);
                tell(Found::gap(artifact, source, gap));
            }
        }
    }
}

/// Why there is no header.
#[derive(Debug)]
enum Fault {
    Io(io::Error),
    NotGguf,
    Version(u32),
    Split,
    Truncated,
    Hostile(&'static str),
    Late,
}

impl Fault {
    fn gap(&self, path: &str) -> ArtifactGap {
        match self {
            Fault::Io(error) => file::gap(error, path),
            Fault::NotGguf => gap("not_supported", format!("{path} is not a GGUF file"), None),
            Fault::Version(version) if version.swap_bytes() <= 16 => {
                gap("not_supported", format!("{path} is a big-endian GGUF file, which is not read yet"), None)
            }
            Fault::Version(version) => {
                gap("not_supported", format!("{path} has GGUF version {version}; versions 2 and 3 are read"), None)
            }
            Fault::Split => {
                gap("not_supported", format!("{path} is one part of a split model, which is not read yet"), None)
            }
            Fault::Truncated => {
                gap("malformed", format!("{path} ends within its header"), Some("copy or download it again"))
            }
            Fault::Hostile(why) => gap("malformed", format!("the header of {path} is broken: {why}"), None),
            Fault::Late => gap("timed_out", format!("reading the header of {path} took too long"), None),
        }
    }
}

struct Header {
    file: BufReader<File>,
    left: u64,
    kept: u64,
    steps: u32,
    deadline: Instant,
}

fn header(file: File, length: u64, deadline: Instant) -> Result<Value, Fault> {
    let mut header =
        Header { file: BufReader::with_capacity(256 << 10, file), left: length, kept: 0, steps: 0, deadline };
    if header.left < 8 || &header.array::<4>()? != b"GGUF" {
        return Err(Fault::NotGguf);
    }
    let version = header.u32()?;
    if !(2..=3).contains(&version) {
        return Err(Fault::Version(version));
    }
    let tensor_count = header.u64()?;
    let pairs = header.u64()?;
    // A pair takes at least 8 + 4 + 1 bytes, a tensor at least 8 + 4 + 4 + 8.
    if pairs > MAX_PAIRS || pairs > header.left / 13 {
        return Err(Fault::Hostile("it announces more metadata than fits in it"));
    }
    if tensor_count > MAX_TENSORS || tensor_count > header.left / 24 {
        return Err(Fault::Hostile("it announces more tensors than fit in it"));
    }
    let mut scalars = Map::new();
    let mut arrays = Map::new();
    for _ in 0..pairs {
        let key = header.string(MAX_NAME)?.ok_or(Fault::Hostile("a key is too long"))?;
        match header.u32()? {
            9 => {
                let length = header.skip_array(0)?;
                arrays.insert(key, json!(length));
            }
            kind => {
                let value = header.scalar(kind)?;
                if key == "split.count" && value.as_u64().is_some_and(|count| count > 1) {
                    return Err(Fault::Split);
                }
                scalars.insert(key, value);
            }
        }
    }
    let mut tensors = Vec::new();
    for _ in 0..tensor_count.min(KEPT_TENSORS) {
        tensors.push(header.string(1024)?.ok_or(Fault::Hostile("the name of a tensor is too long"))?);
        let dimensions = header.u32()?;
        if dimensions > 16 {
            return Err(Fault::Hostile("a tensor has too many dimensions"));
        }
        header.skip(u64::from(dimensions) * 8 + 4 + 8)?;
    }
    Ok(json!({
        "format": "gguf",
        "version": version,
        "kv": scalars,
        "arrays": arrays,
        "tensor_count": tensor_count,
        "tensors": tensors,
    }))
}

impl Header {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.left = self.left.checked_sub(N as u64).ok_or(Fault::Truncated)?;
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Fault::Truncated,
            _ => Fault::Io(error),
        })?;
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(4096) && Instant::now() > self.deadline {
            return Err(Fault::Late);
        }
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Fault> {
        self.left = self.left.checked_sub(bytes).ok_or(Fault::Truncated)?;
        let by = i64::try_from(bytes).map_err(|_| Fault::Truncated)?;
        self.file.seek_relative(by).map_err(Fault::Io)
    }

    /// A string; `None` if it is longer than allowed.
    fn string(&mut self, limit: u64) -> Result<Option<String>, Fault> {
        let length = self.u64()?;
        if length > self.left {
            return Err(Fault::Truncated);
        }
        if length > limit {
            return Ok(None);
        }
        self.text(length).map(Some)
    }

    fn text(&mut self, length: u64) -> Result<String, Fault> {
        self.kept += length;
        if self.kept > MAX_KEPT {
            return Err(Fault::Hostile("its names and strings are too long"));
        }
        self.left = self.left.checked_sub(length).ok_or(Fault::Truncated)?;
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(length).read_to_end(&mut bytes).map_err(Fault::Io)?;
        if read as u64 != length {
            return Err(Fault::Truncated);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn scalar(&mut self, kind: u32) -> Result<Value, Fault> {
        Ok(match kind {
            0 => json!(self.array::<1>()?[0]),
            1 => json!(i8::from_le_bytes(self.array()?)),
            2 => json!(u16::from_le_bytes(self.array()?)),
            3 => json!(i16::from_le_bytes(self.array()?)),
            4 => json!(self.u32()?),
            5 => json!(i32::from_le_bytes(self.array()?)),
            6 => {
                // By way of its shortest decimal, so that 0.1 stays 0.1.
                let value = f32::from_le_bytes(self.array()?).to_string();
                value.parse::<f64>().ok().filter(|value| value.is_finite()).map_or(json!(value), |value| json!(value))
            }
            7 => json!(self.array::<1>()?[0] != 0),
            8 => {
                let length = self.u64()?;
                if length > self.left {
                    return Err(Fault::Truncated);
                }
                let kept = length.min(MAX_STRING);
                let text = self.text(kept)?;
                self.skip(length - kept)?;
                json!(text)
            }
            10 => json!(self.u64()?),
            11 => json!(i64::from_le_bytes(self.array()?)),
            12 => {
                let value = f64::from_le_bytes(self.array()?);
                if value.is_finite() { json!(value) } else { json!(value.to_string()) }
            }
            _ => return Err(Fault::Hostile("a value has an unknown type")),
        })
    }

    /// Goes past an array and tells its length.
    fn skip_array(&mut self, depth: u32) -> Result<u64, Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::Hostile("its arrays are nested too deep"));
        }
        let kind = self.u32()?;
        let length = self.u64()?;
        let size = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            9 => 12,
            _ => return Err(Fault::Hostile("an array has an unknown type")),
        };
        if length > self.left / size {
            return Err(Fault::Hostile("an array is longer than the file"));
        }
        match kind {
            8 => {
                for _ in 0..length {
                    let bytes = self.u64()?;
                    self.skip(bytes)?;
                }
            }
            9 => {
                for _ in 0..length {
                    self.skip_array(depth + 1)?;
                }
            }
            _ => self.skip(length * size)?,
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};
    use std::time::Duration;

    fn read(bytes: &[u8]) -> Result<Value, Fault> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        header(file, bytes.len() as u64, Instant::now() + Duration::from_secs(5))
    }

    fn string(text: &str) -> Vec<u8> {
        [(text.len() as u64).to_le_bytes().as_slice(), text.as_bytes()].concat()
    }

    fn pair(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
        [string(key), kind.to_le_bytes().to_vec(), value.to_vec()].concat()
    }

    fn array(kind: u32, length: u64, items: &[u8]) -> Vec<u8> {
        [kind.to_le_bytes().as_slice(), &length.to_le_bytes(), items].concat()
    }

    fn start(tensors: u64, pairs: u64) -> Vec<u8> {
        [b"GGUF".as_slice(), &3u32.to_le_bytes(), &tensors.to_le_bytes(), &pairs.to_le_bytes()].concat()
    }

    fn good() -> Vec<u8> {
        let mut file = start(2, 6);
        file.extend(pair("general.architecture", 8, &string("qwen35")));
        file.extend(pair("qwen35.context_length", 4, &512u32.to_le_bytes()));
        file.extend(pair("eps", 6, &0.1f32.to_le_bytes()));
        file.extend(pair("nan", 12, &f64::NAN.to_le_bytes()));
        file.extend(pair("tokens", 9, &array(8, 2, &[string("a"), string("bcd")].concat())));
        file.extend(pair("nested", 9, &array(9, 2, &[array(0, 3, b"xyz"), array(8, 1, &string("q"))].concat())));
        for name in ["blk.0.attn.weight", "output.weight"] {
            file.extend(string(name));
            file.extend(2u32.to_le_bytes());
            file.extend([0; 16]);
            file.extend(0u32.to_le_bytes());
            file.extend(0u64.to_le_bytes());
        }
        file
    }

    #[test]
    fn a_header() {
        let value = read(&good()).unwrap();
        assert_eq!(value["kv"]["general.architecture"], "qwen35");
        assert_eq!(value["kv"]["qwen35.context_length"], 512);
        assert_eq!(value["kv"]["eps"], 0.1);
        assert_eq!(value["kv"]["nan"], "NaN");
        assert_eq!(value["arrays"], json!({"tokens": 2, "nested": 2}));
        assert_eq!(value["tensor_count"], 2);
        assert_eq!(value["tensors"], json!(["blk.0.attn.weight", "output.weight"]));
    }

    #[test]
    fn every_truncation_is_noticed() {
        let good = good();
        for length in 0..good.len() {
            assert!(read(&good[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn huge_counts_cost_nothing() {
        let padding = vec![0; 4096];
        for (tensors, pairs) in [(u64::MAX, 1), (1, u64::MAX), (1 << 40, 0), (0, 1 << 40)] {
            let mut file = start(tensors, pairs);
            file.extend(&padding);
            assert!(matches!(read(&file), Err(Fault::Hostile(_))));
        }
        for kind in [0u32, 4, 8, 9, 10, 77] {
            for length in [u64::MAX, u64::MAX / 8, 1 << 40] {
                let mut file = start(0, 1);
                file.extend(pair("a", 9, &array(kind, length, &[])));
                file.extend(&padding);
                assert!(matches!(read(&file), Err(Fault::Hostile(_))), "{kind} {length}");
            }
        }
        let mut file = start(0, 1);
        file.extend(pair("a", 8, &(u64::MAX - 3).to_le_bytes()));
        file.extend(&padding);
        assert!(matches!(read(&file), Err(Fault::Truncated)));
        let mut file = start(0, 1);
        file.extend((u64::MAX >> 1).to_le_bytes());
        file.extend(&padding);
        assert!(matches!(read(&file), Err(Fault::Truncated)));
    }

    #[test]
    fn arrays_nested_without_end() {
        let mut file = start(0, 1);
        let mut inner = Vec::new();
        for _ in 0..10_000 {
            inner.extend(array(9, 1, &[]));
        }
        file.extend(pair("a", 9, &inner));
        assert!(matches!(read(&file), Err(Fault::Hostile("its arrays are nested too deep"))));
    }

    #[test]
    fn other_files() {
        assert!(matches!(read(b""), Err(Fault::NotGguf)));
        assert!(matches!(read(b"PK\x03\x04 and more of it"), Err(Fault::NotGguf)));
        let mut file = good();
        file[4..8].copy_from_slice(&3u32.to_be_bytes());
        let gap = read(&file).unwrap_err().gap("m.gguf");
        assert!(gap.text.contains("big-endian"), "{}", gap.text);
        let mut file = start(0, 1);
        file.extend(pair("split.count", 2, &3u16.to_le_bytes()));
        file.extend([0; 64]);
        assert!(matches!(read(&file), Err(Fault::Split)));
    }

    #[test]
    fn long_strings_are_cut() {
        let mut file = start(0, 1);
        file.extend(pair("template", 8, &string(&"x".repeat(10_000))));
        assert_eq!(read(&file).unwrap()["kv"]["template"].as_str().unwrap().len(), 4096);
    }
}
