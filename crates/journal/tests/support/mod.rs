//! Journals for the tests: written by our own small writer (any format, also ones that today's systemd no longer
//! writes, and broken ones), or by the real `systemd-journal-remote`.
#![allow(dead_code)]

pub mod host;

use ascertain_journal::Compression;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::hash::Hasher;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// xorshift: the same journal for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn id(&mut self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }
}

#[derive(Clone)]
pub struct Record {
    pub realtime: u64,
    pub monotonic: u64,
    pub boot: String,
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Record {
    pub fn new(realtime: u64, monotonic: u64, boot: &str, fields: &[(&str, &str)]) -> Self {
        let mut all = vec![("_BOOT_ID".to_owned(), boot.as_bytes().to_vec())];
        all.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())));
        Self { realtime, monotonic, boot: boot.to_owned(), fields: all }
    }

    /// As journalctl prints it: with the place of the entry, the `number`th of its source.
    pub fn export_with_cursor(&self, number: u64, out: &mut Vec<u8>) {
        let Self { realtime, monotonic, boot, .. } = self;
        let source = "7".repeat(32);
        out.extend(format!("__CURSOR=s={source};i={number:x};b={boot};m={monotonic:x};t={realtime:x};x=1\n").bytes());
        self.export(out);
    }

    pub fn export(&self, out: &mut Vec<u8>) {
        let Self { realtime, monotonic, boot, fields } = self;
        out.extend(format!("__REALTIME_TIMESTAMP={realtime}\n__MONOTONIC_TIMESTAMP={monotonic}\n").bytes());
        out.extend(format!("_BOOT_ID={boot}\n").bytes());
        for (name, value) in fields.iter().filter(|(name, _)| name != "_BOOT_ID") {
            out.extend(name.bytes());
            if value.iter().all(|byte| *byte >= b' ' && byte.is_ascii()) {
                out.push(b'=');
            } else {
                out.push(b'\n');
                out.extend((value.len() as u64).to_le_bytes());
            }
            out.extend(value);
            out.push(b'\n');
        }
        out.push(b'\n');
    }
}

/// Entries with everything that is allowed: binary, empty, repeated, several-line and large values, no message at all,
/// three units, three boots, two invocations a unit.
pub fn records(seed: u64, count: u64, start: u64) -> Vec<Record> {
    let mut random = Random(seed);
    let boots: Vec<_> = (0..3).map(|_| random.id()).collect();
    let invocations: Vec<_> = (0..6).map(|_| random.id()).collect();
    let units = ["a.service", "b.service", "c@x.service"];
    (0..count)
        .map(|i| {
            let unit = random.below(3) as usize;
            let boot = (i * 3 / count) as usize;
            let realtime = start + i * 1000 + random.below(900);
            let mut record = Record::new(
                realtime,
                1_000_000 + i * 1000,
                &boots[boot],
                &[
                    ("_SYSTEMD_UNIT", units[unit]),
                    ("_SYSTEMD_INVOCATION_ID", &invocations[unit * 2 + usize::from(boot > 0)]),
                    ("PRIORITY", ["6", "6", "6", "6", "4", "3"][random.below(6) as usize]),
                    ("_PID", &random.below(50).to_string()),
                    ("_UID", "0"),
                ],
            );
            let mut add = |name: &str, value: Vec<u8>| record.fields.push((name.to_owned(), value));
            match random.below(12) {
                0 => add("MESSAGE", format!("two\nlines {i}").into()),
                1 => add("MESSAGE", (0..random.below(400) + 1).map(|_| random.next() as u8).collect()),
                2 => add("MESSAGE", format!("{}{i}", "word ".repeat(random.below(2000) as usize + 100)).into()),
                3 => add("MESSAGE", b"same again".to_vec()),
                4 => {}
                5 => {
                    add("MESSAGE", b"first".to_vec());
                    add("MESSAGE", format!("second {i}").into());
                    add("EMPTY", Vec::new());
                }
                _ => add("MESSAGE", format!("line {i} of {} with =signs= and \t tab", units[unit]).into()),
            }
            if random.below(200) == 0 {
                let piece: Vec<u8> = (0..1000).map(|_| random.next() as u8).collect();
                add("BLOB", piece.repeat(random.below(300) as usize + 1));
            }
            if random.below(9) == 0 {
                add("UNIT", units[random.below(3) as usize].into());
                add("INVOCATION_ID", invocations[random.below(6) as usize].clone().into());
            }
            record
        })
        .collect()
}

/// How a journal file is laid out.
#[derive(Clone, Copy)]
pub struct Layout {
    pub compact: bool,
    pub keyed: bool,
    pub compression: Option<Compression>,
}

pub const PLAIN: Layout = Layout { compact: true, keyed: true, compression: None };

