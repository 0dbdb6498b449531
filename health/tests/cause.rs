//! Tests of explanations, for any counts and for examples.

use crate::fixture::Fixture;
use proptest::prelude::*;
use tallyfold_health::{
    Attribute, Cause, ExplainOptions, Explanation, Leaves, Measure, Tally, explain, explain_leaves,
};

/// A leaf: its values, and part and whole before and now.
type Row = (Vec<u8>, [u64; 4]);

fn leaves(width: usize, rows: &[Row]) -> Leaves {
    let column = |place: usize| {
        let texts: Vec<String> = rows.iter().map(|row| format!("v{}", row.0[place])).collect();
        Attribute::of_texts(format!("a{place}"), &texts).unwrap()
    };
    let tally = |part, whole| Tally { part, whole };
    Leaves::new(
        (0..width).map(column).collect(),
        rows.iter().map(|row| tally(row.1[0], row.1[1])).collect(),
        rows.iter().map(|row| tally(row.1[2], row.1[3])).collect(),
    )
    .unwrap()
}

fn explained(width: usize, rows: &[Row]) -> Explanation {
    explain_leaves(&leaves(width, rows), Measure::ErrorRate, &ExplainOptions::default())
}

fn named(explanation: &Explanation) -> Vec<Vec<(String, String)>> {
    explanation.causes.iter().map(|cause| cause.r#where.clone()).collect()
}

/// Ordinary counts, and extreme counts up to `most`.
fn count(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..2000u64, 1 => Just(0), 1 => Just(most), 1 => 0..most]
}

fn rows(width: usize) -> impl Strategy<Value = Vec<Row>> {
    // There are at most 40 leaves, and the sum over all of them must be below 2^64.
    let most = u64::MAX / 40;
    let counts = [count(most), count(most), count(most), count(most)];
    prop::collection::vec((prop::collection::vec(0..4u8, width), counts), 0..40)
}

fn any_rows() -> impl Strategy<Value = (usize, Vec<Row>)> {
    (0..=8usize).prop_flat_map(|width| (Just(width), rows(width)))
}

/// Makes 60 leaves. In leaves with the value 1 of the first attribute, `fails` percent more of all attempts fail now. Other leaves
/// have the same rate as before.
fn incident(fails: u64) -> Vec<Row> {
    let leaf = |place: u64| {
        let (a, b, c) = (place % 5, place / 5 % 4, place / 20);
        let whole = 200 + place * 37 % 300;
        let errors = 2 + place * 13 % 5;
        let now = if a == 1 { errors + whole * fails / 100 } else { errors };
        (vec![a as u8, b as u8, c as u8], [errors * 4, whole * 4, now, whole])
    };
    (0..60).map(leaf).collect()
}

proptest! {
    #[test]
    fn counts_are_exact_and_numbers_finite((width, rows) in any_rows()) {
        for measure in Measure::ALL {
            let explanation = explain_leaves(&leaves(width, &rows), *measure, &ExplainOptions::default());
            let events: i128 = explanation.causes.iter().map(|cause| cause.events).sum();
            prop_assert_eq!(events + explanation.unexplained, explanation.change);
            prop_assert!(explanation.causes.len() <= 5 && explanation.others.len() <= 5);
            let is_finite = |cause: &Cause| [cause.expected, cause.share, cause.score].iter().all(|number| number.is_finite());
            prop_assert!(explanation.causes.iter().chain(&explanation.others).all(is_finite));
            let parts: u128 = explanation.causes.iter().map(|cause| u128::from(cause.now.part)).sum();
            prop_assert!(parts <= u128::from(explanation.now.part));
        }
    }

    #[test]
    fn the_order_of_leaves_makes_no_difference(
        (width, rows, shuffled) in any_rows().prop_flat_map(|(width, rows)| {
            (Just(width), Just(rows.clone()), Just(rows).prop_shuffle())
        })
    ) {
        prop_assert_eq!(explained(width, &rows), explained(width, &shuffled));
    }

    #[test]
    fn a_leaf_in_two_rows_is_one_leaf((width, rows) in any_rows(), at in any::<u64>()) {
        let mut split = Vec::new();
        for (values, [a, b, c, d]) in &rows {
            let part = |count: u64| if count == 0 { 0 } else { at % count };
            // In both rows, the part is at most the whole, because a larger part would change the whole.
            let (a, c) = ((*a).min(*b), (*c).min(*d));
            split.push((values.clone(), [0, part(*b - a), 0, part(*d - c)]));
            split.push((values.clone(), [a, b - part(*b - a), c, d - part(*d - c)]));
        }
        let sound: Vec<Row> = rows.iter().map(|(values, [a, b, c, d])| (values.clone(), [*a.min(b), *b, *c.min(d), *d])).collect();
        prop_assert_eq!(explained(width, &sound), explained(width, &split));
    }

    #[test]
    fn a_clear_cause_is_named_at_any_scale(scale in 1..1_000_000u64, fails in 20..90u64) {
        let rows: Vec<Row> = incident(fails)
            .into_iter()
            .map(|(values, counts)| (values, counts.map(|count| count * scale)))
            .collect();
        let explanation = explained(3, &rows);
        prop_assert_eq!(named(&explanation), vec![vec![("a0".to_owned(), "v1".to_owned())]]);
        prop_assert_eq!(explanation.causes[0].events, explanation.change);
    }
}

