//! What is kept of a unit: everything that decides what is asked for, in its place, and nothing else.

use ascertain_capture::redact::{Redactor, SecretNames};
use ascertain_capture::scrub;
use ascertain_capture::systemd::Unit;
use ascertain_model::service::{FileEntry, FileText, ManagerState, Script, UnitFiles, is_not_kept};
use ascertain_unit::layers::Layer;
use proptest::prelude::*;
use serde_json::json;

const UNIT: &str = "/etc/systemd/system/x.service";
const ENV: &str = "/etc/x.env";
const SERVER: &str = "/opt/engine/bin/server";

fn names() -> SecretNames {
    SecretNames { flags: vec!["--api-key".into()], env: vec!["ENGINE_API_KEY".into()], keys: vec!["api-key".into()] }
}

fn wanted() -> Vec<String> {
    vec!["ENGINE_*".to_string()]
}

fn text(text: &str) -> FileEntry {
    FileEntry::Text(FileText { text: text.to_string(), changed_ms: Some(1) })
}

/// A unit whose manager holds what is written.
fn unit(files: &[(&str, &str)]) -> Unit {
    let mut unit = Unit {
        state: ManagerState {
            source: "busctl".into(),
            release: Some(252),
            environment: Some(vec!["LANG=C.UTF-8".into()]),
            ..ManagerState::default()
        },
        files: UnitFiles { name: "x.service".into(), ..UnitFiles::default() },
    };
    for (path, content) in files {
        unit.files.entries.insert((*path).to_string(), text(content));
    }
    let resolved = unit.resolved().expect("a name");
    let written = &resolved.unit.value;
    let commands: Vec<_> = written
        .start()
        .iter()
        .map(|exec| {
            let argv: Vec<&str> = exec.command.argv.iter().map(|word| word.text.shown()).collect();
            json!([exec.command.path.shown(), argv, [], 1, 1, 0, 0, 7, 0, 0])
        })
        .collect();
    let environment: Vec<String> =
        written.environment.values().map(|one| format!("{}={}", one.name, one.value.shown())).collect();
    let files: Vec<_> =
        written.environment_files.iter().map(|file| json!([file.path.shown(), file.optional])).collect();
    unit.state.properties = [
        ("ExecStartEx".to_string(), json!(commands)),
        ("Environment".to_string(), json!(environment)),
        ("EnvironmentFiles".to_string(), json!(files)),
    ]
    .into();
    unit
}

/// What is kept, as a unit again, and as the text that would be stored.
fn kept(unit: &Unit) -> (Unit, String) {
    let mut redactor = Redactor::new(names());
    scrub::learn(&mut redactor, unit);
    let (files, state) = scrub::scrub(unit, &redactor, &wanted(), &[]);
    let stored = format!(
        "{}\n{}",
        serde_json::to_string_pretty(&files).expect("files"),
        serde_json::to_string_pretty(&state).expect("state")
    );
    (Unit { state, files }, stored)
}

fn words(layer: &Layer) -> Vec<(String, String)> {
    layer.argv.iter().map(|(word, place)| (word.clone(), place.to_string())).collect()
}

fn engine_variables(layer: &Layer) -> Vec<(String, String, String)> {
    let own = layer.environment.iter().filter(|(name, ..)| name.starts_with("ENGINE_"));
    own.map(|(name, value, place)| (name.clone(), value.clone(), place.to_string())).collect()
}

/// Nothing that decides what is asked for is lost, and everything keeps its place.
fn says_the_same(unit: &Unit) {
    let (kept, _) = kept(unit);
    let (before, after) = (unit.layers().expect("layers"), kept.layers().expect("layers"));
    for (before, after) in [(&before.0, &after.0), (&before.1, &after.1)] {
        assert_eq!(words(before), words(after));
        assert_eq!(engine_variables(before), engine_variables(after));
        assert_eq!(before.unknown, after.unknown);
        assert_eq!(before.wrappers, after.wrappers);
    }
}

