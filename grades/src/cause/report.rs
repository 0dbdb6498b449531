//! Grades causes on a folder of incidents.

use std::fmt::Write;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::cases::{Case, Values, read_all};
use super::marks::{Marks, Ranking};
use super::methods::METHODS;
use crate::arguments::{Arguments, printed};

/// `tallyfold-grade cause`: a table of all methods, and a line of JSON for each case if a file is named.
pub(crate) fn run(words: &[String]) -> ExitCode {
    printed(Arguments::parse(words, &["data", "json"]).and_then(|arguments| graded(&arguments)))
}

fn graded(arguments: &Arguments) -> Result<String, String> {
    let folder = arguments.path("data", "../shared/data/rs");
    let cases = read_all(&folder)?;
    let mut table = heading(&folder.display().to_string(), cases.len());
    for (name, method) in METHODS {
        let answers: Result<Vec<Answer>, String> =
            cases.iter().map(|case| timed(case, method)).collect();
        let answers = answers?;
        table.push_str(&row(name, &cases, &answers));
        if let (Some(path), true) = (
            arguments.value("json"),
            name == METHODS[METHODS.len() - 1].0,
        ) {
            fs::write(path, lines(&cases, &answers)?)
                .map_err(|error| format!("{path}: {error}"))?;
        }
    }
    table.push_str(
        "\nF1 over exact sets of causes: named and true, named and not true, true and not named, added up over all cases.\n",
    );
    Ok(table)
}

struct Answer {
    ranking: Ranking,
    took: Duration,
}

/// An answer with its time: the shortest of some runs, because other programs share the machine.
fn timed(case: &Case, method: fn(&Case) -> Result<Ranking, String>) -> Result<Answer, String> {
    let mut took = Duration::MAX;
    let mut ranking = Ranking::default();
    for _ in 0..RUNS {
        let start = Instant::now();
        ranking = method(case)?;
        took = took.min(start.elapsed());
    }
    Ok(Answer { ranking, took })
}

const RUNS: usize = 5;

fn heading(folder: &str, cases: usize) -> String {
    format!(
        "{cases} cases of {folder}\n\n{:32} {:>5} {:>5} {:>5}   {:>3} {:>3} {:>3}   {:>9} {:>9}\n",
        "method", "F1", "top-1", "top-5", "TP", "FP", "FN", "median ms", "most ms"
    )
}

fn row(name: &str, cases: &[Case], answers: &[Answer]) -> String {
    let mut marks = Marks::default();
    for (case, answer) in cases.iter().zip(answers) {
        marks.add(case, &answer.ranking);
    }
    let mut times: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
    times.sort_unstable();
    let ms = |place: usize| {
        times
            .get(place)
            .map_or(0.0, |took| took.as_secs_f64() * 1e3)
    };
    let Marks {
        true_positives,
        false_positives,
        false_negatives,
        ..
    } = marks;
    format!(
        "{name:32} {:5.3} {:5.3} {:5.3}   {true_positives:3} {false_positives:3} {false_negatives:3}   {:9.2} {:9.2}\n",
        marks.f1(),
        marks.top1(),
        marks.top5(),
        ms(times.len() / 2),
        ms(times.len().saturating_sub(1)),
    )
}

#[derive(Serialize)]
struct Line<'a> {
    case: &'a str,
    causes: Vec<LineCause<'a>>,
}

#[derive(Serialize)]
struct LineCause<'a> {
    r#where: &'a Values,
    named: bool,
}

fn lines(cases: &[Case], answers: &[Answer]) -> Result<String, String> {
    let mut text = String::new();
    for (case, answer) in cases.iter().zip(answers) {
        let causes = answer.ranking.causes.iter().enumerate();
        let line = Line {
            case: &case.name,
            causes: causes
                .map(|(place, values)| LineCause {
                    r#where: values,
                    named: place < answer.ranking.named,
                })
                .collect(),
        };
        let line = serde_json::to_string(&line).map_err(|error| error.to_string())?;
        writeln!(text, "{line}").map_err(|error| error.to_string())?;
    }
    Ok(text)
}
