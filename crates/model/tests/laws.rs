//! The laws of judgement, on cases that nobody thought of.
//!
//! The generators draw from few settings, few values and few starts, so that evidence meets claims, contradicts them
//! and repeats itself. Whether two values differ is decided here by the class they were drawn from, not by the code
//! that is tested.

use ascertain_model::{
    Act, Asked, Case, Claim, EffectSpec, Evidence, Gap, Intervention, Judgement, Locus, Rung, Seen, Standing, StartId,
    State, Subject, Tally, Value, Verdict, Voice, Whole, judge,
};
use proptest::prelude::*;
use proptest::sample::select;

const SETTINGS: [&str; 2] = ["ctx_size", "spec_type"];
const THIS: &str = "this start";
const OTHER: &str = "another start";

/// Values in classes: two of one class mean the same, two of different classes never do.
fn classes() -> Vec<Vec<Value>> {
    vec![
        vec![Value::Bool(true)],
        vec![Value::Bool(false)],
        vec![Value::Int(0), Value::Float(0.0)],
        vec![Value::Int(1), Value::Float(1.0)],
        vec![Value::Int(48), Value::Float(48.0)],
        vec![Value::Float(0.95), Value::Float(0.949_999_988_079_071)],
        vec![Value::Float(0.25)],
        vec![Value::text("mtp"), Value::set(["mtp"])],
        vec![Value::text("ngram"), Value::set(["ngram"])],
        vec![Value::set(["mtp", "ngram"])],
        vec![Value::set(Vec::<String>::new())],
        vec![Value::Secret],
    ]
}

/// A class and one of its members.
fn classed() -> impl Strategy<Value = (usize, Value)> {
    let all: Vec<(usize, Value)> = classes()
        .into_iter()
        .enumerate()
        .flat_map(|(class, members)| members.into_iter().map(move |one| (class, one)))
        .collect();
    select(all)
}

fn value() -> impl Strategy<Value = Value> {
    classed().prop_map(|(_, value)| value)
}

/// Two values that do not mean the same.
fn two_different() -> impl Strategy<Value = (Value, Value)> {
    (classed(), classed()).prop_filter_map("the same", |((a, x), (b, y))| (a != b).then_some((x, y)))
}

fn rung() -> impl Strategy<Value = Rung> {
    select(Rung::ALL.to_vec())
}

fn engine_rung() -> impl Strategy<Value = Rung> {
    select(vec![Rung::Acknowledged, Rung::Reported, Rung::Exercised])
}

fn voice() -> impl Strategy<Value = Voice> {
    prop_oneof![3 => Just(Voice::Effective), 1 => Just(Voice::Echo), 1 => Just(Voice::Constant)]
}

fn start() -> impl Strategy<Value = StartId> {
    prop_oneof![4 => Just(THIS), 1 => Just(OTHER)].prop_map(|name| StartId(name.to_string()))
}

fn tally() -> impl Strategy<Value = Tally> {
    (select(vec![0, 0, 1, 7, u64::MAX]), select(vec![0, 5, 300]), select(vec![0, 1, 9, 10, 11, 300, u64::MAX]))
        .prop_map(|(kept, tried, steps)| Tally { kept, tried, steps })
}

fn seen() -> impl Strategy<Value = Seen> {
    prop_oneof![
        6 => value().prop_map(Seen::Value),
        2 => (value(), 0u8..4).prop_map(|(value, decimals)| Seen::Rounded(value, decimals)),
        2 => tally().prop_map(Seen::Tally),
        1 => Just(Seen::Off),
        1 => asked().prop_map(|asked| Seen::Asks(asked, "wanted".to_string())),
        1 => Just(Seen::NotAsked),
    ]
}

fn locus() -> impl Strategy<Value = Locus> {
    (select(vec!["log.txt", "props.json"]), 0usize..3).prop_map(|(artifact, start)| Locus {
        artifact: artifact.to_string(),
        start,
        end: start + 1,
        label: String::new(),
    })
}