#[test]
fn a_fall_is_explained_like_a_rise() {
    let rows: Vec<Row> = incident(40)
        .into_iter()
        .map(|(values, [a, b, c, d])| (values, [c * 4, d * 4, a / 4, b / 4]))
        .collect();
    let explanation = explained(3, &rows);
    assert_eq!(named(&explanation), vec![vec![("a0".to_owned(), "v1".to_owned())]]);
    assert!(explanation.change < 0 && explanation.causes[0].events == explanation.change);
}

#[test]
fn a_rate_above_a_half_has_the_causes_of_its_complement() {
    let complement = |part: u64, whole: u64| whole.saturating_sub(part);
    let rows: Vec<Row> = incident(40)
        .into_iter()
        .map(|(values, [a, b, c, d])| (values, [complement(a, b), b, complement(c, d), d]))
        .collect();
    assert_eq!(named(&explained(3, &rows)), vec![vec![("a0".to_owned(), "v1".to_owned())]]);
}

#[test]
fn a_change_of_everything_has_no_narrower_cause() {
    let rows: Vec<Row> = incident(0)
        .into_iter()
        .map(|(values, [a, b, c, d])| (values, [a, b, c + d / 4, d]))
        .collect();
    let explanation = explained(3, &rows);
    assert!(explanation.is_global && explanation.causes.is_empty(), "{explanation:?}");
    assert_eq!(explanation.unexplained, explanation.change);
    assert!(
        explanation.sentence.contains("there is no narrower cause"),
        "{}",
        explanation.sentence
    );
}

#[test]
fn without_a_change_no_cause_is_named() {
    let explanation = explained(3, &incident(0));
    assert!(explanation.causes.is_empty() && explanation.change == 0, "{explanation:?}");
    assert!(explanation.is_normal && !explanation.is_global, "{explanation:?}");
    assert_eq!(
        explanation.sentence,
        "error_rate: 1.2% (240 of 20,790) now, 1.2% (960 of 83,160) before, no difference: within normal variation (probability 100%), \
         no cause named."
    );
}

#[test]
fn a_change_by_chance_is_within_normal_variation() {
    // Each leaf has at most one event more or fewer than at its earlier rate.
    let rows: Vec<Row> = incident(0)
        .into_iter()
        .enumerate()
        .map(|(place, (values, [a, b, c, d]))| (values, [a, b, c + 1 - (place as u64 * 7 % 3), d]))
        .collect();
    for measure in [Measure::ErrorRate, Measure::Errors] {
        let explanation = explain_leaves(&leaves(3, &rows), measure, &ExplainOptions::default());
        if measure == Measure::ErrorRate {
            assert!(explanation.is_normal && explanation.probability > 0.02, "{explanation:?}");
        }
        assert!(!(explanation.is_normal && explanation.is_global));
    }
}

#[test]
fn a_large_change_of_one_or_two_leaves_is_not_normal() {
    let rows = |now: u64, others: usize| -> Vec<Row> {
        let steady = (1..=others).map(|other| (vec![other as u8], [1_000, 1_000, 1_003, 1_003]));
        [(vec![0], [1_000, 1_000, now, now])].into_iter().chain(steady).collect()
    };
    let explained = |now, others| {
        let leaves = leaves(1, &rows(now, others));
        explain_leaves(&leaves, Measure::Success, &ExplainOptions::default())
    };
    for others in 0..6 {
        assert!(!explained(500, others).is_normal, "{others}");
    }
    // A change by a tenth is normal if there is only one leaf.
    assert!(explained(900, 0).is_normal);
    for others in 1..6 {
        let cause = [("a0".to_owned(), "v0".to_owned())];
        assert_eq!(named(&explained(500, others)), [cause], "{others}");
    }
    // One of three leaves with few errors has many errors now.
    let errors = |now: u64| -> Vec<Row> {
        let counts = [[3, 1_003, 3, 1_003], [3, 1_003, now, 1_000 + now], [3, 1_003, 3, 1_003]];
        counts.into_iter().enumerate().map(|(at, counts)| (vec![at as u8], counts)).collect()
    };
    let explanation =
        explain_leaves(&leaves(1, &errors(63)), Measure::Errors, &ExplainOptions::default());
    assert_eq!(named(&explanation), [[("a0".to_owned(), "v1".to_owned())]]);
    // A rate of 2% doubles.
    let rates = |now: u64, others: usize| {
        let steady = (1..=others).map(|other| (vec![other as u8], [200, 10_000, 201, 10_000]));
        let rows: Vec<Row> =
            [(vec![0], [200, 10_000, now, 10_000])].into_iter().chain(steady).collect();
        explain_leaves(&leaves(1, &rows), Measure::ErrorRate, &ExplainOptions::default())
    };
    for others in 0..4 {
        assert!(!rates(400, others).is_normal, "{others}");
        assert!(rates(215, others).is_normal, "{others}");
    }
}

