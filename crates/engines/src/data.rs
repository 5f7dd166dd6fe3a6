//! The data of an engine's folder, read and checked.
//!
//! What a flag, a line, a field or a metric means is data with the releases it was seen on; code only knows how to
//! apply it. The data is embedded in the binary and parsed once; a test reads every table of every engine.

use crate::template::Template;
use ascertain_model::{Rung, Value, Voice};
use serde::Deserialize;
use std::collections::HashMap;

/// The type of a setting: how its text is read and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// Text, letter by letter.
    Text,
    /// A file or directory.
    Path,
    /// One of a few words.
    Enum,
    /// Comma-separated, order without meaning.
    List,
    /// A flag without a value and without a negative form.
    Switch,
    /// A flag without a value that has negative forms.
    Bool,
}

/// One setting of an engine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Canonical name.
    pub name: String,
    /// Positive spellings.
    pub flags: Vec<String>,
    /// Spellings that mean "off".
    #[serde(default)]
    pub negative: Vec<String>,
    /// Environment variables.
    #[serde(default)]
    pub env: Vec<String>,
    /// Environment variables that mean "off" whatever their value.
    #[serde(default)]
    pub negative_env: Vec<String>,
    /// Type.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// How many argv words follow the flag.
    #[serde(default = "one")]
    pub values: usize,
    /// Default, as text.
    #[serde(default)]
    pub default: Option<String>,
    /// Values that ask the engine itself to choose.
    #[serde(default)]
    pub auto: Vec<String>,
    /// Numbers up to this one also ask the engine to choose.
    #[serde(default)]
    pub auto_up_to: Option<i64>,
    /// Numbers below this one are taken for it in silence.
    #[serde(default)]
    pub least: Option<i64>,
    /// Allowed words.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Other words for members of `choices`, without the dashes and low lines that do not count in members.
    #[serde(default)]
    pub aliases: HashMap<String, String>,
    /// Text that holds several of `choices` in an order that counts, one letter each.
    #[serde(default)]
    pub letters: HashMap<char, String>,
    /// What stands between the members of such a text, also in what the engine reports.
    #[serde(default)]
    pub separator: Option<String>,
    /// JSON: compared by what it says, not by how it is written.
    #[serde(default)]
    pub json: bool,
    /// Group, for help and listings.
    pub group: String,
    /// Must never be shown.
    #[serde(default)]
    pub secret: bool,
    /// Names something secret: it may be shown, but what is in force tells only whether it is there.
    #[serde(default)]
    pub presence: bool,
    /// The engine's field that this setting writes, where others write it too: the last of them wins.
    #[serde(default)]
    pub field: Option<String>,
    /// Several sources are appended rather than replaced.
    #[serde(default)]
    pub accumulates: bool,
    /// Releases that have it, when not all known ones do.
    #[serde(default)]
    pub only_in: Vec<String>,
    /// Releases that read its environment variables, when not all that have it do.
    #[serde(default)]
    pub env_only_in: Vec<String>,
    /// One line, in our words.
    pub summary: String,
    /// What the setting is for, where that can be observed.
    #[serde(default)]
    pub effect: Option<String>,
    /// What would prove it, where no testimony tells.
    #[serde(default)]
    pub settle: Option<String>,
}

fn one() -> usize {
    1
}

/// Spellings that the engine recognises only to refuse them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    /// The spellings.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Environment variables.
    #[serde(default)]
    pub env: Vec<String>,
    /// Canonical names of what replaced it.
    #[serde(rename = "use", default)]
    pub replacements: Vec<String>,
}

/// What operators type and what they mean by it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meant {
    /// What they type.
    pub typed: String,
    /// The canonical name of what they mean.
    #[serde(rename = "use")]
    pub setting: String,
    /// How to write it.
    #[serde(default)]
    pub hint: Option<String>,
    /// Releases in which it is meant so.
    #[serde(default)]
    pub only_in: Vec<String>,
}

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The log.
    Log,
    /// The properties endpoint.
    Props,
    /// The slots endpoint.
    Slots,
    /// The list of models.
    Models,
    /// The metrics endpoint.
    Metrics,
    /// The body of a completion.
    Completion,
    /// `/proc/PID/status`.
    Status,
    /// Whether an endpoint answers.
    Http,
}