pub const OFFLINE: u8 = 0;
pub const ONLINE: u8 = 1;
pub const ARCHIVED: u8 = 2;

#[derive(Default, Clone)]
struct Chain {
    first: u64,
    last: u64,
    capacity: u64,
    used: u64,
    total: u64,
}

/// Writes one journal file as journald lays it out.
#[derive(Clone)]
pub struct Writer {
    pub bytes: Vec<u8>,
    layout: Layout,
    file_id: [u8; 16],
    pub seqnum_id: [u8; 16],
    pub seqnum: u64,
    head: Option<(u64, u64)>,
    tail: (u64, u64),
    data: HashMap<Vec<u8>, u64>,
    chains: HashMap<u64, Chain>,
    fields: HashMap<Vec<u8>, u64>,
    all: Chain,
    objects: u64,
    entries: u64,
    last_object: u64,
    data_table: u64,
    field_table: u64,
}

const HEADER: u64 = 264;
const BUCKETS: u64 = 1021;
const FIELD_BUCKETS: u64 = 67;

impl Writer {
    pub fn new(layout: Layout, seed: u64) -> Self {
        let mut random = Random(seed | 1);
        let mut id = || (u128::from(random.next()) << 64 | u128::from(random.next())).to_be_bytes();
        let mut writer = Self {
            bytes: vec![0; HEADER as usize],
            layout,
            file_id: id(),
            seqnum_id: [7; 16],
            seqnum: 0,
            head: None,
            tail: (0, 0),
            data: HashMap::new(),
            chains: HashMap::new(),
            fields: HashMap::new(),
            all: Chain::default(),
            objects: 0,
            entries: 0,
            last_object: 0,
            data_table: 0,
            field_table: 0,
        };
        writer.data_table = writer.object(4, 0, &vec![0; (BUCKETS * 16) as usize]) + 16;
        writer.field_table = writer.object(5, 0, &vec![0; (FIELD_BUCKETS * 16) as usize]) + 16;
        writer
    }

    pub fn put64(&mut self, at: u64, value: u64) {
        self.bytes[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn put32(&mut self, at: u64, value: u64) {
        self.bytes[at as usize..at as usize + 4].copy_from_slice(&(value as u32).to_le_bytes());
    }

    pub fn get64(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.bytes[at as usize..at as usize + 8].try_into().expect("eight bytes"))
    }

    fn object(&mut self, kind: u8, flags: u8, body: &[u8]) -> u64 {
        let at = self.bytes.len() as u64;
        self.bytes.extend([kind, flags, 0, 0, 0, 0, 0, 0]);
        self.bytes.extend((body.len() as u64 + 16).to_le_bytes());
        self.bytes.extend(body);
        while !self.bytes.len().is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.objects += 1;
        self.last_object = at;
        at
    }

    fn hash(&self, payload: &[u8]) -> u64 {
        if self.layout.keyed {
            let mut hasher = siphasher::sip::SipHasher24::new_with_key(&self.file_id);
            hasher.write(payload);
            hasher.finish()
        } else {
            lookup3(payload)
        }
    }

    /// Puts an object at the end of its hash chain; `next` is where objects of the table keep the link.
    fn link(&mut self, table: u64, buckets: u64, hash: u64, at: u64) {
        let bucket = table + hash % buckets * 16;
        let tail = self.get64(bucket + 8);
        if tail == 0 {
            self.put64(bucket, at)
        } else {
            self.put64(tail + 24, at)
        }
        self.put64(bucket + 8, at);
    }

    pub fn data(&mut self, name: &str, value: &[u8]) -> u64 {
        let payload = [name.as_bytes(), b"=", value].concat();
        if let Some(at) = self.data.get(&payload) {
            return *at;
        }
        let hash = self.hash(&payload);
        let (flags, stored) = match self.layout.compression {
            Some(compression) if payload.len() >= 64 => compress(compression, &payload),
            _ => (0, payload.clone()),
        };
        let mut body = hash.to_le_bytes().to_vec();
        body.resize(if self.layout.compact { 56 } else { 48 }, 0);
        body.extend(stored);
        let at = self.object(1, flags, &body);
        self.link(self.data_table, BUCKETS, hash, at);
        let field = match self.fields.get(name.as_bytes()) {
            Some(field) => *field,
            None => {
                let hash = self.hash(name.as_bytes());
                let mut body = hash.to_le_bytes().to_vec();
                body.resize(24, 0);
                body.extend(name.bytes());
                let field = self.object(2, 0, &body);
                self.link(self.field_table, FIELD_BUCKETS, hash, field);
                self.fields.insert(name.into(), field);
                field
            }
        };
        let newest = self.get64(field + 32);
        self.put64(at + 32, newest);
        self.put64(field + 32, at);
        self.data.insert(payload, at);
        at
    }

    pub fn append_all<'r>(&mut self, records: impl IntoIterator<Item = &'r Record>) {
        for record in records {
            self.append(record);
        }
    }

