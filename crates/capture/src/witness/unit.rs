//! The unit: what its files say and what the manager holds. Both were read when the target was looked for, since they
//! tell which process is meant; here they are handed over.

use super::{Context, Found, Witness};

pub(crate) const WITNESS: Witness = Witness { name: "unit", artifacts, plan, testify };

/// Its files.
pub(crate) const FILES: &str = "unit_files.json";
/// What the manager holds.
pub(crate) const MANAGER: &str = "unit_manager.json";

fn artifacts(context: &Context) -> Vec<String> {
    context.unit.iter().flat_map(|_| [FILES.to_owned(), MANAGER.to_owned()]).collect()
}

fn plan(context: &Context) -> Vec<String> {
    let Some(unit) = &context.unit else { return Vec::new() };
    let option = unit.manager().option();
    let mut plan = vec![
        format!(
            "run     busctl {option}call org.freedesktop.systemd1 … GetAll: what the manager holds of {}",
            unit.name()
        ),
        format!("run     systemctl {option}show {}, where there is no bus", unit.name()),
        "read    cgroup.procs of its control group".to_owned(),
    ];
    let there =
        unit.files.entries.iter().filter(|(_, entry)| !matches!(entry, ascertain_model::service::FileEntry::Absent));
    plan.extend(there.filter(|(path, _)| *path != "/lib").map(|(path, _)| format!("read    {path}")));
    plan.extend(unit.files.scripts.keys().map(|path| format!("read    {path}")));
    plan.push("look    for files and drop-ins of that name in the other unit directories".to_owned());
    plan
}

fn testify(context: &Context, tell: &mut dyn FnMut(Found)) {
    let Some(unit) = &context.unit else { return };
    let option = unit.manager().option();
    // What may be kept of it is decided when all secrets are known.
    tell(Found::bytes(FILES, format!("the files of {}", unit.name()), Vec::new()));
    tell(Found::bytes(MANAGER, format!("{} {option}{}", unit.state.source, unit.name()), Vec::new()));
}
