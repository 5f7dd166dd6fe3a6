//! One journal file: its header and its objects, every reference checked before it is followed.
//!
//! Format: <https://systemd.io/JOURNAL_FILE_FORMAT>, as written by systemd 187 to 257. Nothing here trusts the file:
//! offsets must be aligned, inside the file and of the expected type; chains must go the way a writer makes them
//! (hash chains and lists of entries to higher offsets, chains of one field's values to lower ones), so none can loop.

use crate::decompress::Decompressor;
use crate::gap::{Compression, Fault, Gap, Part, Reason};
use crate::hash::hash;
use crate::id::Id128;
use crate::limits::Limits;
use crate::window::Windows;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const OBJECT_HEADER: u64 = 16;
const DATA_HEADER: u64 = 64;
const DATA_HEADER_COMPACT: u64 = 72;
const FIELD_HEADER: u64 = 40;
const ENTRY_HEADER: u64 = 64;
const ARRAY_HEADER: u64 = 24;
/// Header size of the first version; all later fields are looked at only if the header is long enough.
const OLDEST_HEADER: u64 = 208;
const NEWEST_HEADER: usize = 264;

const TYPE_DATA: u8 = 1;
const TYPE_FIELD: u8 = 2;
const TYPE_ENTRY: u8 = 3;
const TYPE_ENTRY_ARRAY: u8 = 6;

const COMPRESSED_XZ: u8 = 1 << 0;
const COMPRESSED_LZ4: u8 = 1 << 1;
const COMPRESSED_ZSTD: u8 = 1 << 2;

const FLAG_KEYED_HASH: u32 = 1 << 2;
const FLAG_COMPACT: u32 = 1 << 4;
const KNOWN_FLAGS: u32 = 0b1_1111;

/// Fields of one entry beyond which it is taken for damage; journald's own limit is 1024.
const MOST_ITEMS: u64 = 1 << 16;
/// Steps along one hash chain; journald rotates a file long before (at a depth of 100).
const LONGEST_HASH_CHAIN: usize = 1 << 16;
/// Arrays in one list of entries: they double in size, so a real one has some thirty at most.
pub(crate) const MOST_ARRAYS: usize = 4096;

/// Whether a journal file is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Closed properly by its writer, which may open it again.
    Offline,
    /// Being written, or its writer did not get to close it (crash, power cut, a copy of a live file).
    Online,
    /// Rotated away: never written again.
    Archived,
}

/// What the header of a journal file says.
#[derive(Debug, Clone)]
pub struct FileInfo {
    /// Where it lies.
    pub path: PathBuf,
    /// Whether it is being written.
    pub state: State,
    /// Random identity of the file.
    pub file_id: Id128,
    /// The machine that wrote it.
    pub machine_id: Id128,
    /// The source of the sequence numbers: one journald, whatever the number of its files.
    pub seqnum_id: Id128,
    /// Sequence number of the first entry; 0 if there is none.
    pub head_seqnum: u64,
    /// Sequence number of the last entry; 0 if there is none.
    pub tail_seqnum: u64,
    /// Microseconds since 1970 of the first entry; 0 if there is none.
    pub head_realtime: u64,
    /// Microseconds since 1970 of the last entry; 0 if there is none.
    pub tail_realtime: u64,
    /// Entries in the file.
    pub entries: u64,
    /// Bytes that the header says are in use.
    pub used_bytes: u64,
    /// Bytes on disk when it was opened.
    pub present_bytes: u64,
    /// Values of the incompatible flags: 1 XZ, 2 LZ4, 4 keyed hash, 8 ZSTD, 16 compact.
    pub incompatible_flags: u32,
}

impl FileInfo {
    /// Whether the file is shorter than its header says.
    pub fn is_truncated(&self) -> bool {
        self.present_bytes < self.used_bytes
    }
}

/// What one reader of a file needs besides the file: windows, a decoder and room for a decompressed value.
pub(crate) struct Buffers {
    windows: Windows,
    decompressor: Decompressor,
    scratch: Vec<u8>,
}

