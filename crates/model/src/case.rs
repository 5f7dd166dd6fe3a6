//! What the judge is given: claims, evidence, interventions and gaps.

use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far up the ladder a value has been seen. Ordered: later is higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// In the file the operator edited.
    Written,
    /// In what the service manager holds.
    Loaded,
    /// In what the process was really given: argv, environment, configuration files it read.
    Delivered,
    /// In what the engine logged about itself while starting.
    Acknowledged,
    /// In what the running server says about itself when asked.
    Reported,
    /// In what the server was seen to do, whatever it says.
    Exercised,
}

impl Rung {
    /// All rungs, lowest first.
    pub const ALL: [Rung; 6] =
        [Rung::Written, Rung::Loaded, Rung::Delivered, Rung::Acknowledged, Rung::Reported, Rung::Exercised];

    /// The rung's name as it stands in reports.
    pub fn name(self) -> &'static str {
        match self {
            Rung::Written => "written",
            Rung::Loaded => "loaded",
            Rung::Delivered => "delivered",
            Rung::Acknowledged => "acknowledged",
            Rung::Reported => "reported",
            Rung::Exercised => "exercised",
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// With what authority a piece of evidence speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    /// States what is in force.
    Effective,
    /// Repeats the request: confirms nothing above "delivered".
    Echo,
    /// Says the same whatever runs: confirms nothing.
    Constant,
}

/// Exactly one start of a service, as an opaque name (boot, invocation, PID and start ticks).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartId(pub String);

/// Where the bytes of a piece of evidence are: which artifact of the capture, which bytes of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locus {
    /// Name of the artifact in the capture, `log.txt`.
    pub artifact: String,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What a person would say: `line 12`, `/total_slots`, `argv[3]`.
    pub label: String,
}

impl fmt::Display for Locus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.label.is_empty() { f.write_str(&self.artifact) } else { write!(f, "{} {}", self.artifact, self.label) }
    }
}

/// What a piece of evidence speaks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The setting's own value.
    Value,
    /// What the setting is for.
    Effect,
}

/// A count of tries and successes, such as drafted and accepted tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Tally {
    /// Successes (accepted draft tokens).
    pub kept: u64,
    /// Tries (drafted tokens).
    pub tried: u64,
    /// Opportunities (verification steps). A lower bound where the source does not count them.
    pub steps: u64,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// A value.
    Value(Value),
    /// A value printed with so many decimals, which may hide the exact one.
    Rounded(Value, u8),
    /// A count of tries and successes of an effect.
    Tally(Tally),
    /// The effect cannot happen: what would bring it about is not running.
    Off,
    /// What a rung below the engine asks for.
    Asks(Asked, String),
    /// A rung below the engine does not ask for it.
    NotAsked,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seen::Value(value) | Seen::Rounded(value, _) => value.fmt(f),
            Seen::Tally(tally) => {
                write!(f, "{} of {} accepted", tally.kept, tally.tried)?;
                if tally.steps > 0 {
                    write!(f, " in {} steps", tally.steps)?;
                }
                Ok(())
            }
            Seen::Off => f.write_str("off"),
            Seen::Asks(_, text) => f.write_str(text),
            Seen::NotAsked => f.write_str("not asked for"),
        }
    }
}

/// One statement about one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Canonical name of the setting.
    pub setting: String,
    /// Its value, or its effect.
    pub subject: Subject,
    /// What was seen.
    pub seen: Seen,
    /// How far up the ladder.
    pub rung: Rung,
    /// With what authority.
    pub voice: Voice,
    /// Who testifies: `log`, `props`, `slots`.
    pub witness: String,
    /// Of which start.
    pub start: StartId,
    /// Where the bytes are.
    pub locus: Locus,
    /// The bytes themselves, shortened and made safe to show.
    pub excerpt: String,
    /// Why it may or may not be trusted, or how it was inferred.
    pub note: Option<String>,
}

/// What an engine is known to do to a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Puts another value in force. The new value may only be seen elsewhere.
    Adjusts {
        /// The new value, where the message or rule names it.
        to: Option<Value>,
    },
    /// Drops what was asked and goes on.
    Ignores,
    /// Refuses to start because of it.
    Refuses,
    /// Tried to bring it about, failed and goes on.
    Fails,
}

/// Something the engine said it did, or is known to do in silence, to one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervention {
    /// Canonical name of the setting.
    pub setting: String,
    /// What it does.
    pub act: Act,
    /// One line a person understands.
    pub by: String,
    /// Source site in the engine, where known (`server-context.cpp:1326`, with the release it was seen in).
    pub source: Option<String>,
    /// A command or change that mends it.
    pub remedy: Option<String>,
    /// Of which start.
    pub start: StartId,
    /// Where the message is; `None` for a rule that acts in silence.
    pub locus: Option<Locus>,
    /// The message, shortened and made safe to show.
    pub excerpt: String,
}

