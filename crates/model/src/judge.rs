//! The judge: claims, evidence and gaps in; verdicts out.
//!
//! A pure, total function. Its laws are property-tested in `tests/laws.rs`: the order of evidence changes nothing;
//! adding a gap never improves a verdict; without evidence nothing is confirmed; evidence of another start is at
//! best `Stale`; an echo or a constant confirms nothing; effective evidence against a claim keeps it from being
//! confirmed, whatever else agrees.

use crate::case::{Act, Asked, Case, Claim, Evidence, Intervention, Rung, Seen, Standing, State, Subject, Voice};
use crate::value::Value;

/// What became of one claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Effective evidence agrees, up to this rung, and none disagrees.
    Confirmed {
        /// The highest rung on which the value was seen.
        rung: Rung,
    },
    /// The engine put another value in force, by a rule or message known for it.
    Adjusted {
        /// The highest rung on which the other value was seen.
        rung: Rung,
        /// What is in force, where it was seen.
        to: Option<Value>,
    },
    /// It is not in force.
    Contradicted {
        /// The rungs between which the chain broke.
        between: (Rung, Rung),
        /// What the position means.
        diagnosis: String,
    },
    /// Witnesses of one rung disagree.
    Divided {
        /// That rung.
        rung: Rung,
    },
    /// Nothing effective speaks about it.
    Unproven {
        /// What is lacking.
        lacking: String,
    },
    /// Only evidence of another start.
    Stale,
    /// No such setting in this release.
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

impl Verdict {
    /// The word as it stands in reports.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Confirmed { .. } => "confirmed",
            Verdict::Adjusted { .. } => "adjusted",
            Verdict::Contradicted { .. } => "contradicted",
            Verdict::Divided { .. } => "divided",
            Verdict::Unproven { .. } => "unproven",
            Verdict::Stale => "stale",
            Verdict::Unknown { .. } => "unknown",
            Verdict::NotApplicable { .. } => "not_applicable",
        }
    }
}

/// The judgement on one claim, with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// What became of it.
    pub verdict: Verdict,
    /// What is in force, where effective evidence shows it.
    pub effective: Option<Value>,
    /// What the setting is for, judged beside its value. `None` where it has no observable effect.
    pub effect: Option<Verdict>,
    /// The engine's own act that explains the verdict.
    pub by: Option<Intervention>,
    /// What would settle or mend it. `None` only for `Confirmed`.
    pub remedy: Option<String>,
    /// Everything that was seen about the value, lowest rung first.
    pub evidence: Vec<Evidence>,
    /// Everything that was seen about the effect.
    pub effect_evidence: Vec<Evidence>,
}

/// The whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whole {
    /// Every claim is in force and every effect was seen.
    Confirmed,
    /// The same, but for what the engine adjusted.
    Adjusted,
    /// Something could not be proven.
    Unproven,
    /// Something was asked that this release does not know.
    Unknown,
    /// Something is not in force, or does nothing.
    Contradicted,
    /// The server did not start.
    Failed,
    /// The process that answers is not the one meant.
    Impostor,
}

impl Whole {
    /// The word as it stands in reports.
    pub fn word(self) -> &'static str {
        match self {
            Whole::Confirmed => "confirmed",
            Whole::Adjusted => "adjusted",
            Whole::Unproven => "unproven",
            Whole::Unknown => "unknown",
            Whole::Contradicted | Whole::Impostor => "contradicted",
            Whole::Failed => "failed",
        }
    }

    /// The exit code: 0, 1, 4 for another process, or with `strict` 3 for what is unproven.
    pub fn exit_code(self, strict: bool) -> u8 {
        match self {
            Whole::Confirmed | Whole::Adjusted => 0,
            Whole::Unproven if strict => 3,
            Whole::Unproven => 0,
            Whole::Unknown | Whole::Contradicted | Whole::Failed => 1,
            Whole::Impostor => 4,
        }
    }
}

/// All verdicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// One for each claim, in the order of the claims.
    pub claims: Vec<Judged>,
    /// The whole.
    pub whole: Whole,
}

