//! Changes inputs at random, the same way for the same seed.

use super::Target;

/// xorshift64*.
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below `limit`; 0 where that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.number() % limit as u64) as usize }
    }
}

/// Where readers go wrong: nothing, everything, signs, limits of formats.
const NUMBERS: &[u64] = &[
    0,
    1,
    2,
    7,
    8,
    15,
    16,
    17,
    63,
    64,
    65,
    72,
    127,
    128,
    255,
    256,
    264,
    4096,
    65_535,
    65_536,
    1 << 20,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 40,
    1 << 55,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 7,
    u64::MAX,
];

/// Inputs do not grow beyond this by mutation.
const LARGEST: usize = 64 << 10;

/// Some changes to an input, one upon the other; `other` is a second one to take parts from.
pub fn mutate(random: &mut Random, target: &Target, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    let most = if random.below(4) == 0 { 16 } else { 4 };
    for _ in 0..=random.below(most) {
        if target.binary {
            change_in_place(random, &mut bytes, other);
        } else {
            change_text(random, target.words, &mut bytes, other);
        }
    }
    bytes
}

/// A place that says something: most of a journal file is zeros.
fn place(random: &mut Random, bytes: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..32 {
        at = random.below(bytes.len());
        if bytes.get(at).is_some_and(|byte| *byte != 0) {
            break;
        }
    }
    at
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn change_in_place(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    const HEADER: usize = 264;
    if bytes.len() < 16 {
        bytes.resize(16, 0);
    }
    let at = if random.below(6) == 0 { random.below(HEADER.min(bytes.len())) } else { place(random, bytes) };
    // Integers are aligned.
    let aligned = at.min(bytes.len() - 8) / 8 * 8;
    match random.below(12) {
        0 | 1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes[at] = random.number() as u8,
        3 => put(bytes, aligned, NUMBERS[random.below(NUMBERS.len())]),
        4 => {
            let number = NUMBERS[random.below(NUMBERS.len())] as u32;
            let at = at.min(bytes.len() - 4) / 4 * 4;
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        5 => {
            // A little more or less.
            let old = bytes[aligned..].first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
            let by = [1, 8, 16, 24, 64, 72][random.below(6)];
            let new = if random.below(2) == 0 { old.wrapping_add(by) } else { old.wrapping_sub(by) };
            put(bytes, aligned, new);
        }
        6 | 7 => {
            // A number from elsewhere in the file: an offset that leads to something, the wrong thing.
            let from = place(random, bytes).min(bytes.len() - 8) / 8 * 8;
            bytes.copy_within(from..from + 8, aligned);
        }
        8 => {
            let from = place(random, bytes);
            put(bytes, aligned, (from / 8 * 8) as u64);
        }
        9 => {
            // An object over another.
            let from = place(random, bytes) / 8 * 8;
            let length = (8 * (1 + random.below(32))).min(bytes.len() - from.max(aligned));
            bytes.copy_within(from..from + length, aligned);
        }
        10 => {
            let length = random.below(128).min(bytes.len() - at).min(other.len().saturating_sub(at));
            if length > 0 {
                bytes[at..at + length].copy_from_slice(&other[at..at + length]);
            }
        }
        _ => match random.below(3) {
            0 => bytes.truncate(at),
            1 => {
                let end = bytes.len().min(at + random.below(64));
                bytes[at..end].fill([0, 0xff][random.below(2)]);
            }
            // Whether it is being written.
            _ => bytes[16.min(at)] = random.below(3) as u8,
        },
    }
}

fn change_text(random: &mut Random, words: &[&[u8]], bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(bytes.len() + 1);
    let most = if random.below(3) == 0 { 40 } else { 6 };
    let end = (at + random.below(most)).min(bytes.len());
    match random.below(12) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.number() as u8,
        2 => drop(bytes.drain(at..end)),
        3..=5 => drop(bytes.splice(at..at, words[random.below(words.len())].iter().copied())),
        6 => drop(bytes.splice(at..end, words[random.below(words.len())].iter().copied())),
        7 => drop(bytes.splice(at..at, NUMBERS[random.below(NUMBERS.len())].to_string().into_bytes())),
        8 => {
            let copy = bytes[at..end].to_vec();
            let times = [1, 1, 1, 2, 50][random.below(5)];
            for _ in 0..times {
                drop(bytes.splice(at..at, copy.iter().copied()));
            }
        }
        9 => {
            let from = random.below(other.len() + 1);
            let to = (from + random.below(80)).min(other.len());
            drop(bytes.splice(at..end, other[from..to].iter().copied()));
        }
        10 => {
            // Two lines change places.
            let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let (one, two) = (random.below(lines.len()), random.below(lines.len()));
            lines.swap(one, two);
            *bytes = lines.join(&b'\n');
        }
        _ if random.below(8) == 0 => bytes.truncate(at),
        _ => bytes.insert(at, random.number() as u8),
    }
    bytes.truncate(LARGEST);
}

/// The input made smaller as long as `fails` says so; `fails` is called at most `most` times. Of a binary one bytes
/// become zeros, of a text they go.
pub fn minimise(input: &[u8], binary: bool, most: usize, mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut left = most;
    let mut size = best.len().next_power_of_two() / 2;
    while size > 0 {
        let mut at = 0;
        while at < best.len() && left > 0 {
            let end = (at + size).min(best.len());
            if binary && best[at..end].iter().all(|byte| *byte == 0) {
                at = end;
                continue;
            }
            let mut smaller = best.clone();
            if binary {
                smaller[at..end].fill(0);
            } else {
                smaller.drain(at..end);
            }
            left -= 1;
            let still = fails(&smaller);
            if still {
                best = smaller;
            }
            if binary || !still {
                at = end;
            }
        }
        size /= 2;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_made_as_small_as_it_can_be() {
        let small = minimise(b"[Service]\nExecStart=/x $A\n", false, 1000, |bytes| bytes.contains(&b'$'));
        assert_eq!(small, b"$");
        let small = minimise(&[7; 9], true, 1000, |bytes| bytes[3] == 7);
        assert_eq!(small, [0, 0, 0, 7, 0, 0, 0, 0, 0]);
    }
}
