//! `tallyfold sandbox` through the binary: requests of web pages, states of other sandboxes, and signals to its command.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::support::{Service, ends, fetch, stderr, stdout, terminate};

#[test]
fn web_pages_of_any_origin_may_call_the_sandbox() {
    let service = Service::start();
    let path = format!("{}/v1.1/analytics/event_delivery", service.url());
    let asks = "origin: https://app.example\r\naccess-control-request-method: POST\r\n\
                access-control-request-headers: authorization,content-type\r\n";
    let preflight = fetch("OPTIONS", &path, asks).unwrap();
    assert_eq!(preflight.status, 204, "{preflight:?}");
    for header in [
        "access-control-allow-origin: *",
        "access-control-allow-methods: get, post",
        "access-control-allow-headers: authorization, content-type",
        "access-control-allow-private-network: true",
    ] {
        assert!(preflight.head.contains(header), "{header} {preflight:?}");
    }
    // A web page must be able to read a refusal, too.
    let refused = fetch("POST", &path, "origin: https://app.example\r\n").unwrap();
    assert_eq!(refused.status, 401, "{refused:?}");
    for header in
        ["access-control-allow-origin: *", "access-control-expose-headers: date, retry-after"]
    {
        assert!(refused.head.contains(header), "{header} {refused:?}");
    }
}

/// Follows a sandbox until this hour, and resumes from the state.
fn follow(seed: &str, state: &Path, hour: u32) -> Output {
    let program = env!("CARGO_BIN_EXE_tallyfold");
    let until = format!("2026-01-01T{hour:02}:00:00Z");
    let mut command = Command::new(program);
    command.args(["sandbox", "--seed", seed, "--", program, "follow"]);
    command.args(["--from", "2026-01-01T00:00:00Z", "--until", &until]);
    command.args(["--format", "ndjson", "--by", "integration"]);
    command.arg("--state").arg(state);
    command.env_remove("TALLYFOLD_CONFIG").output().unwrap()
}

#[test]
fn a_state_continues_at_another_port_but_not_with_another_seed() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    let first = follow("7", &state, 1);
    ends(&first, 0);
    let second = follow("7", &state, 2);
    ends(&second, 0);
    let (first, second) = (stdout(&first), stdout(&second));
    assert!(first.contains("2026-01-01T00:45:00Z") && !first.contains("T01:00:00Z\",\"window_end"));
    assert!(
        second.contains("2026-01-01T01:45:00Z") && !second.contains("T00:45:00Z\",\"window_end")
    );

    let other = follow("8", &state, 3);
    ends(&other, 2);
    let said = stderr(&other);
    assert!(said.contains("sandbox with seed 7") && said.contains("sandbox with seed 8"), "{said}");
}

#[test]
fn the_command_uses_no_configuration_unless_it_names_one() {
    let program = env!("CARGO_BIN_EXE_tallyfold");
    let folder = tempfile::tempdir().unwrap();
    let text = "[push.real]\nformat = \"influx\"\nurl = \"http://127.0.0.1:1/write\"\n";
    let own = folder.path().join("tallyfold");
    fs::create_dir(&own).unwrap();
    let (here, own) = (folder.path().join("tallyfold.toml"), own.join("tallyfold.toml"));
    let push = |more: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(["sandbox", "--", program, "push", "real", "--patience", "0s"])
            .args(more)
            .current_dir(folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env("APPDATA", folder.path());
        command
    };
    // A configuration in the working folder, one in the environment, and one of the user.
    for (path, variable) in [(&here, ""), (&own, "tallyfold/tallyfold.toml"), (&own, "")] {
        fs::write(path, text).unwrap();
        let output = push(&[]).env("TALLYFOLD_CONFIG", variable).output();
        let output = output.unwrap();
        ends(&output, 2);
        let said = stderr(&output);
        assert!(said.contains("has no section [push.real]"), "{said}");
        let output = push(&["--config", path.to_str().unwrap()]).output();
        let output = output.unwrap();
        ends(&output, 4);
        fs::remove_file(path).unwrap();
    }
}

/// Runs a shell script as the command of a sandbox, and waits for its first line. There is no terminal that would send signals to
/// both processes.
#[cfg(unix)]
fn shell(script: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tallyfold"))
        .args(["sandbox", "--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    (child, lines)
}

#[cfg(unix)]
#[test]
fn a_signal_reaches_the_command_which_decides_the_exit_code() {
    let script = "trap 'echo tidy; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let (mut child, mut lines) = shell(script);
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(9));
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "tidy\n");
}

#[cfg(unix)]
#[test]
fn the_second_signal_ends_the_command() {
    let script = "trap 'echo again' TERM INT; echo ready; while :; do sleep 0.05; done";
    let (mut child, mut lines) = shell(script);
    terminate(&child);
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "again\n");
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    // The pipe ends only when no process holds it.
    lines.read_to_string(&mut line).unwrap();
}