/// Judges a case.
pub fn judge(case: &Case) -> Judgement {
    let claims: Vec<Judged> = case.claims.iter().map(|claim| judge_claim(case, claim)).collect();
    let whole = whole(case, &claims);
    Judgement { claims, whole }
}

fn whole(case: &Case, claims: &[Judged]) -> Whole {
    let state = &case.state;
    match state {
        State::Failed { .. } => return Whole::Failed,
        State::Impostor { .. } => return Whole::Impostor,
        State::Running | State::Silent { .. } => {}
    }
    // A server that does not answer does not do what it was started for, whatever it was given.
    let doubtful = matches!(state, State::Silent { .. }) || case.doubt.is_some();
    let least = if doubtful { Whole::Unproven } else { Whole::Confirmed };
    let least = if case.broken.is_some() { Whole::Contradicted } else { least };
    // Nothing asked is nothing confirmed.
    if claims.is_empty() {
        return least.max(Whole::Unproven);
    }
    claims
        .iter()
        .flat_map(|judged| [Some(&judged.verdict), judged.effect.as_ref()])
        .flatten()
        .map(weight)
        .max()
        .unwrap_or(Whole::Unproven)
        .max(least)
}

fn weight(verdict: &Verdict) -> Whole {
    match verdict {
        Verdict::Confirmed { .. } => Whole::Confirmed,
        Verdict::Adjusted { .. } => Whole::Adjusted,
        Verdict::Unproven { .. } | Verdict::Stale | Verdict::NotApplicable { .. } => Whole::Unproven,
        Verdict::Unknown { .. } => Whole::Unknown,
        Verdict::Contradicted { .. } | Verdict::Divided { .. } => Whole::Contradicted,
    }
}

fn judge_claim(case: &Case, claim: &Claim) -> Judged {
    let mut evidence: Vec<Evidence> = about(case, claim, Subject::Value);
    let mut effect_evidence: Vec<Evidence> = about(case, claim, Subject::Effect);
    canonical_order(&mut evidence);
    canonical_order(&mut effect_evidence);

    let mut acts: Vec<&Intervention> =
        case.interventions.iter().filter(|act| act.setting == claim.setting && act.start == case.start).collect();
    acts.sort_by(|a, b| order_of_act(a, b));

    let (verdict, effective, by) = judge_value(case, claim, &evidence, &acts);
    let effect = claim.effect.as_ref().and_then(|_| judge_effect(case, claim, &verdict, &effect_evidence));
    let remedy = remedy(case, claim, &verdict, effect.as_ref(), by);
    Judged { claim: claim.clone(), verdict, effective, effect, by: by.cloned(), remedy, evidence, effect_evidence }
}

fn about(case: &Case, claim: &Claim, subject: Subject) -> Vec<Evidence> {
    case.evidence.iter().filter(|one| one.setting == claim.setting && one.subject == subject).cloned().collect()
}

/// An order that depends on the evidence alone, not on the order in which witnesses came back. Every field takes
/// part: two pieces that compare as equal are equal.
fn canonical_order(evidence: &mut [Evidence]) {
    evidence.sort_by(|a, b| {
        (a.rung, a.voice, &a.witness, &a.locus)
            .cmp(&(b.rung, b.voice, &b.witness, &b.locus))
            .then_with(|| a.seen.to_string().cmp(&b.seen.to_string()))
            // `true` the switch and `true` the word are written the same.
            .then_with(|| format!("{:?}", a.seen).cmp(&format!("{:?}", b.seen)))
            .then_with(|| (&a.note, &a.start, &a.excerpt).cmp(&(&b.note, &b.start, &b.excerpt)))
    });
}

/// The gravest act first; then the one with a message before a silent rule; then by place, then by all the rest.
fn order_of_act(a: &Intervention, b: &Intervention) -> std::cmp::Ordering {
    let grave = |act: &Intervention| match act.act {
        Act::Refuses => 0,
        Act::Fails => 1,
        Act::Ignores => 2,
        Act::Adjusts { .. } => 3,
    };
    (grave(a), a.locus.is_none(), &a.locus, &a.by, &a.source, &a.remedy, &a.excerpt)
        .cmp(&(grave(b), b.locus.is_none(), &b.locus, &b.by, &b.source, &b.remedy, &b.excerpt))
        .then_with(|| format!("{:?}", a.act).cmp(&format!("{:?}", b.act)))
}

