//! Servers in namespaces of their own, as containers have them: what their addresses mean outside is another matter.
//!
//! The namespaces are real. The tool that manages containers is a script, since none runs everywhere these tests do: it
//! says the one number that podman and docker are asked for.

#[allow(dead_code)]
mod support;

use ascertain_engines::llama_cpp::tiny_model::TinyModel::{Dense, Mtp};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Lab, free_port};

/// A server with its own network and processes, ended when dropped.
struct Contained {
    outer: Child,
    /// PID as this host numbers it.
    pid: u32,
}

impl Drop for Contained {
    fn drop(&mut self) {
        let _ = self.outer.kill();
        let _ = self.outer.wait();
    }
}

/// `None`: this user may not make such namespaces.
fn contained(lab: &Lab, port: u16, words: &str) -> Option<Contained> {
    let script = format!(
        "ip link set lo up && exec \"$SERVER\" -m \"$MODEL\" --host 127.0.0.1 --port {port} {words} >\"$LOG\" 2>&1"
    );
    let mut command = Command::new("unshare");
    command
        .args(["--net", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sh", "-c", &script])
        .env("SERVER", lab.server())
        .env("MODEL", lab.model(Mtp))
        .env("LOG", lab.path("contained.log"))
        .env("HOME", lab.path("home"))
        .stdin(Stdio::null());
    let mut outer = command.spawn().ok()?;
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        if outer.try_wait().ok()?.is_some() {
            return None;
        }
        let children = format!("/proc/{0}/task/{0}/children", outer.id());
        let child = std::fs::read_to_string(children).unwrap_or_default();
        let log = std::fs::read_to_string(lab.path("contained.log")).unwrap_or_default();
        if let Ok(pid) = child.trim().parse()
            && log.contains("listening on")
        {
            return Some(Contained { outer, pid });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the server is not ready");
}

#[test]
fn a_server_in_a_network_of_its_own() {
    let Some(lab) = Lab::open() else { return };
    // The same address means another server here.
    let port = free_port();
    let outside = lab.serve(Dense).port(port).args(&["-c", "512"]).start();
    let Some(inside) = contained(&lab, port, "-c 1024 --spec-type draft-mtp --metrics") else {
        eprintln!("skipped: this user may not make namespaces");
        return;
    };
    let report = lab.verify(&format!("pid:{}", inside.pid), &["--exercise"]);
    report.is("confirmed", 0).witness("props", "spoke").witness("log", "spoke");
    report.claim("ctx_size").is("confirmed").in_force("1024");
    report.claim("spec_type").is("confirmed").effect("confirmed");
    let report = lab.verify(&outside.target(), &[]);
    report.claim("ctx_size").is("confirmed").in_force("512");

    // By its name.
    let tools = lab.path("tools");
    std::fs::create_dir(&tools).unwrap();
    let tool = lab.write(
        "tools/podman",
        format!(
            "#!/bin/sh\n[ \"$1 $2 $3 $4\" = 'inspect --format {{{{.State.Pid}}}} --' ] || exit 3\ncase $5 in llm) echo {} ;; idle) echo 0 ;; *) echo \"Error: no such object: $5\" >&2; exit 125 ;; esac\n",
            inside.pid
        ),
    );
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let run = |words: &[&str]| lab.ascertain_with(words, &[("PATH", path.as_str())]);
    let report = run(&["verify", "container:llm", "--format", "json"]).report();
    assert_eq!(report.json["target"]["pid"], inside.pid);
    assert_eq!(report.json["target"]["name"], "container:llm");
    report.claim("ctx_size").is("confirmed").in_force("1024");
    run(&["verify", "container:idle"]).ends(2).complains("does not run");
    run(&["verify", "container:lm"]).ends(2).complains("no such object: lm");
}
