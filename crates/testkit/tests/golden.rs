//! Every recording gives the verdicts that were reasoned for it by hand.

use ascertain_engines::by_capture;
use ascertain_model::judge;
use ascertain_testkit::{differences, expected, golden, load};

#[test]
fn every_llama_cpp_recording_gives_its_verdicts() {
    let mut wrong = Vec::new();
    let all = golden("llamacpp").expect("the recordings are there");
    assert!(all.len() >= 89, "recordings are missing: {}", all.len());
    for (name, path) in &all {
        let expected = expected(path).expect("a readable expectation");
        let capture = load(path).expect("a readable recording");
        let engine = by_capture(&capture).expect("a known engine");
        let reading = engine.read(&capture);
        let judgement = judge(&reading.case);
        let mut lines = differences(&expected, judgement.whole, &judgement.claims);
        if let Some(version) = &expected.engine_version
            && reading.version.as_ref() != Some(version)
        {
            lines.push(format!("release {:?} expected {version}", reading.version));
        }
        let unasked: Vec<String> =
            reading.unasked.iter().map(|one| format!("{} = {}", one.setting, one.effective)).collect();
        let wanted: Vec<String> = expected.unasked.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if unasked != wanted {
            lines.push(format!("unasked {unasked:?} expected {wanted:?}"));
        }
        wrong.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
