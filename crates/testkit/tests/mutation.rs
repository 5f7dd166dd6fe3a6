//! Evidence that was lost, cut, mixed up or made up never confirms what the whole evidence does not.
//!
//! Every test here takes the golden captures, spoils them in memory and judges what is left. What is drawn at random
//! is drawn from a fixed seed, so that a failure is the same failure again.

use ascertain_engines::data::{Data, Kind, Setting};
use ascertain_engines::{ENGINES, Reading};
use ascertain_model::{Asked, Capture, Judged, Judgement, Rung, Seen, Value, Verdict, Voice, judge};
use ascertain_testkit::{Expected, captures, expected, golden, load};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// A golden capture and what is made of it as it is.
struct Recording {
    name: String,
    capture: Capture,
    reading: Reading,
    judgement: Judgement,
    expected: Expected,
}

fn recordings() -> &'static [Recording] {
    static ALL: OnceLock<Vec<Recording>> = OnceLock::new();
    ALL.get_or_init(|| {
        golden("llamacpp")
            .expect("the recordings are there")
            .into_iter()
            .map(|(name, path)| {
                let capture = load(&path).expect("a readable recording");
                let (reading, judgement) = judged(&capture);
                Recording { name, capture, reading, judgement, expected: expected(&path).expect("a readable expectation") }
            })
            .collect()
    })
}

fn judged(capture: &Capture) -> (Reading, Judgement) {
    let reading = ENGINES[0].read(capture);
    let judgement = judge(&reading.case);
    (reading, judgement)
}

/// The same, but a panic is a line in the list of what went wrong.
fn survives(capture: &Capture, what: &str, wrong: &mut Vec<String>) -> Option<(Reading, Judgement)> {
    match catch_unwind(AssertUnwindSafe(|| judged(capture))) {
        Ok(judged) => Some(judged),
        Err(_) => {
            wrong.push(format!("{what}: panicked"));
            None
        }
    }
}

/// The engine's settings, as the engine's folder has them.
fn settings() -> &'static Data {
    static DATA: OnceLock<Data> = OnceLock::new();
    DATA.get_or_init(|| {
        let folder = captures().join("../crates/engines/src/llama_cpp");
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the engine's data");
        let (about, settings) = (text("about.toml"), text("settings.toml"));
        Data::read(&[("about.toml", &about), ("settings.toml", &settings)]).expect("the engine's data")
    })
}

/// Random numbers from a fixed seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16;
        if limit == 0 { 0 } else { (drawn % limit as u64) as usize }
    }
}

fn is_confirmed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Confirmed { .. })
}

fn find<'a>(judgement: &'a Judgement, setting: &str) -> Option<&'a Judged> {
    judgement.claims.iter().find(|judged| judged.claim.setting == setting)
}

/// Whether one of the artifacts held what kept `before` from being confirmed: effective evidence of another value
/// than the one that is now taken for confirmed, or a message by which the engine changed, dropped or refused it.
/// Only then may the claim be confirmed once they are gone: what is left is one-sided, and nobody can know.
fn held_the_witness_against(recording: &Recording, before: &Judged, after: &Judged, gone: &BTreeSet<&str>) -> bool {
    let start = &recording.reading.case.start;
    let other_value = before.evidence.iter().any(|one| {
        let value = match &one.seen {
            Seen::Value(value) | Seen::Rounded(value, _) => value,
            Seen::Tally(_) | Seen::Off => return false,
        };
        one.start == *start
            && one.voice == Voice::Effective
            && one.rung > Rung::Delivered
            && gone.contains(one.locus.artifact.as_str())
            && after.effective.as_ref().is_some_and(|in_force| !in_force.same(value))
    });
    let message = recording.reading.case.interventions.iter().any(|act| {
        act.setting == before.claim.setting && act.locus.as_ref().is_some_and(|locus| gone.contains(locus.artifact.as_str()))
    });
    other_value || message
}

/// The same for the effect: something said that it is off, or that it does nothing over enough steps.
fn held_the_witness_against_the_effect(before: &Judged, gone: &BTreeSet<&str>) -> bool {
    before.effect_evidence.iter().any(|one| {
        let against = match &one.seen {
            Seen::Off => true,
            Seen::Tally(tally) => tally.kept == 0,
            Seen::Value(_) | Seen::Rounded(..) => false,
        };
        against && gone.contains(one.locus.artifact.as_str())
    })
}

/// What is confirmed without these artifacts and is not with them.
fn newly_confirmed(recording: &Recording, after: &Judgement, gone: &BTreeSet<&str>, what: &str, wrong: &mut Vec<String>) {
    for now in &after.claims {
        let before = find(&recording.judgement, &now.claim.setting).filter(|before| before.claim.asked == now.claim.asked);
        let name = &now.claim.setting;
        if is_confirmed(&now.verdict) {
            match before {
                Some(before) if is_confirmed(&before.verdict) => {}
                Some(before) if held_the_witness_against(recording, before, now, gone) => {}
                Some(before) => wrong.push(format!("{what}: {name} {} becomes {:?}", before.verdict.word(), now.verdict)),
                None => wrong.push(format!("{what}: {name} = {} was not asked, becomes {:?}", now.claim.wanted, now.verdict)),
            }
        }
        if now.effect.as_ref().is_some_and(is_confirmed) {
            match before {
                Some(before) if before.effect.as_ref().is_some_and(is_confirmed) => {}
                Some(before) if held_the_witness_against_the_effect(before, gone) => {}
                _ => wrong.push(format!("{what}: the effect of {name} becomes confirmed")),
            }
        }
    }
}

fn without(capture: &Capture, gone: &BTreeSet<&str>) -> Capture {
    let mut less = capture.clone();
    less.artifacts.retain(|name, _| !gone.contains(name.as_str()));
    less.manifest.artifacts.retain(|artifact| !gone.contains(artifact.name.as_str()));
    less
}

fn report(mut wrong: Vec<String>) {
    wrong.dedup();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn lost_artifacts_confirm_nothing() {
    let mut wrong = Vec::new();
    for (index, recording) in recordings().iter().enumerate() {
        let names: Vec<&str> = recording.capture.artifacts.keys().map(String::as_str).collect();
        let mut subsets: Vec<BTreeSet<&str>> = names.iter().map(|name| BTreeSet::from([*name])).collect();
        // Everything but one.
        subsets.extend(names.iter().map(|kept| names.iter().copied().filter(|name| name != kept && *name != "meta.json").collect()));
        let mut dice = Dice::new(index as u64 + 1);
        for _ in 0..12 {
            let share = 1 + dice.below(3);
            subsets.push(names.iter().copied().filter(|_| dice.below(4) < share).collect());
        }
        for gone in subsets {
            let what = format!("{} without {}", recording.name, gone.iter().copied().collect::<Vec<_>>().join(","));
            if let Some((_, after)) = survives(&without(&recording.capture, &gone), &what, &mut wrong) {
                newly_confirmed(recording, &after, &gone, &what, &mut wrong);
            }
        }
    }
    report(wrong);
}