type ValueVerdict<'a> = (Verdict, Option<Value>, Option<&'a Intervention>);

fn judge_value<'a>(case: &Case, claim: &Claim, evidence: &[Evidence], acts: &[&'a Intervention]) -> ValueVerdict<'a> {
    if let Some(refusal) = acts.iter().find(|act| act.act == Act::Refuses) {
        // A flag that does not exist is unknown, also when the engine says so by refusing it.
        if let Standing::Unknown { nearest } = &claim.standing {
            return (Verdict::Unknown { nearest: nearest.clone() }, None, Some(refusal));
        }
        return (broke(Rung::Delivered, Rung::Acknowledged, &refusal.by), None, Some(refusal));
    }
    match &claim.standing {
        Standing::Unknown { nearest } => {
            return (Verdict::Unknown { nearest: nearest.clone() }, None, acts.first().copied());
        }
        Standing::NotApplicable { why } if case.state.is_up() => {
            return (Verdict::NotApplicable { why: why.clone() }, None, acts.first().copied());
        }
        _ => {}
    }
    if let Some(lacking) = nothing_in_force(&case.state) {
        return (Verdict::Unproven { lacking }, None, None);
    }

    let of_this_start = |one: &&Evidence| one.start == case.start;
    let effective: Vec<&Evidence> = evidence
        .iter()
        .filter(of_this_start)
        .filter(|one| one.voice == Voice::Effective && one.rung > Rung::Delivered)
        .filter(|one| matches!(one.seen, Seen::Value(_) | Seen::Rounded(..)))
        .collect();

    // Lower rungs first: what was never delivered need not be looked for in the engine.
    if let Some(verdict) = broken_below(claim, evidence, case) {
        // What runs instead: as the engine states it, else as it was told.
        let told = evidence.iter().filter(of_this_start).find_map(|one| match (&one.rung, &one.seen) {
            (Rung::Delivered, Seen::Asks(Asked::Equals(value), _)) => Some(value.clone()),
            _ => None,
        });
        return (verdict, effective.last().copied().and_then(value_of).or(told), None);
    }

    let dropped = acts.iter().find(|act| matches!(act.act, Act::Fails | Act::Ignores)).copied();
    let adjusts = acts.iter().find(|act| matches!(act.act, Act::Adjusts { .. })).copied();

    let Some(top) = effective.last() else {
        if let Some(act) = dropped {
            return (broke(Rung::Delivered, act_rung(act), &act.by), None, Some(act));
        }
        if let Some(act) = adjusts {
            let to = match &act.act {
                Act::Adjusts { to } => to.clone(),
                _ => None,
            };
            // A rule that acts in silence explains a value that was seen; by itself it proves nothing.
            if act.locus.is_some() && to.is_some() {
                let verdict = Verdict::Adjusted { rung: Rung::Acknowledged, to: to.clone() };
                return (verdict, to, Some(act));
            }
        }
        if evidence.iter().any(|one| one.start != case.start) {
            return (Verdict::Stale, None, None);
        }
        return (Verdict::Unproven { lacking: lacking(evidence) }, None, adjusts);
    };
    let top_rung = top.rung;
    let top_value = value_of(top);

    // Witnesses of one rung that disagree.
    for rung in Rung::ALL {
        let mut seen: Vec<&Evidence> = effective.iter().copied().filter(|one| one.rung == rung).collect();
        let Some(first) = seen.pop() else { continue };
        if seen.iter().any(|other| !agree(first, other)) {
            return (Verdict::Divided { rung }, None, dropped.or(adjusts));
        }
    }

    let answers: Vec<(Rung, Option<bool>)> = effective.iter().map(|one| (one.rung, accepts(claim, one))).collect();
    let against = answers.iter().find(|(_, answer)| *answer == Some(false)).map(|(rung, _)| *rung);
    let top_agrees = answers.iter().rev().find(|(rung, _)| *rung == top_rung).and_then(|(_, answer)| *answer);

    match (against, top_agrees) {
        (None, _) if dropped.is_some() => {
            let act = dropped.expect("just tested");
            (broke(Rung::Delivered, act_rung(act), &act.by), top_value, Some(act))
        }
        (None, Some(true)) => {
            // The engine says that it changed the value and the value is as asked: one of the two is not so.
            let changed = acts.iter().copied().filter(|act| act.locus.is_some()).find_map(|act| match &act.act {
                Act::Adjusts { to: Some(to) } if answer_for(claim, to) == Some(false) => Some((act, to)),
                _ => None,
            });
            if let Some((act, to)) = changed {
                let diagnosis = format!("the log says it was changed to {to}, a higher witness shows it as asked");
                return (broke(Rung::Acknowledged, top_rung, &diagnosis), top_value, Some(act));
            }
            (Verdict::Confirmed { rung: top_rung }, top_value, None)
        }
        (None, _) => {
            let lacking = "the value is only printed rounded, which hides the exact one".to_string();
            (Verdict::Unproven { lacking }, None, None)
        }
        (Some(rung), Some(true)) => {
            let diagnosis = "the engine's own witnesses disagree about what is in force".to_string();
            (broke(rung, top_rung, &diagnosis), top_value, dropped.or(adjusts))
        }
        (Some(rung), _) => {
            if let Some(act) = dropped {
                return (broke(Rung::Delivered, rung.min(act_rung(act)), &act.by), top_value, Some(act));
            }
            // Only the act that leads to the value that is in force explains it.
            let explains = |act: &&&Intervention| match &act.act {
                Act::Adjusts { to: Some(to) } => match &top.seen {
                    Seen::Rounded(value, decimals) => to.same_rounded(value, *decimals) != Some(false),
                    _ => top_value.as_ref().is_some_and(|value| to.same(value)),
                },
                Act::Adjusts { to: None } => true,
                _ => false,
            };
            if let Some(act) = acts.iter().find(explains).copied() {
                return (Verdict::Adjusted { rung: top_rung, to: top_value.clone() }, top_value, Some(act));
            }
            let below = Rung::ALL.iter().rev().copied().find(|lower| {
                *lower < rung && answers.iter().any(|(seen, answer)| seen == lower && *answer == Some(true))
            });
            let (from, diagnosis) = match below {
                Some(Rung::Reported) => (Rung::Reported, "the server says so, its behaviour does not"),
                Some(lower) => (lower, "changed by the engine after it acknowledged it"),
                None => (Rung::Delivered, "ignored or overridden by the engine"),
            };
            (broke(from, rung, diagnosis), top_value, None)
        }
    }
}

