//! Runs a command for what it prints.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// A program and its arguments.
    Words(Vec<String>),
    /// A text that the shell runs.
    Shell(String),
}

/// How long to wait between two looks at whether a process has ended. It has closed its output, so it is about to.
const PAUSE: Duration = Duration::from_millis(2);

/// What a command prints. What it says on stderr goes to ours; it reads nothing.
///
/// # Errors
/// If it can't be started, fails, prints more than that, or takes longer. No error quotes the command or its output.
pub(crate) fn output(
    program: &Program,
    most_bytes: usize,
    limit: Duration,
) -> Result<Vec<u8>, String> {
    let deadline = Instant::now() + limit;
    let mut child = command(program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| format!("the command can't be started: {}", error.kind()))?;
    let bytes = printed(&mut child, most_bytes, limit).and_then(|bytes| {
        ended(&mut child, deadline, limit)?;
        Ok(bytes)
    });
    if bytes.is_err() {
        // It may have ended meanwhile; there is nothing to do about a process that can't be killed.
        let _ = child.kill();
        let _ = child.wait();
    }
    bytes
}

fn command(program: &Program) -> Command {
    match program {
        Program::Words(words) => {
            let mut words = words.iter();
            let mut command = Command::new(words.next().map_or("", String::as_str));
            command.args(words);
            command
        }
        Program::Shell(text) => {
            let (shell, flag) = match cfg!(windows) {
                true => ("cmd", "/C"),
                false => ("sh", "-c"),
            };
            let mut command = Command::new(shell);
            command.args([flag, text]);
            command
        }
    }
}

/// Reads in a thread of its own, because a process that was started by the command may keep its output open for ever.
fn printed(child: &mut Child, most_bytes: usize, limit: Duration) -> Result<Vec<u8>, String> {
    let Some(stdout) = child.stdout.take() else {
        return Ok(Vec::new());
    };
    let (done, bytes) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout
            .take(most_bytes as u64 + 1)
            .read_to_end(&mut bytes)
            .map(|_| bytes);
        // Nobody waits any more if the command took too long.
        let _ = done.send(read);
    });
    let read: io::Result<Vec<u8>> = bytes.recv_timeout(limit).map_err(|_| too_long(limit))?;
    let bytes =
        read.map_err(|error| format!("what the command prints can't be read: {}", error.kind()))?;
    match bytes.len() > most_bytes {
        true => Err(format!("the command prints more than {most_bytes} bytes")),
        false => Ok(bytes),
    }
}

fn ended(child: &mut Child, deadline: Instant, limit: Duration) -> Result<(), String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("the command failed ({status})")),
            Err(error) => return Err(format!("the command can't be waited for: {}", error.kind())),
            Ok(None) if Instant::now() >= deadline => return Err(too_long(limit)),
            Ok(None) => thread::sleep(PAUSE),
        }
    }
}

fn too_long(limit: Duration) -> String {
    format!("the command takes longer than {} s", limit.as_secs_f32())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn shell(text: &str) -> Program {
        Program::Shell(text.to_owned())
    }

    #[test]
    fn output_is_what_was_printed() {
        assert_eq!(output(&shell("printf 'a\\n'"), 10, LIMIT).unwrap(), b"a\n");
        let words = ["printf", "%s", "a b; c"].map(str::to_owned);
        let words = Program::Words(words.into());
        assert_eq!(output(&words, 10, LIMIT).unwrap(), b"a b; c");
        assert_eq!(output(&shell("cat"), 10, LIMIT).unwrap(), b"");
    }

    #[test]
    fn no_error_quotes_the_command_or_its_output() {
        for (program, expected) in [
            (shell("printf canary; exit 3"), "(exit status: 3)"),
            (shell("printf canary; kill -9 $$"), "(signal: 9"),
            (shell("yes canary"), "more than 100 bytes"),
            (
                shell("canary-is-no-program 2>/dev/null"),
                "(exit status: 127)",
            ),
            (
                Program::Words(vec!["./canary-is-no-program".to_owned()]),
                "entity not found",
            ),
            (Program::Words(Vec::new()), "can't be started"),
            (
                Program::Words(vec!["a\0canary".to_owned()]),
                "can't be started",
            ),
        ] {
            let error = output(&program, 100, LIMIT).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn a_command_that_never_ends_is_stopped() {
        let limit = Duration::from_millis(200);
        for text in [
            "exec sleep 60",
            "exec >&-; exec sleep 60",
            "sleep 2 & echo a",
        ] {
            let error = output(&shell(text), 100, limit).unwrap_err();
            assert_eq!(error, "the command takes longer than 0.2 s", "{text}");
        }
    }
}
