//! JSON: schema `ascertain.report/1`.

use serde::Serialize;
use std::io::{self, Write};

/// Writes a value as indented JSON with a line break behind it.
pub fn write<T: Serialize>(value: &T, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
