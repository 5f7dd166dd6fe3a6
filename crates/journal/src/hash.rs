//! The two hash functions of journal files: SipHash-2-4 keyed with the file's id (flag KEYED-HASH, systemd 246 and
//! later) and Bob Jenkins's lookup3 `hashlittle2` with both seeds 0 (before).

use std::hash::Hasher;

/// The hash of a value or field name in a file: keyed with `file_id` if the file has KEYED-HASH, else Jenkins's.
pub(crate) fn hash(bytes: &[u8], key: Option<&[u8; 16]>) -> u64 {
    match key {
        Some(key) => {
            let mut hasher = siphasher::sip::SipHasher24::new_with_key(key);
            hasher.write(bytes);
            hasher.finish()
        }
        None => jenkins(bytes),
    }
}

/// lookup3 `hashlittle2`; the first result is the upper half.
fn jenkins(bytes: &[u8]) -> u64 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    // The last block is mixed differently, also when it is whole.
    while let Some((block, after)) = rest.split_first_chunk::<12>()
        && !after.is_empty()
    {
        a = a.wrapping_add(u32::from_le_bytes([block[0], block[1], block[2], block[3]]));
        b = b.wrapping_add(u32::from_le_bytes([block[4], block[5], block[6], block[7]]));
        c = c.wrapping_add(u32::from_le_bytes([block[8], block[9], block[10], block[11]]));
        mix(&mut a, &mut b, &mut c);
        rest = after;
    }
    if !rest.is_empty() {
        a = a.wrapping_add(word(rest, 0));
        b = b.wrapping_add(word(rest, 4));
        c = c.wrapping_add(word(rest, 8));
        finish(&mut a, &mut b, &mut c);
    }
    u64::from(c) << 32 | u64::from(b)
}

/// Four bytes at `at`, little-endian, those past the end read as 0.
fn word(bytes: &[u8], at: usize) -> u32 {
    (0..4).fold(0, |word, i| word | u32::from(bytes.get(at + i).copied().unwrap_or(0)) << (8 * i))
}

fn mix(a: &mut u32, b: &mut u32, c: &mut u32) {
    for (rotate_a, rotate_b, rotate_c) in [(4, 6, 8), (16, 19, 4)] {
        *a = a.wrapping_sub(*c) ^ c.rotate_left(rotate_a);
        *c = c.wrapping_add(*b);
        *b = b.wrapping_sub(*a) ^ a.rotate_left(rotate_b);
        *a = a.wrapping_add(*c);
        *c = c.wrapping_sub(*b) ^ b.rotate_left(rotate_c);
        *b = b.wrapping_add(*a);
    }
}

fn finish(a: &mut u32, b: &mut u32, c: &mut u32) {
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(14));
    *a = (*a ^ *c).wrapping_sub(c.rotate_left(11));
    *b = (*b ^ *a).wrapping_sub(a.rotate_left(25));
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(16));
    *a = (*a ^ *c).wrapping_sub(c.rotate_left(4));
    *b = (*b ^ *a).wrapping_sub(a.rotate_left(14));
    *c = (*c ^ *b).wrapping_sub(b.rotate_left(24));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of lookup3.c: `hashlittle2("Four score and seven years ago", …)` with both seeds 0 gives
    /// 17770551 ce7226e6.
    #[test]
    fn jenkins_gives_the_value_of_its_author() {
        assert_eq!(jenkins(b"Four score and seven years ago"), 0x1777_0551_ce72_26e6);
        assert_eq!(jenkins(b""), 0xdead_beef_dead_beef);
    }
}
