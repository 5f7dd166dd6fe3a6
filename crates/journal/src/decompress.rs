//! The three compressions of values, with a limit on what comes out.

use crate::gap::{Compression, Reason};
use mzstd::{DecodeError, DecodeLimits, DecoderConfig};
use std::io::{self, Write};

/// The decoder of one thread: Zstandard keeps its tables between values.
#[derive(Default)]
pub(crate) struct Decompressor {
    zstd: mzstd::Decompressor,
    /// The limit that `zstd` was last configured for.
    limit: u64,
}

impl Decompressor {
    /// Decompresses `bytes` into `out`, which is emptied first, to at most `limit` bytes.
    pub(crate) fn run(
        &mut self,
        compression: Compression,
        bytes: &[u8],
        limit: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        out.clear();
        match compression {
            Compression::Zstd => self.zstd(bytes, limit, out),
            Compression::Lz4 => lz4(bytes, limit, out),
            Compression::Xz => xz(bytes, limit, out),
        }
    }

    fn zstd(&mut self, bytes: &[u8], limit: u64, out: &mut Vec<u8>) -> Result<(), Reason> {
        const BROKEN: Reason = Reason::NotDecompressed(Compression::Zstd);
        if self.limit != limit {
            let log = (limit.max(1).next_power_of_two().trailing_zeros() as u8).clamp(10, 27);
            let limits = DecodeLimits::default().with_max_output_bytes(Some(limit));
            let limits = limits.with_max_window_log(log).map_err(|_| BROKEN)?;
            self.zstd = mzstd::Decompressor::new(DecoderConfig::default().with_limits(limits));
            self.limit = limit;
        }
        match self.zstd.decompress_into(bytes, out) {
            Ok(_) => Ok(()),
            Err(DecodeError::OutputLimitExceeded { .. } | DecodeError::WindowLimitExceeded { .. }) => {
                Err(Reason::TooLarge { bytes: limit + 1, limit })
            }
            Err(_) => Err(BROKEN),
        }
    }
}

/// journald puts the uncompressed size as 64 bits before the block.
fn lz4(bytes: &[u8], limit: u64, out: &mut Vec<u8>) -> Result<(), Reason> {
    const BROKEN: Reason = Reason::NotDecompressed(Compression::Lz4);
    let (size, block) = bytes.split_first_chunk::<8>().ok_or(BROKEN)?;
    let size = u64::from_le_bytes(*size);
    if size > limit {
        return Err(Reason::TooLarge { bytes: size, limit });
    }
    // An LZ4 block holds at most 255 times its size, so a small block cannot make us ask for much memory.
    if size > (block.len() as u64).saturating_mul(255).saturating_add(16) {
        return Err(BROKEN);
    }
    out.resize(size as usize, 0);
    match lz4_flex::block::decompress_into(block, out) {
        Ok(written) if written as u64 == size => Ok(()),
        _ => Err(BROKEN),
    }
}

fn xz(bytes: &[u8], limit: u64, out: &mut Vec<u8>) -> Result<(), Reason> {
    const BROKEN: Reason = Reason::NotDecompressed(Compression::Xz);
    let size = xz_size(bytes).ok_or(BROKEN)?;
    if size > limit {
        return Err(Reason::TooLarge { bytes: size, limit });
    }
    let mut source = bytes;
    let mut sink = Limited { out, limit };
    lzma_rs::xz_decompress(&mut source, &mut sink).map_err(|_| BROKEN)
}

/// The size that an `.xz` stream of one block (what journald writes) will have, by hopping over its LZMA2 chunks: the
/// decoder keeps a whole block in memory before it writes, so the limit must hold before it starts.
fn xz_size(bytes: &[u8]) -> Option<u64> {
    const STREAM_HEADER: usize = 12;
    let block = bytes.get(STREAM_HEADER..)?;
    let mut chunks = block.get((usize::from(*block.first()?) + 1) * 4..)?;
    let mut size = 0;
    loop {
        let control = *chunks.first()?;
        let be16 = |at: usize| Some(u64::from(u16::from_be_bytes([*chunks.get(at)?, *chunks.get(at + 1)?])));
        let length = match control {
            0 => return Some(size),
            1 | 2 => {
                size += be16(1)? + 1;
                3 + be16(1)? + 1
            }
            3..=0x7f => return None,
            _ => {
                size += (u64::from(control & 0x1f) << 16) + be16(1)? + 1;
                (if control >= 0xc0 { 6 } else { 5 }) + be16(3)? + 1
            }
        };
        chunks = chunks.get(length as usize..)?;
    }
}

struct Limited<'a> {
    out: &'a mut Vec<u8>,
    limit: u64,
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.out.len() + bytes.len()) as u64 > self.limit {
            return Err(io::Error::other("over the limit"));
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `MESSAGE=server_args option_0=0, …`, compressed by xz 5.4 (no check) and zstd 1.5.4 as journald calls them.
    const XZ: &[u8] = include_bytes!("../tests/xz_message.bin");
    const ZSTD: &[u8] = include_bytes!("../tests/zstd_message.bin");

    fn message() -> Vec<u8> {
        let options: String = (0..60).map(|i| format!("server_args option_{i}={}, ", i * i)).collect();
        [b"MESSAGE=", options.as_bytes()].concat()
    }

    fn lz4_of(message: &[u8]) -> Vec<u8> {
        [&(message.len() as u64).to_le_bytes()[..], &lz4_flex::block::compress(message)].concat()
    }

    #[test]
    fn what_the_real_compressors_write_is_read_and_the_limit_holds() {
        let message = message();
        let lz4 = lz4_of(&message);
        let mut decompressor = Decompressor::default();
        let mut out = Vec::new();
        for (compression, bytes) in [(Compression::Xz, XZ), (Compression::Zstd, ZSTD), (Compression::Lz4, &lz4)] {
            let size = message.len() as u64;
            assert_eq!(decompressor.run(compression, bytes, size, &mut out), Ok(()), "{compression}");
            assert_eq!(out, message);
            let over = decompressor.run(compression, bytes, size - 1, &mut out);
            assert!(matches!(over, Err(Reason::TooLarge { .. })), "{compression}: {over:?}");
            let cut = decompressor.run(compression, &bytes[..bytes.len() / 2], size, &mut out);
            assert_eq!(cut, Err(Reason::NotDecompressed(compression)));
        }
    }

    #[test]
    fn damaged_input_neither_panics_nor_outgrows_the_limit() {
        let lz4 = lz4_of(&message());
        let mut decompressor = Decompressor::default();
        let mut out = Vec::new();
        let mut state = 0x5eed_u64;
        let mut random = |limit: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % limit as u64) as usize
        };
        for (compression, bytes) in [(Compression::Xz, XZ), (Compression::Zstd, ZSTD), (Compression::Lz4, &lz4)] {
            for _ in 0..5000 {
                let mut damaged = bytes.to_vec();
                for _ in 0..random(4) + 1 {
                    let at = random(damaged.len());
                    damaged[at] = random(256) as u8;
                }
                damaged.truncate(random(damaged.len() * 4) + 1);
                let _ = decompressor.run(compression, &damaged, 1 << 16, &mut out);
                assert!(out.len() <= 1 << 16, "{compression}");
            }
        }
    }
}
