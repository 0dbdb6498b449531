//! Explains the change from one table to another.

use tallyfold::{
    Code, Comparison, CountColumns, CountTable, Counts, Dimension, Error, Frame, Result, Window,
    compare,
};

use super::explanation::{Explanation, explained};
use super::leaves::{Attribute, Leaves, Tally};
use super::rates::causes_of_rate;
use super::risk::search::causes_of_volume;
use crate::columns::groups::{added, counts_of};
use crate::measure::Measure;

tallyfold::options! {
    /// How to search for causes.
    #[derive(Clone, Debug)]
    pub struct ExplainOptions: Default {
        /// The maximum number of causes.
        most: usize = 5,
        /// The maximum number of further candidates, best first.
        others: usize = 5,
        /// Also compares with earlier windows whose rate is unusual.
        ///
        /// By default, they are left out, so that an earlier incident does not count as normal.
        keep_unusual: bool = false,
    }
}

/// Finds the combinations of dimension values that explain how a measure changed from one table to another.
///
/// For a rate, the table `before` may cover any length of time, and a long one is better. If it has three windows or
/// more, windows whose rate is far from the median are left out, so that an earlier incident does not count as normal.
/// The amounts before do not include these windows. [`Explanation::left_out`] lists the windows, and the option
/// `keep_unusual` keeps them. A window of `before` that is also in `now` is never left out, because no window of `now` is
/// left out. For a volume, nothing is left out. `before` should then have as many windows as `now`, because counts are
/// not scaled.
///
/// # Errors
/// `incompatible_tables` if the tables differ in dimensions, metric or filter. `sum_overflow` if a table has more than
/// 2^64 - 1 events. `group_limit` if the values of a dimension take more than 1 GiB in both tables together.
pub fn explain(
    before: &CountTable,
    now: &CountTable,
    measure: Measure,
    options: &ExplainOptions,
) -> Result<Explanation> {
    // The error of `compare` names its argument `after`, which is `now` here.
    let compared = compare(before, now).map_err(|error| match error.code() {
        Code::IncompatibleTables => error.with_argument("now"),
        _ => error,
    });
    let mut left_out = Vec::new();
    let compared = compared?;
    let mut reference = counts(compared.before_counts());
    if measure.is_rate() && !options.keep_unusual {
        left_out = leave_out_unusual(&mut reference, &compared, before, now, measure)?;
    }
    let leaves = leaves_of(&compared, &reference, measure)?;
    Ok(explained_with(&leaves, measure, options, left_out))
}

/// Like [`explain`], for leaves with any attributes. It uses only the measure's name, and whether the measure is a rate.
#[must_use]
pub fn explain_leaves(leaves: &Leaves, measure: Measure, options: &ExplainOptions) -> Explanation {
    explained_with(leaves, measure, options, Vec::new())
}

fn explained_with(
    leaves: &Leaves,
    measure: Measure,
    options: &ExplainOptions,
    left_out: Vec<Window>,
) -> Explanation {
    let search = if measure.is_rate() { causes_of_rate } else { causes_of_volume };
    explained(leaves, measure, &search(leaves, options.most, options.others), left_out)
}

/// Turns the rows of two tables into leaves. `reference` has the counts before.
fn leaves_of(comparison: &Comparison, reference: &[Counts], measure: Measure) -> Result<Leaves> {
    let keys = comparison.keys();
    let columns = comparison.dimensions().iter().zip(keys.dictionaries);
    let attributes = columns.zip(keys.ids).map(|((dimension, values), ids)| {
        let attribute = Attribute::new(dimension.as_str(), values.clone(), ids.clone());
        // We assume that only filtered events have a reason: the service's reference does not say.
        if dimension == Dimension::Reason && measure.is_rate() {
            attribute.of_part()
        } else {
            attribute
        }
    });
    let now = counts(comparison.after_counts());
    let tallies =
        |counts: &[Counts]| counts.iter().map(|one| tally(*one, measure)).collect::<Result<_>>();
    Leaves::new(attributes.collect(), tallies(reference)?, tallies(&now)?)
}

fn counts(columns: &CountColumns) -> Vec<Counts> {
    let columns = columns.success().iter().zip(columns.errors()).zip(columns.filtered());
    let counts = columns.map(|((success, errors), filtered)| Counts {
        success: *success,
        errors: *errors,
        filtered: *filtered,
    });
    counts.collect()
}

fn tally(counts: Counts, measure: Measure) -> Result<Tally> {
    let too_large = |_| Error::new(Code::SumOverflow, "a group has more than 2^64 - 1 events");
    Ok(Tally {
        part: u64::try_from(measure.part(counts)).map_err(too_large)?,
        whole: u64::try_from(measure.whole(counts).unwrap_or_default()).map_err(too_large)?,
    })
}

/// Subtracts the rows of the windows whose rate is unusual, and returns these windows.
fn leave_out_unusual(
    reference: &mut [Counts],
    comparison: &Comparison,
    before: &CountTable,
    now: &CountTable,
    measure: Measure,
) -> Result<Vec<Window>> {
    let windowed = before.windowed();
    let totals = windowed.windows.iter().map(|rows| {
        let total =
            rows.clone().fold(Counts::default(), |sum, (_, counts)| added(sum, counts_of(counts)));
        tally(total, measure)
    });
    let usual = usual_windows(&totals.collect::<Result<Vec<_>>>()?);
    let keys = comparison.keys();
    let dictionaries = keys.dictionaries.iter().zip(&windowed.dictionaries);
    let ids: Vec<Vec<u32>> = dictionaries.map(|(all, own)| all.places_of(own)).collect();
    let rows_of_both: Vec<usize> = (0..comparison.len()).collect();
    let current = now.windows();
    let mut left_out = Vec::new();
    for (rows, _) in windowed
        .windows
        .into_iter()
        .zip(usual)
        .filter(|(rows, is_usual)| !is_usual && !current.contains(&rows.window))
    {
        left_out.push(rows.window);
        for (key, counts) in rows {
            let wanted = ids.iter().zip(key).map(|(ids, id)| ids[id as usize]);
            let wanted: Vec<u32> = wanted.collect();
            let is_before =
                |row: &usize| keys.ids.iter().map(|ids| ids[*row]).lt(wanted.iter().copied());
            let row = rows_of_both.partition_point(is_before);
            if let Some(sum) = reference.get_mut(row) {
                *sum = less(*sum, counts_of(counts));
            }
        }
    }
    Ok(left_out)
}

