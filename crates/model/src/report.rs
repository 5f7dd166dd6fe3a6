//! The report, schema `ascertain.report/1`: what every output format shows.
//!
//! `docs/report.schema.json` is the JSON Schema of this structure.

use crate::case::{
    Case, Evidence, Finding, Locus, Origin, Rung, Seen, Severity, State, Unasked, Voice, WitnessNote, WitnessState,
};
use crate::judge::{Judged, Judgement, Verdict};
use serde::Serialize;

/// Schema name of the report.
pub const SCHEMA: &str = "ascertain.report/1";

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// What was verified.
    pub target: Target,
    /// What serves there.
    pub engine: EngineLine,
    /// Exactly which start of it.
    pub invocation: Invocation,
    /// The whole, one word.
    pub verdict: &'static str,
    /// One sentence: the answer.
    pub answer: String,
    /// The exit code that goes with it.
    pub exit_code: u8,
    /// One for each setting that was asked for.
    pub claims: Vec<ClaimLine>,
    /// Settings in force that differ from the default and that nobody asked for.
    pub unasked: Vec<UnaskedLine>,
    /// What else is worth knowing.
    pub findings: Vec<FindingLine>,
    /// Who testified.
    pub witnesses: Vec<WitnessLine>,
}

/// What was verified.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Target {
    /// As the user named it, or as the capture does.
    pub name: String,
    /// Host, where known.
    pub host: Option<String>,
    /// The systemd unit it belongs to, where known.
    pub unit: Option<String>,
    /// PID, where known.
    pub pid: Option<u32>,
    /// The command line as delivered, redacted.
    pub argv: Vec<String>,
}

/// What serves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineLine {
    /// Its name.
    pub name: String,
    /// Its release as it states it, where it does.
    pub version: Option<String>,
    /// Whether the engine model was made on exactly this release.
    pub known_release: bool,
}

/// Exactly one start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Invocation {
    /// Opaque identity of the start.
    pub id: String,
    /// Kernel boot id.
    pub boot: Option<String>,
    /// Clock ticks after boot at which the process started.
    pub start_ticks: Option<u64>,
    /// Seconds since the epoch at which the process started.
    pub started: Option<u64>,
    /// `running`, `silent`, `failed` or `impostor`.
    pub state: &'static str,
    /// Why it failed or is silent, or who answers.
    pub why: Option<String>,
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimLine {
    /// Canonical name.
    pub setting: String,
    /// What was asked for, safe to show.
    pub wanted: String,
    /// Where it was asked for, the place that won first.
    pub origin: Vec<OriginLine>,
    /// The verdict's word.
    pub verdict: &'static str,
    /// Highest rung on which the value in force was seen.
    pub rung: Option<&'static str>,
    /// The value in force, where it was seen.
    pub effective: Option<String>,
    /// What the setting is for, judged on its own.
    pub effect: Option<EffectLine>,
    /// Where the chain broke.
    #[serde(rename = "break")]
    pub broken: Option<BreakLine>,
    /// Why it is so: the engine's message or rule, or what is lacking.
    pub by: Option<ByLine>,
    /// What is lacking, for `unproven`, `stale` and `not_applicable`.
    pub lacking: Option<String>,
    /// Nearest real spellings, for `unknown`.
    pub nearest: Vec<String>,
    /// What would settle or mend it.
    pub remedy: Option<String>,
    /// Everything that was seen about it.
    pub evidence: Vec<EvidenceLine>,
}

/// Where a claim was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OriginLine {
    /// `argv`, `env`, `file`, `unit`.
    pub kind: &'static str,
    /// Where a person finds it.
    pub place: String,
    /// What was asked there.
    pub value: String,
    /// Whether a source with more weight replaced it.
    pub overridden: bool,
}

/// The effect of a setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectLine {
    /// What the setting is for.
    pub is: String,
    /// The verdict's word.
    pub verdict: &'static str,
    /// The counts, or what is lacking.
    pub text: String,
    /// What was seen.
    pub evidence: Vec<EvidenceLine>,
}

/// Where the chain broke.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BreakLine {
    /// The two rungs.
    pub between: [&'static str; 2],
    /// What the position means.
    pub diagnosis: String,
}

/// What the engine did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ByLine {
    /// One line.
    pub text: String,
    /// Source site in the engine, where known.
    pub source: Option<String>,
    /// Where the message is.
    pub locus: Option<LocusLine>,
    /// The message.
    pub excerpt: Option<String>,
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvidenceLine {
    /// Who.
    pub witness: String,
    /// How far up the ladder.
    pub rung: Rung,
    /// With what authority.
    pub voice: Voice,
    /// What.
    pub value: String,
    /// Where.
    pub locus: LocusLine,
    /// The bytes, shortened and made safe to show.
    pub excerpt: String,
    /// Why it may or may not be trusted.
    pub note: Option<String>,
    /// It belongs to another start.
    pub stale: bool,
}

/// Where bytes are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LocusLine {
    /// Artifact of the capture.
    pub artifact: String,
    /// First byte and one past the last.
    pub bytes: [usize; 2],
    /// As a person would say it.
    pub label: String,
}

/// A setting nobody asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnaskedLine {
    /// Canonical name.
    pub setting: String,
    /// In force.
    pub effective: String,
    /// The engine's default.
    pub default: String,
    /// Why, where known.
    pub why: Option<String>,
    /// Who says so.
    pub witness: String,
    /// Where.
    pub locus: LocusLine,
    /// The bytes.
    pub excerpt: String,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingLine {
    /// A stable name.
    pub kind: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What and what to do.
    pub text: String,
    /// Where.
    pub evidence: Vec<FindingEvidence>,
}

/// Where a finding rests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingEvidence {
    /// Where.
    pub locus: LocusLine,
    /// The bytes.
    pub excerpt: String,
}