/// Where a claim was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// `argv`, `env`, `file`; `unit` for what is written in the files of its unit.
    pub kind: &'static str,
    /// Where a person finds it: `argv[3] -c`, `env LLAMA_ARG_CTX_SIZE`, `config.ini:4`.
    pub place: String,
    /// The value asked for there, safe to show.
    pub value: String,
    /// Whether a source with more weight replaced it.
    pub overridden: bool,
    /// Where the bytes are.
    pub locus: Option<Locus>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// Exactly this value.
    Equals(Value),
    /// The engine shall choose (`-c 0`, `-np -1`, `-fa auto`): any value it states is as asked.
    Auto,
    /// That it be set at all (secrets).
    Present,
    /// Text that the engine cannot read as this setting's type (`8k`, `--metrics` swallowed as a value).
    Unreadable,
    /// That it not be asked for: it was taken out of what is written.
    Unset,
}

impl Asked {
    /// Whether two requests ask for the same. Of what the engine cannot read only the text can be compared.
    pub fn same(&self, text: &str, other: &Asked, other_text: &str) -> bool {
        match (self, other) {
            (Asked::Equals(one), Asked::Equals(other)) => one.same(other),
            (Asked::Unreadable, Asked::Unreadable) => text == other_text,
            (one, other) => one == other,
        }
    }
}

/// Whether the setting exists and can apply.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// The engine knows it.
    Known,
    /// No such setting in this release; the nearest real ones.
    Unknown {
        /// Nearest real spellings.
        nearest: Vec<String>,
    },
    /// It tunes something that is not running.
    NotApplicable {
        /// Why.
        why: String,
    },
}

/// What a setting is for, and how much must be seen before saying that it does not work.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectSpec {
    /// `tokens are drafted and accepted`.
    pub is: String,
    /// So many steps without a success before "contradicted"; fewer are "unproven".
    pub enough_steps: u64,
    /// What settles it when nothing was seen.
    pub settle: String,
}

/// An expectation about a setting and where it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Canonical name.
    pub setting: String,
    /// What was asked for.
    pub asked: Asked,
    /// The same as text, safe to show.
    pub wanted: String,
    /// Every place that asked, the one that won first.
    pub origins: Vec<Origin>,
    /// Whether the engine knows it and it can apply.
    pub standing: Standing,
    /// What it is for, where that can be observed.
    pub effect: Option<EffectSpec>,
    /// What would prove it, shown when nothing does.
    pub settle: Option<String>,
}

impl Claim {
    /// Whether a rung below the engine asks for what is claimed. `None`: it is no request that was seen.
    pub fn is_asked(&self, seen: &Seen) -> Option<bool> {
        match seen {
            Seen::Asks(asked, text) => Some(self.asked.same(&self.wanted, asked, text)),
            Seen::NotAsked => Some(self.asked == Asked::Unset),
            Seen::Value(_) | Seen::Rounded(..) | Seen::Tally(_) | Seen::Off => None,
        }
    }
}

/// What could not be found out, why, and what would let us.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// Who could not testify.
    pub witness: String,
    /// Why not.
    pub why: String,
    /// What would let us.
    pub remedy: Option<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something to look at.
    Warning,
    /// Something is wrong.
    Error,
}

/// Something worth knowing that is not the verdict on a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// A stable name, `override`, `third_source`.
    pub kind: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What was found and what to do.
    pub text: String,
    /// Where, with the bytes.
    pub evidence: Vec<(Locus, String)>,
}

/// A setting in force that differs from its default and that nobody asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Unasked {
    /// Canonical name.
    pub setting: String,
    /// What is in force.
    pub effective: Value,
    /// The engine's default, as text.
    pub default: String,
    /// Why, where known.
    pub why: Option<String>,
    /// Who says so.
    pub witness: String,
    /// Where.
    pub locus: Locus,
    /// The bytes.
    pub excerpt: String,
}

/// What became of the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The server runs, or ran until it was asked to stop.
    Running,
    /// It refused to start or died while starting: no setting is in force.
    Failed {
        /// One sentence: what it said.
        why: String,
    },
    /// It runs and does not answer: what it was given and what it logged can be judged, what it does cannot.
    Silent {
        /// One sentence: what was asked and what came.
        why: String,
    },
    /// Another process than the one meant answers: nothing is judged from what it says.
    Impostor {
        /// One sentence: who answers where.
        why: String,
    },
}

impl State {
    /// Whether there is a process in which something can be in force.
    pub fn is_up(&self) -> bool {
        matches!(self, State::Running | State::Silent { .. })
    }
}

/// Whether a witness spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WitnessState {
    /// It testified.
    Spoke,
    /// It was asked and could only tell a part.
    Partial,
    /// It was not there, or not asked.
    Absent,
    /// It refused, hung or could not be understood.
    Failed,
}

/// How a witness fared.
#[derive(Debug, Clone, PartialEq)]
pub struct WitnessNote {
    /// Its name.
    pub name: String,
    /// Whether it spoke.
    pub state: WitnessState,
    /// What a person should know about it.
    pub note: String,
}

/// All that the judge is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The start that is judged.
    pub start: StartId,
    /// What became of it.
    pub state: State,
    /// What was asked.
    pub claims: Vec<Claim>,
    /// What was seen.
    pub evidence: Vec<Evidence>,
    /// What the engine did.
    pub interventions: Vec<Intervention>,
    /// What could not be found out.
    pub gaps: Vec<Gap>,
    /// Why what runs may not be what is wanted although no claim shows it: what is written could not be compared.
    pub doubt: Option<String>,
    /// What is proven to run otherwise than it is written although it is no setting of the engine: the unit's user, a
    /// variable that other libraries read.
    pub broken: Option<String>,
}
