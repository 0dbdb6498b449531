//! Evaluates explanations of changed volumes, on generated files or on a folder of files in RiskLoc's format.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

use super::case::{Case, Values};
use super::files;
use super::generated::{FINE, Manner, file};
use super::score::Score;
use crate::arguments::{Arguments, printed};

/// A seed that was not used while the search was developed.
const SEED: u64 = 15;
const FILES: u64 = 400;
/// The number of attributes in RiskLoc's generator.
const LAYERS: usize = 5;

/// `tallyfold-grade risk`: prints a table. With `--json FILE`, it also writes a line of JSON for each case to the file.
/// With `--write FOLDER`, it only writes the files, for RiskLoc.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let known = ["data", "json", "seed", "files", "write"];
    printed(Arguments::parse(words, &known).and_then(|arguments| graded(&arguments)))
}

fn graded(arguments: &Arguments) -> Result<String, String> {
    let number = |name: &str, usual: u64| match arguments.value(name) {
        None => Ok(usual),
        Some(text) => text.parse().map_err(|_| format!("{text:?} is no whole number")),
    };
    let (seed, count) = (number("seed", SEED)?, number("files", FILES)?);
    if let Some(folder) = arguments.value("write") {
        files::write(Path::new(folder), (0..count).map(|it| file(seed, it, FINE)))?;
        return Ok(format!("{count} files of seed {seed} in {folder}\n"));
    }
    let mut table = String::new();
    let mut lines = String::new();
    if let Some(folder) = arguments.value("data") {
        let cases = files::read(Path::new(folder))?;
        table.push_str(&part(folder, cases.into_iter().map(Ok), &mut lines)?);
    } else {
        let coarse = Manner { unit: 1.0, ..FINE };
        for (name, manner) in [("fine", FINE), ("coarse", coarse)] {
            let cases = (0..count).map(|it| Case::of(it, &file(seed, it, manner)));
            let title = format!("seed {seed}, counted {name}");
            // The JSON lines are for the files that are graded first. RiskLoc reads the same files.
            let mut own = String::new();
            table.push_str(&part(&title, cases, &mut own)?);
            if lines.is_empty() {
                lines = own;
            }
        }
        table.push_str("Fine: a value of 1 stands for 1000 events. Coarse: for one event, so that small leaves are rounded.\n");
    }
    table.push_str("F1 over exact sets of causes: named and true, named and not true, true and not named, added up over all files.\n");
    if let Some(path) = arguments.value("json") {
        fs::write(path, lines).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(table)
}

/// Evaluates some files. Returns a table, and appends a line of JSON for each file to `lines`.
fn part(
    title: &str,
    cases: impl Iterator<Item = Result<Case, String>>,
    lines: &mut String,
) -> Result<String, String> {
    let mut scores = [Score::default(); LAYERS + 1];
    let mut times = Vec::new();
    for case in cases {
        let case = case?;
        let start = Instant::now();
        let [named, others] = case.explained();
        times.push((start.elapsed(), case.leaves.len()));
        let set = named.iter().cloned().collect();
        for (layer, score) in scores.iter_mut().enumerate() {
            *score += Score::of(&set, &case.causes, (layer > 0).then_some(layer));
        }
        lines.push_str(&line(&case.name, &named, &others));
    }
    Ok(table(title, &scores, &mut times))
}

fn line(case: &str, named: &[Values], others: &[Values]) -> String {
    let cause = |is_named: bool| move |values: &Values| json!({"where": values, "named": is_named});
    let causes: Vec<_> =
        named.iter().map(cause(true)).chain(others.iter().map(cause(false))).collect();
    format!("{}\n", json!({"case": case, "causes": causes}))
}

fn table(title: &str, scores: &[Score], times: &mut [(Duration, usize)]) -> String {
    let mut text = format!(
        "{} files, {title}\n\n{:24} {:>5} {:>9} {:>6}   {:>4} {:>4} {:>4}\n",
        times.len(),
        "causes",
        "F1",
        "precision",
        "recall",
        "TP",
        "FP",
        "FN"
    );
    for (layer, score) in scores.iter().enumerate() {
        let name = match layer {
            0 => "all".to_owned(),
            1 => "of 1 attribute".to_owned(),
            _ => format!("of {layer} attributes"),
        };
        let Score { hits, wrong, missed } = score;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{name:24} {:5.3} {:9.3} {:6.3}   {hits:4} {wrong:4} {missed:4}",
            score.f1(),
            score.precision(),
            score.recall()
        );
    }
    times.sort_unstable();
    let ms = |place: usize| times.get(place).map_or(0.0, |(took, _)| took.as_secs_f64() * 1e3);
    let leaves: usize = times.iter().map(|(_, leaves)| leaves).sum();
    let _ = writeln!(
        text,
        "\n{} leaves a file; median {:.1} ms, most {:.1} ms\n",
        leaves / times.len().max(1),
        ms(times.len() / 2),
        ms(times.len().saturating_sub(1))
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files small enough for a test.
    const SMALL: Manner = Manner { values: [4, 6], unit: 1000.0 };

    #[test]
    fn small_files_are_graded_above_the_floor() {
        let mut sum = Score::default();
        for number in 0..25 {
            let case = Case::of(number, &file(7, number, SMALL)).unwrap();
            let [named, _] = case.explained();
            sum += Score::of(&named.into_iter().collect(), &case.causes, None);
        }
        assert!(sum.hits > 60, "{sum:?}");
        assert!(sum.f1() >= 0.85, "{sum:?}");
    }

    #[test]
    fn a_seed_always_gives_the_same_files() {
        let sum = |seed: u64| {
            let leaves = file(seed, 3, SMALL).leaves;
            let counts = leaves.iter().map(|leaf| leaf.expected ^ leaf.actual);
            counts.fold(0_u64, |sum, count| sum.rotate_left(1) ^ count)
        };
        assert_eq!(sum(7), sum(7));
        assert_ne!(sum(7), sum(8));
    }

    #[test]
    fn files_are_read_back_as_they_were_written() {
        let folder = std::env::temp_dir().join(format!("tallyfold-risk-{}", std::process::id()));
        let files = || (0..2).map(|number| file(7, number, SMALL));
        files::write(&folder, files()).unwrap();
        let read = files::read(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        for ((number, file), read) in (0..).zip(files()).zip(&read) {
            let case = Case::of(number, &file).unwrap();
            assert_eq!(case.name, read.name);
            assert_eq!(case.causes, read.causes);
            assert_eq!(case.leaves.totals(), read.leaves.totals());
            assert_eq!(case.explained(), read.explained());
        }
        assert_eq!(read.len(), 2);
    }
}
