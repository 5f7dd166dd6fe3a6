//! Writes the tiny models that the tests and the live demonstration serve, to try things out with a real server:
//!
//! ```text
//! cargo run --example tiny-model -- /tmp/models
//! llama-server -m /tmp/models/tiny-qwen35-mtp.gguf --spec-type draft-mtp
//! ```

use ascertain_engines::llama_cpp::tiny_model::TinyModel;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("say where to: tiny-model FOLDER")?.into();
    std::fs::create_dir_all(&folder)?;
    for model in TinyModel::ALL {
        let path = folder.join(model.file_name());
        std::fs::write(&path, model.bytes()).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}
