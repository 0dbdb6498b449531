//! Reads secrets from environment variables, files and commands.
//!
//! No message quotes the name of a variable or a command, because a user may have entered the secret itself there.
//! Callers prefix each message with the flag, or with the place in the configuration.

use std::fs::{File, Metadata};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};
use std::{env, fmt, io, thread};

use tallyfold::Secret;

use crate::files::read_at_most;

/// The maximum size of a secret in bytes, larger than any key or token.
pub(crate) const SECRET_BYTES: usize = 64 * 1024;

/// The timeout of a command. The user may have to unlock a password manager.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// A secret and its place. The secret is read on first use and cached, so a command runs only once, even if several
/// clusters share it.
pub(crate) struct Source {
    place: Place,
    secret: OnceLock<Result<Secret, String>>,
}

/// Where a secret is.
#[derive(Debug)]
pub(crate) enum Place {
    /// In the environment variable with this name.
    Variable(String),
    /// In a file that only its owner can access.
    File(PathBuf),
    /// In the output of a command.
    Command(Program),
}

impl Source {
    /// Creates a source for that place, without reading the secret.
    pub(crate) fn new(place: Place) -> Self {
        Self { place, secret: OnceLock::new() }
    }

    /// Returns the secret, and reads it on first use.
    ///
    /// # Errors
    /// If the secret can't be read. The message describes what is wrong, and does not quote the secret.
    pub(crate) fn secret(&self) -> Result<Secret, String> {
        self.secret.get_or_init(|| self.place.secret()).clone()
    }

    /// Returns the flag for this kind of place, or `environment` for a variable.
    pub(crate) fn flag(&self) -> &'static str {
        match self.place {
            Place::Variable(_) => "environment",
            Place::File(_) => "--client-secret-file",
            Place::Command(_) => "--client-secret-command",
        }
    }
}

impl Place {
    fn secret(&self) -> Result<Secret, String> {
        let bytes = match self {
            Self::Variable(name) => match env::var_os(name) {
                Some(value) => value.into_encoded_bytes(),
                None => return Err("the environment variable that is named here is not set".into()),
            },
            Self::File(path) => read_private(path, SECRET_BYTES)?,
            Self::Command(program) => printed_by(program, SECRET_BYTES, COMMAND_LIMIT)?,
        };
        let what = match self {
            Self::Variable(_) => "the environment variable that is named here",
            Self::File(_) => "the file",
            Self::Command(_) => "what the command prints",
        };
        of_bytes(bytes).map_err(|wrong| format!("{what} {wrong}"))
    }
}

/// Converts bytes to a secret, which must be one line. Removes the trailing newline, which editors and commands add.
fn of_bytes(bytes: Vec<u8>) -> Result<Secret, &'static str> {
    // Don't keep the original error, which contains the bytes of the secret.
    let mut text = String::from_utf8(bytes).map_err(|_| "is not UTF-8 text")?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    let secret = Secret::from(text);
    if secret.is_empty() {
        return Err("is empty");
    }
    match secret.expose().contains(['\n', '\r', '\0']) {
        true => Err("has more than one line; want the secret alone"),
        false => Ok(secret),
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source(…)")
    }
}

/// Reads a file that only its owner can access.
///
/// # Errors
/// If the path isn't a regular file, or the file can't be read, is larger than `most_bytes`, or other users can access it.
fn read_private(path: &Path, most_bytes: usize) -> Result<Vec<u8>, String> {
    // The message does not quote the path. If there is no such file, the path may be the secret itself.
    let failed = |error: std::io::Error| {
        format!(
            "the file can't be read: {} (a relative path in a configuration starts at the configuration's folder)",
            error
        )
    };
    // Check the type before opening the file, because opening a pipe blocks until another process writes to it.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err("want a file, not a folder".to_owned());
    }
    if !metadata.is_file() {
        return Err("want a regular file, not a pipe or a device".to_owned());
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    check(path, &metadata)?;
    let bytes = read_at_most(file, most_bytes as u64).map_err(failed)?;
    bytes.ok_or_else(|| format!("the file has more than {most_bytes} bytes"))
}

