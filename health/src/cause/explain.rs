//! Explains the change from one table to another.

use tallyfold::{
    Code, Comparison, CountColumns, CountTable, Counts, Dimension, Error, Frame, Result, compare,
};

use super::element::{Element, Finds, Found};
use super::explanation::{Amount, Cause, Explanation};
use super::leaves::{Attribute, Leaves, Tally};
use super::options::ExplainOptions;
use super::rates::causes_of_rate;
use super::scan::scan;
use super::sentence::sentence;
use crate::measure::Measure;

/// Which few combinations of dimension values explain how a measure changed from one table to another.
///
/// A rate before may be of any time, and better of a long one. A volume is compared with as many windows before as it has
/// itself: counts are not scaled.
///
/// # Errors
/// `incompatible_tables` for tables of other dimensions, another metric or another filter, `sum_overflow` if a table has
/// more than 2^64 - 1 events, and `group_limit`.
pub fn explain(
    before: &CountTable,
    now: &CountTable,
    measure: Measure,
    options: &ExplainOptions,
) -> Result<Explanation> {
    let leaves = leaves_of(&compare(before, now)?, measure)?;
    Ok(explain_leaves(&leaves, measure, options))
}

/// The same of leaves with any attributes. Of the measure, only whether it is a rate and its name matter.
#[must_use]
pub fn explain_leaves(leaves: &Leaves, measure: Measure, options: &ExplainOptions) -> Explanation {
    let finds = if measure.is_rate() {
        causes_of_rate(leaves, options.most, options.others)
    } else {
        scan(leaves, false, options.most, options.others)
    };
    told(leaves, measure, &finds)
}

/// The rows of two tables as leaves.
fn leaves_of(comparison: &Comparison, measure: Measure) -> Result<Leaves> {
    let keys = comparison.keys();
    let columns = comparison
        .dimensions()
        .iter()
        .zip(keys.dictionaries)
        .zip(keys.ids);
    let attributes = columns.map(|((dimension, values), ids)| {
        let attribute = Attribute::new(dimension.as_str(), values.clone(), ids.clone());
        // Only an event that was filtered has a reason for it.
        if dimension == Dimension::Reason && measure.is_rate() {
            attribute.of_part()
        } else {
            attribute
        }
    });
    let attributes = attributes.collect();
    Leaves::new(
        attributes,
        tallies(comparison.before_counts(), measure)?,
        tallies(comparison.after_counts(), measure)?,
    )
}

fn tallies(columns: &CountColumns, measure: Measure) -> Result<Vec<Tally>> {
    let too_large = |_| Error::new(Code::SumOverflow, "a group has more than 2^64 - 1 events");
    let columns = columns
        .success()
        .iter()
        .zip(columns.errors())
        .zip(columns.filtered());
    let tally = |((success, errors), filtered): ((&u64, &u64), &u64)| {
        let counts = Counts {
            success: *success,
            errors: *errors,
            filtered: *filtered,
        };
        Ok(Tally {
            part: u64::try_from(measure.part(counts)).map_err(too_large)?,
            whole: u64::try_from(measure.whole(counts).unwrap_or_default()).map_err(too_large)?,
        })
    };
    columns.map(tally).collect()
}

/// An explanation of what was found, with exact counts.
pub(crate) fn told(leaves: &Leaves, measure: Measure, finds: &Finds) -> Explanation {
    let [before, now] = leaves.totals();
    let change = excess([before, now], before, measure.is_rate());
    let mut told = Explanation {
        measure,
        before: amount(before, measure),
        now: amount(now, measure),
        change,
        causes: Vec::new(),
        others: Vec::new(),
        unexplained: change,
        is_global: finds.is_global,
        sentence: String::new(),
    };
    let mut free = vec![true; leaves.len()];
    for found in &finds.causes {
        let sums = sums_of(leaves, found.element, &mut free, true);
        let cause = cause(leaves, measure, found, sums, change);
        told.unexplained = told.unexplained.saturating_sub(cause.events);
        told.causes.push(cause);
    }
    free.fill(true);
    for found in &finds.others {
        let sums = sums_of(leaves, found.element, &mut free, false);
        told.others
            .push(cause(leaves, measure, found, sums, change));
    }
    told.sentence = sentence(&told);
    told
}

