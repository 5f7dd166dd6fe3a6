//! From what a collector kept to a unit.

use crate::specifiers::{Manager, UnitName};
use crate::unit::{self, Account, Entry, Host, Sources, Unit};
use crate::{Read, Version};
use ascertain_model::service::{self, FileEntry, ManagerState, UnitFiles};
use std::collections::BTreeMap;

/// A unit as its files say it is, and what it was resolved with.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The unit, and what is the matter with its files.
    pub unit: Read<Unit>,
    /// The host.
    pub host: Host,
    /// The files.
    pub sources: Sources,
}

/// Puts a unit together from what was collected. `None`: the name is none.
pub fn resolve(files: &UnitFiles, held: Option<&ManagerState>) -> Option<Resolved> {
    let name = UnitName::parse(&files.name)?;
    let manager = manager(&files.manager);
    let mut sources = Sources::default();
    for (path, entry) in &files.entries {
        let entry = match entry {
            FileEntry::Text(file) => Entry::Text(file.text.clone().into_bytes()),
            FileEntry::Link(target) => Entry::Link(target.clone()),
            FileEntry::Absent => Entry::Absent,
            FileEntry::Unreadable(why) => Entry::Unreadable(why.clone()),
        };
        sources.entries.insert(path.clone(), entry);
    }
    if let Some(names) = held.and_then(|held| held.properties.get("Names")).and_then(|names| names.as_array()) {
        sources.names = names.iter().filter_map(|name| name.as_str().map(str::to_string)).collect();
    }
    let host = host(files, held);
    let unit = unit::resolve(&name, &manager, &sources, &host);
    Some(Resolved { unit, host, sources })
}

/// The manager as unit files know it.
pub fn manager(manager: &service::Manager) -> Manager {
    match manager {
        service::Manager::System => Manager::System,
        service::Manager::User { home, runtime, .. } => {
            Manager::User { home: home.clone(), runtime: runtime.clone(), config: None, data: None }
        }
    }
}

fn host(files: &UnitFiles, held: Option<&ManagerState>) -> Host {
    let accounts = files
        .accounts
        .iter()
        .map(|account| Account {
            name: account.name.clone(),
            uid: account.uid,
            home: account.home.clone(),
            shell: account.shell.clone(),
        })
        .collect();
    let mut host = Host { accounts, ..Host::default() };
    if let Some(release) = held.and_then(|held| held.release) {
        host.version = Version(release);
    }
    host.manager_environment = held.and_then(|held| held.environment.as_ref()).map(|list| variables(list));
    host.facts.host_name.clone_from(&files.host_name);
    host.facts.machine_id.clone_from(&files.machine_id);
    host.facts.boot_id.clone_from(&files.boot_id);
    host.facts.kernel.clone_from(&files.kernel);
    let uid = match &files.manager {
        service::Manager::System => 0,
        service::Manager::User { uid, .. } => *uid,
    };
    host.facts.uid = Some(uid);
    if let Some(account) = files.accounts.iter().find(|account| account.uid == uid) {
        host.facts.user = Some(account.name.clone());
        host.facts.home = Some(account.home.clone());
        host.facts.shell = Some(account.shell.clone());
    }
    if uid == 0 {
        host.facts.gid = Some(0);
        host.facts.group = Some("root".to_string());
    }
    host
}

/// `NAME=VALUE` items by name; the last of several counts.
pub(crate) fn variables(items: &[String]) -> BTreeMap<String, String> {
    items
        .iter()
        .filter_map(|item| item.split_once('=').map(|(name, value)| (name.to_string(), value.to_string())))
        .collect()
}
