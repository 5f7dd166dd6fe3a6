//! Bounds of memory and time.

/// Limits against hostile or ruined journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest value that is read, in bytes, compressed or not. journald itself takes up to 768 MiB (core dumps).
    pub value_bytes: u64,
    /// Most files that are opened.
    pub files: usize,
    /// Most bytes of messages that a search keeps; those of further hits are read again when asked for.
    pub kept_bytes: u64,
    /// Most hits that a search lists (some 300 bytes each); further ones are only counted.
    pub hits: usize,
    /// Threads of a search; 0 is as many as there are processors, 8 at most.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { value_bytes: 64 << 20, files: 1024, kept_bytes: 256 << 20, hits: 1 << 20, threads: 0 }
    }
}
