//! Evaluates explanations of incidents, from a folder and generated.

use std::fmt::Write;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::cases::{Case, Values, read_all};
use super::generated::{self, Quiet};
use super::marks::{Marks, Ranking};
use super::methods::METHODS;
use crate::arguments::{Arguments, printed};

/// `tallyfold-grade cause`: prints a table of all methods. With `--json FILE`, it also writes a line of JSON for each
/// case of the folder.
pub(crate) fn run(words: &[String]) -> ExitCode {
    printed(Arguments::parse(words, &["data", "json"]).and_then(|arguments| graded(&arguments)))
}

fn graded(arguments: &Arguments) -> Result<String, String> {
    let folder = arguments.path("data", "../shared/data/rs");
    let cases = read_all(&folder)?;
    let (mut table, answers) = table(&folder.display().to_string(), &cases)?;
    if let Some(path) = arguments.value("json") {
        fs::write(path, lines(&cases, &answers)?).map_err(|error| format!("{path}: {error}"))?;
    }
    let title = format!("traffic that was drawn with seed {SEED}");
    let mut cases = generated::cases(SEED, DRAWN)?;
    let (drawn, _) = self::table(&title, &cases)?;
    cases.retain(|case| case.truth.len() == 2);
    let (pairs, _) = self::table("those of them that have two causes", &cases)?;
    let quiet = quiet_table()?;
    table.push_str(&format!("\n{drawn}\n{pairs}\n{quiet}\n{LEGEND}"));
    Ok(table)
}

/// The seed of the generated cases. Tests use other seeds.
const SEED: u64 = 20_261_115;
/// How many cases are generated.
const DRAWN: u64 = 200;

const LEGEND: &str = "\
F1 is over exact sets of causes: over all cases, TP are named causes that are true, FP others that were named, FN true ones that
were not; F1 = 2 TP / (2 TP + FP + FN). top-1 and top-5: a true cause is first, or among the first five candidates. Where everything
is affected there is no true cause. Times are the shortest of five runs of a case, and contain the choice of the reference.
";

/// Returns a row for each method, and the answers of the last method.
fn table(title: &str, cases: &[Case]) -> Result<(String, Vec<Answer>), String> {
    let mut table = heading(title, cases.len());
    let mut last = Vec::new();
    for (name, method) in METHODS {
        let answers: Result<Vec<Answer>, String> =
            cases.iter().map(|case| timed(case, method)).collect();
        last = answers?;
        table.push_str(&row(name, cases, &last));
    }
    Ok((table, last))
}

/// The share of cases without any change in which a method names a cause.
fn quiet_table() -> Result<String, String> {
    let kinds = [
        ("counts vary as independent events do", Quiet::Counts),
        ("the rate of each leaf drifts by 15%", Quiet::Leaves),
        ("the rate of each value drifts by 5%", Quiet::Values),
        ("as the first, with reasons", Quiet::Reasons),
    ];
    let mut table = format!(
        "{DRAWN} cases each where nothing changed, seed {SEED}: the share of cases with a cause named\n\n{:38}{:>18}{:>18}\n",
        "", "plain, usual", "tallyfold, usual"
    );
    for (title, quiet) in kinds {
        let cases = generated::quiet(SEED, DRAWN, quiet)?;
        let _ = write!(table, "{title:38}");
        for (_, method) in [METHODS[1], METHODS[3]] {
            let mut found = 0;
            for case in &cases {
                let ranking = method(case)?;
                found += u32::from(ranking.named > 0);
            }
            let share = f64::from(found) / DRAWN as f64;
            let _ = write!(table, "{share:18.3}");
        }
        table.push('\n');
    }
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

fn heading(title: &str, cases: usize) -> String {
    format!(
        "{cases} cases: {title}\n\n{:32} {:>5} {:>5} {:>5}   {:>3} {:>3} {:>3}   {:>9} {:>9}\n",
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
    let ms = |place: usize| times.get(place).map_or(0.0, |took| took.as_secs_f64() * 1e3);
    let Marks { true_positives, false_positives, false_negatives, .. } = marks;
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