impl Buffers {
    pub(crate) fn new(windows: usize) -> Self {
        Self { windows: Windows::new(windows), decompressor: Decompressor::default(), scratch: Vec::new() }
    }

    /// Forgets what was read, for a file that was written meanwhile.
    pub(crate) fn forget(&mut self) {
        self.windows.forget();
    }
}

/// Values that are remembered not to be in a file.
const MOST_ABSENT: usize = 64;

pub(crate) struct JournalFile {
    file: File,
    pub(crate) info: FileInfo,
    header_size: u64,
    /// First byte that is not read: the smaller of what the header says and what is there. Moves on while the file is
    /// being written.
    end: AtomicU64,
    compact: bool,
    keyed: bool,
    data_table: (u64, u64),
    field_table: (u64, u64),
    entry_array: u64,
    value_limit: u64,
    buffers: Mutex<Buffers>,
    /// Values that were looked for in every way and are not in a file that is not written any more: not looked for again.
    absent: Mutex<Vec<Box<[u8]>>>,
}

/// The fixed part of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    pub(crate) offset: u64,
    hash: u64,
    next_hash: u64,
    next_field: u64,
    pub(crate) first_entry: u64,
    pub(crate) array: u64,
    pub(crate) entries: u64,
    /// Last array of the list and its number of entries, where the format has it (COMPACT), else 0.
    pub(crate) tail_array: (u64, u64),
    flags: u8,
    payload: (u64, u64),
}

/// The fixed part of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryHead {
    pub(crate) offset: u64,
    pub(crate) seqnum: u64,
    pub(crate) realtime: u64,
    pub(crate) monotonic: u64,
    pub(crate) boot_id: Id128,
    pub(crate) xor_hash: u64,
}

/// What is wrong with a file that has no tables yet.
const NO_TABLES: &str = "no hash tables";

impl JournalFile {
    /// Opens a file and checks its header. A truncated file is opened with a gap beside it.
    pub(crate) fn open(path: &Path, limits: &Limits, windows: usize) -> Result<(Self, Option<Gap>), Gap> {
        // A file that is being made has its header first and its tables a moment later.
        for _ in 0..100 {
            match Self::open_once(path, limits, windows) {
                Err(Gap { reason: Reason::DamagedHeader(NO_TABLES), .. }) => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                done => return done,
            }
        }
        Self::open_once(path, limits, windows)
    }