#[test]
fn the_share_of_a_reason_is_relative_to_all_events() {
    // Only filtered events have a reason. Now, more events of one source are filtered for one of the reasons.
    let rows = [
        ("web", "", [0, 900, 0, 500]),
        ("web", "consent", [50, 50, 450, 450]),
        ("web", "quota", [50, 50, 50, 50]),
        ("app", "", [0, 900, 0, 900]),
        ("app", "consent", [50, 50, 50, 50]),
        ("app", "quota", [50, 50, 50, 50]),
    ];
    let column = |name, texts: Vec<&str>| Attribute::of_texts(name, &texts).unwrap();
    let tally = |part, whole| Tally { part, whole };
    let leaves = Leaves::new(
        vec![
            column("write_key", rows.iter().map(|row| row.0).collect()),
            column("reason", rows.iter().map(|row| row.1).collect()).of_part(),
        ],
        rows.iter().map(|row| tally(row.2[0], row.2[1])).collect(),
        rows.iter().map(|row| tally(row.2[2], row.2[3])).collect(),
    )
    .unwrap();
    let explanation = explain_leaves(&leaves, Measure::FilteredRate, &ExplainOptions::default());
    assert_eq!(
        named(&explanation),
        vec![vec![
            ("write_key".to_owned(), "web".to_owned()),
            ("reason".to_owned(), "consent".to_owned())
        ]]
    );
    let cause = &explanation.causes[0];
    assert_eq!((cause.before.whole, cause.now.whole), (Some(1000), Some(1000)));
    assert_eq!(cause.events, 400);
    assert_eq!(explanation.change, 400);
}

#[test]
fn invalid_columns_are_refused() {
    let attribute = |ids: usize| Attribute::of_texts("a", &vec!["x"; ids]).unwrap();
    let tallies = |count: usize, part| vec![Tally { part, whole: 0 }; count];
    let code =
        |attributes, before, now| Leaves::new(attributes, before, now).unwrap_err().code().as_str();
    assert_eq!(code(vec![attribute(1)], tallies(2, 0), tallies(2, 0)), "invalid_argument");
    assert_eq!(code(vec![attribute(2)], tallies(1, 0), tallies(2, 0)), "invalid_argument");
    assert_eq!(code(vec![attribute(1); 9], tallies(1, 0), tallies(1, 0)), "invalid_argument");
    assert_eq!(code(Vec::new(), tallies(2, u64::MAX), tallies(2, 0)), "sum_overflow");
}

#[test]
fn the_digits_of_large_numbers_are_grouped() {
    let mut rows: Vec<Row> =
        (0..8).map(|at| (vec![at], [1_000, 2_000_000, 1_000, 2_000_000])).collect();
    rows[3].1[2] = 1_234_567;
    assert_eq!(
        explained(1, &rows).sentence,
        "error_rate: 7.8% (1,241,567 of 16,000,000) now, 0.05% (8,000 of 16,000,000) before, 1,233,567 events more than at the rate \
         before: +1,233,567 from a0 \"v3\" (1,234,567 of 2,000,000 now, 1,000 of 2,000,000 before); 0 elsewhere."
    );
}

#[test]
fn an_earlier_incident_is_left_out_unless_it_is_kept() {
    let mut fixture = Fixture::delivery(&["integration"]);
    fixture.fill(0..8, |slot| {
        let errors = if slot == 3 { 400 } else { 10 };
        vec![(vec!["Webhook"], [1_000 - errors, errors, 0])]
    });
    let (all, before) = (fixture.table(), fixture.until(7));
    let mut last = Fixture::delivery(&["integration"]);
    last.fill(7..8, |_| vec![(vec!["Webhook"], [900, 100, 0])]);
    let now = last.table();
    let explained = |before, now, keep| {
        let options = ExplainOptions::default().keep_unusual(keep);
        explain(before, now, Measure::ErrorRate, &options).unwrap()
    };
    let by_default = explained(&before, &now, false);
    assert_eq!((by_default.before.part, by_default.change), (60, 90));
    assert_eq!(by_default.left_out, [fixture.range(3, 4)]);
    assert!(by_default.sentence.ends_with("One unusual earlier window was left out."));
    let kept = explained(&before, &now, true);
    assert_eq!((kept.before.part, kept.change), (460, 34));
    assert!(kept.left_out.is_empty());
    // A table does not differ from itself.
    let same = explained(&all, &all, false);
    assert_eq!((same.change, same.left_out.len()), (0, 0));
}
