//! Reading a file through a few windows, with `pread`.
//!
//! No memory map: a file that is truncated while we read would kill the process. A window follows the way the file is
//! read: small for jumps (hash tables, lists of entries), doubling up to [`LARGEST`] while reads go forward.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const SMALLEST: usize = 16 << 10;
const LARGEST: usize = 256 << 10;
/// Bytes before the asked place that a jump reads as well: values lie just before the entry that first had them.
const BEFORE: u64 = 4 << 10;
/// How far past the end of the last window a read still counts as going forward.
const NEAR: u64 = 64 << 10;

struct Window {
    start: u64,
    bytes: Vec<u8>,
    used: u64,
}

/// Windows of one file for one reader.
pub(crate) struct Windows {
    slots: Vec<Window>,
    most: usize,
    clock: u64,
    latest: usize,
    /// End and size of the window that was loaded last.
    loaded: (u64, usize),
}

impl Windows {
    /// At most `most` windows of up to 256 KiB each.
    pub(crate) fn new(most: usize) -> Self {
        Self { slots: Vec::new(), most: most.max(2), clock: 0, latest: 0, loaded: (u64::MAX, 0) }
    }

    /// The bytes from `offset` to `offset + length` of a file of `end` bytes. The caller has checked the range; a file
    /// that became shorter meanwhile gives [`io::ErrorKind::UnexpectedEof`].
    pub(crate) fn get(&mut self, file: &File, offset: u64, length: usize, end: u64) -> io::Result<&[u8]> {
        let holds = |w: &Window| offset >= w.start && offset + length as u64 <= w.start + w.bytes.len() as u64;
        let slot = if self.slots.get(self.latest).is_some_and(holds) {
            self.latest
        } else {
            match self.slots.iter().position(holds) {
                Some(slot) => slot,
                None => self.load(file, offset, length, end)?,
            }
        };
        self.latest = slot;
        self.clock += 1;
        let window = &mut self.slots[slot];
        window.used = self.clock;
        let from = (offset - window.start) as usize;
        Ok(&window.bytes[from..from + length])
    }

    /// Forgets what was read, for a file that was written meanwhile.
    pub(crate) fn forget(&mut self) {
        self.slots.iter_mut().for_each(|window| window.bytes.clear());
        self.loaded = (u64::MAX, 0);
    }

    fn load(&mut self, file: &File, offset: u64, length: usize, end: u64) -> io::Result<usize> {
        let (last_end, last_size) = self.loaded;
        let forward = offset + length as u64 > last_end && offset < last_end.saturating_add(NEAR);
        let (start, size) =
            if forward { (offset, (last_size * 2).min(LARGEST)) } else { (offset.saturating_sub(BEFORE), SMALLEST) };
        let size = size.max(length + (offset - start) as usize).min(end.saturating_sub(start) as usize);
        let slot = if self.slots.len() < self.most {
            self.slots.push(Window { start: 0, bytes: Vec::new(), used: 0 });
            self.slots.len() - 1
        } else {
            (0..self.slots.len()).min_by_key(|i| self.slots[*i].used).unwrap_or(0)
        };
        let window = &mut self.slots[slot];
        // A window that once held a huge value does not keep its memory.
        if window.bytes.capacity() > 4 * LARGEST {
            window.bytes = Vec::new();
        }
        window.start = start;
        window.bytes.resize(size, 0);
        let mut filled = 0;
        while filled < size {
            match file.read_at(&mut window.bytes[filled..], start + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    window.bytes.clear();
                    return Err(error);
                }
            }
        }
        window.bytes.truncate(filled);
        self.loaded = (start + filled as u64, size.min(LARGEST));
        if start + (filled as u64) < offset + length as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(slot)
    }
}