    pub fn append(&mut self, record: &Record) -> u64 {
        let mut items: Vec<_> = record.fields.iter().map(|(name, value)| self.data(name, value)).collect();
        items.sort_unstable();
        items.dedup();
        self.seqnum += 1;
        let mut body = Vec::new();
        for number in [self.seqnum, record.realtime, record.monotonic] {
            body.extend(number.to_le_bytes());
        }
        body.extend(u128::from_str_radix(&record.boot, 16).expect("a boot id").to_be_bytes());
        let mut xor = 0;
        for (name, value) in &record.fields {
            xor ^= lookup3(&[name.as_bytes(), b"=", value.as_slice()].concat());
        }
        body.extend(xor.to_le_bytes());
        for item in &items {
            if self.layout.compact {
                body.extend((*item as u32).to_le_bytes());
            } else {
                body.extend(item.to_le_bytes());
                body.extend(self.get64(item + 16).to_le_bytes());
            }
        }
        let entry = self.object(3, 0, &body);
        let mut all = std::mem::take(&mut self.all);
        self.push(&mut all, entry);
        self.all = all;
        for item in items {
            if self.get64(item + 56) == 0 {
                self.put64(item + 40, entry);
            } else {
                let mut chain = self.chains.remove(&item).unwrap_or_default();
                self.push(&mut chain, entry);
                self.put64(item + 48, chain.first);
                if self.layout.compact {
                    self.put32(item + 64, chain.last);
                    self.put32(item + 68, chain.used);
                }
                self.chains.insert(item, chain);
            }
            let entries = self.get64(item + 56);
            self.put64(item + 56, entries + 1);
        }
        self.entries += 1;
        self.head.get_or_insert((self.seqnum, record.realtime));
        self.tail = (self.seqnum, record.realtime);
        entry
    }

    fn push(&mut self, chain: &mut Chain, entry: u64) {
        let width = if self.layout.compact { 4 } else { 8 };
        if chain.used == chain.capacity {
            chain.capacity = (chain.capacity * 2).max(4);
            let array = self.object(6, 0, &vec![0; (8 + chain.capacity * width) as usize]);
            if chain.last == 0 {
                chain.first = array
            } else {
                self.put64(chain.last + 16, array)
            }
            (chain.last, chain.used) = (array, 0);
        }
        let slot = chain.last + 24 + chain.used * width;
        if self.layout.compact {
            self.put32(slot, entry)
        } else {
            self.put64(slot, entry)
        }
        chain.used += 1;
        chain.total += 1;
    }

    /// The file as it would be on disk now.
    pub fn finish(&self, state: u8) -> Vec<u8> {
        let mut file = self.clone();
        file.bytes[..8].copy_from_slice(b"LPKSHHRH");
        let compression = match self.layout.compression {
            None => 0,
            Some(Compression::Xz) => 1,
            Some(Compression::Lz4) => 2,
            Some(Compression::Zstd) => 8,
        };
        let flags = compression | u64::from(self.layout.keyed) << 2 | u64::from(self.layout.compact) << 4;
        file.put32(12, flags);
        file.bytes[16] = state;
        file.bytes[24..40].copy_from_slice(&self.file_id);
        file.bytes[40..56].fill(3);
        file.bytes[72..88].copy_from_slice(&self.seqnum_id);
        let head = self.head.unwrap_or((0, 0));
        for (at, value) in [
            (88, HEADER),
            (96, self.bytes.len() as u64 - HEADER),
            (104, self.data_table),
            (112, BUCKETS * 16),
            (120, self.field_table),
            (128, FIELD_BUCKETS * 16),
            (136, self.last_object),
            (144, self.objects),
            (152, self.entries),
            (160, self.tail.0),
            (168, head.0),
            (176, self.all.first),
            (184, head.1),
            (192, self.tail.1),
            (208, self.data.len() as u64),
            (216, self.fields.len() as u64),
        ] {
            file.put64(at, value);
        }
        file.bytes
    }
}

fn compress(compression: Compression, payload: &[u8]) -> (u8, Vec<u8>) {
    match compression {
        Compression::Xz => {
            let mut out = Vec::new();
            lzma_rs::xz_compress(&mut &payload[..], &mut out).expect("compresses");
            (1, out)
        }
        Compression::Lz4 => {
            let mut out = (payload.len() as u64).to_le_bytes().to_vec();
            out.extend(lz4_flex::block::compress(payload));
            (2, out)
        }
        // A frame of raw blocks: no encoder needed. Really compressed ones come from journald in tests/differential.rs.
        Compression::Zstd => {
            let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
            out.extend((payload.len() as u32).to_le_bytes());
            let blocks = payload.chunks(1 << 17);
            let last = blocks.len() - 1;
            for (i, block) in blocks.enumerate() {
                let header = (block.len() as u32) << 3 | u32::from(i == last);
                out.extend(&header.to_le_bytes()[..3]);
                out.extend(block);
            }
            (4, out)
        }
    }
}

