//! Signals to a command that is blocked.

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Sends a signal to a process.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Starts a command that waits for a secret, so it is blocked and can't react to signals.
fn blocked(command: &[&str]) -> Child {
    let mut blocked = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
    // The command that prints the secret first writes a line to stderr, which shows that it has begun.
    let mut child = blocked
        .args(command)
        .args(["--cluster-endpoint", "http://127.0.0.1:1"])
        .args(["--client-id", "id", "--control-audience", "audience"])
        .args(["--client-secret-command", "echo asked >&2; sleep 60"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "asked\n");
    child
}

#[test]
fn the_second_signal_ends_a_wait_for_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    for names in [["-TERM", "-INT"], ["-INT", "-TERM"]] {
        let mut child = blocked(&["serve", "--state", state.to_str().unwrap()]);
        // The signals differ, because the system may deliver two equal signals as one.
        for name in names {
            signal(&child, name);
        }
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(130 | 143)), "{code:?}");
    }
}

/// `timeout` and service managers send one signal.
#[test]
fn one_signal_ends_a_blocked_command_without_a_state() {
    for (name, code) in [("-TERM", 143), ("-INT", 130)] {
        let began = Instant::now();
        let mut child = blocked(&["delivery"]);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
        assert!(began.elapsed() < Duration::from_secs(30), "{name}");
    }
}
