//! ascertain: is a running LLM inference server really running with the configuration its operator intended?
//!
//! The library behind the command line. [`locate`](target::locate) finds what is meant, [`observe`] collects a
//! capture, [`verify`] judges it, and [`render`] shows the report. Nothing here writes to the machine except where a
//! file name was given for the result.

pub mod cli;
pub mod demo;
pub mod failure;
pub mod log;
pub mod remote;
pub mod render;
pub mod target;

use ascertain_capture::collect::{self, Options};
use ascertain_capture::file::{self, Root};
use ascertain_capture::sockets;
use ascertain_capture::ssh::agentless::REMARK as AGENTLESS;
use ascertain_capture::systemd::Unit;
use ascertain_engines::{Engine, by_capture};
use ascertain_exercise::{Budget, Server};
use ascertain_model::capture::Remark;
use ascertain_model::report::{EngineLine, Invocation, Report, SCHEMA, Target, claim_lines, state_words};
use ascertain_model::wants::{ProcessFacts, Wants};
use ascertain_model::{Capture, Case, Judgement, Verdict, Whole, WitnessNote, WitnessState, judge};
use failure::Failure;
use std::path::Path;
use target::Located;

/// How a live target is looked at.
#[derive(Debug, Clone)]
pub struct Look {
    /// Options of the collection.
    pub options: Options,
    /// Also send a few real requests.
    pub exercise: bool,
}

/// Collects a capture of a live target. `progress` is told what is being done.
///
/// A process in a network of its own (a container) is looked at from within it where that is permitted: outside, its
/// addresses mean something else. A thread does that, since there is no way back.
pub fn observe(located: &Located, look: &Look, progress: &mut (dyn FnMut(&str) + Send)) -> Capture {
    let mut capture = observe_once(located, look, progress);
    for _ in 0..AGAIN {
        let Some(unit) = located.unit.as_ref().filter(|unit| is_passing(&capture, unit)) else { break };
        progress("its process ended meanwhile: looking again");
        std::thread::sleep(target::PAUSE);
        let Ok(now) = target::of_unit_called(unit.name(), &located.name) else { break };
        capture = observe_once(&now, look, progress);
    }
    capture
}

/// Whether what was seen of a unit may be over already: its process ended, or does not answer and is one of many.
fn is_passing(capture: &Capture, unit: &Unit) -> bool {
    let ended = capture.manifest.remarks.iter().any(|remark| remark.kind == "ended" || remark.kind == "restarted");
    let asked: Vec<_> = capture.manifest.artifacts.iter().filter(|one| one.source.starts_with("http")).collect();
    let silent = !asked.is_empty() && asked.iter().all(|one| one.gap.is_some());
    // Of a process that ended at once journald may not find out any more of which start it was.
    let speechless = unit.text("SubState") == Some("auto-restart") && capture.bytes("log.txt").is_none();
    // Who holds its address may be its own next start.
    let is_another = capture.manifest.remarks.iter().any(|remark| remark.kind == "identity");
    let meant = capture.manifest.start.as_ref().map(|start| start.pid);
    let restarted =
        is_another && meant.is_some() && target::main_pid(unit.name()).is_some_and(|now| Some(now) != meant);
    ended || restarted || speechless || silent && unit.number("NRestarts").is_some_and(|restarts| restarts > 0)
}

/// How often a unit whose process ends while it is looked at is looked at again: it may be restarted all the time.
const AGAIN: u32 = 4;

