//! A bounded run of every property body: over the kept corpus, and over a fixed number of mutations of it.
//!
//! `ASCERTAIN_FUZZ_ITERATIONS` makes it longer, `ASCERTAIN_FUZZ_SEED` makes it another one. What fails is made smaller,
//! written to a file that the message names, and belongs into `fuzz/corpus` once it is mended.

use ascertain_journal::{Filter, Journal, Manager};
use ascertain_testkit::fuzz::mutate::{Random, minimise, mutate};
use ascertain_testkit::fuzz::{TARGETS, Target, corpus, zeros};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An input that takes longer than this makes a reader hang: the slowest takes some milliseconds.
const HANGS: Duration = Duration::from_secs(30);
/// The largest file of the corpus: it is kept with the sources.
const LARGEST_KEPT: u64 = 100 << 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).expect("a target")
}

/// The kept inputs with their names, unpacked.
fn kept(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = corpus().join(target.name);
    let listing = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = listing.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let raw = fs::read(&path).expect("a file of the corpus");
        (path, zeros::unpack(&raw).unwrap_or(raw))
    };
    paths.into_iter().map(read).collect()
}

/// Whether the body panics, quietly.
fn fails(target: &Target, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.body)(input))).is_err()
}

/// Where the input was written, and what it looks like.
fn keep(target: &Target, input: &[u8]) -> String {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("ascertain-fuzz-{}-{}", target.name, std::process::id()));
    let bytes = if target.binary { zeros::pack(input) } else { input.to_vec() };
    let written = match fs::write(&path, &bytes) {
        Ok(()) => format!("{} holds it", path.display()),
        Err(error) => format!("it could not be written to {}: {error}", path.display()),
    };
    let shown = input.escape_ascii().to_string();
    format!("{written}: {}{}", &shown[..shown.len().min(2000)], if shown.len() > 2000 { "…" } else { "" })
}

/// What is being looked at, for the watch that ends a hang.
#[derive(Clone, Default)]
struct Watched(Arc<Mutex<Option<Since>>>);

/// Since when which input.
type Since = (Instant, Vec<u8>);

impl Watched {
    fn set(&self, now: Option<Since>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// A body cannot be interrupted, so the whole process ends.
    fn watch(&self, target: &'static Target) {
        let watched = self.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let now = watched.0.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((since, input)) = &*now
                    && since.elapsed() > HANGS
                {
                    eprintln!("{} hangs over an input, {}", target.name, keep(target, input));
                    std::process::exit(1);
                }
            }
        });
    }
}

fn run(name: &str, iterations: u64) {
    let target = target(name);
    let kept = kept(target);
    assert!(!kept.is_empty(), "no examples of {name}");
    let watched = Watched::default();
    watched.watch(target);
    let mut slowest = Duration::ZERO;
    let mut one = |input: &[u8], whence: &str| {
        let begun = Instant::now();
        watched.set(Some((begun, input.to_vec())));
        if fails(target, input) {
            watched.set(None);
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(|_| {}));
            let small = minimise(input, target.binary, 3000, |input| fails(target, input));
            std::panic::set_hook(hook);
            // Once more for its own message.
            eprintln!("made smaller:");
            fails(target, &small);
            panic!("{name} fails over {whence}, {}", keep(target, &small));
        }
        slowest = slowest.max(begun.elapsed());
    };
    for (path, input) in &kept {
        one(input, &path.display().to_string());
    }
    let iterations = number("ASCERTAIN_FUZZ_ITERATIONS").unwrap_or(iterations);
    let seed = number("ASCERTAIN_FUZZ_SEED").unwrap_or(1);
    let mut random = Random::new(seed);
    for iteration in 0..iterations {
        let (first, second) = (random.below(kept.len()), random.below(kept.len()));
        let input = mutate(&mut random, target, &kept[first].1, &kept[second].1);
        one(&input, &format!("mutation {iteration} of seed {seed}, from {}", kept[first].0.display()));
    }
    eprintln!("{name}: {} kept inputs, {iterations} mutations, the slowest took {slowest:?}", kept.len());
}

// Each in a test of its own, so that they run beside each other and one hang does not hide the others' faults.

#[test]
fn journals() {
    run("journal", 2000);
}

#[test]
fn units() {
    run("unit", 3000);
}

#[test]
fn wrappers() {
    run("wrapper", 40_000);
}

#[test]
fn shown_properties() {
    run("show", 15_000);
}

#[test]
fn what_is_kept_of_a_unit() {
    run("scrub", 700);
}

/// A body that believes every gap would believe a reader that finds nothing.
#[test]
fn undamaged_journals_are_read_whole() {
    for (path, bytes) in kept(target("journal")) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if ["truncated", "list-out-of-order", "list-lost-while-being-written"].contains(&name.as_str()) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("system.journal"), bytes).expect("written");
        let (journal, gaps) = Journal::open([folder.path()]);
        assert_eq!(gaps, [], "{name}");
        let count = journal.files().map(|file| file.entries).sum::<u64>();
        let mut entries = journal.entries(&Filter::default());
        assert_eq!(entries.by_ref().count() as u64, count, "{name}");
        assert_eq!(entries.gaps(), [], "{name}");
        for entry in journal.entries(&Filter::default()) {
            assert!(entry.fields().all(|field| field.is_ok()), "{name}: {entry:?}");
        }
        // Those of the tests' own writer are about other starts.
        if !name.contains("lz4") && !name.contains("xz") {
            let id = "11111111111111111111111111111111".parse().expect("an id");
            let start = journal.start("a.service", Manager::System, id);
            let completeness = start.completeness(None);
            assert!(completeness.is_complete() && completeness.span.is_some(), "{name}: {completeness:?}");
        }
    }
}

#[test]
fn every_target_is_complete() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("fuzz/Cargo.toml");
    for target in TARGETS {
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{} is no binary of fuzz/", target.name);
        let source = folder.join(format!("fuzz_targets/{}.rs", target.name));
        let text = fs::read_to_string(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        assert!(text.contains(&format!("fuzz::{}(", target.name)), "{} calls another body", source.display());
        for (path, _) in kept(target) {
            let length = fs::metadata(&path).expect("is there").len();
            assert!(length <= LARGEST_KEPT, "{} has {length} bytes", path.display());
        }
    }
    let folders = fs::read_dir(corpus()).expect("fuzz/corpus").count();
    assert_eq!((manifest.matches("[[bin]]").count(), folders), (TARGETS.len(), TARGETS.len()));
}