fn setting() -> impl Strategy<Value = String> {
    select(SETTINGS.to_vec()).prop_map(str::to_string)
}

fn evidence() -> impl Strategy<Value = Evidence> {
    let what = (setting(), prop_oneof![3 => Just(Subject::Value), 1 => Just(Subject::Effect)], seen());
    let who = (rung(), voice(), select(vec!["log", "props", "slots"]), start());
    let proof = (locus(), select(vec!["", "a line"]), proptest::option::of(Just("a note".to_string())));
    (what, who, proof).prop_map(|((setting, subject, seen), (rung, voice, witness, start), (locus, excerpt, note))| {
        Evidence {
            setting,
            subject,
            seen,
            rung,
            voice,
            witness: witness.to_string(),
            start,
            locus,
            excerpt: excerpt.to_string(),
            note,
        }
    })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => proptest::option::of(value()).prop_map(|to| Act::Adjusts { to }),
        1 => Just(Act::Ignores),
        1 => Just(Act::Refuses),
        1 => Just(Act::Fails),
    ]
}

fn intervention() -> impl Strategy<Value = Intervention> {
    (
        setting(),
        act(),
        start(),
        proptest::option::of(locus()),
        select(vec!["", "a line"]),
        select(vec!["why", "because"]),
        proptest::option::of(Just("mend it".to_string())),
    )
        .prop_map(|(setting, act, start, locus, excerpt, by, remedy)| Intervention {
            setting,
            act,
            by: by.to_string(),
            source: None,
            remedy,
            start,
            locus,
            excerpt: excerpt.to_string(),
        })
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        6 => value().prop_map(Asked::Equals),
        1 => Just(Asked::Auto),
        1 => Just(Asked::Present),
        1 => Just(Asked::Unreadable),
        1 => Just(Asked::Unset),
    ]
}

fn standing() -> impl Strategy<Value = Standing> {
    prop_oneof![
        8 => Just(Standing::Known),
        1 => proptest::collection::vec(Just("--near".to_string()), 0..2).prop_map(|nearest| Standing::Unknown { nearest }),
        1 => Just(Standing::NotApplicable { why: "nothing runs".to_string() }),
    ]
}

fn effect() -> impl Strategy<Value = Option<EffectSpec>> {
    proptest::option::of(select(vec![0u64, 1, 10, 100]).prop_map(|enough_steps| EffectSpec {
        is: "tokens are drafted".to_string(),
        enough_steps,
        settle: "send requests".to_string(),
    }))
}

fn claim_of(asked: Asked) -> impl Strategy<Value = Claim> {
    (setting(), standing(), effect(), proptest::option::of(Just("look".to_string()))).prop_map(
        move |(setting, standing, effect, settle)| Claim {
            setting,
            asked: asked.clone(),
            wanted: "wanted".to_string(),
            origins: Vec::new(),
            standing,
            effect,
            settle,
        },
    )
}

fn claim() -> impl Strategy<Value = Claim> {
    asked().prop_flat_map(claim_of)
}

