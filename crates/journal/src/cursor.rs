//! Places in the journal that outlive the process, in journalctl's own text form.

use crate::id::Id128;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The place of one entry, as `journalctl --show-cursor` prints it and `--after-cursor` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// Source of the sequence number.
    pub seqnum_id: Id128,
    /// Sequence number, unique among the files of one source.
    pub seqnum: u64,
    /// The boot.
    pub boot_id: Id128,
    /// Microseconds since that boot.
    pub monotonic: u64,
    /// Microseconds since 1970.
    pub realtime: u64,
    /// Hash over the fields of the entry.
    pub xor_hash: u64,
}

impl Cursor {
    /// Whether both are places of one entry: the same content at the same time. Under another source's number too, since
    /// journald counts anew in the volatile and in the persistent journal, to which it copies the former.
    pub fn same_entry(&self, other: &Self) -> bool {
        let counted_alike = self.seqnum_id != other.seqnum_id || self.seqnum == other.seqnum;
        let same_time = self.monotonic == other.monotonic && self.realtime == other.realtime;
        counted_alike && same_time && self.boot_id == other.boot_id && self.xor_hash == other.xor_hash
    }

    /// journalctl's order of entries of different files: by sequence number where the source is the same, else by
    /// monotonic time in one boot, else by wall clock. Not transitive when clocks jump.
    pub fn order(&self, other: &Self) -> Ordering {
        if self.same_entry(other) {
            return Ordering::Equal;
        }
        let by_seqnum =
            if self.seqnum_id == other.seqnum_id { self.seqnum.cmp(&other.seqnum) } else { Ordering::Equal };
        by_seqnum
            .then_with(|| {
                if self.boot_id == other.boot_id { self.monotonic.cmp(&other.monotonic) } else { Ordering::Equal }
            })
            .then_with(|| self.realtime.cmp(&other.realtime))
            .then_with(|| self.xor_hash.cmp(&other.xor_hash))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seqnum_id, seqnum, boot_id, monotonic, realtime, xor_hash } = self;
        write!(f, "s={seqnum_id};i={seqnum:x};b={boot_id};m={monotonic:x};t={realtime:x};x={xor_hash:x}")
    }
}

/// Not a cursor as journalctl prints it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a journal cursor (s=…;i=…;b=…;m=…;t=…;x=…): {0:?}")]
pub struct NotACursor(pub String);

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let wrong = || NotACursor(text.to_owned());
        let (mut ids, mut numbers) = ([None; 2], [None; 4]);
        for part in text.split(';') {
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            let id = || value.parse::<Id128>().map_err(|_| wrong());
            let number = || u64::from_str_radix(value, 16).map_err(|_| wrong());
            match key {
                "s" => ids[0] = Some(id()?),
                "b" => ids[1] = Some(id()?),
                "i" => numbers[0] = Some(number()?),
                "m" => numbers[1] = Some(number()?),
                "t" => numbers[2] = Some(number()?),
                "x" => numbers[3] = Some(number()?),
                _ => {}
            }
        }
        match (ids, numbers) {
            ([Some(seqnum_id), Some(boot_id)], [Some(seqnum), Some(monotonic), Some(realtime), Some(xor_hash)]) => {
                Ok(Self { seqnum_id, seqnum, boot_id, monotonic, realtime, xor_hash })
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_journalctl_is_read_and_written_alike() {
        let text = "s=8eaafc3c2a0b444e89a3144741d91a61;i=2aa47;b=0123456789abcdef0123456789abcdef;m=f4240;\
                    t=660fd44c15b3b;x=8d3c52f3a1b2c3d4";
        let cursor: Cursor = text.parse().expect("a cursor");
        assert_eq!(cursor.to_string(), text);
        for broken in ["", "s=1", "i=zz;s=8eaafc3c2a0b444e89a3144741d91a61", &text[..70]] {
            assert!(broken.parse::<Cursor>().is_err(), "{broken}");
        }
    }
}
