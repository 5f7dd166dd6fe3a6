//! Stub until the generator lands.
/// Which.
pub enum TinyModel {
    /// MTP.
    Mtp,
}
impl TinyModel {
    /// Name.
    pub fn file_name(self) -> &'static str {
        "tiny-qwen35-mtp.gguf"
    }
    /// Bytes.
    pub fn bytes(self) -> Vec<u8> {
        Vec::new()
    }
}