    fn open_once(path: &Path, limits: &Limits, windows: usize) -> Result<(Self, Option<Gap>), Gap> {
        let io_gap = |error: io::Error| Gap::io(path, &error);
        // A named pipe would block the open, a device may do anything.
        if !std::fs::metadata(path).map_err(io_gap)?.is_file() {
            return Err(Gap::whole(path, Reason::Unreadable("not a regular file".to_owned())));
        }
        let file = File::open(path).map_err(io_gap)?;
        let present = file.metadata().map_err(io_gap)?.len();
        let mut raw = [0; NEWEST_HEADER];
        let mut read = 0;
        while read < raw.len() {
            match file.read_at(&mut raw[read..], read as u64) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_gap(error)),
            }
        }
        if raw[..8] != *b"LPKSHHRH" {
            return Err(Gap::whole(path, Reason::NotAJournal));
        }
        let damaged = |what| Gap::whole(path, Reason::DamagedHeader(what));
        if (read as u64) < OLDEST_HEADER {
            return Err(Gap::whole(path, Reason::Truncated { promised: OLDEST_HEADER, present }));
        }
        let flags = le32(&raw, 12);
        if flags & !KNOWN_FLAGS != 0 {
            return Err(Gap::whole(path, Reason::UnknownFeatures(flags & !KNOWN_FLAGS)));
        }
        let state = match raw[16] {
            0 => State::Offline,
            1 => State::Online,
            2 => State::Archived,
            _ => return Err(damaged("unknown state")),
        };
        let header_size = le64(&raw, 88);
        if header_size < OLDEST_HEADER || !header_size.is_multiple_of(8) {
            return Err(damaged("size of the header"));
        }
        let promised = header_size.checked_add(le64(&raw, 96)).ok_or(damaged("size of the file"))?;
        let end = promised.min(present);
        let table = |at| (le64(&raw, at), le64(&raw, at + 8));
        let (data_table, field_table) = (table(104), table(120));
        if state == State::Online && (data_table.0 == 0 || field_table.0 == 0) {
            return Err(damaged(NO_TABLES));
        }
        for (offset, size) in [data_table, field_table] {
            let inside = offset >= header_size && offset.checked_add(size).is_some_and(|last| last <= promised);
            if !offset.is_multiple_of(8) || size < 16 || !size.is_multiple_of(16) || !inside {
                return Err(damaged("place of a hash table"));
            }
        }
        let info = FileInfo {
            path: path.to_owned(),
            state,
            file_id: id128(&raw, 24),
            machine_id: id128(&raw, 40),
            seqnum_id: id128(&raw, 72),
            head_seqnum: le64(&raw, 168),
            tail_seqnum: le64(&raw, 160),
            head_realtime: le64(&raw, 184),
            tail_realtime: le64(&raw, 192),
            entries: le64(&raw, 152),
            used_bytes: promised,
            present_bytes: present,
            incompatible_flags: flags,
        };
        let gap = info.is_truncated().then(|| Gap::whole(path, Reason::Truncated { promised, present }));
        let file = Self {
            file,
            info,
            header_size,
            end: AtomicU64::new(end),
            compact: flags & FLAG_COMPACT != 0,
            keyed: flags & FLAG_KEYED_HASH != 0,
            data_table,
            field_table,
            entry_array: le64(&raw, 176),
            value_limit: limits.value_bytes,
            buffers: Mutex::new(Buffers::new(windows)),
            absent: Mutex::default(),
        };
        Ok((file, gap))
    }

    /// The buffers that all readers of one thread share.
    pub(crate) fn buffers(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.info.path
    }

    /// Bytes of the file that are read.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Whether the file has bytes up to `last`; one that is being written is looked at again.
    fn reaches(&self, last: u64) -> bool {
        last <= self.end()
            || self.info.state == State::Online
                && self
                    .file
                    .metadata()
                    .is_ok_and(|file| last <= self.end.fetch_max(file.len(), Ordering::Relaxed).max(file.len()))
    }

    /// Whether references that lead nowhere are expected: to what is just being written, or to what was cut off.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.info.state == State::Online || self.info.is_truncated()
    }

    /// Whether a value is known not to be here.
    pub(crate) fn lacks(&self, payload: &[u8]) -> bool {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.iter().any(|known| **known == *payload)
    }

    /// Notes that a value is not here, for as long as that cannot change.
    pub(crate) fn note_lack(&self, payload: &[u8]) {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_open_ended() && absent.len() < MOST_ABSENT {
            absent.push(payload.into());
        }
    }

    /// Whether a reference leads past the end of a file of which that is expected.
    pub(crate) fn is_beyond(&self, offset: u64) -> bool {
        self.is_open_ended() && offset >= self.header_size && !self.reaches(offset.saturating_add(OBJECT_HEADER))
    }

    /// List of all entries: its first array and its length.
    pub(crate) fn all_entries(&self) -> (u64, u64) {
        (self.entry_array, self.info.entries)
    }

    /// Whether an object could start here.
    pub(crate) fn is_place(&self, offset: u64) -> bool {
        offset.is_multiple_of(8)
            && offset >= self.header_size
            && offset.checked_add(OBJECT_HEADER).is_some_and(|last| self.reaches(last))
    }

    pub(crate) fn bytes<'b>(&self, buffers: &'b mut Buffers, offset: u64, length: u64) -> Result<&'b [u8], Fault> {
        if !offset.checked_add(length).is_some_and(|last| self.reaches(last)) {
            return Err(Fault::damaged(Part::Data, offset));
        }
        buffers.windows.get(&self.file, offset, length as usize, self.end()).map_err(|error| Fault {
            offset,
            reason: match error.kind() {
                io::ErrorKind::UnexpectedEof => Reason::Truncated {
                    promised: self.end(),
                    present: self.file.metadata().map(|m| m.len()).unwrap_or(0).min(self.end()),
                },
                _ => Reason::from(&error),
            },
        })
    }

    /// Flags and size of the object at `offset`, which must be of `kind`, at least `least` bytes and inside the file.
    fn object(&self, buffers: &mut Buffers, offset: u64, kind: u8, least: u64, part: Part) -> Result<(u8, u64), Fault> {
        if !self.is_place(offset) {
            return Err(Fault::damaged(part, offset));
        }
        let mut again = self.info.state == State::Online;
        loop {
            let header = self.bytes(buffers, offset, OBJECT_HEADER)?;
            let (found, flags, size) = (header[0], header[1], le64(header, 8));
            if found == kind && size >= least && offset.checked_add(size).is_some_and(|last| self.reaches(last)) {
                return Ok((flags, size));
            }
            // A window may be older than the reference that led here.
            if !again {
                return Err(Fault::damaged(part, offset));
            }
            again = false;
            buffers.windows.forget();
        }
    }

    /// The entry at `offset`; `items` is overwritten with the offsets of its values, unchecked.
    pub(crate) fn entry(&self, buffers: &mut Buffers, offset: u64, items: &mut Vec<u64>) -> Result<EntryHead, Fault> {
        let (_, size) = self.object(buffers, offset, TYPE_ENTRY, ENTRY_HEADER, Part::Entry)?;
        let width = if self.compact { 4 } else { 16 };
        let count = (size - ENTRY_HEADER) / width;
        if count == 0 || count > MOST_ITEMS {
            return Err(Fault::damaged(Part::Entry, offset));
        }
        let raw = self.bytes(buffers, offset, ENTRY_HEADER + count * width)?;
        let head = EntryHead {
            offset,
            seqnum: le64(raw, 16),
            realtime: le64(raw, 24),
            monotonic: le64(raw, 32),
            boot_id: id128(raw, 40),
            xor_hash: le64(raw, 56),
        };
        let time = |t: u64| t > 0 && t < 1 << 55;
        if head.seqnum == 0 || head.seqnum == u64::MAX || !time(head.realtime) || head.monotonic >= 1 << 55 {
            return Err(Fault::damaged(Part::Entry, offset));
        }
        items.clear();
        let raw = &raw[ENTRY_HEADER as usize..];
        if self.compact {
            items.extend(raw.as_chunks::<4>().0.iter().map(|item| u64::from(u32::from_le_bytes(*item))));
        } else {
            items.extend(raw.as_chunks::<16>().0.iter().map(|item| le64(item, 0)));
        }
        Ok(head)
    }

    /// The value at `offset`.
    pub(crate) fn data(&self, buffers: &mut Buffers, offset: u64) -> Result<Data, Fault> {
        let header = if self.compact { DATA_HEADER_COMPACT } else { DATA_HEADER };
        let (flags, size) = self.object(buffers, offset, TYPE_DATA, header + 1, Part::Data)?;
        let raw = self.bytes(buffers, offset, header)?;
        Ok(Data {
            offset,
            hash: le64(raw, 16),
            next_hash: le64(raw, 24),
            next_field: le64(raw, 32),
            first_entry: le64(raw, 40),
            array: le64(raw, 48),
            entries: le64(raw, 56),
            tail_array: if self.compact { (le32(raw, 64).into(), le32(raw, 68).into()) } else { (0, 0) },
            flags,
            payload: (offset + header, size - header),
        })
    }

    /// `NAME=value` of a value, decompressed and compared with its hash: a flipped bit may have hidden what is searched.
    pub(crate) fn payload<'b>(&self, buffers: &'b mut Buffers, data: &Data) -> Result<&'b [u8], Fault> {
        let payload = self.unverified_payload(buffers, data)?;
        if hash(payload, self.key()) == data.hash { Ok(payload) } else { Err(Fault::damaged(Part::Data, data.offset)) }
    }

    fn unverified_payload<'b>(&self, buffers: &'b mut Buffers, data: &Data) -> Result<&'b [u8], Fault> {
        let (offset, length) = data.payload;
        if length > self.value_limit {
            return Err(Fault {
                offset: data.offset,
                reason: Reason::TooLarge { bytes: length, limit: self.value_limit },
            });
        }
        let compression = match data.flags & (COMPRESSED_XZ | COMPRESSED_LZ4 | COMPRESSED_ZSTD) {
            0 => return self.bytes(buffers, offset, length),
            COMPRESSED_XZ => Compression::Xz,
            COMPRESSED_LZ4 => Compression::Lz4,
            COMPRESSED_ZSTD => Compression::Zstd,
            _ => return Err(Fault::damaged(Part::Data, data.offset)),
        };
        self.bytes(buffers, offset, length)?;
        let Buffers { windows, decompressor, scratch } = buffers;
        if scratch.capacity() > 4 << 20 {
            *scratch = Vec::new();
        }
        let raw = windows.get(&self.file, offset, length as usize, self.end());
        let raw = raw.map_err(|error| Fault { offset, reason: Reason::from(&error) })?;
        decompressor
            .run(compression, raw, self.value_limit, scratch)
            .map_err(|reason| Fault { offset: data.offset, reason })?;
        Ok(scratch)
    }

    /// Whether the value is `name`'s, without decompressing when it is stored plainly.
    pub(crate) fn payload_if<'b>(
        &self,
        buffers: &'b mut Buffers,
        data: &Data,
        prefix: &[u8],
    ) -> Result<Option<&'b [u8]>, Fault> {
        let (offset, length) = data.payload;
        if data.flags & (COMPRESSED_XZ | COMPRESSED_LZ4 | COMPRESSED_ZSTD) == 0 {
            let shown = (prefix.len() as u64).min(length);
            if self.bytes(buffers, offset, shown)? != prefix {
                return Ok(None);
            }
        }
        let payload = self.payload(buffers, data)?;
        Ok(payload.starts_with(prefix).then_some(payload))
    }

    fn key(&self) -> Option<&[u8; 16]> {
        self.keyed.then_some(&self.info.file_id.0)
    }

    /// First object of the hash chain that `hash` belongs to; 0 if it is empty.
    fn bucket(&self, buffers: &mut Buffers, table: (u64, u64), hash: u64) -> Result<u64, Fault> {
        let offset = table.0 + hash % (table.1 / 16) * 16;
        Ok(le64(self.bytes(buffers, offset, 8)?, 0))
    }

    /// The value `NAME=value`, by the hash table. `None`: no entry of this file has it.
    pub(crate) fn find_data(&self, buffers: &mut Buffers, payload: &[u8]) -> Result<Option<Data>, Fault> {
        let wanted = hash(payload, self.key());
        let mut offset = self.bucket(buffers, self.data_table, wanted)?;
        for _ in 0..LONGEST_HASH_CHAIN {
            if offset == 0 || self.is_beyond(offset) {
                return Ok(None);
            }
            let data = self.data(buffers, offset)?;
            if data.hash == wanted && self.unverified_payload(buffers, &data)? == payload {
                return Ok(Some(data));
            }
            if data.next_hash != 0 && data.next_hash <= offset {
                return Err(Fault::damaged(Part::HashChain, offset));
            }
            offset = data.next_hash;
        }
        Err(Fault::damaged(Part::HashChain, offset))
    }

    /// Newest value of the field `name`; 0 if there is none.
    fn newest_value(&self, buffers: &mut Buffers, name: &[u8]) -> Result<u64, Fault> {
        let wanted = hash(name, self.key());
        let mut offset = self.bucket(buffers, self.field_table, wanted)?;
        for _ in 0..LONGEST_HASH_CHAIN {
            if offset == 0 || self.is_beyond(offset) {
                return Ok(0);
            }
            let (_, size) = self.object(buffers, offset, TYPE_FIELD, FIELD_HEADER + 1, Part::Field)?;
            let raw = self.bytes(buffers, offset, FIELD_HEADER)?;
            let (found, next, head) = (le64(raw, 16), le64(raw, 24), le64(raw, 32));
            let length = size - FIELD_HEADER;
            if found == wanted
                && length == name.len() as u64
                && self.bytes(buffers, offset + FIELD_HEADER, length)? == name
            {
                return Ok(head);
            }
            if next != 0 && next <= offset {
                return Err(Fault::damaged(Part::HashChain, offset));
            }
            offset = next;
        }
        Err(Fault::damaged(Part::HashChain, offset))
    }

    /// Calls `see` with each value of the field `name` (without `NAME=`), newest first, until it returns `false`.
    /// A fault ends the walk: the rest of the chain cannot be reached.
    pub(crate) fn values(
        &self,
        buffers: &mut Buffers,
        name: &[u8],
        mut see: impl FnMut(&mut Buffers, &Data, &[u8]) -> bool,
    ) -> Result<(), Fault> {
        let mut offset = self.newest_value(buffers, name)?;
        let mut above = u64::MAX;
        let mut value = Vec::new();
        while offset != 0 {
            let data = self.data(buffers, offset)?;
            // Objects lie one behind the other. Values within each other would have the same bytes read again and again.
            if data.payload.0.saturating_add(data.payload.1) > above {
                return Err(Fault::damaged(Part::Field, offset));
            }
            above = offset;
            let payload = self.payload(buffers, &data)?;
            match payload.split_at_checked(name.len()) {
                Some((found, [b'=', rest @ ..])) if found == name => {
                    value.clear();
                    value.extend_from_slice(rest);
                }
                _ => return Err(Fault::damaged(Part::Data, offset)),
            }
            if !see(buffers, &data, &value) {
                return Ok(());
            }
            if data.next_field >= offset {
                return Err(Fault::damaged(Part::Field, offset));
            }
            offset = data.next_field;
        }
        Ok(())
    }

    /// Place of the first slot, number of slots and next array of the array of entries at `offset`.
    pub(crate) fn array(&self, buffers: &mut Buffers, offset: u64) -> Result<(u64, u64, u64), Fault> {
        let (_, size) = self.object(buffers, offset, TYPE_ENTRY_ARRAY, ARRAY_HEADER, Part::EntryArray)?;
        let next = le64(self.bytes(buffers, offset, ARRAY_HEADER)?, 16);
        Ok((offset + ARRAY_HEADER, (size - ARRAY_HEADER) / self.slot(), next))
    }

    /// Bytes of one slot of an array of entries.
    pub(crate) fn slot(&self) -> u64 {
        if self.compact { 4 } else { 8 }
    }

    /// Reads `count` slots from slot `index` of the array whose slots start at `slots`.
    pub(crate) fn slots(
        &self,
        buffers: &mut Buffers,
        slots: u64,
        index: u64,
        count: u64,
        out: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        let raw = self.bytes(buffers, slots + index * self.slot(), count * self.slot())?;
        out.clear();
        if self.compact {
            out.extend(raw.as_chunks::<4>().0.iter().map(|slot| u64::from(u32::from_le_bytes(*slot))));
        } else {
            out.extend(raw.as_chunks::<8>().0.iter().map(|slot| u64::from_le_bytes(*slot)));
        }
        Ok(())
    }
}

/// Little-endian integers at a place that the caller has checked; 0 past the end.
fn le64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |raw| u64::from_le_bytes(*raw))
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |raw| u32::from_le_bytes(*raw))
}

fn id128(bytes: &[u8], at: usize) -> Id128 {
    Id128(bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default())
}