/// A witness.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WitnessLine {
    /// Its name.
    pub name: String,
    /// Whether it spoke.
    pub state: WitnessState,
    /// What a person should know about it.
    pub note: String,
}

impl From<&Locus> for LocusLine {
    fn from(locus: &Locus) -> Self {
        LocusLine { artifact: locus.artifact.clone(), bytes: [locus.start, locus.end], label: locus.label.clone() }
    }
}

impl From<&Origin> for OriginLine {
    fn from(origin: &Origin) -> Self {
        OriginLine {
            kind: origin.kind,
            place: origin.place.clone(),
            value: origin.value.clone(),
            overridden: origin.overridden,
        }
    }
}

impl From<&WitnessNote> for WitnessLine {
    fn from(note: &WitnessNote) -> Self {
        WitnessLine { name: note.name.clone(), state: note.state, note: note.note.clone() }
    }
}

impl From<&Finding> for FindingLine {
    fn from(finding: &Finding) -> Self {
        FindingLine {
            kind: finding.kind,
            severity: finding.severity,
            text: finding.text.clone(),
            evidence: finding
                .evidence
                .iter()
                .map(|(locus, excerpt)| FindingEvidence { locus: locus.into(), excerpt: excerpt.clone() })
                .collect(),
        }
    }
}

impl From<&Unasked> for UnaskedLine {
    fn from(unasked: &Unasked) -> Self {
        UnaskedLine {
            setting: unasked.setting.clone(),
            effective: unasked.effective.to_string(),
            default: unasked.default.clone(),
            why: unasked.why.clone(),
            witness: unasked.witness.clone(),
            locus: (&unasked.locus).into(),
            excerpt: unasked.excerpt.clone(),
        }
    }
}

fn evidence_line(case: &Case, evidence: &Evidence) -> EvidenceLine {
    EvidenceLine {
        witness: evidence.witness.clone(),
        rung: evidence.rung,
        voice: evidence.voice,
        value: evidence.seen.to_string(),
        locus: (&evidence.locus).into(),
        excerpt: evidence.excerpt.clone(),
        note: evidence.note.clone(),
        stale: evidence.start != case.start,
    }
}

impl ClaimLine {
    /// The line of one judged claim.
    pub fn new(case: &Case, judged: &Judged) -> ClaimLine {
        let (rung, broken, lacking, nearest) = match &judged.verdict {
            Verdict::Confirmed { rung } | Verdict::Adjusted { rung, .. } | Verdict::Divided { rung } => {
                (Some(rung.name()), None, None, Vec::new())
            }
            Verdict::Contradicted { between, diagnosis } => {
                let broken = BreakLine { between: [between.0.name(), between.1.name()], diagnosis: diagnosis.clone() };
                (None, Some(broken), None, Vec::new())
            }
            Verdict::Unproven { lacking } => (None, None, Some(lacking.clone()), Vec::new()),
            Verdict::Stale => (None, None, Some("only evidence of another start".to_string()), Vec::new()),
            Verdict::NotApplicable { why } => (None, None, Some(why.clone()), Vec::new()),
            Verdict::Unknown { nearest } => (None, None, None, nearest.clone()),
        };
        let effect = judged.effect.as_ref().zip(judged.claim.effect.as_ref()).map(|(verdict, spec)| EffectLine {
            is: spec.is.clone(),
            verdict: verdict.word(),
            text: effect_text(judged, verdict),
            evidence: judged.effect_evidence.iter().map(|one| evidence_line(case, one)).collect(),
        });
        ClaimLine {
            setting: judged.claim.setting.clone(),
            wanted: judged.claim.wanted.clone(),
            origin: judged.claim.origins.iter().map(OriginLine::from).collect(),
            verdict: judged.verdict.word(),
            rung,
            effective: judged.effective.as_ref().map(ToString::to_string),
            effect,
            broken,
            by: judged.by.as_ref().map(|act| ByLine {
                text: act.by.clone(),
                source: act.source.clone(),
                locus: act.locus.as_ref().map(LocusLine::from),
                excerpt: (!act.excerpt.is_empty()).then(|| act.excerpt.clone()),
            }),
            lacking,
            nearest,
            remedy: judged.remedy.clone(),
            evidence: judged.evidence.iter().map(|one| evidence_line(case, one)).collect(),
        }
    }
}

fn effect_text(judged: &Judged, verdict: &Verdict) -> String {
    // The widest count says most: the largest number of steps, then of tries.
    let widest = judged
        .effect_evidence
        .iter()
        .filter_map(|one| match one.seen {
            Seen::Tally(tally) => Some(tally),
            _ => None,
        })
        .max_by_key(|tally| (tally.steps, tally.tried));
    match (verdict, widest) {
        (Verdict::Confirmed { .. }, Some(tally)) => Seen::Tally(tally).to_string(),
        (Verdict::Contradicted { diagnosis, .. }, _) => diagnosis.clone(),
        (Verdict::Unproven { lacking }, _) => lacking.clone(),
        (Verdict::Divided { .. }, _) => "the counts disagree".to_string(),
        _ => String::new(),
    }
}

/// The lines of all claims.
pub fn claim_lines(case: &Case, judgement: &Judgement) -> Vec<ClaimLine> {
    judgement.claims.iter().map(|judged| ClaimLine::new(case, judged)).collect()
}

/// How the start went, as a word and a sentence.
pub fn state_words(state: &State) -> (&'static str, Option<String>) {
    match state {
        State::Running => ("running", None),
        State::Failed { why } => ("failed", Some(why.clone())),
        State::Silent { why } => ("silent", Some(why.clone())),
        State::Impostor { why } => ("impostor", Some(why.clone())),
    }
}