/// Accepts every file: Windows has access control lists instead of modes, and this command does not check them.
#[cfg(not(unix))]
fn check(_: &Path, _: &Metadata) -> Result<(), String> {
    Ok(())
}

/// Refuses a file that its group or others can access, except credentials of systemd and secrets that Kubernetes has mounted.
#[cfg(unix)]
fn check(path: &Path, metadata: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;

    let mode = metadata.permissions().mode() & 0o777;
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY");
    let is_private = mode & 0o077 == 0
        || credentials.is_some_and(|folder| is_in(path, Path::new(&folder)))
        || is_mounted_secret(path);
    match is_private {
        true => Ok(()),
        false => Err(format!(
            "other users can access the file (mode {mode:04o}); run chmod 600 {path:?}"
        )),
    }
}

/// Returns whether a file is in `folder`, into which systemd puts credentials (`LoadCredential=`). Only the service can
/// enter that folder. systemd grants access with an access control list, which the mode shows as group access.
#[cfg(unix)]
fn is_in(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// Returns whether Kubernetes mounted the file as a secret. Such files have mode 0644 by default, and only the
/// containers of the pod that mount the secret can see them. Their layout identifies them: each is a link into
/// `..data`, and `..data` is a link to a folder next to it, such as `..2026_01_31_09_00_00.123456789`.
#[cfg(unix)]
fn is_mounted_secret(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let data = Path::new("..data");
    let is_link = path.read_link().is_ok_and(|link| link == data.join(name));
    let version = folder.join(data).read_link();
    let is_version = |link: &Path| {
        let digit = |byte: &u8| byte.is_ascii_digit();
        let bytes = link.as_os_str().as_encoded_bytes();
        link.components().count() == 1
            && bytes.starts_with(b"..")
            && bytes.get(2).is_some_and(digit)
    };
    is_link && version.is_ok_and(|link| is_version(&link))
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// A program and its arguments.
    Words(Vec<String>),
    /// A text that the shell runs.
    Shell(String),
}

/// The interval at which to check whether a process has ended. The interval is short, because the process has closed its output
/// and is about to end.
const PAUSE: Duration = Duration::from_millis(2);

/// Runs a command and returns what it prints to stdout. The command inherits our stderr; its stdin is empty.
///
/// # Errors
/// If the command can't be started, fails, prints more than `most_bytes`, or takes longer than `limit`. No error quotes
/// the command or its output.
fn printed_by(program: &Program, most_bytes: usize, limit: Duration) -> Result<Vec<u8>, String> {
    let deadline = Instant::now() + limit;
    let mut command = command(program);
    let is_alone = !(io::stdin().is_terminal() || io::stderr().is_terminal());
    #[cfg(unix)]
    if is_alone {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
    }
    let mut child = command
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
        kill(&mut child, is_alone);
    }
    bytes
}

