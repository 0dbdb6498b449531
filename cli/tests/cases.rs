//! Every command, format and exit code, through the binary. The files in `tests/cases/` contain commands, their output and their
//! exit codes. `docs/cli/reference.md`, which contains the help of each command, is such a file, too.
//!
//! The commands query a sandbox with seed 7 that this test serves. If there is a folder `NAME.in`, the commands of `NAME.md` run in
//! a copy of it. `TRYCMD=overwrite cargo test -p tallyfold-cli cases::` writes the outputs that have changed. Check the
//! difference after that.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The minimum number of commands in the files, so that the test notices if it finds too few.
const CASES: usize = 200;

#[test]
fn commands_have_the_output_of_the_cases() {
    let commands: usize = ["tests/cases", "tests/cases/alone"].into_iter().map(commands_in).sum();
    assert!(commands >= CASES, "only {commands} cases were found");

    let service = Service::start();
    let cases = trycmd::TestCases::new();
    for (name, value) in &service.settings {
        cases.env(name, value);
    }
    // Some cases run `tallyfold` by its name, as the command of a sandbox.
    let folder = Path::new(env!("CARGO_BIN_EXE_tallyfold")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    cases.env("PATH", &path);
    cases.env("COLUMNS", "100").env("TZ", "UTC");
    cases.case("tests/cases/*.md");
    cases.case("../docs/cli/reference.md");
    cases.run();

    // The sandbox's environment variables would override the configuration files of these cases, so they are not set.
    let alone = trycmd::TestCases::new();
    alone.env("PATH", &path).env("COLUMNS", "100");
    alone.case("tests/cases/alone/*.md");
    alone.run();
}

/// The number of commands in the files of a folder.
fn commands_in(folder: &str) -> usize {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
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
        let mut process =
            command.args(["sandbox", "--seed", "7"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let lines = lines.take_while(|line| !line.starts_with("Ctrl-C"));
        let settings = lines.filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("export ")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self { settings: settings.collect(), process }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
