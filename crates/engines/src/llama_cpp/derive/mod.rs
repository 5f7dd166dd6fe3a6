//! What needs to know several things at once: speculation, the context length, the key, and a few settings whose
//! truth lies in how something looks rather than in what it says.
//!
//! Each function adds evidence, interventions (also for what the engine does in silence) or the knowledge that a
//! setting cannot apply. The experiments behind each rule are in `docs/engines/llama-cpp.md`.

mod absence;
mod access;
mod chat;
mod context;
mod endpoints;
mod equal;
mod memory;
mod process;
mod rope;
mod router;
mod samplers;
mod sources;
mod speculation;
mod statement;

use super::reader::Reader;

pub(super) use context::padded;
pub(super) use speculation::{SPECULATION, longest_draft};

/// Adds everything.
pub(super) fn all(reader: &mut Reader<'_>) {
    speculation::speculation(reader);
    context::context(reader);
    context::cache_is_unified(reader);
    context::batches(reader);
    process::threads(reader);
    process::model(reader);
    access::api_key(reader);
    access::cross_origin(reader);
    process::log_style(reader);
    memory::memory_map(reader);
    memory::memory_lock(reader);
    memory::devices(reader);
    chat::chat_template(reader);
    context::overrides(reader);
    access::listening(reader);
    access::api_prefix(reader);
    rope::rope(reader);
    equal::json(reader);
    absence::left_out(reader);
    samplers::samplers(reader);
    endpoints::embeddings(reader);
    context::prompt_cache(reader);
    context::context_shift(reader);
    sources::traps(reader);
    sources::third_source(reader);
    sources::unasked_sampling(reader);
    sources::lost_sources(reader);
    router::router(reader);
}
