//! What must hold for every text.

use ascertain_unit::specifiers::{Context, Facts, Manager, UnitName, escape, unescape};
use ascertain_unit::unit::{self, Entry, Host, Sources};
use ascertain_unit::words::{self, STRICT};
use ascertain_unit::wrapper::{self, Known, Seen};
use ascertain_unit::{Text, Version, file, show};
use proptest::prelude::*;

fn context() -> Context {
    Context::bare(UnitName::parse("a-b@c.service").expect("a name"))
}

/// Text made of what matters to the readers.
fn soup(pieces: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![8 => prop::sample::select(pieces).prop_map(str::to_string), 1 => any::<char>().prop_map(String::from)],
        0..most,
    )
    .prop_map(|list| list.concat())
}

const UNIT: &[&str] = &[
    "[Service]",
    "[Unit]",
    "[",
    "]",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    "\0",
    "\\\n",
    "\\",
    " ",
    "\t",
    "#",
    ";",
    "=",
    "ExecStart=",
    "Environment=",
    "EnvironmentFile=-/x",
    "A=1",
    "\"",
    "'",
    "%",
    "%i",
    "$A",
    "${A}",
    "/bin/x",
    "\u{feff}",
    "User=",
    "StandardOutput=",
    "é",
];
const SHELL: &[&str] = &[
    "exec ",
    "cd /tmp && ",
    "A=1 ",
    "export B=2; ",
    "$A",
    "${A}",
    "${A:-x}",
    "\"",
    "'",
    "\\",
    " ",
    " ",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "(",
    ")",
    "{",
    "}",
    ">",
    "<",
    "2>&1",
    "`",
    "$(",
    "$@",
    "\"$@\"",
    "x",
    "-y",
    "é",
    "*",
    "~",
    "[",
    "#",
    "source z; ",
    "set -e; ",
    "$",
    "${",
    "if ",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_unit_file_is_kept_byte_for_byte(text in soup(UNIT, 60)) {
        let read = file::parse("/u", text.as_bytes());
        let mut rebuilt = Vec::new();
        for line in &read.value.lines {
            prop_assert_eq!(line.range.start, rebuilt.len());
            rebuilt.extend_from_slice(&text.as_bytes()[line.range.clone()]);
        }
        prop_assert_eq!(&rebuilt, text.as_bytes());
        prop_assert_eq!(read.value.bytes(), text.as_bytes());
        for assignment in &read.value.assignments {
            let range = assignment.value_range.clone();
            prop_assert!(range.start <= range.end && range.end <= text.len());
            prop_assert!(assignment.span.first >= 1 && assignment.span.first <= assignment.span.last);
            prop_assert!(assignment.span.last <= read.value.lines.len());
            for at in 0..assignment.value.len() {
                let located = assignment.locate(at..at + 1);
                let byte = assignment.value.as_bytes()[at];
                let there = text.as_bytes()[located.start];
                // A backslash that continued the line became a blank.
                prop_assert!(there == byte || there == b'\\' && byte == b' ', "{} {}", there, byte);
            }
            if !assignment.value.contains("  ") && assignment.span.first == assignment.span.last {
                let edited = read.value.replaced(range.clone(), &assignment.value).unwrap();
                prop_assert_eq!(&edited, text.as_bytes());
            }
        }
        for problem in &read.problems {
            prop_assert!(problem.span.end <= text.len());
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let read = file::parse("/u", &bytes).value;
        prop_assert_eq!(read.bytes(), &bytes[..]);
        words::env_file(&bytes, Version(252));
        words::env_file(&bytes, Version(257));
    }

    #[test]
    fn any_unit_is_resolved(text in soup(UNIT, 60), dropin in soup(UNIT, 30), env in soup(UNIT, 30)) {
        let mut sources = Sources::default();
        sources.entries.insert("/etc/systemd/system/a-b@.service".into(), Entry::Text(text.into_bytes()));
        sources.entries.insert("/etc/systemd/system/a-.service.d/x.conf".into(), Entry::Text(dropin.into_bytes()));
        sources.entries.insert("/x".into(), Entry::Text(env.into_bytes()));
        let host = Host::default();
        let name = UnitName::parse("a-b@c.service").expect("a name");
        let unit = unit::resolve(&name, &Manager::System, &sources, &host).value;
        let environment = unit.process_environment(&host);
        for exec in unit.exec.values().flatten() {
            unit.process_argv(exec, &environment);
        }
    }

    #[test]
    fn a_quoted_word_is_read_back(word in soup(UNIT, 12)) {
        prop_assume!(!word.contains('\0'));
        let quoted = words::quote(&word);
        let found = words::first_word(quoted.as_bytes(), 0, STRICT).unwrap().unwrap();
        prop_assert_eq!(found.bytes, word.as_bytes());
        prop_assert_eq!(found.next, quoted.len());
        // As an argument neither specifiers nor variables are seen in it.
        let line = format!("/bin/x {}", words::quote_argument(&word));
        let read = words::exec(&line, &context());
        prop_assert!(read.issues.is_empty(), "{:?}", read.issues);
        let (argv, _) = words::expand(&read.commands[0], &|_| None);
        prop_assert_eq!(argv.len(), 2);
        prop_assert_eq!(&argv[1].text, &Text::Known(word));
    }

    #[test]
    fn a_name_is_escaped_and_read_back(text in "[ -~]{1,20}") {
        prop_assert_eq!(unescape(&escape(&text)), Some(text));
    }

    #[test]
    fn show_is_read(text in soup(&["ExecStart={ path=/x ; argv[]=/x a ; ignore_errors=no ; start_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }", "{ path=", " ; ", " }", "\n", "=", "Environment=", "\"", "\\", "$'", "A=1", "MainPID=", "1", "[", "]", "@1.5", "Mon 2026-11-30 09:17:44 UTC"], 20)) {
        let show = show::parse(&text).value;
        show.commands("ExecStart");
        show.environment();
        show.environment_files();
        show.moment("MainPID");
        show::moment(&text);
        show::parse_all(&text);
    }

    #[test]
    fn wrappers_are_looked_through(text in soup(SHELL, 20), words in prop::collection::vec(prop::sample::select(&["sh", "-c", "env", "-i", "-u", "A=1", "nice", "-n", "5", "numactl", "sudo", "docker", "run", "-e", "--", "x", "timeout", "uv", "python", "-m", "taskset", "runuser", "su", "-", "exec", "-lc", "--login"][..]), 0..8)) {
        let mut argv: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
        argv.push(text);
        let known = Known::default();
        if let Seen::Inner(inner) = wrapper::see_through(&argv, &known) {
            wrapper::program(&inner.argv);
            for word in &inner.argv {
                prop_assert!(word.place.word < argv.len());
            }
        }
    }
}

#[test]
fn long_inputs_take_no_long_time() {
    let started = std::time::Instant::now();
    let many = "a\\\n".repeat(300_000);
    file::parse("/u", format!("[Service]\nExecStart={many}").as_bytes());
    file::parse("/u", "A=1\n".repeat(300_000).as_bytes());
    let read = words::exec(&format!("/x {}", "a ".repeat(400_000)), &context());
    assert_eq!(read.commands[0].argv.len(), 400_001);
    words::env_file("A=1\n".repeat(200_000).as_bytes(), Version(252));
    unit::dropin_names(&UnitName::parse(&format!("{}@x.service", "-a".repeat(120))).unwrap());
    show::parse(&"A=1\nxx\n".repeat(200_000));
    show::parse(&format!("ExecStart={{ path=\n{}", "x\n".repeat(100_000)));
    let known = Known::default();
    wrapper::see_through(&["sh".into(), "-c".into(), "true; ".repeat(100_000)], &known);
    wrapper::see_through(&["sh".into(), "-c".into(), format!("{}exec x", "A=1 ".repeat(50_000))], &known);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn what_cannot_be_unset_is_not_looked_through() {
    let see = |words: &[&str]| {
        let argv: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
        matches!(wrapper::see_through(&argv, &Known::default()), Seen::Inner(_))
    };
    assert!(see(&["env", "-u", "A", "x"]) && see(&["env", "-uA", "x"]) && see(&["sh", "-c", "unset -v A; exec x"]));
    // env runs nothing then; dash ends at the second, bash does not; the third is about functions.
    for words in [
        &["env", "-u", "A=1", "x"][..],
        &["env", "--unset=", "x"],
        &["sh", "-c", "unset A=1; exec x"],
        &["sh", "-c", "unset -f A; exec x"],
    ] {
        assert!(!see(words), "{words:?}");
    }
    // A mark is no program, behind whatever it stands.
    assert!(!see(&["sh", "-c", "[redacted]"]) && !see(&["env", "A=1", "[not-kept:12ab34cd]", "x"]));
}

#[test]
fn what_is_not_known_is_not_guessed() {
    let context = Context { facts: Facts::default(), ..context() };
    let read = words::exec("/x %H %m %%H %i", &context);
    let argv = &read.commands[0].argv;
    assert!(argv[1].text.known().is_none() && argv[2].text.known().is_none());
    assert_eq!(argv[3].text.known(), Some("%H"));
    assert_eq!(argv[4].text.known(), Some("c"));
}

#[test]
fn times_are_read_as_they_are_printed() {
    let at = |text: &str| show::moment(text).and_then(|moment| moment.micros);
    assert_eq!(at("Mon 2026-11-30 09:17:44 UTC"), Some(1_796_030_264_000_000));
    assert_eq!(at("Mon 2026-11-30 09:17:44.000123 UTC"), Some(1_796_030_264_000_123));
    assert_eq!(at("@1796030264.5"), Some(1_796_030_264_500_000));
    assert_eq!(at("Thu 1970-01-01 00:00:01 UTC"), Some(1_000_000));
    // Without the host's time zone database this is text.
    assert_eq!(at("Mon 2026-11-30 10:17:44 CET"), None);
    assert!(show::moment("n/a").is_none());
}

#[test]
fn show_keeps_line_breaks_and_reads_quotes() {
    let text = "ExecStart={ path=/x ; argv[]=/x a\nB=1 ; c ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; \
                code=(null) ; status=0/0 }\nEnvironment=\"A=1 2\" B=3 \"C=x\\ny\" $'D=q\\tz' \"E=\\$F\"\nMainPID=7\n";
    let show = show::parse(text).value;
    let command = &show.commands("ExecStart")[0];
    assert_eq!(command.argv, "/x a\nB=1 ; c");
    assert_eq!(command.pid, Some(0));
    let environment = show.environment();
    let get = |name: &str| environment.get(name).map(String::as_str);
    assert_eq!(
        [get("A"), get("B"), get("C"), get("D"), get("E")],
        [Some("1 2"), Some("3"), Some("x\ny"), Some("q\tz"), Some("$F")]
    );
    assert_eq!(show.main_pid(), Some(7));
}