fn gap() -> impl Strategy<Value = Gap> {
    select(vec!["log", "props"]).prop_map(|witness| Gap {
        witness: witness.to_string(),
        why: "not permitted".to_string(),
        remedy: None,
    })
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        8 => Just(State::Running),
        1 => Just(State::Failed { why: "it died".to_string() }),
        1 => Just(State::Impostor { why: "another answers".to_string() }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    (
        state(),
        proptest::collection::vec(claim(), 0..3),
        proptest::collection::vec(evidence(), 0..8),
        proptest::collection::vec(intervention(), 0..3),
        proptest::collection::vec(gap(), 0..3),
    )
        .prop_map(|(state, claims, evidence, interventions, gaps)| Case {
            start: StartId(THIS.to_string()),
            state,
            claims,
            evidence,
            interventions,
            gaps,
            doubt: None,
            broken: None,
        })
}

/// A case in which much is confirmed: one claim, no acts, evidence that mostly agrees.
fn agreeing() -> impl Strategy<Value = Case> {
    let members = |class: usize| select(classes().swap_remove(class));
    (0..classes().len()).prop_flat_map(move |class| {
        let agreeing = (members(class), evidence()).prop_map(|(value, mut one)| {
            one.seen = Seen::Value(value);
            one.subject = Subject::Value;
            one
        });
        (members(class), effect(), proptest::collection::vec(agreeing, 1..5), proptest::collection::vec(gap(), 0..2))
            .prop_map(|(wanted, effect, evidence, gaps)| Case {
                start: StartId(THIS.to_string()),
                state: State::Running,
                claims: SETTINGS
                    .iter()
                    .map(|setting| Claim {
                        setting: (*setting).to_string(),
                        asked: Asked::Equals(wanted.clone()),
                        wanted: "wanted".to_string(),
                        origins: Vec::new(),
                        standing: Standing::Known,
                        effect: effect.clone(),
                        settle: None,
                    })
                    .collect(),
                evidence,
                interventions: Vec::new(),
                gaps,
                doubt: None,
                broken: None,
            })
    })
}

/// Either of the two.
fn any_case() -> impl Strategy<Value = Case> {
    prop_oneof![case(), agreeing()]
}

/// The case and the same case with everything in another order. Also with an intervention or two in `agreeing`.
fn shuffled() -> impl Strategy<Value = (Case, Case)> {
    (any_case(), proptest::collection::vec(intervention(), 0..4)).prop_flat_map(|(mut case, more)| {
        case.interventions.extend(more);
        // Say some of it twice with one difference, which is where an order that leaves a field out shows.
        let twins: Vec<Evidence> = case.evidence.iter().map(twin).collect();
        case.evidence.extend(twins);
        let evidence = Just(case.evidence.clone()).prop_shuffle();
        let interventions = Just(case.interventions.clone()).prop_shuffle();
        let gaps = Just(case.gaps.clone()).prop_shuffle();
        (Just(case), evidence, interventions, gaps).prop_map(|(case, evidence, interventions, gaps)| {
            let other = Case { evidence, interventions, gaps, ..case.clone() };
            (case, other)
        })
    })
}

/// The same statement, but for something small.
fn twin(one: &Evidence) -> Evidence {
    let mut other = one.clone();
    match one.locus.start {
        0 => other.start = StartId(OTHER.to_string()),
        1 => other.excerpt.push('!'),
        _ => {
            other.seen = match &one.seen {
                Seen::Value(value) => Seen::Rounded(value.clone(), 2),
                Seen::Rounded(value, _) => Seen::Value(Value::text(value.to_string())),
                Seen::Tally(_) => Seen::Off,
                Seen::Off | Seen::NotAsked => Seen::Value(Value::text("off")),
                Seen::Asks(..) => Seen::NotAsked,
            }
        }
    }
    other
}

fn is_confirmed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Confirmed { .. })
}

/// How good a verdict is; more is better.
fn goodness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Confirmed { .. } => 3,
        Verdict::Adjusted { .. } => 2,
        Verdict::Unproven { .. } | Verdict::Stale | Verdict::NotApplicable { .. } => 1,
        Verdict::Unknown { .. } | Verdict::Contradicted { .. } | Verdict::Divided { .. } => 0,
    }
}

fn none_confirmed(judgement: &Judgement) -> bool {
    judgement.claims.iter().all(|judged| !is_confirmed(&judged.verdict))
}

