//! Configuration files that the process may have read.

use super::{Context, Found, Witness};
use crate::file;

pub(super) const WITNESS: Witness = Witness { name: "files", artifacts, plan, testify };

fn artifacts(context: &Context) -> Vec<String> {
    context.wants.files.iter().map(|want| want.artifact.clone()).collect()
}

fn plan(context: &Context) -> Vec<String> {
    let shown = |path: &str| context.root.shown(&context.absolute(path));
    context.wants.files.iter().map(|want| format!("read    {}", shown(&want.path))).collect()
}

fn testify(context: &Context, tell: &mut dyn FnMut(Found)) {
    for want in &context.wants.files {
        let path = context.absolute(&want.path);
        let content = file::read_head(&path, &context.root, want.limit);
        tell(Found::file(&want.artifact, context.root.shown(&path), content));
    }
}