/// Kills a command. If the command has its own process group (`is_alone`), also kills the processes that it has
/// started. At a terminal, the command shares our process group, so that it can prompt for a password and Ctrl-C ends
/// it.
fn kill(child: &mut Child, is_alone: bool) {
    // Ignores errors: the process may have ended by now, and there is nothing else to do if it can't be killed.
    #[cfg(unix)]
    if is_alone {
        use rustix::process::{Pid, Signal, kill_process_group};
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
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

/// Reads the output of a command. Reads in a separate thread, because a process that the command has started may keep the output
/// open forever.
fn printed(child: &mut Child, most_bytes: usize, limit: Duration) -> Result<Vec<u8>, String> {
    let Some(stdout) = child.stdout.take() else {
        return Ok(Vec::new());
    };
    let (done, bytes) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(most_bytes as u64 + 1).read_to_end(&mut bytes).map(|_| bytes);
        // Sending fails if the command took too long: the receiver has stopped waiting.
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

/// Waits until a command has ended, and checks that it was successful.
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
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_one_line_without_its_newline() {
        for (bytes, expected) in [
            ("canary", Ok("canary")),
            ("canary\n", Ok("canary")),
            ("canary\r\n", Ok("canary")),
            (" canary ", Ok(" canary ")),
            ("", Err("is empty")),
            ("\n", Err("is empty")),
            ("canary\n\n", Err("has more than one line; want the secret alone")),
            ("canary\nlogin: me\n", Err("has more than one line; want the secret alone")),
        ] {
            let secret = of_bytes(bytes.into());
            let secret = secret.as_ref().map(Secret::expose).map_err(|wrong| *wrong);
            assert_eq!(secret, expected, "{bytes:?}");
        }
        assert_eq!(of_bytes(vec![0xff]).unwrap_err(), "is not UTF-8 text");
    }

    #[test]
    fn an_error_does_not_name_the_variable() {
        let source = Source::new(Place::Variable("TALLYFOLD_TEST_CANARY".to_owned()));
        assert_eq!(
            source.secret().unwrap_err(),
            "the environment variable that is named here is not set"
        );
        // Cargo sets this variable for tests.
        let source = Source::new(Place::Variable("CARGO_PKG_NAME".to_owned()));
        assert_eq!(source.secret().unwrap().expose(), "tallyfold-cli");
        assert_eq!(format!("{source:?}"), "Source(…)");
    }

    #[cfg(unix)]
    mod unix {
        use std::fs;
        use std::os::unix::fs::{PermissionsExt, symlink};

        use super::*;

        #[test]
        fn a_command_runs_once() {
            let folder = tempfile::tempdir().unwrap();
            let count = folder.path().join("count");
            let script = format!("echo ran >> '{}'; echo canary", count.display());
            let source = Source::new(Place::Command(Program::Shell(script)));
            for _ in 0..2 {
                assert_eq!(source.secret().unwrap().expose(), "canary");
            }
            assert_eq!(std::fs::read_to_string(&count).unwrap(), "ran\n");
        }

        fn file(folder: &Path, name: &str, mode: u32) -> PathBuf {
            let path = folder.join(name);
            fs::write(&path, "canary\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }

        #[test]
        fn a_file_that_other_users_can_access_is_refused() {
            let folder = tempfile::tempdir().unwrap();
            for (mode, is_private) in [
                (0o600, true),
                (0o400, true),
                (0o700, true),
                (0o640, false),
                (0o604, false),
                (0o620, false),
                (0o644, false),
            ] {
                let path = file(folder.path(), &format!("{mode:o}"), mode);
                let read = read_private(&path, 100);
                assert_eq!(read.is_ok(), is_private, "{mode:o}");
                if let Err(error) = read {
                    assert!(error.contains(&format!("mode {mode:04o}")), "{error}");
                    assert!(!error.contains("canary"), "{error}");
                }
            }
        }

        #[test]
        fn a_link_does_not_hide_the_mode() {
            let folder = tempfile::tempdir().unwrap();
            let path = file(folder.path(), "open", 0o644);
            let link = folder.path().join("link");
            symlink(&path, &link).unwrap();
            assert!(read_private(&link, 100).is_err());
        }

        #[test]
        fn secrets_that_kubernetes_mounts_are_read() {
            let folder = tempfile::tempdir().unwrap();
            let version = folder.path().join("..2026_01_31_09_00_00.1");
            fs::create_dir(&version).unwrap();
            file(&version, "secret", 0o644);
            symlink(version.file_name().unwrap(), folder.path().join("..data")).unwrap();
            let path = folder.path().join("secret");
            symlink("..data/secret", &path).unwrap();
            assert_eq!(read_private(&path, 100).unwrap(), b"canary\n");
            // Neither the target of the link nor another file in the folder has the layout of a mounted secret.
            assert!(read_private(&version.join("secret"), 100).is_err());
            assert!(read_private(&file(folder.path(), "other", 0o644), 100).is_err());
        }

        #[test]
        fn credentials_of_systemd_are_recognised_by_their_folder() {
            let folder = tempfile::tempdir().unwrap();
            let path = file(folder.path(), "secret", 0o440);
            assert!(is_in(&path, folder.path()));
            assert!(!is_in(&path, &folder.path().join("none")));
            assert!(!is_in(&folder.path().join("none"), folder.path()));
            let elsewhere = tempfile::tempdir().unwrap();
            assert!(!is_in(&path, elsewhere.path()));
        }

        #[test]
        fn folders_missing_files_and_large_files_are_refused() {
            let folder = tempfile::tempdir().unwrap();
            let path = file(folder.path(), "secret", 0o600);
            assert!(read_private(&path, 6).unwrap_err().contains("more than 6"));
            assert_eq!(read_private(&path, 7).unwrap(), b"canary\n");
            let error = read_private(folder.path(), 7).unwrap_err();
            assert!(error.contains("folder"), "{error}");
            let error = read_private(&folder.path().join("canary"), 7).unwrap_err();
            assert!(error.contains("No such file") && !error.contains("canary"), "{error}");
        }

        const LIMIT: Duration = Duration::from_secs(30);

        fn shell(text: &str) -> Program {
            Program::Shell(text.to_owned())
        }

        #[test]
        fn the_output_of_a_command_is_returned_unchanged() {
            assert_eq!(printed_by(&shell("printf 'a\\n'"), 10, LIMIT).unwrap(), b"a\n");
            let words = ["printf", "%s", "a b; c"].map(str::to_owned);
            let words = Program::Words(words.into());
            assert_eq!(printed_by(&words, 10, LIMIT).unwrap(), b"a b; c");
            assert_eq!(printed_by(&shell("cat"), 10, LIMIT).unwrap(), b"");
        }

        #[test]
        fn no_error_quotes_the_command_or_its_output() {
            for (program, expected) in [
                (shell("printf canary; exit 3"), "(exit status: 3)"),
                (shell("printf canary; kill -9 $$"), "(signal: 9"),
                (shell("yes canary"), "more than 100 bytes"),
                (shell("canary-is-no-program 2>/dev/null"), "(exit status: 127)"),
                (Program::Words(vec!["./canary-is-no-program".to_owned()]), "entity not found"),
                (Program::Words(Vec::new()), "can't be started"),
                (Program::Words(vec!["a\0canary".to_owned()]), "can't be started"),
            ] {
                let error = printed_by(&program, 100, LIMIT).unwrap_err();
                assert!(error.contains(expected), "{error}");
                assert!(!error.contains("canary"), "{error}");
            }
        }

        #[test]
        fn a_command_that_never_ends_is_stopped() {
            let limit = Duration::from_millis(200);
            for text in ["exec sleep 60", "exec >&-; exec sleep 60", "sleep 2 & echo a"] {
                let error = printed_by(&shell(text), 100, limit).unwrap_err();
                assert_eq!(error, "the command takes longer than 0.2 s", "{text}");
            }
        }

        #[test]
        fn a_command_that_is_stopped_leaves_no_orphan() {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("pid");
            let text = format!("sleep 60 & echo $! > '{}'; wait", place.display());
            let limit = Duration::from_millis(500);
            printed_by(&shell(&text), 100, limit).unwrap_err();
            let pid = fs::read_to_string(&place).unwrap();
            let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
            // A killed process is gone, or is a zombie until its parent reads its status.
            let is_running = || {
                let stat =
                    fs::read_to_string(format!("/proc/{pid}/stat", pid = pid.as_raw_nonzero()));
                stat.is_ok_and(|stat| !stat.contains(") Z "))
            };
            let deadline = Instant::now() + LIMIT;
            while is_running() && Instant::now() < deadline {
                thread::yield_now();
            }
            assert!(!is_running(), "the command's child still runs");
        }
    }
}
