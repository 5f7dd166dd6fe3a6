//! Writes the log of a busy inference host in journald's export format, for `systemd-journal-remote` to make a journal of.
//!
//!   make-journal ENTRIES | systemd-journal-remote -o DIR/remote.journal -
//!
//! Three boots and six units over two weeks, each unit started several times, each start with the manager's lines, a
//! beginning of some hundred lines up to "ready", and then lines of 100 to 4000 bytes. The same text for the same number.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// 2026-11-16 00:00 UTC, in microseconds.
const BEGIN: u64 = 1_794_787_200_000_000;
const SPAN: u64 = 14 * 86_400 * 1_000_000;
const BOOTS: u64 = 3;

/// A unit: its name, its share of all lines in percent, how often it is started, whether it serves a model.
const UNITS: [(&str, u64, u64, bool); 6] = [
    ("sglang-qwen", 42, 14, true),
    ("vllm-mistral", 26, 9, true),
    ("sglang-embed", 20, 12, true),
    ("nginx", 8, 3, false),
    ("sshd", 2, 3, false),
    ("node-exporter", 2, 3, false),
];

/// Words of prompts: some hold a keyword that an operator greps for.
const WORDS: [&str; 40] = [
    "please",
    "write",
    "a",
    "summary",
    "of",
    "the",
    "quarterly",
    "report",
    "and",
    "draft",
    "an",
    "answer",
    "to",
    "each",
    "customer",
    "in",
    "two",
    "special",
    "cases",
    "where",
    "delivery",
    "was",
    "late",
    "overlapping",
    "orders",
    "were",
    "merged",
    "then",
    "list",
    "every",
    "invoice",
    "by",
    "date",
    "amount",
    "region",
    "currency",
    "with",
    "totals",
    "per",
    "month",
];

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    fn id(&mut self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }
}

/// One start of a unit.
struct Run {
    number: u64,
    invocation: String,
    stream: String,
    pid: u64,
    lines: u64,
}