#[test]
fn words_and_places_stay() {
    says_the_same(&unit(&[
        (
            UNIT,
            &format!(
                "[Unit]\nDescription=mine\n\n[Service]\nEnvironment=\"A=one two\" N=4 ENGINE_X=1\nExecStart={SERVER} -m \"/m/a b.bin\" \\\n  --alias \"${{A}}\" \\\n# a comment\n  -np $N --pct 50%% --name %n \\\n\t--tmpl 'x \"y\" z'\nRestart=always\n"
            ),
        ),
        (
            "/etc/systemd/system/x.service.d/10.conf",
            "[Service]\nEnvironment=ENGINE_Y=\"quoted value\"\nEnvironmentFile=/etc/x.env\n",
        ),
        (ENV, "# head\nENGINE_Z='a b'\nOTHER=hidden\nENGINE_W=line\\\n  goes on\n\nENGINE_V=\"$x \\\"q\\\"\"\n"),
    ]));
}

#[test]
fn a_word_that_ends_in_an_equals_sign_is_a_word_of_its_own() {
    says_the_same(&unit(&[(UNIT, &format!("[Service]\nExecStart={SERVER} --set key= -np 2 a= \\\n = b\n"))]));
}

#[test]
fn lines_stay_where_they_are_whatever_ends_them() {
    says_the_same(&unit(&[(UNIT, &format!("[Service]\n\0Restart=no\0User=x\r\nGroup=x\rExecStart={SERVER} -np 2\n"))]));
}

#[test]
fn several_commands_stay_several() {
    says_the_same(&unit(&[(
        UNIT,
        &format!("[Service]\nType=oneshot\nExecStart=/bin/a \\\n -x ; \\\n {SERVER} -np 2 \\\n ; /bin/b \\; \"#c\"\n"),
    )]));
}

#[test]
fn shells_and_env_stay() {
    says_the_same(&unit(&[(
        UNIT,
        &format!("[Service]\nExecStart=/usr/bin/env ENGINE_X=1 FOO=bar {SERVER} -c 512 --alias \"a b\"\n"),
    )]));
    says_the_same(&unit(&[(
        UNIT,
        &format!("[Service]\nExecStart=/bin/sh -c 'cd /m; export ENGINE_X=2; exec {SERVER} -c 512 --alias \"a b\"'\n"),
    )]));
}

#[test]
fn a_script_is_kept_as_what_it_comes_to() {
    let mut unit = unit(&[(UNIT, "[Service]\nExecStart=/opt/run.sh --alias ab\n")]);
    let script = format!(
        "#!/bin/bash\n# secret-comment\nFOO=secret-foo\nexport ENGINE_X=3\nexec {SERVER} -c 512 --api-key secret-key \"$@\"\n"
    );
    unit.files
        .scripts
        .insert("/opt/run.sh".into(), Script { interpreter: "bash".into(), text: Some(script), ..Script::default() });
    let (kept, stored) = kept(&unit);
    assert!(!stored.contains("secret"), "{stored}");
    let (written, loaded) = kept.layers().expect("layers");
    for layer in [written, loaded] {
        let words: Vec<&str> = layer.argv.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(words, [SERVER, "-c", "512", "--api-key", "[redacted]", "--alias", "ab"]);
        assert!(engine_variables(&layer).iter().any(|(name, value, _)| name == "ENGINE_X" && value == "3"));
    }
}

#[test]
fn a_command_that_systemd_refuses_stays_refused() {
    // What is wrong with it, an unknown specifier, is a part of the secret.
    let unit = unit(&[(UNIT, "[Service]\nExecStart=/x --api-key \"secret%k\"\n")]);
    let (kept, stored) = kept(&unit);
    assert!(!stored.contains("secret"), "{stored}");
    let (before, after) = (unit.layers().expect("layers"), kept.layers().expect("layers"));
    assert_eq!((words(&before.0), &before.0.unknown), (words(&after.0), &after.0.unknown));
    assert_eq!(words(&after.0), []);
}

