//! Signals that come while the command can't notice them.

#![allow(clippy::unwrap_used, reason = "a test says so when it fails")]
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Sends a signal to a process.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

#[test]
fn the_second_signal_ends_a_wait_for_a_secret() {
    for names in [["-TERM", "-INT"], ["-INT", "-TERM"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        // What the command for the secret says on stderr tells that it runs.
        let mut child = command
            .args([
                "delivery",
                "--cluster-endpoint",
                "http://127.0.0.1:1",
                "--client-id",
                "id",
            ])
            .args([
                "--control-audience",
                "audience",
                "--client-secret-command",
                "echo asked >&2; sleep 60",
            ])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "asked\n");
        // Two different ones, because two that are the same may be delivered as one.
        for name in names {
            signal(&child, name);
        }
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(130 | 143)), "{code:?}");
    }
}