/// A plain claim and a case around it.
fn single(claim: Claim, case: Case) -> Case {
    Case { claims: vec![claim], ..case }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_what_is_known_changes_nothing((case, other) in shuffled()) {
        prop_assert_eq!(judge(&case), judge(&other));
    }

    #[test]
    fn the_order_of_claims_changes_nothing_but_their_order(case in any_case()) {
        let mut reversed = case.clone();
        reversed.claims.reverse();
        let mut judgement = judge(&reversed);
        judgement.claims.reverse();
        prop_assert_eq!(judge(&case), judgement);
    }

    #[test]
    fn what_could_not_be_compared_is_never_confirmed_as_a_whole(case in any_case()) {
        let doubtful = Case { doubt: Some("a file changed".to_string()), ..case.clone() };
        prop_assert!(judge(&doubtful).whole >= Whole::Unproven);
        prop_assert!(judge(&doubtful).whole >= judge(&case).whole);
        let broken = Case { broken: Some("another user".to_string()), ..case };
        prop_assert!(judge(&broken).whole >= Whole::Contradicted);
        prop_assert_eq!(judge(&broken).whole.exit_code(false).min(1), 1);
    }

    #[test]
    fn rungs_below_the_engine_that_part_are_never_confirmed(
        case in agreeing(),
        rungs in select(vec![(Rung::Written, Rung::Loaded), (Rung::Loaded, Rung::Delivered), (Rung::Written, Rung::Delivered)]),
        lost in prop_oneof![Just(Seen::NotAsked), value().prop_map(|value| Seen::Asks(Asked::Equals(value), "other".to_string()))],
        seed in evidence(),
    ) {
        let claim = case.claims[0].clone();
        let Asked::Equals(wanted) = claim.asked.clone() else { return Ok(()) };
        if let Seen::Asks(Asked::Equals(value), _) = &lost
            && value.same(&wanted)
        {
            return Ok(());
        }
        let mut case = single(claim.clone(), case);
        case.evidence.retain(|one| one.rung > Rung::Delivered);
        let on = |rung: Rung, seen: Seen| Evidence {
            setting: claim.setting.clone(),
            subject: Subject::Value,
            voice: Voice::Effective,
            start: case.start.clone(),
            rung,
            seen,
            ..seed.clone()
        };
        let (below, above) = (on(rungs.0, Seen::Asks(claim.asked.clone(), claim.wanted.clone())), on(rungs.1, lost));
        case.evidence.extend([below, above]);
        let judged = &judge(&case).claims[0];
        let broke = matches!(&judged.verdict, Verdict::Contradicted { between, .. } if *between == rungs);
        prop_assert!(broke, "{:?}", judged.verdict);
    }

    #[test]
    fn a_gap_never_improves_a_verdict(case in any_case(), gap in gap()) {
        let mut more = case.clone();
        more.gaps.push(gap);
        let (before, after) = (judge(&case), judge(&more));
        for (before, after) in before.claims.iter().zip(&after.claims) {
            prop_assert!(goodness(&after.verdict) <= goodness(&before.verdict));
            let effects = before.effect.as_ref().map(goodness).zip(after.effect.as_ref().map(goodness));
            prop_assert!(effects.is_none_or(|(before, after)| after <= before));
        }
        prop_assert!(after.whole >= before.whole);
    }

    #[test]
    fn without_evidence_nothing_is_confirmed(case in any_case()) {
        let silent = Case { evidence: Vec::new(), ..case };
        let judgement = judge(&silent);
        prop_assert!(none_confirmed(&judgement));
        prop_assert!(judgement.whole != Whole::Confirmed);
        for judged in &judgement.claims {
            if silent.interventions.is_empty() && silent.state == State::Running && judged.claim.standing == Standing::Known {
                prop_assert_eq!(judged.verdict.word(), "unproven");
            }
            if silent.state == State::Running {
                let effect = judged.effect.as_ref().map(Verdict::word);
                prop_assert!(effect.is_none_or(|word| word == "unproven"), "an effect that nobody looked for is {:?}", effect);
            }
        }
    }

    #[test]
    fn an_echo_or_a_constant_confirms_nothing(case in any_case(), voices in proptest::collection::vec(any::<bool>(), 8)) {
        let mut hollow = case;
        for (one, echo) in hollow.evidence.iter_mut().zip(voices.iter().cycle()) {
            one.voice = if *echo { Voice::Echo } else { Voice::Constant };
        }
        let judgement = judge(&hollow);
        prop_assert!(none_confirmed(&judgement));
        prop_assert!(judgement.claims.iter().all(|judged| judged.effect.as_ref().is_none_or(|effect| !is_confirmed(effect))));
    }

    #[test]
    fn evidence_of_another_start_is_at_best_stale(case in any_case()) {
        let mut old = case;
        for one in &mut old.evidence {
            one.start = StartId(OTHER.to_string());
        }
        for one in &mut old.interventions {
            one.start = StartId(OTHER.to_string());
        }
        let judgement = judge(&old);
        for judged in &judgement.claims {
            prop_assert!(goodness(&judged.verdict) <= 1, "{:?}", judged.verdict);
            prop_assert!(judged.effect.as_ref().is_none_or(|effect| goodness(effect) <= 1));
            let about_value = old.evidence.iter().any(|one| one.setting == judged.claim.setting && one.subject == Subject::Value);
            if about_value && judged.claim.standing == Standing::Known && old.state == State::Running {
                prop_assert_eq!(judged.verdict.word(), "stale");
            }
        }
    }

    #[test]
    fn an_act_of_another_start_changes_nothing(case in any_case(), mut act in intervention()) {
        act.start = StartId(OTHER.to_string());
        let mut more = case.clone();
        more.interventions.push(act);
        prop_assert_eq!(judge(&case), judge(&more));
    }

    #[test]
    fn whatever_agrees_a_witness_against_it_keeps_it_from_being_confirmed(
        case in any_case(),
        (wanted, against) in two_different(),
        mut witness in evidence(),
        rung in engine_rung(),
        claim in claim(),
        agree in any::<bool>(),
    ) {
        let claim = Claim { asked: Asked::Equals(wanted.clone()), ..claim };
        witness.setting = claim.setting.clone();
        witness.subject = Subject::Value;
        witness.seen = Seen::Value(against);
        witness.voice = Voice::Effective;
        witness.start = StartId(THIS.to_string());
        witness.rung = rung;
        let mut case = single(claim, case);
        if agree {
            for one in &mut case.evidence {
                one.seen = Seen::Value(wanted.clone());
            }
        }
        case.evidence.push(witness);
        let judgement = judge(&case);
        prop_assert!(none_confirmed(&judgement), "{:?}", judgement.claims[0].verdict);
    }

    #[test]
    fn a_rounded_witness_that_is_far_off_is_a_witness_against(
        case in agreeing(), wanted in -40i32..40, off in 2i32..30, decimals in 0u8..4, rung in engine_rung(),
    ) {
        // Off by at least two units of the last printed digit.
        let unit = 10f64.powi(-i32::from(decimals));
        let (wanted, printed) = (f64::from(wanted) * unit / 4.0, f64::from(wanted) * unit / 4.0 + f64::from(off) * unit);
        let mut case = case;
        for claim in &mut case.claims {
            claim.asked = Asked::Equals(Value::Float(wanted));
            case.evidence.push(Evidence {
                setting: claim.setting.clone(),
                subject: Subject::Value,
                seen: Seen::Rounded(Value::Float(printed), decimals),
                rung,
                voice: Voice::Effective,
                witness: "log".to_string(),
                start: StartId(THIS.to_string()),
                locus: Locus { artifact: "log.txt".to_string(), start: 0, end: 0, label: String::new() },
                excerpt: String::new(),
                note: None,
            });
        }
        for one in case.evidence.iter_mut().filter(|one| matches!(one.seen, Seen::Value(_))) {
            one.seen = Seen::Value(Value::Float(wanted));
        }
        prop_assert!(none_confirmed(&judge(&case)));
    }

    #[test]
    fn a_contradiction_on_a_higher_rung_beats_any_confirmation_on_a_lower_one(
        (wanted, against) in two_different(),
        mut below in proptest::collection::vec(evidence(), 1..5),
        mut above in evidence(),
        rung in engine_rung(),
        effect in effect(),
    ) {
        let setting = SETTINGS[0].to_string();
        for one in &mut below {
            one.setting.clone_from(&setting);
            one.subject = Subject::Value;
            one.voice = Voice::Effective;
            one.start = StartId(THIS.to_string());
            one.seen = Seen::Value(wanted.clone());
            one.rung = one.rung.min(match rung {
                Rung::Exercised => Rung::Reported,
                Rung::Reported => Rung::Acknowledged,
                _ => Rung::Delivered,
            });
        }
        above.setting.clone_from(&setting);
        above.subject = Subject::Value;
        above.voice = Voice::Effective;
        above.start = StartId(THIS.to_string());
        above.seen = Seen::Value(against.clone());
        above.rung = rung;
        let claim = Claim {
            setting,
            asked: Asked::Equals(wanted),
            wanted: "wanted".to_string(),
            origins: Vec::new(),
            standing: Standing::Known,
            effect,
            settle: None,
        };
        let mut evidence = below;
        evidence.push(above);
        let case = Case {
            start: StartId(THIS.to_string()),
            state: State::Running,
            claims: vec![claim],
            evidence,
            interventions: Vec::new(),
            gaps: Vec::new(),
            doubt: None,
            broken: None,
        };
        let judgement = judge(&case);
        let judged = &judgement.claims[0];
        // The chain broke at the contradiction, and what is in force is what the higher witness says.
        match &judged.verdict {
            Verdict::Contradicted { between, .. } => prop_assert_eq!(between.1, rung),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(judged.effective.as_ref(), Some(&against));
    }

    #[test]
    fn without_its_effective_evidence_a_confirmed_claim_is_not(case in any_case()) {
        let judgement = judge(&case);
        for judged in judgement.claims.iter().filter(|judged| is_confirmed(&judged.verdict)) {
            let mut less = single(judged.claim.clone(), case.clone());
            less.evidence.retain(|one| {
                !(one.setting == judged.claim.setting && one.subject == Subject::Value && one.voice == Voice::Effective && one.start == case.start)
            });
            prop_assert!(none_confirmed(&judge(&less)));
        }
    }

    #[test]
    fn what_confirms_is_effective_of_this_start_and_on_the_rung_it_is_said_to_be(case in any_case()) {
        for judged in &judge(&case).claims {
            if let Verdict::Confirmed { rung } = judged.verdict {
                let proves = |one: &Evidence| {
                    one.voice == Voice::Effective && one.start == case.start && one.rung == rung && matches!(one.seen, Seen::Value(_) | Seen::Rounded(..))
                };
                prop_assert!(judged.evidence.iter().any(proves));
                prop_assert!(rung > Rung::Delivered);
                prop_assert!(judged.effective.is_some());
            }
        }
    }

    #[test]
    fn a_setting_that_does_not_exist_confirms_nothing(case in any_case()) {
        let mut case = case;
        for claim in &mut case.claims {
            claim.standing = Standing::Unknown { nearest: Vec::new() };
        }
        let judgement = judge(&case);
        prop_assert!(none_confirmed(&judgement));
        prop_assert!(!matches!(judgement.whole, Whole::Confirmed | Whole::Adjusted));
    }

    #[test]
    fn a_server_that_does_not_run_or_is_not_the_one_meant_confirms_nothing(case in any_case(), impostor in any::<bool>()) {
        let mut case = case;
        let why = "it died".to_string();
        case.state = if impostor { State::Impostor { why } } else { State::Failed { why } };
        let judgement = judge(&case);
        prop_assert!(none_confirmed(&judgement));
        prop_assert!(judgement.claims.iter().all(|judged| goodness(&judged.verdict) <= 1));
        prop_assert!(judgement.claims.iter().all(|judged| judged.effect.as_ref().is_none_or(|effect| !is_confirmed(effect))));
        prop_assert_eq!(judgement.whole.exit_code(true), if impostor { 4 } else { 1 });
    }

    #[test]
    fn what_the_engine_cannot_read_is_never_confirmed(case in any_case()) {
        let mut case = case;
        for claim in &mut case.claims {
            claim.asked = Asked::Unreadable;
        }
        prop_assert!(none_confirmed(&judge(&case)));
    }

    #[test]
    fn what_the_engine_says_it_dropped_refused_or_changed_is_never_confirmed(
        case in any_case(), mut said in intervention(), (wanted, to) in two_different(), more in proptest::collection::vec(intervention(), 0..3),
    ) {
        let mut case = case;
        case.interventions.extend(more);
        for claim in &mut case.claims {
            claim.asked = Asked::Equals(wanted.clone());
        }
        said.start = StartId(THIS.to_string());
        if let Act::Adjusts { to: target } = &mut said.act {
            // A message names the new value; a rule that acts in silence only explains one that is seen.
            *target = Some(to);
            said.locus.get_or_insert(Locus { artifact: "log.txt".to_string(), start: 7, end: 8, label: String::new() });
        }
        let name = said.setting.clone();
        case.interventions.push(said);
        for judged in judge(&case).claims.iter().filter(|judged| judged.claim.setting == name) {
            prop_assert!(!is_confirmed(&judged.verdict), "{:?}", judged.verdict);
        }
    }

    #[test]
    fn an_adjustment_explains_only_the_value_that_it_leads_to(
        (to, in_force) in two_different(), (wanted, _) in two_different(), mut said in intervention(), mut seen in evidence(), rung in engine_rung(),
    ) {
        let setting = SETTINGS[0].to_string();
        said.setting.clone_from(&setting);
        said.start = StartId(THIS.to_string());
        said.act = Act::Adjusts { to: Some(to) };
        seen.setting.clone_from(&setting);
        seen.subject = Subject::Value;
        seen.seen = Seen::Value(in_force);
        seen.voice = Voice::Effective;
        seen.start = StartId(THIS.to_string());
        seen.rung = rung;
        let claim = Claim {
            setting,
            asked: Asked::Equals(wanted),
            wanted: "wanted".to_string(),
            origins: Vec::new(),
            standing: Standing::Known,
            effect: None,
            settle: None,
        };
        let case = Case {
            start: StartId(THIS.to_string()),
            state: State::Running,
            claims: vec![claim],
            evidence: vec![seen],
            interventions: vec![said],
            gaps: Vec::new(),
            doubt: None,
            broken: None,
        };
        let judgement = judge(&case);
        prop_assert!(judgement.claims[0].verdict.word() != "adjusted", "{:?}", judgement.claims[0].verdict);
    }

    #[test]
    fn whatever_is_not_confirmed_says_what_would_settle_or_mend_it(case in any_case()) {
        for judged in &judge(&case).claims {
            let effect = judged.effect.as_ref().is_none_or(is_confirmed);
            if !is_confirmed(&judged.verdict) || !effect {
                prop_assert!(judged.remedy.as_ref().is_some_and(|remedy| !remedy.is_empty()), "{:?}", judged.verdict);
            }
        }
    }

    #[test]
    fn the_whole_is_no_better_than_its_worst_part(case in any_case()) {
        let judgement = judge(&case);
        let verdicts = || judgement.claims.iter().flat_map(|judged| [Some(&judged.verdict), judged.effect.as_ref()]).flatten();
        if judgement.whole == Whole::Confirmed {
            prop_assert!(!judgement.claims.is_empty() && verdicts().all(is_confirmed));
        }
        if judgement.whole == Whole::Adjusted {
            prop_assert!(verdicts().all(|verdict| goodness(verdict) >= 2));
        }
        if judgement.whole.exit_code(true) == 0 {
            prop_assert!(verdicts().all(|verdict| goodness(verdict) >= 2));
        }
        if verdicts().any(|verdict| goodness(verdict) == 0) {
            prop_assert!(matches!(judgement.whole.exit_code(false), 1 | 4));
        }
    }

    #[test]
    fn an_effect_seen_at_work_is_confirmed_unless_it_is_off_or_a_witness_of_as_much_saw_none(
        case in any_case(), tallies in proptest::collection::vec((select(vec!["log", "traffic", "metrics"]), tally()), 0..6), off in proptest::bool::weighted(0.2), enough in 1u64..20,
    ) {
        let mut case = case;
        case.state = State::Running;
        let mut pattern = case.evidence.first().cloned();
        case.evidence.retain(|one| one.subject == Subject::Value);
        for claim in &mut case.claims {
            claim.effect = Some(EffectSpec { is: "it works".to_string(), enough_steps: enough, settle: "try".to_string() });
        }
        let Some(pattern) = pattern.as_mut() else { return Ok(()) };
        pattern.subject = Subject::Effect;
        pattern.voice = Voice::Effective;
        pattern.start = StartId(THIS.to_string());
        for (witness, tally) in &tallies {
            case.evidence.push(Evidence { witness: (*witness).to_string(), seen: Seen::Tally(*tally), ..pattern.clone() });
        }
        if off {
            case.evidence.push(Evidence { seen: Seen::Off, ..pattern.clone() });
        }
        let of = |witness: &str| {
            let mine = || tallies.iter().filter(|(name, _)| *name == witness).map(|(_, tally)| tally);
            let kept = mine().any(|tally| tally.kept > 0);
            let steps = mine().fold(0u64, |sum, tally| sum.saturating_add(tally.steps));
            (kept, steps)
        };
        let sources = [of("log"), of("traffic"), of("metrics")];
        let works = sources.iter().any(|(kept, _)| *kept);
        let denied = sources.iter().any(|(kept, steps)| !kept && *steps >= enough);
        for judged in judge(&case).claims.iter().filter(|judged| judged.claim.setting == pattern.setting) {
            let effect = judged.effect.as_ref();
            let confirmed = effect.is_some_and(is_confirmed);
            let contradicted = matches!(effect, Some(Verdict::Contradicted { .. }));
            prop_assert_eq!(confirmed, works && !off && !denied);
            if !works && !denied && !off {
                prop_assert!(!contradicted, "too few steps to say that it does not work: {:?}", effect);
            }
            if !works && denied {
                prop_assert!(contradicted, "{:?}", effect);
            }
        }
    }
}

/// Anything at all, the absurd included.
fn absurd() -> impl Strategy<Value = Case> {
    let number = select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, -0.0, 1e39]);
    let value = prop_oneof![
        number.prop_map(Value::Float),
        select(vec![i64::MIN, i64::MAX, -1]).prop_map(Value::Int),
        Just(Value::text("\u{1b}[2J\u{0}\u{202e}")),
        Just(Value::text("x".repeat(5000))),
        Just(Value::set([""])),
    ];
    (case(), proptest::collection::vec((value, any::<u8>(), any::<bool>()), 1..8)).prop_map(|(mut case, values)| {
        for (one, (value, decimals, rounded)) in case.evidence.iter_mut().zip(values.iter().cycle()) {
            one.seen = if *rounded { Seen::Rounded(value.clone(), *decimals) } else { Seen::Value(value.clone()) };
            one.locus = Locus { artifact: String::new(), start: usize::MAX, end: 0, label: String::new() };
            one.setting = SETTINGS[0].to_string();
        }
        for (claim, (value, _, equals)) in case.claims.iter_mut().zip(values.iter().rev().cycle()) {
            claim.setting = SETTINGS[0].to_string();
            claim.effect = Some(EffectSpec { is: String::new(), enough_steps: u64::MAX, settle: String::new() });
            if *equals {
                claim.asked = Asked::Equals(value.clone());
            }
        }
        case
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_judge_is_total(case in absurd()) {
        let judgement = judge(&case);
        prop_assert_eq!(judgement.claims.len(), case.claims.len());
        let mut reversed = case;
        reversed.evidence.reverse();
        reversed.interventions.reverse();
        // A number that is none is not equal to itself, but it is written the same.
        prop_assert_eq!(format!("{judgement:?}"), format!("{:?}", judge(&reversed)));
    }
}
