//! Whether the log is of this start, and whether everything that was asked is known.
//!
//! A log is handed in by name, and a file holds what several servers and several starts wrote into it. It testifies
//! about this start only if nothing in it says that it is another one's.

use super::artifacts::answer;
use super::log::Log;
use super::reader::Reader;
use crate::data::Setting;
use crate::template::Template;
use crate::text;
use ascertain_model::Value;
use serde_json::Value as Json;
use std::net::IpAddr;

/// Clocks and the age of a process are read at different moments, in milliseconds.
const SLACK_MS: u64 = 2_000;

/// The lowest verbosity at which a start states itself.
const SHOWS_START: i64 = 3;

impl Reader<'_> {
    /// Why the log cannot be of this start, if it cannot.
    pub(super) fn is_foreign(&self) -> Option<String> {
        let log = self.log.as_ref()?;
        if log.mixed {
            return Some("several servers write into it at once".to_string());
        }
        if log.doubtful {
            return Some(
                "what looks like its last start stands behind the words of a client, who may have written it"
                    .to_string(),
            );
        }
        if let Some(other) = self.capture.manifest.remarks.iter().find(|remark| remark.kind == "other_log") {
            return Some(text::safe(&other.text));
        }
        // Lines of the journal carry the process and the start they are of, however few were kept.
        if self.capture.bytes("journal.json").is_some() {
            return None;
        }
        self.other_time(log)
            .or_else(|| self.other_address(log))
            .or_else(|| self.other_model(log))
            .or_else(|| self.other_verbosity(log))
            .or_else(|| self.never_ready(log))
    }

    /// It was last written before the process began, or tells of more time than the process has had.
    fn other_time(&self, log: &Log<'_>) -> Option<String> {
        let since = self.capture.manifest.start.as_ref()?.since_ms?;
        let changed = self.capture.entry(self.log_name).and_then(|entry| entry.changed_ms);
        if changed.is_some_and(|changed| changed + SLACK_MS < since) {
            return Some("nothing was written to it since the process began".to_string());
        }
        let age = self.capture.manifest.taken_ms?.checked_sub(since)?;
        let last = log.last_time? / 1000;
        (last > age + 2 * SLACK_MS).then(|| {
            format!("its last line was written {} s after its start, the process is {} s old", last / 1000, age / 1000)
        })
    }

    fn other_address(&self, log: &Log<'_>) -> Option<String> {
        // The address may be `[::1]`, with colons of its own.
        let template = Template::new("listening on http://{address}");
        let holes = log.start().iter().find_map(|line| template.matches(&line.text))?;
        let (host, port) = holes.first().and_then(|(_, text)| text.rsplit_once(':'))?;
        let port: i64 = port.parse().ok()?;
        let sockets: Vec<(String, i64)> = answer(self.capture, "listeners.json")
            .and_then(|answer| answer.value.as_array().cloned())
            .unwrap_or_default()
            .iter()
            .filter_map(|one| {
                Some((one.get("address").and_then(Json::as_str)?.to_string(), one.get("port").and_then(Json::as_i64)?))
            })
            .collect();
        if !sockets.is_empty() {
            // The log repeats a number that is no port; the kernel takes its lower 16 bits, and 0 is any port.
            let ports = [port, port.rem_euclid(65_536)];
            let any = port.rem_euclid(65_536) == 0;
            let parsed = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
            let fits = sockets.iter().any(|(address, socket)| {
                let same = match (parsed, address.parse::<IpAddr>().ok()) {
                    (Some(logged), Some(real)) => logged.to_canonical() == real.to_canonical(),
                    // A name may be any address.
                    _ => true,
                };
                same && (any || ports.contains(socket))
            });
            let real: Vec<String> = sockets.iter().map(|(address, port)| format!("{address}:{port}")).collect();
            return (!fits).then(|| {
                format!(
                    "it says that its server listens on {}:{port}, this one listens on {}",
                    text::safe(host),
                    real.join(", ")
                )
            });
        }
        if self.facts.argv.is_empty() {
            return None;
        }
        // Nobody asked for a port, so it is the default one.
        let asked = match self.claim("port") {
            Some(_) => self.asked_value("port"),
            None => self.data.setting("port").and_then(Setting::default_value),
        };
        let Some(Value::Int(asked)) = asked else { return None };
        ((1..=65_535).contains(&asked) && port != asked)
            .then(|| format!("it says that its server listens on port {port}, this one was told {asked}"))
    }

    fn other_model(&self, log: &Log<'_>) -> Option<String> {
        // The name under which a repository's file is kept is the engine's own business.
        if self.claim("hf_repo").is_some() {
            return None;
        }
        let template = Template::new("load_model: loading model '{model}'");
        let holes = log.start().iter().find_map(|line| template.matches(&line.text))?;
        let (_, logged) = holes.first()?;
        let serving = match self.props.as_ref().and_then(|props| props.value.get("model_path")).and_then(Json::as_str) {
            Some(serving) => serving.to_string(),
            None => self.asked_value("model")?.to_string(),
        };
        (*logged != serving).then(|| {
            format!("it loads {}, this server was told or serves {}", text::safe(logged), text::safe(&serving))
        })
    }

    /// A start states its verbosity; one that was asked for less states nothing.
    fn other_verbosity(&self, log: &Log<'_>) -> Option<String> {
        let stated = i64::from(log.verbosity?);
        if stated < SHOWS_START {
            return Some(format!("it states verbosity {stated}, at which no start states anything"));
        }
        // What a source that is not known asks for may be what it states; only the command line has the last word.
        let last_word =
            self.intent.asks.iter().any(|ask| ask.name == "verbosity" && ask.from == super::intent::From::Argv);
        if !last_word && !self.all_sources_are_known() {
            return None;
        }
        let plain = |ask: &super::intent::Ask| ask.text.trim().parse::<i64>().is_ok();
        if self.intent.asks.iter().any(|ask| ask.name == "verbosity" && !plain(ask)) {
            return None;
        }
        let is_on = |name: &str| {
            self.claim(name).is_some() && !self.asked_value(name).is_some_and(|value| value.same(&Value::Bool(false)))
        };
        if is_on("log_disable") {
            return Some("it states a verbosity, this server was told to log nothing".to_string());
        }
        let loud = i64::from(u8::MAX);
        let asked = match self.asked_value("verbosity") {
            // Which of the two wins depends on where they stand.
            _ if self.claim("verbose").is_some() => return None,
            Some(Value::Int(asked)) => asked.clamp(i64::from(i32::MIN), loud),
            Some(_) => return None,
            None => 3,
        };
        (stated != asked).then(|| format!("it states verbosity {stated}, this server was told {asked}"))
    }

    /// A server that answers has been ready.
    fn never_ready(&self, log: &Log<'_>) -> Option<String> {
        let answers = self.props.is_some() || self.statuses.get("health.json") == Some(&200);
        let states = log.verbosity.is_some_and(|verbosity| verbosity >= 3);
        (answers && states && log.has_beginning && !log.has_ready && self.capture.manifest.start.is_some())
            .then(|| "the start it tells of never became ready, and this server answers".to_string())
    }

    /// Whether everything that was asked is known: command line, environment, and the configuration files that were
    /// read. Without that, "the only type asked for" is a guess.
    pub(super) fn all_sources_are_known(&self) -> bool {
        let environment =
            self.capture.artifacts.keys().any(|name| name.starts_with("proc_environ") && name.ends_with(".json"))
                || answer(self.capture, "meta.json")
                    .is_some_and(|meta| meta.value.get("env").is_some_and(Json::is_object));
        // A start always says which files it reads, so a log that has its beginning tells of all of them.
        let files = self.foreign_log.is_none()
            && self.log.as_ref().is_some_and(|log| {
                let template = Template::new("using config file: {path}");
                let read = |path: &str| {
                    self.facts.config_files.iter().any(|file| file.path == path || file.path == file.artifact)
                };
                // Of the journal any line may be missing if one is.
                log.has_beginning
                    && self.journal_flaws.is_empty()
                    && log
                        .start()
                        .iter()
                        .filter_map(|line| template.matches(&line.text))
                        .all(|holes| holes.first().is_some_and(|(_, path)| read(path)))
            });
        !self.facts.argv.is_empty() && environment && files
    }
}