fn main() -> ExitCode {
    let Some(entries) = std::env::args().nth(1).and_then(|count| count.parse().ok()) else {
        eprintln!("usage: make-journal ENTRIES");
        return ExitCode::from(2);
    };
    match write(entries) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write: {error}");
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn write(entries: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut random = Random(7);
    let boots: Vec<String> = (0..BOOTS).map(|_| random.id()).collect();
    let mut runs: Vec<Option<Run>> = UNITS.iter().map(|_| None).collect();
    let step = SPAN / entries.max(1);
    let mut message = String::new();
    for entry in 0..entries {
        let since = entry * step + random.below(step / 2);
        let boot = since * BOOTS / SPAN;
        let clock = Clock { realtime: BEGIN + since, monotonic: 20_000_000 + since - boot * SPAN / BOOTS };
        let lot = random.below(100);
        let mut share = 0;
        let unit = UNITS.iter().position(|unit| {
            share += unit.1;
            lot < share
        });
        let unit = unit.unwrap_or(0);
        let (name, _, starts, serves) = UNITS[unit];
        let number = since * starts / SPAN;
        let run = match runs[unit].take() {
            Some(run) if run.number == number => run,
            before => {
                let pid = 2000 + random.below(300_000);
                let run = Run { number, invocation: random.id(), stream: random.id(), pid, lines: 0 };
                if let Some(before) = before {
                    by_manager(&mut out, &clock, &boots[boot as usize], name, &before.invocation, false)?;
                }
                by_manager(&mut out, &clock, &boots[boot as usize], name, &run.invocation, true)?;
                run
            }
        };
        message.clear();
        let priority =
            if serves { says(&mut message, &mut random, name, run.lines) } else { other(&mut message, &mut random) };
        let program = if serves { "python3" } else { name };
        let worker = run.pid + if serves { random.below(9) } else { 0 };
        let Clock { realtime, monotonic } = clock;
        let Run { invocation, stream, .. } = &run;
        let boot = &boots[boot as usize];
        write!(
            out,
            "__REALTIME_TIMESTAMP={realtime}\n__MONOTONIC_TIMESTAMP={monotonic}\n_BOOT_ID={boot}\n_TRANSPORT=stdout\n\
             _STREAM_ID={stream}\nPRIORITY={priority}\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER={program}\n_PID={worker}\n\
             _UID=998\n_GID=998\n_COMM={program}\n_EXE=/srv/{name}/bin/{program}\n\
             _CMDLINE=/srv/{name}/bin/{program} -m server --model-path /models/{name} --tp 8 --port 30000\n\
             _CAP_EFFECTIVE=0\n_SELINUX_CONTEXT=unconfined\n_SYSTEMD_CGROUP=/system.slice/{name}.service\n\
             _SYSTEMD_UNIT={name}.service\n_SYSTEMD_SLICE=system.slice\n_SYSTEMD_INVOCATION_ID={invocation}\n\
             _MACHINE_ID=5e0c7d0f6b8e4b0a9b1f2c3d4e5f6071\n_HOSTNAME=llm-two\n_RUNTIME_SCOPE=system\n\
             MESSAGE={message}\n\n"
        )?;
        runs[unit] = Some(Run { lines: run.lines + 1, ..run });
    }
    out.flush()
}

struct Clock {
    realtime: u64,
    monotonic: u64,
}

/// The manager's line about a start, its beginning or its end.
fn by_manager(out: &mut impl Write, clock: &Clock, boot: &str, unit: &str, id: &str, begins: bool) -> io::Result<()> {
    let (message_id, word) = if begins {
        ("39f53479d3a045ac8e11786248231fbf", "Started")
    } else {
        ("9d1aaa27d60140bd96365438aad20286", "Stopped")
    };
    let Clock { realtime, monotonic } = clock;
    write!(
        out,
        "__REALTIME_TIMESTAMP={realtime}\n__MONOTONIC_TIMESTAMP={monotonic}\n_BOOT_ID={boot}\n_TRANSPORT=journal\n\
         PRIORITY=6\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=systemd\n_PID=1\n_UID=0\n_GID=0\n_COMM=systemd\n\
         _SYSTEMD_UNIT=init.scope\n_MACHINE_ID=5e0c7d0f6b8e4b0a9b1f2c3d4e5f6071\n_HOSTNAME=llm-two\n\
         UNIT={unit}.service\nINVOCATION_ID={id}\nMESSAGE_ID={message_id}\nMESSAGE={word} {unit}.service.\n\n"
    )
}

/// What a server says as its `line`th line; its priority.
fn says(text: &mut String, random: &mut Random, name: &str, line: u64) -> u8 {
    // Writing to a String does not fail.
    let _ = match line {
        0 => {
            let _ = write!(text, "server_args=ServerArgs(model_path='/models/{name}', tp_size=8, ");
            for option in 0..70 {
                let _ = write!(text, "option_{option}={}, ", random.below(100_000));
            }
            write!(text, "speculative_algorithm='NEXTN', speculative_num_steps=3, disable_overlap_schedule=False)")
        }
        1..=299 => write!(
            text,
            "[TP{}] Loading safetensors checkpoint shards: {}% completed, {}/39, {:.2} s a shard, layer {} of 48 mapped",
            line % 8,
            line / 3,
            line * 39 / 300,
            random.below(300) as f64 / 100.0,
            line * 48 / 300
        ),
        300 => {
            write!(text, "The server is fired up and ready to roll! {:>80}", format!("pid {}", random.below(99_999)))
        }
        _ => match random.below(1000) {
            0..550 => write!(
                text,
                "[TP{}] Decode batch. #running-req: {}, #token: {}, token usage: 0.{:02}, accept len: {}.{:02}, gen throughput \
                 (token/s): {}.{:02}, #queue-req: {}",
                random.below(8),
                random.below(64),
                random.below(200_000),
                random.below(100),
                1 + random.below(3),
                random.below(100),
                random.below(4000),
                random.below(100),
                random.below(12)
            ),
            550..730 => write!(
                text,
                "INFO:     10.{}.{}.{}:{} - \"POST /v1/chat/completions HTTP/1.1\" 200 OK, request {:016x}, {} ms",
                random.below(256),
                random.below(256),
                random.below(256),
                random.below(65_536),
                random.next(),
                random.below(60_000)
            ),
            730..880 => write!(
                text,
                "[TP{}] Prefill batch. #new-seq: {}, #new-token: {}, #cached-token: {}, token usage: 0.{:02}, #queue-req: {}",
                random.below(8),
                random.below(8),
                random.below(8192),
                random.below(30_000),
                random.below(100),
                random.below(12)
            ),
            880..884 => {
                let _ = write!(
                    text,
                    "KV cache pool is full. Retract requests. #retracted_reqs: {}, #new_token_ratio: 0.{}, request {:016x}",
                    random.below(12),
                    random.below(1000),
                    random.next()
                );
                return 4;
            }
            _ => {
                let _ = write!(text, "Receive: GenerateReqInput(rid='{}', text='", random.id());
                let length = 400 + random.below(3500) as usize;
                while text.len() < length {
                    let _ = match random.below(8) {
                        0 => write!(text, "{} ", random.below(1_000_000)),
                        _ => write!(text, "{} ", WORDS[random.below(WORDS.len() as u64) as usize]),
                    };
                }
                write!(text, "')")
            }
        },
    };
    6
}

/// What another service says; its priority.
fn other(text: &mut String, random: &mut Random) -> u8 {
    let _ = write!(
        text,
        "10.{}.{}.{} - - \"GET /{}/{:08x} HTTP/1.1\" {} {} \"-\" \"client/{}.{}\" upstream 127.0.0.1:30000 in 0.{:03} s",
        random.below(256),
        random.below(256),
        random.below(256),
        WORDS[random.below(WORDS.len() as u64) as usize],
        random.next() as u32,
        if random.below(50) == 0 { 502 } else { 200 },
        random.below(100_000),
        random.below(9),
        random.below(40),
        random.below(1000)
    );
    6
}