fn less(sum: Counts, counts: Counts) -> Counts {
    Counts {
        success: sum.success.saturating_sub(counts.success),
        errors: sum.errors.saturating_sub(counts.errors),
        filtered: sum.filtered.saturating_sub(counts.filtered),
    }
}

/// A window is usual if its count differs at most by this factor from the count at the median rate, with a margin of
/// [`DEVIATIONS`].
const FACTOR: f64 = 1.25;
/// The margin, in standard deviations of a Poisson count. Without it, windows with few events would be unusual by chance.
const DEVIATIONS: f64 = 2.0;

/// Returns which windows are usual: the windows with a rate near the median of all rates. Only usual windows serve as a
/// reference, so that an earlier incident does not count as normal. If fewer than three windows have events, all windows
/// are usual.
#[must_use]
pub fn usual_windows(windows: &[Tally]) -> Vec<bool> {
    let rate = |window: &Tally| window.part as f64 / window.whole as f64;
    let mut rates: Vec<f64> = windows.iter().filter(|window| window.whole > 0).map(rate).collect();
    rates.sort_unstable_by(f64::total_cmp);
    let Some(median) = rates.get(rates.len().saturating_sub(1) / 2).filter(|_| rates.len() >= 3)
    else {
        return vec![true; windows.len()];
    };
    let is_usual = |window: &Tally| {
        let expected = median * window.whole as f64;
        let margin = DEVIATIONS * expected.sqrt();
        let part = window.part as f64;
        part <= expected * FACTOR + margin && part >= expected / FACTOR - margin
    };
    windows.iter().map(is_usual).collect()
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
        Leaves::new(attributes, before, rows.iter().map(|row| tally(row.3)).collect()).unwrap()
    }

    #[test]
    fn an_integration_that_fails_is_named_with_the_exact_number_of_events() {
        let explanation = explain_leaves(
            &leaves(&[
                ("s3", "a", [10, 1000], [500, 1000]),
                ("s3", "b", [12, 1000], [510, 1000]),
                ("crm", "a", [11, 1000], [10, 1000]),
                ("crm", "b", [9, 1000], [12, 1000]),
            ]),
            Measure::ErrorRate,
            &ExplainOptions::default(),
        );
        assert_eq!(explanation.causes.len(), 1);
        assert_eq!(explanation.causes[0].r#where, [("integration".to_owned(), "s3".to_owned())]);
        assert_eq!(explanation.causes[0].events, 1010 - 22);
        assert_eq!(explanation.change, 1032 - 42);
        assert_eq!(explanation.unexplained, 2);
        assert!(!explanation.is_global);
    }

    /// A filter that catches most events leaves few events for the other filters. The decline of the other filters isn't evidence
    /// that everything has risen.
    #[test]
    fn a_reason_that_takes_events_from_all_other_reasons_is_named() {
        let reasons = ["", "consent", "region", "duplicate", "internal", "sampled"];
        let tallies = |parts: [u64; 6], whole: u64| {
            let tally =
                |(place, part)| Tally { part, whole: if place == 0 { whole } else { part } };
            parts.into_iter().enumerate().map(tally).collect::<Vec<_>>()
        };
        let all = Leaves::new(
            vec![Attribute::of_texts("reason", &reasons).unwrap().of_part()],
            tallies([0, 2200, 161, 261, 792, 160], 48_784),
            tallies([0, 32_241, 0, 0, 0, 0], 14_683),
        )
        .unwrap();
        let explanation = explain_leaves(&all, Measure::FilteredRate, &ExplainOptions::default());
        let named: Vec<_> = explanation.causes.iter().map(|one| one.r#where.clone()).collect();
        assert_eq!(named, [[("reason".to_owned(), "consent".to_owned())]]);
    }

    fn windows(pairs: &[(u64, u64)]) -> Vec<Tally> {
        pairs.iter().map(|(part, whole)| Tally { part: *part, whole: *whole }).collect()
    }

    #[test]
    fn an_earlier_incident_is_unusual_but_a_small_count_by_chance_is_not() {
        let all =
            windows(&[(100, 10_000), (110, 10_000), (900, 10_000), (95, 10_000), (1, 10_000)]);
        assert_eq!(usual_windows(&all), [true, true, false, true, false]);
        let few = windows(&[(1, 100), (0, 100), (3, 100), (1, 100)]);
        assert_eq!(usual_windows(&few), [true; 4]);
    }

    #[test]
    fn two_windows_and_windows_without_events_are_usual() {
        assert_eq!(usual_windows(&windows(&[(1, 10), (9, 10)])), [true; 2]);
        assert_eq!(usual_windows(&windows(&[(0, 0), (5, 100), (5, 100), (5, 100)])), [true; 4]);
        assert!(usual_windows(&[]).is_empty());
    }
}
