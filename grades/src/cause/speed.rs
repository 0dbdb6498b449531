//! How long an explanation of many leaves takes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tallyfold_health::{Attribute, ExplainOptions, Leaves, Measure, Tally, explain_leaves};

use crate::arguments::{Arguments, printed};
use crate::mix::{STEP, mix};

/// The shortest time of some runs is told, because other programs share the machine.
const RUNS: usize = 5;

/// How many values the attributes have, in their order.
const VALUES: [u64; 8] = [120, 60, 40, 12, 8, 6, 5, 4];

/// `tallyfold-grade speed-explain`: the time for so many leaves, of which one combination fails.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let arguments = Arguments::parse(words, &["leaves", "attributes"]);
    printed(arguments.and_then(|arguments| measured(&arguments)))
}

fn measured(arguments: &Arguments) -> Result<String, String> {
    let number = |name: &str, usual: usize| match arguments.value(name) {
        None => Ok(usual),
        Some(text) => text
            .parse()
            .map_err(|_| format!("{text:?} is no whole number")),
    };
    let (leaves, attributes) = (number("leaves", 1_000_000)?, number("attributes", 4)?);
    let leaves = many(leaves, attributes.clamp(1, VALUES.len()))?;
    let (mut took, mut sentence) = (Duration::MAX, String::new());
    for _ in 0..RUNS {
        let start = Instant::now();
        sentence = explain_leaves(&leaves, Measure::ErrorRate, &ExplainOptions::default()).sentence;
        took = took.min(start.elapsed());
    }
    Ok(format!(
        "{} leaves of {} attributes explained in {:.0} ms: {sentence}\n",
        leaves.len(),
        leaves.attributes().len(),
        took.as_secs_f64() * 1e3,
    ))
}

/// Unsorted leaves with some tens of events each. Those with the second value of the first and of the third attribute
/// fail.
fn many(leaves: usize, attributes: usize) -> Result<Leaves, String> {
    let mut columns: Vec<Vec<String>> = vec![Vec::new(); attributes];
    let (mut before, mut now) = (Vec::new(), Vec::new());
    for leaf in 0..leaves as u64 {
        let draw = |of: u64| spread(leaf * 16 + of);
        let values: Vec<u64> = (0..attributes)
            .map(|place| draw(place as u64) % VALUES[place])
            .collect();
        let fails = values[0] == 1 && values.get(2).is_none_or(|value| *value == 1);
        for (column, value) in columns.iter_mut().zip(&values) {
            column.push(format!("value-{value:03}"));
        }
        let tally = |part, whole| Tally { part, whole };
        before.push(tally(draw(8) % 3, 40 + draw(9) % 60));
        let whole = 10 + draw(10) % 15;
        now.push(tally(
            if fails {
                whole / 2
            } else {
                u64::from(draw(11) % 4 == 0)
            },
            whole,
        ));
    }
    let column = |(place, texts): (usize, &Vec<String>)| {
        Attribute::of_texts(format!("attribute-{place}"), texts).map_err(|error| error.to_string())
    };
    let attributes: Result<Vec<Attribute>, String> =
        columns.iter().enumerate().map(column).collect();
    Leaves::new(attributes?, before, now).map_err(|error| error.to_string())
}

/// A number that looks random (SplitMix64).
pub(crate) fn spread(number: u64) -> u64 {
    mix(number.wrapping_mul(STEP))
}
