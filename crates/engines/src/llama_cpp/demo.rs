//! What the demonstration shows of this engine: two recordings of real servers, and how to start a real one.

use super::tiny_model::TinyModel;
use crate::{Demo, Recording};

macro_rules! recording {
    ($name:literal: $($file:literal),* $(,)?) => {
        &[$(($file, include_bytes!(concat!("../../../../captures/llamacpp/", $name, "/", $file)) as &[u8])),*]
    };
}

const RECORDINGS: &[Recording] = &[
    Recording {
        name: "demo: a draft model is given",
        story: "A server whose operator believes that it speculates: a draft model is given, the log\n\
                says that it is loaded, /health is green, answers are correct.",
        files: recording!("draft-md-without-spec-type":
            "meta.json", "log.txt", "proc_cmdline.json", "proc_status.txt", "maps_files.txt", "health.json",
            "props.json", "slots_before.json", "slots_after.json", "metrics_before.txt", "metrics_after.txt",
            "v1_models.json", "completion.json", "chat.json"),
    },
    Recording {
        name: "demo: multi-token prediction",
        story: "A server that really does: multi-token prediction, seen at work.",
        files: recording!("mtp":
            "meta.json", "log.txt", "proc_cmdline.json", "proc_status.txt", "maps_files.txt", "health.json",
            "props.json", "slots_before.json", "slots_after.json", "metrics_before.txt", "metrics_after.txt",
            "v1_models.json", "completion.json", "chat.json"),
    },
];

/// The demonstration.
pub(super) const DEMO: Demo = Demo {
    recordings: RECORDINGS,
    executable: "llama-server",
    variable: "ASCERTAIN_LLAMA_SERVER",
    needs: "it must be a llama-server that knows --spec-type draft-mtp",
    model: || (TinyModel::Mtp.file_name(), TinyModel::Mtp.bytes()),
    arguments: |model, port| {
        let port = port.to_string();
        [
            "-m",
            model,
            "--spec-type",
            "draft-mtp",
            "--ctx-size",
            "1024",
            "--metrics",
            "--host",
            "127.0.0.1",
            "--port",
            &port,
        ]
        .map(str::to_string)
        .into()
    },
    health: "/health",
};
