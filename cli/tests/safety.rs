//! An untrusted working folder can't set the service or its secret, and the environment can't set a proxy for this machine.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Reply, Service, Sink, ends, stderr, stdout};
use tempfile::TempDir;

/// A service, a working folder, and the home of a user.
struct World {
    service: Service,
    folder: TempDir,
    home: TempDir,
}

const COUNTS: [&str; 7] = [
    "delivery",
    "--from",
    "2026-01-01T00:00:00Z",
    "--to",
    "2026-01-01T00:15:00Z",
    "--by",
    "reason",
];

impl World {
    fn new() -> Self {
        Self {
            service: Service::start(),
            folder: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// Runs the command in the working folder, with the configuration in it.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.service.clusters(self.folder.path(), &[("eu", "")], arguments);
        command
            .env_remove("TALLYFOLD_CONFIG")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.home.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn config(&self) -> std::path::PathBuf {
        self.folder.path().join("tallyfold.toml")
    }
}

#[track_caller]
fn refused(output: &Output, why: &str) {
    ends(output, 2);
    assert_eq!(stdout(output), "");
    assert!(stderr(output).contains(why), "{}", stderr(output));
}

#[test]
fn a_configuration_in_the_working_folder_must_be_trusted_before_it_is_used() {
    let world = World::new();
    let unknown = world.run(&COUNTS);
    refused(&unknown, "tallyfold.toml is in the working folder, and you have not trusted it yet");
    assert!(stderr(&unknown).ends_with("try: tallyfold trust\n"));
    assert!(!world.home.path().join(".local").exists());
    ends(&world.run(&[&COUNTS[..], &["--config", "tallyfold.toml"]].concat()), 0);

    let trusted = world.run(&["trust"]);
    ends(&trusted, 0);
    assert_eq!(stderr(&trusted), "tallyfold.toml is trusted until it changes\n");
    ends(&world.run(&COUNTS), 0);
    let listed = world.run(&["trust", "--list"]);
    let path = fs::canonicalize(world.config()).unwrap();
    assert_eq!(stdout(&listed), format!("{}\n", path.display()));
    assert_eq!(stderr(&listed), "");
    let store = world.home.path().join(".local/share/tallyfold/trusted");
    assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o700);

    // A changed file must be trusted again. `run` restores the original file.
    let mut changed = world.command(&COUNTS);
    fs::write(world.config(), fs::read_to_string(world.config()).unwrap() + "# \n").unwrap();
    refused(&changed.output().unwrap(), "tallyfold.toml has changed since you trusted it");
    let mut listed = world.command(&["trust", "--list"]);
    fs::write(world.config(), "").unwrap();
    let listed = listed.output().unwrap();
    assert_eq!(stdout(&listed), format!("{}\n", path.display()));
    assert!(stderr(&listed).contains("has changed since"), "{}", stderr(&listed));

    ends(&world.run(&COUNTS), 0);
    let entry = fs::read_dir(&store).unwrap().next().unwrap().unwrap();
    fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o666)).unwrap();
    let exposed = "tallyfold.toml is not trusted any more, because other users can change the record of your trust";
    refused(&world.run(&COUNTS), exposed);
    let listed = world.run(&["trust", "--list"]);
    assert!(stderr(&listed).contains(exposed), "{}", stderr(&listed));
    ends(&world.run(&["trust"]), 0);
    ends(&world.run(&COUNTS), 0);
    ends(&world.run(&["trust", "--revoke"]), 0);
    refused(&world.run(&COUNTS), "you have not trusted it yet");
    assert_eq!(stdout(&world.run(&["trust", "--list"])), "");
}

#[test]
fn trust_does_not_extend_to_a_link_in_another_folder() {
    let world = World::new();
    ends(&world.run(&["trust"]), 0);
    let other = tempfile::tempdir().unwrap();
    symlink(world.config(), other.path().join("tallyfold.toml")).unwrap();
    let mut command = world.command(&COUNTS);
    refused(&command.current_dir(other.path()).output().unwrap(), "not trusted it yet");
}

#[test]
fn a_configuration_that_others_can_change_is_refused() {
    let world = World::new();
    ends(&world.run(&["trust"]), 0);
    let mut command = world.command(&COUNTS);
    fs::set_permissions(world.config(), fs::Permissions::from_mode(0o666)).unwrap();
    refused(&command.output().unwrap(), "others can change the file (mode 0666");
    let mut command = world.command(&["trust"]);
    refused(&command.output().unwrap(), "others can change the file (mode 0666");
    fs::set_permissions(world.config(), fs::Permissions::from_mode(0o600)).unwrap();
    ends(&world.run(&COUNTS), 0);
}