impl Source {
    /// The witness's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Source::Log => "log",
            Source::Props => "props",
            Source::Slots => "slots",
            Source::Models => "models",
            Source::Metrics => "metrics",
            Source::Completion => "completion",
            Source::Status => "process",
            Source::Http => "http",
        }
    }
}

/// Which of two contexts a repeating log line speaks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The model that serves.
    Target,
    /// The model that drafts.
    Draft,
    /// Either.
    Both,
}

/// How one artifact speaks about one setting.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testimony {
    /// Canonical name.
    pub setting: String,
    /// Who.
    pub from: Source,
    /// Log: the line.
    #[serde(default)]
    pub template: Option<String>,
    /// JSON: where.
    #[serde(default)]
    pub pointer: Option<String>,
    /// Metrics: which family.
    #[serde(default)]
    pub metric: Option<String>,
    /// Http: which artifact's status. Status: which field.
    #[serde(default)]
    pub field: Option<String>,
    /// The value that the presence of the line, field or status states, instead of what stands in it.
    #[serde(default)]
    pub is: Option<String>,
    /// Only when the raw text is this.
    #[serde(default)]
    pub when: Option<String>,
    /// Raw text to value.
    #[serde(default)]
    pub map: HashMap<String, String>,
    /// With what authority.
    pub voice: Voice,
    /// How far up.
    pub rung: Rung,
    /// Log: lowest verbosity that prints it.
    #[serde(default = "default_verbosity")]
    pub verbosity: u8,
    /// Log: which context.
    #[serde(default)]
    pub context: Option<Part>,
    /// Releases it was seen on.
    pub seen: Vec<String>,
    /// Decimals printed.
    #[serde(default)]
    pub precision: Option<u8>,
    /// Why it can or cannot be trusted.
    #[serde(default)]
    pub note: Option<String>,
}

fn default_verbosity() -> u8 {
    3
}

/// What a message does to a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Another value in force.
    Adjustment,
    /// Asked value dropped.
    Ignored,
    /// Exits.
    Refusal,
    /// Not started, the server goes on.
    Failure,
    /// Says less than it seems, or is only good to know.
    Note,
    /// Something goes wrong that is no statement about a setting's value.
    Trouble,
}

/// A line by which the engine changes, ignores, refuses or fails something.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The line.
    pub template: String,
    /// Canonical names; empty when a `{flag}` or `{env}` hole names it, or for a finding of its own.
    #[serde(default)]
    pub setting: OneOrMany,
    /// What it does.
    pub kind: MessageKind,
    /// The new value, as text or `{hole}`.
    #[serde(default)]
    pub to: Option<String>,
    /// Level at which it is logged.
    #[serde(default)]
    pub level: Option<String>,
    /// Source site.
    #[serde(default)]
    pub source: Option<String>,
    /// Releases it was seen on.
    pub seen: Vec<String>,
    /// What it means for the operator, in our words; may use holes.
    pub summary: String,
    /// What to do.
    #[serde(default)]
    pub remedy: Option<String>,
}

