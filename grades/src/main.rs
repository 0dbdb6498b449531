//! Grades the health rules on data that others made and on simulations. `docs/health.md` has the results.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "a program that measures reads clocks, and files"
)]

mod arguments;
mod cause;

use std::process::ExitCode;

use crate::arguments::Arguments;

/// What a grade answers: what it prints, or what went wrong.
type Answer = Result<String, String>;

/// A grade: its name, the names of its arguments, and what it does.
type Grade = (
    &'static str,
    &'static [&'static str],
    fn(&Arguments) -> Answer,
);

const GRADES: &[Grade] = &[
    ("cause", &["data", "json"], cause::report::grade),
    (
        "speed-explain",
        &["leaves", "attributes"],
        cause::speed::measure,
    ),
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let Some((_, known, run)) = GRADES.iter().find(|(own, _, _)| *own == name) else {
        let names: Vec<&str> = GRADES.iter().map(|(own, _, _)| *own).collect();
        eprintln!(
            "no grade is named {name:?}; want one of {}",
            names.join(", ")
        );
        return ExitCode::from(2);
    };
    match Arguments::parse(words, known).and_then(|arguments| run(&arguments)) {
        Ok(answer) => {
            print!("{answer}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