/// Why nothing that was seen can be in force in the process that is meant.
fn nothing_in_force(state: &State) -> Option<String> {
    match state {
        State::Running | State::Silent { .. } => None,
        State::Failed { .. } => Some("the server did not start".to_string()),
        State::Impostor { .. } => Some("another process answers in its place".to_string()),
    }
}

/// Disagreement among the rungs below the engine: written, loaded, delivered. The first place where it shows is the
/// diagnosis, unless the evidence there says better.
fn broken_below(claim: &Claim, evidence: &[Evidence], case: &Case) -> Option<Verdict> {
    let on = |rung: Rung| {
        evidence
            .iter()
            .filter(|one| one.start == case.start && one.voice == Voice::Effective && one.rung == rung)
            .find_map(|one| Some((accepts(claim, one)?, one)))
    };
    let mut below: Option<Rung> = None;
    for rung in [Rung::Written, Rung::Loaded, Rung::Delivered] {
        match (on(rung), below) {
            (Some((true, _)), _) => below = Some(rung),
            (Some((false, seen)), Some(below)) => {
                let usual = match rung {
                    Rung::Loaded => "edited on disk, not reloaded by the manager",
                    _ if below == Rung::Written => "what is written did not reach the process",
                    _ => "not restarted since, or another process",
                };
                return Some(broke(below, rung, seen.note.as_deref().unwrap_or(usual)));
            }
            _ => {}
        }
    }
    None
}

fn broke(from: Rung, to: Rung, diagnosis: &str) -> Verdict {
    Verdict::Contradicted { between: (from, to), diagnosis: diagnosis.to_string() }
}