/// One name or several.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// None.
    #[default]
    None,
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl OneOrMany {
    /// The names, without empty ones.
    pub fn names(&self) -> Vec<&str> {
        match self {
            OneOrMany::None => Vec::new(),
            OneOrMany::One(name) if name.is_empty() => Vec::new(),
            OneOrMany::One(name) => vec![name],
            OneOrMany::Many(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

/// A GET worth sending.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Artifact name.
    pub artifact: String,
    /// Path.
    pub path: String,
    /// Limit of the body, bytes.
    #[serde(default = "body_limit")]
    pub limit: u64,
    /// Ask without the key.
    #[serde(default)]
    pub without_key: bool,
    /// Artifact and JSON pointer: do not ask where `true` stands there.
    #[serde(default)]
    pub unless: Option<(String, String)>,
}

fn body_limit() -> u64 {
    8 << 20
}

/// What identifies the engine and how it reads its configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Its name in reports.
    pub name: String,
    /// File names of its executable.
    pub executables: Vec<String>,
    /// Releases the data was made on.
    pub releases: Vec<String>,
    /// Prefix of its environment variables.
    pub env_prefix: String,
    /// Prefix shared by all its variables, for spotting misspelt ones.
    pub env_family: String,
    /// Variables of the family that are no settings.
    #[serde(default)]
    pub env_known: Vec<String>,
    /// Other variables to keep (they tell where configuration files are).
    #[serde(default)]
    pub env_keep: Vec<String>,
    /// Builds that do not state their release: what they state, and the release.
    #[serde(default)]
    pub builds: HashMap<String, String>,
    /// GETs worth sending.
    pub endpoint: Vec<Endpoint>,
}

/// All data of one engine.
#[derive(Debug)]
pub struct Data {
    /// Identity and reading rules.
    pub about: About,
    /// Settings.
    pub settings: Vec<Setting>,
    /// Spellings it refuses.
    pub removed: Vec<Removed>,
    /// What is meant by what is typed.
    pub meant: Vec<Meant>,
    /// Who speaks about what.
    pub testimonies: Vec<(Testimony, Option<Template>)>,
    /// What the engine says it does.
    pub messages: Vec<(Message, Template)>,
    by_name: HashMap<String, usize>,
    by_flag: HashMap<String, (usize, bool)>,
    by_env: HashMap<String, (usize, bool)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    about: Option<About>,
    #[serde(default)]
    setting: Vec<Setting>,
    #[serde(default)]
    removed: Vec<Removed>,
    #[serde(default)]
    meant: Vec<Meant>,
    #[serde(default)]
    testimony: Vec<Testimony>,
    #[serde(default)]
    message: Vec<Message>,
}

/// Data that does not fit together.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not the expected TOML.
    #[error("{file}: {source}")]
    Toml {
        /// Which file.
        file: String,
        /// What is wrong, with line and column.
        source: Box<toml::de::Error>,
    },
    /// The tables contradict each other.
    #[error("{0}")]
    Inconsistent(String),
}

impl Data {
    /// Reads the data files of one engine, `(file name, text)`.
    pub fn read(files: &[(&str, &str)]) -> Result<Data, Error> {
        let mut about = None;
        let mut data =
            File { about: None, setting: vec![], removed: vec![], meant: vec![], testimony: vec![], message: vec![] };
        for (name, text) in files {
            let file: File = toml::from_str(text)
                .map_err(|source| Error::Toml { file: (*name).to_string(), source: Box::new(source) })?;
            about = file.about.or(about);
            data.setting.extend(file.setting);
            data.removed.extend(file.removed);
            data.meant.extend(file.meant);
            data.testimony.extend(file.testimony);
            data.message.extend(file.message);
        }
        let about = about.ok_or_else(|| Error::Inconsistent("no [about] table".to_string()))?;

        let mut by_name = HashMap::new();
        let mut by_flag = HashMap::new();
        let mut by_env = HashMap::new();
        for (index, setting) in data.setting.iter().enumerate() {
            once(&mut by_name, &setting.name, index, "setting")?;
            for (spellings, positive) in [(&setting.flags, true), (&setting.negative, false)] {
                for flag in spellings {
                    once(&mut by_flag, flag, (index, positive), "flag")?;
                }
            }
            for (names, positive) in [(&setting.env, true), (&setting.negative_env, false)] {
                for name in names {
                    once(&mut by_env, name, (index, positive), "environment variable")?;
                }
            }
        }
        for name in data
            .testimony
            .iter()
            .map(|one| one.setting.as_str())
            .chain(data.message.iter().flat_map(|one| one.setting.names()))
        {
            if !by_name.contains_key(name) {
                return Err(Error::Inconsistent(format!("a testimony or message names {name:?}, which is no setting")));
            }
        }
        let testimonies = data
            .testimony
            .into_iter()
            .map(|one| {
                let template = one.template.as_deref().map(Template::new);
                (one, template)
            })
            .collect();
        let messages = data
            .message
            .into_iter()
            .map(|one| {
                let template = Template::new(&one.template);
                (one, template)
            })
            .collect();
        Ok(Data {
            about,
            settings: data.setting,
            removed: data.removed,
            meant: data.meant,
            testimonies,
            messages,
            by_name,
            by_flag,
            by_env,
        })
    }

    /// A setting by its canonical name.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.by_name.get(name).map(|index| &self.settings[*index])
    }

    /// A setting by one of its spellings on the command line; `false` for a negative form.
    pub fn flag(&self, spelling: &str) -> Option<(&Setting, bool)> {
        self.by_flag.get(spelling).map(|(index, positive)| (&self.settings[*index], *positive))
    }

    /// A setting by one of its environment variables; `false` for a negative form.
    pub fn env(&self, name: &str) -> Option<(&Setting, bool)> {
        self.by_env.get(name).map(|(index, positive)| (&self.settings[*index], *positive))
    }

    /// Every spelling on the command line.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        self.by_flag.keys().map(String::as_str)
    }

    /// Every environment variable.
    pub fn envs(&self) -> impl Iterator<Item = &str> {
        self.by_env.keys().map(String::as_str)
    }
}

