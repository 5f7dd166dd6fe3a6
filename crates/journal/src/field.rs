//! A field of an entry.

/// One field of an entry: a name and a value of any bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub(crate) payload: Vec<u8>,
    /// Length of the name.
    pub(crate) name: usize,
}

impl Field {
    pub(crate) fn new(name: &[u8], value: &[u8]) -> Self {
        Self { payload: [name, b"=", value].concat(), name: name.len() }
    }

    /// Its name, e.g. `_SYSTEMD_UNIT`. Names that start with `_` were set by journald and cannot be forged by the
    /// sender.
    pub fn name(&self) -> &[u8] {
        &self.payload[..self.name]
    }

    /// Its value.
    pub fn value(&self) -> &[u8] {
        self.payload.get(self.name + 1..).unwrap_or_default()
    }
}
