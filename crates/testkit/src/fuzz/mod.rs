//! What must hold for any bytes that a host may hand us: journal files, unit files, scripts, what `systemctl` prints.
//!
//! Each body takes raw bytes, makes its structure from them and panics when something does not hold. `fuzz/` at the top
//! of the repository hands them to libFuzzer; `tests/fuzz.rs` runs them over the kept corpus and mutations of it, on
//! any toolchain and always the same ones.

mod journal;
pub mod mutate;
mod parts;
mod scrub;
mod show;
mod unit;
mod wrapper;
pub mod zeros;

pub use journal::journal;
pub use scrub::scrub;
pub use show::show;
pub use unit::unit;
pub use wrapper::wrapper;

use std::path::{Path, PathBuf};

/// One property body, and what helps to find inputs for it.
pub struct Target {
    /// Its name: that of the binary in `fuzz/fuzz_targets` and of the folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Panics if something does not hold for these bytes.
    pub body: fn(&[u8]),
    /// What matters to the reader under test.
    pub words: &'static [&'static [u8]],
    /// Numbers are integers of 4 or 8 bytes, and no byte may move: what stands where is part of the meaning.
    pub binary: bool,
}

/// All of them. A body more is a line here, a file in `fuzz/fuzz_targets`, a `[[bin]]` in `fuzz/Cargo.toml` and a folder
/// of examples; a test counts them.
pub const TARGETS: &[Target] = &[
    Target { name: "journal", body: journal, words: journal::WORDS, binary: true },
    Target { name: "unit", body: unit, words: unit::WORDS, binary: false },
    Target { name: "wrapper", body: wrapper, words: wrapper::WORDS, binary: false },
    Target { name: "show", body: show, words: show::WORDS, binary: false },
    Target { name: "scrub", body: scrub, words: scrub::WORDS, binary: false },
];

/// The folder of the kept inputs of all targets.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}