fn once<T>(map: &mut HashMap<String, T>, key: &str, value: T, what: &str) -> Result<(), Error> {
    match map.insert(key.to_string(), value) {
        None => Ok(()),
        Some(_) => Err(Error::Inconsistent(format!("{what} {key:?} stands twice"))),
    }
}

impl Setting {
    /// Whether the release has it. Without a known release everything known is taken to be there.
    pub fn is_in(&self, release: Option<&str>) -> bool {
        match release {
            Some(release) if !self.only_in.is_empty() => self.only_in.iter().any(|known| known == release),
            _ => true,
        }
    }

    /// Reads text the way it means something for this setting, for what an engine printed or reported.
    /// `None` if the text is no value of this type.
    pub fn value(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        match self.kind {
            Kind::Int => text.parse().ok().map(Value::Int).or_else(|| {
                // A whole number printed as a float.
                text.parse::<f64>().ok().map(Value::Float)
            }),
            Kind::Float => text.parse().ok().map(Value::Float),
            Kind::Switch | Kind::Bool => truth(text).map(Value::Bool),
            Kind::List => Some(Value::set(text.split(',').map(str::trim).filter(|one| !one.is_empty()))),
            Kind::Enum => Some(Value::text(match truth(text) {
                // Engines read several words for on and off and print yet others.
                Some(on) if self.choices.iter().any(|choice| choice == "on") => {
                    if on {
                        "on"
                    } else {
                        "off"
                    }
                }
                _ => text,
            })),
            Kind::Text | Kind::Path => Some(Value::text(self.canonical(text))),
        }
        .or_else(|| self.choices.iter().any(|choice| choice == text).then(|| Value::text(text)))
        .or_else(|| self.auto.iter().any(|auto| auto == text).then(|| Value::text(text)))
    }

    /// One way of writing a text that can be written in several: what is asked and what is reported meet here.
    fn canonical(&self, text: &str) -> String {
        if self.json {
            // Nothing is the empty object.
            let parsed = if text.is_empty() { Ok(serde_json::json!({})) } else { serde_json::from_str(text) };
            return parsed.map_or_else(|_| text.to_string(), |json: serde_json::Value| json.to_string());
        }
        let Some(separator) = &self.separator else { return text.to_string() };
        // What is not one member or several of them is letters.
        let members: Vec<&str> = text.split(separator.as_str()).filter(|member| !member.is_empty()).collect();
        let names: Vec<&str> = members.iter().map(|member| self.member(member).unwrap_or(member)).collect();
        if self.letters.is_empty() || members.iter().all(|member| self.member(member).is_some()) {
            return names.join(separator);
        }
        let known: Option<Vec<&str>> =
            text.chars().map(|letter| self.letters.get(&letter).map(String::as_str)).collect();
        known.map_or_else(|| text.to_string(), |names| names.join(separator))
    }

    /// A member of `choices` by any of its spellings: case, dashes and low lines do not count.
    fn member(&self, text: &str) -> Option<&str> {
        let bare = |word: &str| word.to_ascii_lowercase().replace(['-', '_'], "");
        let word = bare(text);
        let alias = self.aliases.get(&word).map(String::as_str);
        alias.or_else(|| self.choices.iter().map(String::as_str).find(|choice| bare(choice) == word))
    }

    /// Whether a text asks the engine itself to choose.
    pub fn is_auto(&self, text: &str) -> bool {
        let text = text.trim();
        let number = text.parse::<i64>().ok();
        let same = |auto: &String| auto == text || number.is_some() && auto.parse::<i64>().ok() == number;
        self.auto.iter().any(same) || number.zip(self.auto_up_to).is_some_and(|(number, limit)| number <= limit)
    }

    /// The default as a value.
    pub fn default_value(&self) -> Option<Value> {
        self.default.as_deref().and_then(|text| self.value(text))
    }
}

/// The words engines read and print for on and off.
pub fn truth(text: &str) -> Option<bool> {
    match text {
        "on" | "enabled" | "true" | "1" | "yes" => Some(true),
        "off" | "disabled" | "false" | "0" | "no" => Some(false),
        _ => None,
    }
}
