//! Every command, format and exit code, through the binary: the files in `tests/cases/` hold commands, what they print,
//! and how they end.
//!
//! `docs/cli/reference.md` is such a file, too: the help of each command. Each file is run against a sandbox with seed 7 that this test serves; one with a folder `.in` runs in a copy of it. After a change
//! that is meant, `TRYCMD=overwrite cargo test -p tallyfold-cli --test cases` writes the new outputs; read the difference.

#![allow(clippy::unwrap_used, reason = "a test says so when it fails")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The least number of commands in the files, so that none of them is lost unnoticed.
const CASES: usize = 200;

#[test]
fn commands_do_what_the_cases_say() {
    let commands: usize = ["tests/cases", "tests/cases/alone"]
        .into_iter()
        .map(commands_in)
        .sum();
    assert!(commands >= CASES, "only {commands} cases were found");

    let service = Service::start();
    let cases = trycmd::TestCases::new();
    for (name, value) in &service.settings {
        cases.env(name, value);
    }
    // Some cases run the command in the sandbox's environment, by its name.
    let folder = Path::new(env!("CARGO_BIN_EXE_tallyfold")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    cases.env("PATH", &path);
    cases.env("COLUMNS", "100").env("TZ", "UTC");
    cases.case("tests/cases/*.md");
    cases.case("../docs/cli/reference.md");
    cases.run();

    // What the environment says is over the file, so these are run without it.
    let alone = trycmd::TestCases::new();
    alone.env("PATH", &path).env("COLUMNS", "100");
    alone.case("tests/cases/alone/*.md");
    alone.run();
}

/// How many commands the files of a folder have.
fn commands_in(folder: &str) -> usize {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let texts = files.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let commands = texts.map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter(|line| line.starts_with("$ ")).count()
    });
    commands.sum()
}

/// A served sandbox.
struct Service {
    process: Child,
    settings: Vec<(String, String)>,
}

impl Service {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        let mut process = command
            .args(["sandbox", "--seed", "7"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let lines = lines.take_while(|line| !line.starts_with("Ctrl-C"));
        let settings = lines.filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("export ")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self {
            settings: settings.collect(),
            process,
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