#[test]
fn a_unit_that_systemd_does_not_load_for_another_command_stays_so() {
    let refused = |command: &str| {
        let unit = unit(&[(UNIT, &format!("[Service]\n{command}\nExecStart={SERVER} -np 2\n"))]);
        let (kept, _) = kept(&unit);
        [unit, kept].map(|unit| unit.layers().expect("layers").0.argv.is_empty())
    };
    assert_eq!(refused("ExecStartPre=no/such/"), [true, true]);
    assert_eq!(refused("ExecStartPre=-no/such/"), [false, false]);
    assert_eq!(refused("ExecStartPre=/bin/true"), [false, false]);
}

#[test]
fn a_command_that_is_not_kept_is_no_program() {
    // Its language is not followed, so the words of it are not kept; a program named by a mark there is none.
    let body = format!("[Service]\nExecStart=/bin/sh -c '{SERVER} --api-key \"$(cat /k)\"'\n");
    let (kept, _) = kept(&unit(&[(UNIT, &body)]));
    let (written, _) = kept.layers().expect("layers");
    assert_eq!(words(&written), []);
    assert!(!written.unknown.is_empty());
}

#[test]
fn a_script_that_does_more_with_its_arguments_is_not_kept_as_one_that_does_not() {
    for body in [
        "export ENGINE_X=$1\nexec SERVER -c 512",
        "export \"$@\"\nexec SERVER -c 512",
        "exec SERVER -c 512 --alias \"${2:-none}\"",
    ] {
        let mut unit = unit(&[(UNIT, "[Service]\nExecStart=/opt/run.sh ENGINE_Y=1 b\n")]);
        let text = Some(body.replace("SERVER", SERVER));
        let script = Script { interpreter: "sh".into(), text, ..Script::default() };
        unit.files.scripts.insert("/opt/run.sh".into(), script);
        let (kept, stored) = kept(&unit);
        let (written, _) = kept.layers().expect("layers");
        assert!(!written.unknown.is_empty() && words(&written).is_empty(), "{body}: {stored}");
    }
}

#[test]
fn a_value_that_is_not_kept_still_shows_that_it_differs() {
    let one = |value: &str| format!("[Service]\nEnvironment=DEVICES={value}\nExecStart={SERVER} -c 512\n");
    let mut changed = unit(&[(UNIT, &one("1"))]);
    changed.files.entries.insert(UNIT.into(), text(&one("2")));
    let (same, _) = kept(&unit(&[(UNIT, &one("1"))]));
    let (differs, stored) = kept(&changed);
    let marks = |unit: &Unit| {
        let (written, loaded) = unit.layers().expect("layers");
        (written.unkept["DEVICES"].clone(), loaded.unkept["DEVICES"].clone())
    };
    let (written, loaded) = marks(&same);
    assert!(is_not_kept(&written) && written == loaded);
    let (written, loaded) = marks(&differs);
    assert!(written != loaded);
    assert!(!stored.contains("DEVICES=1") && !stored.contains("DEVICES=2"));
    // A mark of another capture says nothing about this one.
    assert_ne!(marks(&same).0, marks(&kept(&unit(&[(UNIT, &one("1"))])).0).0);
}

