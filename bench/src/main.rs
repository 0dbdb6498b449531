//! Compares the fold from response bytes to groups with what people would write instead.
//!
//! `make bench` runs all parts. `tallyfold-bench speed | tallyfold-bench report` runs and shows one part.
#![allow(clippy::expect_used, reason = "a benchmark that can't run must stop")]
#![allow(clippy::disallowed_methods, reason = "it is the host here, and reads clock and files")]

mod body;
mod health;
mod hostile;
mod linear;
mod memory;
mod peers;
mod report;
mod rounds;
mod speed;

use std::process::ExitCode;

use body::{Kind, body, body_of_6_000_groups};

const USAGE: &str = "usage: tallyfold-bench COMMAND
  bodies DIRECTORY  writes the bodies that the other commands and languages read
  speed             measures against other parsers
  linear            measures ten times as much
  memory BODY       measures what 1 GB costs, made of that body's entries
  health            measures how long counts are judged and explained
  report            makes a table of the measurements on standard input; fails if one is short";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["bodies", directory] => write_bodies(directory),
        ["speed"] => speed::measure(),
        ["linear"] => linear::measure(),
        ["memory", body] => memory::measure(body),
        ["health"] => health::measure(),
        ["stream", body, keep @ ..] => memory::stream(body, keep),
        ["report"] if report::judge(std::io::stdin().lock()) => {}
        ["report"] => return ExitCode::FAILURE,
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write_bodies(directory: &str) {
    let bodies = [
        ("plain-5", body(Kind::Plain, 5)),
        ("plain-1000", body(Kind::Plain, 1_000)),
        ("plain-100000", body(Kind::Plain, 100_000)),
        ("plain-1000000", body(Kind::Plain, 1_000_000)),
        ("shuffled-100000", body(Kind::Shuffled, 100_000)),
        ("groups-6000", body_of_6_000_groups()),
    ];
    for (name, body) in bodies {
        let path = format!("{directory}/{name}.json");
        std::fs::write(path, body).expect("a directory");
    }
}
