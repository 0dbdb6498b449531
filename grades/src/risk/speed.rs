//! Measures how long explanations of volumes take.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Instant;

use tallyfold_health::{Attribute, ExplainOptions, Leaves, Measure, Tally, explain_leaves};

use super::case::Case;
use super::generated::{FINE, Manner, file};
use super::random::Random;
use crate::arguments::{Arguments, printed};

/// `tallyfold-grade speed-volumes`: leaves with every combination of five attributes, and with a few of the possible
/// combinations of four and of eight attributes.
pub(crate) fn run(words: &[String]) -> ExitCode {
    printed(Arguments::parse(words, &[]).and_then(|_| measured()))
}

fn measured() -> Result<String, String> {
    let mut text = String::new();
    for values in [5, 16] {
        let manner = Manner { values: [values, values], ..FINE };
        let case = Case::of(0, &file(1, 0, manner))?;
        text.push_str(&line(&case.leaves, 5));
    }
    for (leaves, attributes) in [(1_000_000, 4), (1_000_000, 8)] {
        text.push_str(&line(&sparse(leaves, attributes)?, attributes));
    }
    Ok(text)
}

fn line(leaves: &Leaves, attributes: usize) -> String {
    let start = Instant::now();
    let told = explain_leaves(leaves, Measure::Events, &ExplainOptions::default());
    let took = start.elapsed();
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{:7} leaves of {attributes} attributes: {:6.1} ms, {} causes",
        leaves.len(),
        took.as_secs_f64() * 1e3,
        told.causes.len()
    );
    text
}

/// How many values the attributes have, in their order.
const VALUES: [usize; 8] = [120, 60, 40, 12, 8, 6, 5, 4];

/// Unsorted leaves with 20 to 120 events each. Some of them are duplicates. Leaves with one particular value of the first
/// attribute and one of the third have lost half of their events.
fn sparse(leaves: usize, attributes: usize) -> Result<Leaves, String> {
    let mut random = Random::new(1, 0);
    let mut columns: Vec<Vec<String>> = vec![Vec::new(); attributes];
    let (mut before, mut now) = (Vec::new(), Vec::new());
    for _ in 0..leaves {
        let values: Vec<usize> =
            VALUES.iter().take(attributes).map(|values| random.between(1, *values)).collect();
        for (column, value) in columns.iter_mut().zip(&values) {
            column.push(format!("value-{value:03}"));
        }
        let size = random.uniform(20.0, 120.0);
        let kept = if values[0] == 1 && values[2] == 1 { 0.5 } else { 1.0 };
        let tally = |size: f64| Tally { part: libm::round(size) as u64, whole: 0 };
        before.push(tally(size));
        now.push(tally((size * kept * random.normal(1.0, 0.1)).max(0.0)));
    }
    let column = |(place, texts): (usize, &Vec<String>)| {
        Attribute::of_texts(format!("attribute-{place}"), texts).map_err(|error| error.to_string())
    };
    let attributes: Result<Vec<Attribute>, String> =
        columns.iter().enumerate().map(column).collect();
    Leaves::new(attributes?, before, now).map_err(|error| error.to_string())
}