/// Where a secret may stand in a unit.
const PLACES: &[&str] = &[
    "# SECRET",
    "; SECRET",
    "SetCredential=x:SECRET",
    "LoadCredential=SECRET",
    "Environment=ODD=SECRET",
    "Environment=\"ODD=a SECRET b\" B=2",
    "Environment=ENGINE_API_KEY=SECRET",
    "Environment=SOME_TOKEN=SECRET",
    "ExecStartPre=/bin/echo SECRET",
    "ExecStartPost=/bin/curl -u me:SECRET http://x",
    "X-Mine=SECRET",
    "Unknown=SECRET",
    "no assignment SECRET",
    "ExecStart=SERVER -c 1 --api-key SECRET",
    "ExecStart=SERVER -c 1 --api-key \\\n  SECRET \\\n  -np 2",
    "ExecStart=SERVER -c 1 --api-key=SECRET",
    "ExecStart=SERVER -c 1 --api-key \"SECRET\"",
    "ExecStart=SERVER \\\n# SECRET\n -c 1",
    "Environment=MINE=SECRET\nExecStart=SERVER -c 1 --api-key ${MINE}",
    "Environment=MINE=SECRET\nExecStart=SERVER -c 1 --api-key $MINE",
    "Environment=\"FLAGS=-np 2 --api-key SECRET\"\nExecStart=SERVER -c 1 $FLAGS",
    "ExecStart=/usr/bin/env FOO=SECRET SERVER -c 1",
    "ExecStart=/bin/sh -c 'A=SECRET; export FOO=SECRET; exec SERVER -c 1'",
    "ExecStart=/bin/sh -c 'A=SECRET exec SERVER -c 1 --api-key SECRET'",
    "ExecStart=/bin/sh -c \"curl -u me:SECRET http://x; exec SERVER -c 1\"",
    "ExecStart=/bin/sh -c \"if true; then curl SECRET; fi; exec SERVER -c 1\"",
    "ExecStart=/bin/sh -c 'KEY=SECRET; exec SERVER -c 1 --api-key $KEY'",
    "ExecStart=SERVER -c 1 --url http://me:SECRET@host/",
    "EnvironmentFile=/etc/x.env",
    "EnvironmentFile=/etc/x.env\nExecStart=SERVER -c 1 --api-key ${FROM_FILE}",
];

const FILE: &str =
    "FROM_FILE=SECRET\n# SECRET\nODD='a\nSECRET'\nexport E=SECRET\nENGINE_API_KEY=\"SECRET\"\nbroken SECRET\n";

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_secret_is_kept(
        places in proptest::collection::vec(proptest::sample::select(PLACES), 1..5),
        secret in "[A-Za-z][A-Za-z0-9]{2,5}-[a-z0-9]{4,12}",
    ) {
        let fill = |text: &str| text.replace("SECRET", &secret).replace("SERVER", SERVER);
        let mut body = String::from("[Unit]\n[Service]\n");
        for place in &places {
            // The last command counts, the others are reset.
            if place.contains("ExecStart=") && body.contains("ExecStart=") {
                body.push_str("ExecStart=\n");
            }
            body.push_str(&fill(place));
            body.push('\n');
        }
        let unit = unit(&[(UNIT, &body), (ENV, &fill(FILE))]);
        let (_, stored) = kept(&unit);
        prop_assert!(!stored.contains(&secret), "{secret} in\n{stored}\nof\n{body}");
    }

    #[test]
    fn what_is_asked_stays(
        values in proptest::collection::vec("[ -~]{1,12}", 1..6),
        breaks in proptest::collection::vec(any::<bool>(), 6),
    ) {
        // What may be a shell's assignment is rather lost than kept: it may be anything's value.
        let assigns = |value: &str| value.split([' ', ';', '&', '|', '(']).any(|part| part.contains('='));
        prop_assume!(!values.iter().any(|value| value.contains([' ', ';']) && assigns(value)));
        let mut body = format!("[Service]\nExecStart={SERVER}");
        for (value, on_its_own_line) in values.iter().zip(breaks) {
            body.push_str(if on_its_own_line { " \\\n  " } else { " " });
            body.push_str(&format!("-x {}", ascertain_unit::words::quote_argument(value)));
        }
        body.push('\n');
        says_the_same(&unit(&[(UNIT, &body)]));
    }

    #[test]
    fn any_text_does_no_harm(body in "(\\[Service\\]\n)?([ -~]{0,30}(\\\\)?\n){0,8}", env in "([ -~]{0,30}\n){0,6}") {
        let unit = unit(&[(UNIT, &body), (ENV, &env)]);
        let _ = kept(&unit);
    }
}
