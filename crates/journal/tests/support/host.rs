//! A host on which one unit is started twice.

use super::{ARCHIVED, PLAIN, Record, Writer};
use std::fs;
use tempfile::TempDir;

pub const BOOT: &str = "00000000000000000000000000000b00";
pub const ID: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1";
pub const EARLIER: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0";
pub const UNIT: &str = "llm.service";
pub const SECOND: u64 = 1_000_000;
pub const BEGIN: u64 = 1_700_000_000 * SECOND;

/// The log of a host on which `llm.service` is started twice; the second start is the one asked about.
pub struct Host {
    pub records: Vec<Record>,
    pub time: u64,
}

impl Host {
    pub fn add(&mut self, fields: &[(&str, &str)]) {
        self.time += SECOND;
        self.records.push(Record::new(self.time, self.time - BEGIN + SECOND, BOOT, fields));
    }

    pub fn own(&mut self, id: &str, priority: &str, message: &str) {
        let fields = [("_SYSTEMD_UNIT", UNIT), ("_SYSTEMD_INVOCATION_ID", id), ("_PID", "400"), ("_UID", "1000")];
        self.add(&[&fields[..], &[("PRIORITY", priority), ("MESSAGE", message)]].concat());
    }

    pub fn manager(&mut self, id: &str, message_id: &str, message: &str) {
        let fields = [("_PID", "1"), ("_UID", "0"), ("UNIT", UNIT), ("INVOCATION_ID", id)];
        self.add(&[&fields[..], &[("PRIORITY", "6"), ("MESSAGE_ID", message_id), ("MESSAGE", message)]].concat());
    }

    pub fn suppressed(&mut self, id: &str) {
        self.add(&[
            ("_PID", "300"),
            ("_UID", "0"),
            ("MESSAGE_ID", "a596d6fe7bfa4994828e72309e95d61e"),
            ("OBJECT_SYSTEMD_UNIT", UNIT),
            ("OBJECT_SYSTEMD_INVOCATION_ID", id),
            ("N_DROPPED", "4711"),
            ("MESSAGE", "Suppressed 4711 messages from llm.service"),
        ]);
    }

    pub fn new() -> Self {
        let mut host = Self { records: Vec::new(), time: BEGIN };
        for (id, name) in [(EARLIER, "earlier"), (ID, "asked")] {
            host.add(&[("_PID", "77"), ("_UID", "0"), ("MESSAGE", "somebody else")]);
            host.manager(id, "7d4958e842da4a758f6c1cdc7b36dcc5", "Starting llm.service...");
            host.own(id, "6", &format!("{name}: server_args=…"));
            host.own(id, "4", &format!("{name}: a warning"));
            host.manager(id, "39f53479d3a045ac8e11786248231fbf", "Started llm.service.");
            host.own(id, "6", &format!("{name}: ready"));
            // A process that pretends to be the manager.
            host.add(&[("_PID", "666"), ("UNIT", UNIT), ("INVOCATION_ID", ID), ("MESSAGE", "forged")]);
            (0..200).for_each(|i| host.own(id, "6", &format!("{name}: decode {i}")));
            host.own(id, "3", &format!("{name}: an error"));
            host.own(id, "6", &format!("{name}: last"));
        }
        host
    }

    /// Splits the records at the given places into files `system@….journal` and, last, `system.journal`.
    pub fn write(&self, cuts: &[usize], state: u8) -> TempDir {
        let directory = TempDir::new().expect("a directory");
        let mut from = 0;
        for (i, to) in cuts.iter().copied().chain([self.records.len()]).enumerate() {
            let mut writer = Writer::new(PLAIN, i as u64 + 1);
            writer.seqnum = from as u64;
            writer.append_all(&self.records[from..to]);
            let last = to == self.records.len();
            let name = if last { "system.journal".to_owned() } else { format!("system@{i}.journal") };
            fs::write(directory.path().join(name), writer.finish(if last { state } else { ARCHIVED }))
                .expect("written");
            from = to;
        }
        directory
    }
}
