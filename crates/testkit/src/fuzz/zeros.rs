//! Journal files are mostly zeros: hash tables of which a few slots are used, and room for what is yet to come. Kept
//! without them, half a megabyte is some kilobytes.
//!
//! `ZEROS` and then, again and again: a number of bytes, these bytes, a number of zeros. Numbers are 32 bits,
//! little-endian.

const MAGIC: &[u8] = b"ZEROS";
/// The largest file that is unpacked: a forged number of zeros must not fill the memory.
const LARGEST: usize = 16 << 20;
/// Shorter runs of zeros are kept as they are.
const SHORTEST: usize = 16;

/// The file without its zeros.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let mut rest = bytes;
    while !rest.is_empty() {
        let kept = rest.windows(SHORTEST).position(|run| run.iter().all(|byte| *byte == 0)).unwrap_or(rest.len());
        let (literal, tail) = rest.split_at(kept);
        let zeros = tail.iter().take_while(|byte| **byte == 0).count();
        out.extend((kept as u32).to_le_bytes());
        out.extend(literal);
        out.extend((zeros as u32).to_le_bytes());
        rest = &tail[zeros..];
    }
    out
}

/// The file with its zeros; `None` where this is no packed file, or one that would be too large. A file that ends
/// early is what it is up to there.
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    fn number(rest: &mut &[u8]) -> Option<usize> {
        let (number, tail) = rest.split_first_chunk::<4>()?;
        *rest = tail;
        usize::try_from(u32::from_le_bytes(*number)).ok()
    }
    let mut rest = packed.strip_prefix(MAGIC)?;
    let mut out = Vec::new();
    while let Some(kept) = number(&mut rest) {
        let (literal, tail) = rest.split_at(kept.min(rest.len()));
        out.extend_from_slice(literal);
        rest = tail;
        let zeros = number(&mut rest).unwrap_or(0);
        if out.len().saturating_add(zeros) > LARGEST {
            return None;
        }
        out.resize(out.len() + zeros, 0);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let mut file = vec![0; 1000];
        file.extend(b"LPKSHHRH");
        file.extend([0; 15]);
        file.extend([1, 0, 0, 2]);
        for end in [0, 1, 999, 1008, 1020, file.len()] {
            assert_eq!(unpack(&pack(&file[..end])).as_deref(), Some(&file[..end]));
        }
        assert!(pack(&file).len() < 80);
        assert_eq!(unpack(b"LPKSHHRH"), None);
        // Sixteen bytes that speak of four gigabytes.
        assert_eq!(unpack(b"ZEROS\0\0\0\0\xff\xff\xff\xff"), None);
    }
}
