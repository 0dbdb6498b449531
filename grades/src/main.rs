//! Evaluates `tallyfold-health` on published data and on simulations. `docs/health.md` has the results.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a program that measures reads clocks, and files")]

mod arguments;
mod cause;
mod incidents;
mod mix;
mod nab;
mod noufaily;
mod risk;

use std::process::ExitCode;

/// Runs a grade with the arguments after its name.
type Grade = fn(&[String]) -> ExitCode;

/// One line for each grade.
const GRADES: [(&str, Grade); 5] = [
    ("cause", cause::report::run),
    ("detect", detect),
    ("incidents", incidents::run::run),
    ("risk", risk::report::run),
    ("speed-volumes", risk::speed::run),
];

/// Single streams: simulated outbreaks, and labelled windows of real series.
fn detect(words: &[String]) -> ExitCode {
    let table = |words| {
        let arguments =
            arguments::Arguments::parse(words, &["data", "json", "seed", "runs", "restated"])?;
        Ok(nab::report::table(&arguments)? + "\n" + &noufaily::report::table(&arguments)?)
    };
    arguments::printed(table(words))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map(String::as_str).unwrap_or_default();
    match GRADES.iter().find(|(own, _)| *own == name) {
        Some((_, grade)) => grade(&arguments[1..]),
        None => {
            let names = GRADES.map(|(own, _)| own).join(", ");
            eprintln!("no grade is named {name:?}: want one of {names}");
            ExitCode::from(2)
        }
    }
}