/// The counts of those leaves of a combination that are free; if they are taken, they are so no longer.
fn sums_of(leaves: &Leaves, element: Element, free: &mut [bool], take: bool) -> [Tally; 2] {
    let mut sums = [Tally::default(); 2];
    for (leaf, free) in free.iter_mut().enumerate() {
        if *free && leaves.is_in(leaf, element) {
            *free = !take;
            for (sum, tallies) in sums.iter_mut().zip([&leaves.before, &leaves.now]) {
                sum.part = sum.part.saturating_add(tallies[leaf].part);
                sum.whole = sum.whole.saturating_add(tallies[leaf].whole);
            }
        }
    }
    sums
}

fn cause(
    leaves: &Leaves,
    measure: Measure,
    found: &Found,
    sums: [Tally; 2],
    change: i128,
) -> Cause {
    let [all, _] = leaves.totals();
    let events = excess(sums, all, measure.is_rate());
    let [before, now] = sums;
    let share = if change == 0 {
        0.0
    } else {
        events as f64 / change as f64
    };
    let attributes = leaves.attributes.iter().enumerate();
    let named = attributes.filter(|(place, _)| found.element.attributes & 1 << place != 0);
    let named = named.map(|(place, attribute)| {
        let value = attribute.values.value(found.element.values[place]);
        (attribute.name.clone(), value.to_owned())
    });
    Cause {
        r#where: named.collect(),
        before: amount(before, measure),
        now: amount(now, measure),
        expected: now.part as f64 - events as f64,
        events,
        share,
        score: found.score,
    }
}

fn amount(tally: Tally, measure: Measure) -> Amount {
    Amount {
        part: tally.part,
        whole: measure.is_rate().then_some(tally.whole),
    }
}

/// By how many events now differs from what was to be expected after before, rounded: of a rate, as many as the rate before
/// gives, or that of everything if there was nothing before.
fn excess([before, now]: [Tally; 2], all: Tally, is_rate: bool) -> i128 {
    if !is_rate {
        return i128::from(now.part) - i128::from(before.part);
    }
    let reference = if before.whole == 0 { all } else { before };
    let half = u128::from(reference.whole / 2);
    // At most (2^64 - 1)^2 + 2^63, which fits.
    let expected = (u128::from(now.whole) * u128::from(reference.part) + half)
        .checked_div(u128::from(reference.whole))
        .unwrap_or_default();
    i128::from(now.part).saturating_sub_unsigned(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(rows: &[(&str, &str, [u64; 2], [u64; 2])]) -> Leaves {
        let column = |name: &str, texts: Vec<&str>| Attribute::of_texts(name, &texts).unwrap();
        let tally = |[part, whole]: [u64; 2]| Tally { part, whole };
        let attributes = vec![
            column("integration", rows.iter().map(|row| row.0).collect()),
            column("write_key", rows.iter().map(|row| row.1).collect()),
        ];
        let before = rows.iter().map(|row| tally(row.2)).collect();
        Leaves::new(
            attributes,
            before,
            rows.iter().map(|row| tally(row.3)).collect(),
        )
        .unwrap()
    }

    #[test]
    fn an_integration_that_fails_is_named_with_its_exact_events() {
        let told = explain_leaves(
            &leaves(&[
                ("s3", "a", [10, 1000], [500, 1000]),
                ("s3", "b", [12, 1000], [510, 1000]),
                ("crm", "a", [11, 1000], [10, 1000]),
                ("crm", "b", [9, 1000], [12, 1000]),
            ]),
            Measure::ErrorRate,
            &ExplainOptions::default(),
        );
        assert_eq!(told.causes.len(), 1);
        assert_eq!(
            told.causes[0].r#where,
            [("integration".to_owned(), "s3".to_owned())]
        );
        assert_eq!(told.causes[0].events, 1010 - 22);
        assert_eq!(told.change, 1032 - 42);
        assert_eq!(told.unexplained, 2);
        assert!(!told.is_global);
    }
}