/// Jenkins's `hashlittle2`, written down a second time, straight from lookup3.c's description.
fn lookup3(bytes: &[u8]) -> u64 {
    let mut state = [0xdead_beef_u32.wrapping_add(bytes.len() as u32); 3];
    let blocks = if bytes.is_empty() { 0 } else { (bytes.len() - 1) / 12 };
    for block in 0..=blocks {
        let mut padded = [0; 12];
        let part = &bytes[block * 12..bytes.len().min(block * 12 + 12)];
        padded[..part.len()].copy_from_slice(part);
        if bytes.is_empty() {
            break;
        }
        for (word, raw) in state.iter_mut().zip(padded.chunks(4)) {
            *word = word.wrapping_add(u32::from_le_bytes(raw.try_into().expect("four bytes")));
        }
        let [mut a, mut b, mut c] = state;
        macro_rules! step {
            ($x:ident -= $y:ident, $r:expr, $z:ident) => {
                $x = $x.wrapping_sub($y) ^ $y.rotate_left($r);
                $y = $y.wrapping_add($z);
            };
            ($x:ident ^= $y:ident, $r:expr) => {
                $x = ($x ^ $y).wrapping_sub($y.rotate_left($r));
            };
        }
        if block < blocks {
            step!(a -= c, 4, b);
            step!(b -= a, 6, c);
            step!(c -= b, 8, a);
            step!(a -= c, 16, b);
            step!(b -= a, 19, c);
            step!(c -= b, 4, a);
        } else {
            step!(c ^= b, 14);
            step!(a ^= c, 11);
            step!(b ^= a, 25);
            step!(c ^= b, 16);
            step!(a ^= c, 4);
            step!(b ^= a, 14);
            step!(c ^= b, 24);
        }
        state = [a, b, c];
    }
    u64::from(state[2]) << 32 | u64::from(state[1])
}

pub const JOURNAL_REMOTE: &str = "/lib/systemd/systemd-journal-remote";

/// Whether the real tools are here; says so when not.
pub fn has_systemd_tools() -> bool {
    let has = Path::new(JOURNAL_REMOTE).exists() && Command::new("journalctl").arg("--version").output().is_ok();
    if !has {
        eprintln!("skipped: needs journalctl and systemd-journal-remote");
    }
    has
}

/// Has `systemd-journal-remote` write records to a file.
pub fn journal_remote(records: &[Record], file: &Path, options: &[&str], environment: &[(&str, &str)]) {
    let mut child = Command::new(JOURNAL_REMOTE)
        .args(options)
        .arg("-o")
        .arg(file)
        .arg("-")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("systemd-journal-remote starts");
    let mut export = Vec::new();
    records.iter().for_each(|record| record.export(&mut export));
    child.stdin.take().expect("its input").write_all(&export).expect("is taken");
    assert!(child.wait().expect("it ends").success());
}

/// One entry of the export format: cursor first, then the fields as they come.
pub type Exported = Vec<(Vec<u8>, Vec<u8>)>;

/// What `journalctl -o export` prints.
pub fn journalctl_text(directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Vec<u8> {
    let output = Command::new("journalctl")
        .args(["-q", "--no-pager", "-o", "export", "-D"])
        .arg(directory)
        .args(arguments)
        .output()
        .expect("journalctl runs");
    output.stdout
}

/// Runs `journalctl -o export` and reads what it prints.
pub fn journalctl(directory: &Path, arguments: &[String]) -> Vec<Exported> {
    let printed = journalctl_text(directory, arguments);
    let mut rest = printed.as_slice();
    let mut entries = Vec::new();
    let mut entry = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if line.is_empty() {
            entries.push(std::mem::take(&mut entry));
        } else if let Some(equals) = line.iter().position(|byte| *byte == b'=') {
            entry.push((line[..equals].to_vec(), line[equals + 1..].to_vec()));
        } else {
            let length = u64::from_le_bytes(rest[..8].try_into().expect("eight bytes")) as usize;
            entry.push((line.to_vec(), rest[8..8 + length].to_vec()));
            rest = &rest[8 + length + 1..];
        }
    }
    // systemd 254 and later also print the sequence number, which the cursor holds already.
    entries.iter_mut().for_each(|entry: &mut Exported| entry.retain(|(name, _)| !name.starts_with(b"__SEQNUM")));
    entries
}
