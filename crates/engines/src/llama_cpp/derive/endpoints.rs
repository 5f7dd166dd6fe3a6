//! What a server that makes embeddings shows of itself.

use super::statement::Statement;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Rung, Seen, Value, Voice};

/// Reranking sets its own pooling, which the log names where it is not the model's own.
pub(super) fn embeddings(reader: &mut Reader<'_>) {
    let asked_on = |reader: &Reader<'_>, setting: &str| reader.claim(setting).is_some() && !reader.asked_off(setting);
    let pools_by_rank = reader.evidence.iter().find(|one| {
        one.setting == "pooling"
            && one.voice == Voice::Effective
            && one.witness == "log"
            && one.start == reader.facts.start
            && matches!(&one.seen, Seen::Value(value) if value.same(&Value::text("rank")))
    });
    let asked_rank = reader.asked_value("pooling").is_some_and(|asked| asked.same(&Value::text("rank")));
    if let Some(one) = pools_by_rank.cloned()
        && asked_on(reader, "rerank")
        && !asked_rank
    {
        reader.state(
            Statement::new(
                "rerank",
                Value::Bool(true),
                Rung::Acknowledged,
                "log",
                &one.locus.artifact,
                one.locus.start..one.locus.end,
            )
            .label(one.locus.label.clone())
            .excerpt(one.excerpt.clone())
            .note("pooling by rank, which nothing else asks for"),
        );
    }
    // Without one of the two the server refuses to make embeddings.
    if reader.all_sources_are_known() && !asked_on(reader, "embedding") && !asked_on(reader, "rerank") {
        reader.not_applicable("pooling", "it tunes embeddings, which this server does not make without --embedding");
    }
}