fn observe_once(located: &Located, look: &Look, progress: &mut (dyn FnMut(&str) + Send)) -> Capture {
    let elsewhere = located
        .facts
        .as_ref()
        .filter(|facts| located.address.is_none() && sockets::same_network(facts.pid) == Some(false));
    let Some(facts) = elsewhere else { return observe_here(located, look, progress) };
    std::thread::scope(|scope| {
        let within = scope.spawn(|| {
            // Where it is not permitted, the collection finds the process elsewhere and says so.
            let _ = sockets::enter_network(facts.pid);
            observe_here(located, look, progress)
        });
        match within.join() {
            Ok(capture) => capture,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn observe_here(located: &Located, look: &Look, progress: &mut dyn FnMut(&str)) -> Capture {
    let facts = located.facts.as_ref();
    let wants = wants(located);
    let mut options = look.options.clone();
    options.pid = facts.map(|facts| facts.pid);
    options.address = located.address.clone();
    options.target.clone_from(&located.name);
    options.unit.clone_from(&located.unit);
    progress("reading what the witnesses say");
    let (mut capture, redactor) = collect::collect_with(&wants, facts, &options);
    let is_impostor = capture.manifest.remarks.iter().any(|remark| remark.kind == "identity");
    if look.exercise && !is_impostor {
        let experiments = located.engine.experiments(&capture);
        let chosen = collect::choose_address(&wants, options.pid, &options);
        if let Ok(address) = chosen.address {
            let start = capture.manifest.start.clone();
            let server = Server { start, address, prefix: wants.prefix.clone(), api_key: options.api_key.clone() };
            let outcome = ascertain_exercise::run(&server, &experiments, Budget::default(), progress);
            for exchange in &outcome.exchanges {
                collect::add(&mut capture, &redactor, &exchange.artifact, &exchange.source, &exchange.bytes);
            }
            if let Some(request) = outcome.ended_after {
                capture.manifest.remarks.push(Remark {
                    kind: "ended_in_exercise".to_string(),
                    text: format!("the process ended while it was exercised, after {request}"),
                });
            }
        }
    }
    capture
}

/// What is wanted of a live target. Configuration files are read first, since they too can say where it listens.
pub fn wants(located: &Located) -> Wants {
    let facts = match (&located.facts, &located.unit) {
        (Some(facts), _) => facts.clone(),
        (None, Some(unit)) => return planned_wants(located.engine, unit),
        (None, None) => ProcessFacts::default(),
    };
    let wants = located.engine.wants(&facts, &[]);
    let root = located.facts.as_ref().map_or_else(Root::ours, |facts| Root::of(facts.pid));
    let texts: Vec<(String, String)> = wants
        .files
        .iter()
        .filter_map(|want| {
            let content = file::read_head(Path::new(&want.path), &root, want.limit).ok()?;
            Some((want.artifact.clone(), String::from_utf8(content.bytes).ok()?))
        })
        .collect();
    if texts.is_empty() { wants } else { located.engine.wants(&facts, &texts) }
}

/// What is wanted of a unit without a process. Nobody is asked anything; only its address matters, since another may
/// hold it.
pub(crate) fn planned_wants(engine: &dyn Engine, unit: &Unit) -> Wants {
    let mut wants = engine.wants(&target::planned(unit), &[]);
    wants.endpoints.clear();
    wants.files.clear();
    wants.checkpoints.clear();
    wants.log_file = None;
    wants
}

/// Judges a capture.
pub fn verify(capture: &Capture, strict: bool) -> Result<Report, Failure> {
    let engine = match (by_capture(capture), ascertain_engines::program_of(capture)) {
        (Some(engine), _) => engine,
        (None, Some(program)) => {
            return Err(Failure::new(format!("the evidence is of {program}, which is no engine that ascertain knows")));
        }
        // Evidence without a process may be of any engine; there is one so far.
        (None, None) => ascertain_engines::ENGINES[0],
    };
    Ok(report(capture, engine, strict))
}

fn report(capture: &Capture, engine: &dyn Engine, strict: bool) -> Report {
    let reading = engine.read(capture);
    let judgement = judge(&reading.case);
    let (state, why) = state_words(&reading.case.state);
    let start = capture.manifest.start.as_ref();
    // A unit of which there is no process.
    let stopped = start.is_none() && capture.bytes(ascertain_engines::service::FILES).is_some();
    Report {
        schema: SCHEMA,
        target: Target {
            name: capture.manifest.target.clone(),
            host: capture.manifest.host.clone(),
            unit: reading.unit.clone(),
            pid: start.map(|start| start.pid),
            argv: reading.argv.clone(),
        },
        engine: EngineLine {
            name: engine.name().to_string(),
            version: reading.version.clone(),
            known_release: reading.known_release,
        },
        invocation: Invocation {
            id: reading.case.start.0.clone(),
            boot: start.map(|start| start.boot.clone()).filter(|boot| !boot.is_empty()),
            start_ticks: start.map(|start| start.ticks).filter(|ticks| *ticks > 0),
            started: start.and_then(|start| start.since_ms).map(|since| since / 1000),
            state,
            why: why.clone(),
        },
        verdict: judgement.whole.word(),
        answer: answer(&judgement, &reading.case, state == "silent", stopped, why.as_deref()),
        // Whoever acts on the exit code wants a server that serves.
        exit_code: if state == "silent" && judgement.whole == Whole::Unproven {
            1
        } else {
            judgement.whole.exit_code(strict)
        },
        claims: claim_lines(&reading.case, &judgement),
        unasked: reading.unasked.iter().map(Into::into).collect(),
        findings: reading.findings.iter().map(Into::into).collect(),
        witnesses: reading.witnesses.iter().chain(&host_note(capture)).map(Into::into).collect(),
    }
}

/// That it was looked at from outside its host, with fewer means.
fn host_note(capture: &Capture) -> Option<WitnessNote> {
    let remark = capture.manifest.remarks.iter().find(|remark| remark.kind == AGENTLESS)?;
    let note = ascertain_engines::text::safe(&remark.text);
    Some(WitnessNote { name: "host".to_string(), state: WitnessState::Partial, note })
}

/// The answer in one sentence.
fn answer(judgement: &Judgement, case: &Case, silent: bool, stopped: bool, why: Option<&str>) -> String {
    let (doubt, broken) = (case.doubt.as_deref(), case.broken.as_deref());
    let any_wrong = judgement
        .claims
        .iter()
        .flat_map(|judged| [Some(&judged.verdict), judged.effect.as_ref()])
        .flatten()
        .any(|verdict| matches!(verdict, Verdict::Contradicted { .. } | Verdict::Divided { .. }));
    let all = judgement.claims.len();
    let names = |wanted: &dyn Fn(&Verdict) -> bool| -> Vec<&str> {
        judgement
            .claims
            .iter()
            .filter(|judged| wanted(&judged.verdict) || judged.effect.as_ref().is_some_and(wanted))
            .map(|judged| judged.claim.setting.as_str())
            .collect()
    };
    let list = |names: &[&str]| -> String {
        match names {
            [a, b, c, _, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} more", rest.len() + 1),
            _ => names.join(", "),
        }
    };
    let settings = |count: usize| if count == 1 { "1 setting".to_string() } else { format!("{count} settings") };
    match judgement.whole {
        Whole::Impostor => format!(
            "What answers is not, or not surely, the one meant: {}.",
            why.unwrap_or("another one holds its address")
        ),
        Whole::Failed if stopped => format!("It does not run: {}.", why.unwrap_or("it has no process")),
        Whole::Failed => format!("The server did not start: {}", why.unwrap_or("it never became ready")),
        Whole::Contradicted if broken.is_some_and(|_| !any_wrong) => {
            format!("Not as intended: {}.", broken.unwrap_or_default())
        }
        Whole::Contradicted => {
            let wrong = names(&|verdict| matches!(verdict, Verdict::Contradicted { .. } | Verdict::Divided { .. }));
            format!(
                "Not as intended: {} of {} not in force or without effect ({}).",
                wrong.len(),
                settings(all),
                list(&wrong)
            )
        }
        Whole::Unknown => {
            let unknown = names(&|verdict| matches!(verdict, Verdict::Unknown { .. }));
            format!("Not as intended: this release does not know {}.", list(&unknown))
        }
        _ if silent => format!("It runs and does not answer: {}.", why.unwrap_or("no endpoint answered")),
        Whole::Unproven if doubt.is_some() => {
            format!("What runs is what was asked for when it was started, but {}.", doubt.unwrap_or_default())
        }
        Whole::Unproven if all == 0 => "Nothing was asked for, so there is nothing to confirm.".to_string(),
        Whole::Unproven => {
            let unproven = names(&|verdict| {
                matches!(verdict, Verdict::Unproven { .. } | Verdict::Stale | Verdict::NotApplicable { .. })
            });
            let in_force = |name: &&str| {
                judgement
                    .claims
                    .iter()
                    .any(|judged| judged.claim.setting == **name && matches!(judged.verdict, Verdict::Confirmed { .. }))
            };
            if unproven.iter().all(in_force) {
                format!("As intended, but not yet seen at work: {}.", list(&unproven))
            } else {
                format!(
                    "Nothing contradicts it, but {} of {} not proven ({}).",
                    unproven.len(),
                    settings(all),
                    list(&unproven)
                )
            }
        }
        Whole::Adjusted => {
            let adjusted = names(&|verdict| matches!(verdict, Verdict::Adjusted { .. }));
            format!("As intended, but for what the engine adjusted ({}).", list(&adjusted))
        }
        Whole::Confirmed => format!("As intended: {} confirmed.", settings(all)),
    }
}