/// A message stands in the log; a silent rule is known from what is reported.
fn act_rung(act: &Intervention) -> Rung {
    match &act.locus {
        Some(locus) if locus.artifact.starts_with("log") => Rung::Acknowledged,
        Some(_) => Rung::Reported,
        None => Rung::Acknowledged,
    }
}

fn value_of(evidence: &Evidence) -> Option<Value> {
    match &evidence.seen {
        Seen::Value(value) | Seen::Rounded(value, _) => Some(value.clone()),
        Seen::Tally(_) | Seen::Off | Seen::Asks(..) | Seen::NotAsked => None,
    }
}

/// Whether two pieces of evidence can both be true.
fn agree(a: &Evidence, b: &Evidence) -> bool {
    match (&a.seen, &b.seen) {
        (Seen::Value(x), Seen::Value(y)) => x.same(y),
        (Seen::Value(x), Seen::Rounded(y, decimals)) | (Seen::Rounded(y, decimals), Seen::Value(x)) => {
            x.same_rounded(y, *decimals) != Some(false)
        }
        (Seen::Rounded(x, _), Seen::Rounded(y, _)) => x.same(y),
        _ => true,
    }
}

fn accepts(claim: &Claim, evidence: &Evidence) -> Option<bool> {
    match &evidence.seen {
        Seen::Value(value) => answer_for(claim, value),
        Seen::Rounded(value, decimals) => match &claim.asked {
            Asked::Equals(wanted) => wanted.same_rounded(value, *decimals),
            _ => answer_for(claim, value),
        },
        Seen::Asks(..) | Seen::NotAsked => claim.is_asked(&evidence.seen),
        Seen::Tally(_) | Seen::Off => None,
    }
}

fn answer_for(claim: &Claim, value: &Value) -> Option<bool> {
    match &claim.asked {
        Asked::Equals(wanted) => Some(wanted.same(value)),
        Asked::Auto => Some(true),
        Asked::Present => Some(!matches!(value, Value::Bool(false))),
        Asked::Unreadable => Some(false),
        // The default may be any value.
        Asked::Unset => None,
    }
}

fn lacking(evidence: &[Evidence]) -> String {
    let echo = evidence.iter().any(|one| one.voice == Voice::Echo && one.rung > Rung::Delivered);
    let constant = evidence.iter().any(|one| one.voice == Voice::Constant);
    match (echo, constant) {
        (true, _) => "only repeats of the request were seen, nothing states what is in force",
        (false, true) => "only a field that never changes was seen",
        (false, false) => "delivered, but nothing that was seen states what is in force",
    }
    .to_string()
}

