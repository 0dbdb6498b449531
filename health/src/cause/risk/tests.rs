//! Tests of the causes of volumes.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::cause::explain::{ExplainOptions, explain_leaves};
use crate::cause::explanation::Explanation;
use crate::cause::leaves::{Attribute, Leaves, Tally};
use crate::measure::Measure;

/// A row: the number of its value for each attribute, its count before, and its count now.
type Row = (Vec<u8>, u64, u64);

fn explained(rows: &[Row]) -> Explanation {
    let attributes = rows.first().map_or(0, |row| row.0.len());
    let column = |place: usize| {
        let texts: Vec<String> = rows.iter().map(|row| format!("{:03}", row.0[place])).collect();
        Attribute::of_texts(format!("attribute-{place}"), &texts).unwrap()
    };
    let tallies = |count: fn(&Row) -> u64| {
        let tally = |part| Tally { part, whole: 0 };
        rows.iter().map(|row| tally(count(row))).collect()
    };
    let leaves = Leaves::new(
        (0..attributes).map(column).collect(),
        tallies(|row| row.1),
        tallies(|row| row.2),
    );
    explain_leaves(&leaves.unwrap(), Measure::Events, &ExplainOptions::default())
}

/// Returns a pseudorandom number from 0 to 1, which depends only on `place`.
fn drawn(place: u64) -> f64 {
    let mut bits = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a pseudorandom number that is about normally distributed, with variance 1.
fn noise(place: u64) -> f64 {
    (0..12).map(|term| drawn(place * 12 + term)).sum::<f64>() - 6.0
}

/// Makes 6 by 5 by 8 groups of 20 to 2,000 events, with about the noise of events that arrive in small batches. `effect`
/// returns the factor by which a group's level changes.
fn traffic(seed: u64, effect: impl Fn(&[u8]) -> f64) -> Vec<Row> {
    let mut rows = Vec::new();
    for a in 0..6 {
        for b in 0..5 {
            for c in 0..8 {
                let place = seed * 1_000_000 + rows.len() as u64 * 10;
                let level = 20.0 * libm::pow(100.0, drawn(place));
                let values = vec![a, b, c];
                let now = level * effect(&values);
                let count = |level: f64, place: u64| {
                    libm::round(level + libm::sqrt(2.0 * level) * noise(place)).max(0.0) as u64
                };
                rows.push((values, count(level, place + 1), count(now, place + 2)));
            }
        }
    }
    rows
}

/// Returns the causes as sorted texts, such as "0=003" or "0=001 2=004".
fn named(explanation: &Explanation) -> Vec<String> {
    let cause = |cause: &crate::cause::explanation::Cause| {
        let pairs = cause.r#where.iter();
        let pairs: Vec<String> =
            pairs.map(|(name, value)| format!("{}={value}", &name["attribute-".len()..])).collect();
        pairs.join(" ")
    };
    let mut causes: Vec<String> = explanation.causes.iter().map(cause).collect();
    causes.sort();
    causes
}

#[track_caller]
fn assert_named(effect: impl Fn(&[u8]) -> f64, want: &[&str]) {
    for seed in 0..5 {
        let explanation = explained(&traffic(seed, &effect));
        assert_eq!(named(&explanation), want, "seed {seed}: {}", explanation.sentence);
    }
}

#[test]
fn noise_alone_has_no_cause() {
    assert_named(|_| 1.0, &[]);
}

#[test]
fn a_change_of_everything_is_global() {
    for factor in [0.3, 0.7, 0.85, 0.95, 1.1, 1.5, 4.0] {
        assert_named(|_| factor, &[]);
    }
    assert!(explained(&traffic(0, |_| 0.5)).is_global);
}

#[test]
fn a_value_that_falls_or_rises_is_named() {
    for factor in [0.0, 0.4, 0.7, 1.6, 5.0] {
        let effect = |values: &[u8]| if values[0] == 3 { factor } else { 1.0 };
        assert_named(effect, &["0=003"]);
    }
}

#[test]
fn a_value_is_named_even_if_everything_else_changes_a_little() {
    for drift in [0.7, 0.9, 1.1, 1.4] {
        let effect = |values: &[u8]| drift * if values[1] == 2 { 0.3 } else { 1.0 };
        assert_named(effect, &["1=002"]);
    }
}

#[test]
fn two_values_that_change_in_opposite_directions_are_both_named() {
    let effect = |values: &[u8]| match (values[0], values[2]) {
        (1, 5) => 3.0,
        (4, _) => 0.2,
        _ => 1.0,
    };
    assert_named(effect, &["0=001 2=005", "0=004"]);
}

#[test]
fn several_values_of_an_attribute_are_named_one_by_one() {
    let effect = |values: &[u8]| if values[1] < 3 { 0.3 } else { 1.0 };
    assert_named(effect, &["1=000", "1=001", "1=002"]);
}

#[test]
fn explained_and_unexplained_events_add_up_to_the_change() {
    let explanation = explained(&traffic(3, |values| if values[0] == 3 { 0.1 } else { 1.0 }));
    let sum: i128 = explanation.causes.iter().map(|cause| cause.events).sum();
    assert_eq!(sum + explanation.unexplained, explanation.change);
    assert_eq!(explanation.causes.len(), 1);
}

#[test]
fn multiplying_all_counts_does_not_change_the_causes() {
    let effect = |values: &[u8]| if values[0] == 3 { 0.3 } else { 1.0 };
    let mut rows = traffic(1, effect);
    for row in &mut rows {
        row.1 *= 1_000_000_007;
        row.2 *= 1_000_000_007;
    }
    assert_eq!(named(&explained(&rows)), ["0=003"]);
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0),
        4 => 0_u64..20,
        3 => 0_u64..100_000,
        // The sum over the maximum number of rows must be below 2^64.
        1 => 0..u64::MAX / 64,
    ]
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    (0_usize..=8).prop_flat_map(|attributes| {
        let values = prop::collection::vec(0_u8..4, attributes);
        prop::collection::vec((values, count(), count()), 0..60)
    })
}

fn assert_total(explanation: &Explanation) -> Result<(), TestCaseError> {
    let mut sum = explanation.unexplained;
    for cause in &explanation.causes {
        sum += cause.events;
        prop_assert!(cause.score.is_finite() && cause.score > 0.0);
        prop_assert!(cause.share.is_finite() && cause.expected.is_finite());
        prop_assert!(!cause.r#where.is_empty());
    }
    prop_assert_eq!(sum, explanation.change);
    for other in &explanation.others {
        prop_assert!(other.score.is_finite());
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_counts_are_explained(rows in rows()) {
        assert_total(&explained(&rows))?;
    }

    #[test]
    fn the_order_of_rows_does_not_matter(
        (rows, shuffled) in rows().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle()))
    ) {
        prop_assert_eq!(explained(&rows), explained(&shuffled));
    }

    #[test]
    fn a_leaf_in_two_rows_is_one_leaf(rows in rows(), place in any::<prop::sample::Index>(), part in 0.0..1.0) {
        prop_assume!(!rows.is_empty());
        let mut split = rows.clone();
        let row = &mut split[place.index(rows.len())];
        let mut other = row.clone();
        other.1 = (row.1 as f64 * part) as u64;
        other.1 = other.1.min(row.1);
        row.1 -= other.1;
        other.2 = row.2;
        row.2 = 0;
        split.push(other);
        prop_assert_eq!(explained(&rows), explained(&split));
    }
}
