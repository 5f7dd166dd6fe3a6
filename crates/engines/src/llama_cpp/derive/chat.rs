//! Chat templates.

use super::statement::Statement;
use crate::llama_cpp::reader::Reader;
use ascertain_model::{Act, Rung, Value};
use serde_json::Value as Json;

/// With the template engine on, a name is taken for the text of a template.
pub(super) fn chat_template(reader: &mut Reader<'_>) {
    let Some(in_force) = reader
        .props
        .as_ref()
        .and_then(|props| props.value.get("chat_template"))
        .and_then(Json::as_str)
        .map(str::to_string)
    else {
        return;
    };
    let Some((bytes, artifact)) = reader.props.as_ref().map(|props| (props.bytes, props.artifact.clone())) else {
        return;
    };
    let range = crate::locate::locate(bytes, "/chat_template").unwrap_or(0..0);
    if let Some(asked) = reader.asked_value("chat_template").map(|value| value.to_string()) {
        let is_text = asked.contains("{{") || asked.contains("{%");
        if is_text {
            let same = asked == in_force;
            let value = if same { asked } else { "another template".to_string() };
            reader.state(
                Statement::new("chat_template", Value::text(value), Rung::Reported, "props", &artifact, range)
                    .label("/chat_template"),
            );
        } else if asked.trim() == in_force.trim() {
            reader.state(
                Statement::new(
                    "chat_template",
                    Value::text("the literal word"),
                    Rung::Reported,
                    "props",
                    &artifact,
                    range,
                )
                .label("/chat_template"),
            );
            reader.silently(
                "chat_template",
                Act::Ignores,
                format!(
                    "{} is taken for the text of a template: every prompt is that one word",
                    crate::text::safe(&asked)
                ),
                "add --no-jinja, or hand in the template itself with --chat-template-file",
            );
        }
    } else if reader.claim("chat_template_file").is_some()
        && let Some(file) = reader.capture.bytes("chat_template.txt").and_then(|bytes| std::str::from_utf8(bytes).ok())
    {
        let wanted = reader.asked_value("chat_template_file").map(|value| value.to_string()).unwrap_or_default();
        let value = if file.trim_end() == in_force.trim_end() { wanted } else { "another template".to_string() };
        reader.state(
            Statement::new("chat_template_file", Value::text(value), Rung::Reported, "props", &artifact, range)
                .label("/chat_template")
                .note("the template in force, compared with the file as it is now"),
        );
    }
}