fn judge_effect(case: &Case, claim: &Claim, value: &Verdict, evidence: &[Evidence]) -> Option<Verdict> {
    let spec = claim.effect.as_ref()?;
    if let Some(lacking) = nothing_in_force(&case.state) {
        return Some(match value {
            Verdict::Contradicted { between, diagnosis } => {
                Verdict::Contradicted { between: *between, diagnosis: diagnosis.clone() }
            }
            _ => Verdict::Unproven { lacking },
        });
    }
    let of_this_start: Vec<&Evidence> =
        evidence.iter().filter(|one| one.start == case.start && one.voice == Voice::Effective).collect();
    let off: Option<Rung> = of_this_start.iter().filter(|one| one.seen == Seen::Off).map(|one| one.rung).max();

    // Several sources count the same tokens (a response and a counter): add within a source, never across.
    let mut sources: Vec<(&str, crate::case::Tally)> = Vec::new();
    for one in &of_this_start {
        if let Seen::Tally(tally) = one.seen {
            match sources.iter_mut().find(|(name, _)| *name == one.witness) {
                Some((_, sum)) => {
                    sum.kept = sum.kept.saturating_add(tally.kept);
                    sum.tried = sum.tried.saturating_add(tally.tried);
                    sum.steps = sum.steps.saturating_add(tally.steps);
                }
                None => sources.push((&one.witness, tally)),
            }
        }
    }
    let works = sources.iter().any(|(_, sum)| sum.kept > 0);
    let idle_everywhere = !works;
    let steps = sources.iter().map(|(_, sum)| sum.steps).max().unwrap_or(0);

    if works {
        // One source counts successes and another, over as much traffic, none: they cannot both be right.
        let denied = sources.iter().any(|(_, sum)| sum.kept == 0 && sum.steps >= spec.enough_steps);
        return Some(match off {
            Some(_) => broke(Rung::Reported, Rung::Exercised, "said to be off, and seen at work"),
            None if denied => Verdict::Divided { rung: Rung::Exercised },
            None => Verdict::Confirmed { rung: Rung::Exercised },
        });
    }
    if let Some(rung) = off {
        let from = match value {
            Verdict::Contradicted { between, .. } => between.0,
            _ => Rung::Delivered,
        };
        // What was seen to fail says more than that it is off.
        let failed = of_this_start.iter().filter(|one| one.seen == Seen::Off && one.rung == Rung::Exercised);
        let note = failed.filter_map(|one| one.note.as_deref()).min();
        return Some(broke(from.min(rung), rung, note.unwrap_or("it is not running, so nothing can come of it")));
    }
    if idle_everywhere && steps >= spec.enough_steps.max(1) {
        let diagnosis = format!("0 accepted in {steps} steps: the server says so, the traffic does not");
        return Some(broke(Rung::Reported, Rung::Exercised, &diagnosis));
    }
    match value {
        // Adjusted away, or never there: its value says all there is to say.
        Verdict::Unknown { .. } | Verdict::NotApplicable { .. } => None,
        Verdict::Adjusted { .. } if of_this_start.is_empty() => None,
        _ if steps > 0 => Some(Verdict::Unproven {
            lacking: format!("0 accepted in {steps} steps, too few to say ({} are enough)", spec.enough_steps),
        }),
        _ => Some(Verdict::Unproven { lacking: "no traffic has shown it".to_string() }),
    }
}

fn remedy(
    case: &Case,
    claim: &Claim,
    verdict: &Verdict,
    effect: Option<&Verdict>,
    by: Option<&Intervention>,
) -> Option<String> {
    let settle_effect = || match (effect, &claim.effect) {
        (Some(Verdict::Unproven { .. } | Verdict::Divided { .. }), Some(spec)) => Some(spec.settle.clone()),
        (Some(Verdict::Contradicted { .. }), Some(spec)) => Some(format!("find out why it is not so that {}", spec.is)),
        _ => None,
    };
    match verdict {
        Verdict::Confirmed { .. } => settle_effect(),
        Verdict::Unknown { nearest } => Some(match nearest.first() {
            Some(name) => format!("use {name}, or remove it"),
            None => by
                .and_then(|act| act.remedy.clone())
                .unwrap_or_else(|| "remove it: this release does not know it".to_string()),
        }),
        Verdict::NotApplicable { .. } => Some(
            by.and_then(|act| act.remedy.clone()).unwrap_or_else(|| "remove it, or start what it tunes".to_string()),
        ),
        Verdict::Adjusted { to, .. } => Some(by.and_then(|act| act.remedy.clone()).unwrap_or_else(|| match to {
            Some(to) => format!("ask for {to} if that is what you want, so that the file says what runs"),
            None => "ask for what the engine can give, so that the file says what runs".to_string(),
        })),
        Verdict::Contradicted { .. } => Some(by.and_then(|act| act.remedy.clone()).unwrap_or_else(|| {
            claim.settle.clone().unwrap_or_else(|| "look at the evidence below; nothing known explains it".to_string())
        })),
        Verdict::Divided { .. } => Some("look at the evidence below: the witnesses cannot all be right".to_string()),
        Verdict::Stale => Some("hand in evidence of this start (its log, its endpoints)".to_string()),
        Verdict::Unproven { .. } if matches!(case.state, State::Failed { .. }) => {
            Some("mend what kept the server from starting first".to_string())
        }
        Verdict::Unproven { .. } if matches!(case.state, State::Impostor { .. }) => {
            Some("find out who answers, and end it or ask for it instead".to_string())
        }
        Verdict::Unproven { .. } => Some(
            claim
                .settle
                .clone()
                .unwrap_or_else(|| "no witness of this release states it: judge it by its effect".to_string()),
        ),
    }
}