/// Only root can change the owner of a file, so the test ends early for other users.
#[test]
fn a_configuration_of_another_user_is_refused() {
    let world = World::new();
    let mut command = world.command(&COUNTS);
    if std::os::unix::fs::chown(world.config(), Some(12345), None).is_err() {
        return;
    }
    refused(&command.output().unwrap(), "tallyfold.toml: the file belongs to another user");
    refused(&world.run(&["trust"]), "the file belongs to another user");
    // A file that the user names is used anyway.
    ends(&world.run(&[&COUNTS[..], &["--config", "tallyfold.toml"]].concat()), 0);
}

#[test]
fn the_configuration_of_the_user_need_not_be_trusted() {
    let world = World::new();
    drop(world.command(&[]));
    let folder = world.home.path().join(".config/tallyfold");
    fs::create_dir_all(&folder).unwrap();
    fs::rename(world.config(), folder.join("tallyfold.toml")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for working in [elsewhere.path(), &folder] {
        let mut command = world.command(&COUNTS);
        fs::remove_file(world.config()).unwrap();
        ends(&command.current_dir(working).output().unwrap(), 0);
    }
    // With another home, the folder is only a working folder.
    let mut command = world.command(&COUNTS);
    command.env("HOME", elsewhere.path()).current_dir(&folder);
    refused(&command.output().unwrap(), "not trusted it yet");
}

#[test]
fn requests_to_this_machine_bypass_every_proxy() {
    let world = World::new();
    let proxy = Sink::start(Vec::new(), Reply::Answer(502, "", ""));
    let address = proxy.url.trim_end_matches("/write");
    for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        let mut command = world.service.tallyfold(&COUNTS);
        for name in ["NO_PROXY", "no_proxy"] {
            command.env_remove(name);
        }
        ends(&command.env(variable, address).output().unwrap(), 0);
    }
    let mut command = world.command(&[&COUNTS[..], &["--config", "tallyfold.toml"]].concat());
    append(&world.config(), &format!("proxy = \"{address}\"\n"));
    ends(&command.output().unwrap(), 0);
    assert_eq!(proxy.all().len(), 0, "the proxy has seen a token or a secret");
    // Requests to other hosts go through the proxy.
    let mut command = world.service.tallyfold(&COUNTS);
    command.args(["--cluster-endpoint", "http://service.example", "--dangerously-allow-http"]);
    command.args(["--max-retries", "0"]).env("HTTP_PROXY", address);
    ends(&command.output().unwrap(), 4);
    assert_eq!(proxy.all().len(), 1);
}

fn append(path: &Path, text: &str) {
    fs::write(path, fs::read_to_string(path).unwrap() + text).unwrap();
}

/// Reading from a pipe without a writer would never end.
#[test]
fn a_pipe_in_the_working_folder_is_refused() {
    let world = World::new();
    let pipe = |name: &str| {
        let path = world.folder.path().join(name);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    };
    let mut check = world.service.tallyfold(&["check"]);
    check.current_dir(world.folder.path());
    let rules = pipe("health.toml");
    let refused = check.output().unwrap();
    ends(&refused, 2);
    let wanted = "error: can't read health.toml: this isn't a regular file\n";
    assert_eq!(stderr(&refused), wanted);
    fs::remove_file(rules).unwrap();
    let mut counts = world.service.tallyfold(&COUNTS);
    counts.current_dir(world.folder.path()).env("HOME", world.home.path());
    pipe("tallyfold.toml");
    let refused = counts.output().unwrap();
    ends(&refused, 2);
    let wanted = "error: can't read tallyfold.toml: this isn't a regular file\n";
    assert_eq!(stderr(&refused), wanted);
    // The pipe of a shell's process substitution is accepted.
    let script = "exec \"$0\" \"$@\" --config <(echo)";
    let all = [&["-c", script, env!("CARGO_BIN_EXE_tallyfold")][..], &COUNTS].concat();
    ends(&world.service.run("bash", &all).output().unwrap(), 0);
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let world = World::new();
    let mut counts = world.service.tallyfold(&COUNTS);
    counts.env("TALLYFOLD_CONFIG", "").env("HOME", world.home.path());
    counts.current_dir(world.folder.path());
    ends(&counts.output().unwrap(), 0);
    let refused = world.service.tallyfold(&["delivery", "--config", ""]).output().unwrap();
    ends(&refused, 2);
}
