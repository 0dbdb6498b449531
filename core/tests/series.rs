//! Series are tables divided by time, and comparisons are two tables next to each other: nothing is
//! lost or added.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use tallyfold::{
    Code, Comparison, CountName, CountTable, Counts, Deltas, Frame, Presence, Series, TimeStep,
    Timestamp, Window, compare,
};

/// 2025-12-31T21:00:00Z, in minutes, so that tables extend over midnight.
const START: i64 = 29_453_580;

#[test]
fn nothing_can_be_made_of_no_table() {
    let error = CountTable::merge_all([]).expect_err("no table");
    assert_eq!((error.code(), error.argument_name()), (Code::MissingArgument, Some("tables")));
}

#[test]
fn a_change_that_no_signed_column_holds_is_refused() {
    let signed = |success: i128| {
        let deltas = Deltas { success, ..Deltas::default() };
        deltas.signed()
    };
    assert_eq!(signed(i128::from(i64::MAX)), Ok([i64::MAX, 0, 0]));
    assert_eq!(signed(i128::from(i64::MIN)), Ok([i64::MIN, 0, 0]));
    for beyond in [i128::from(i64::MAX) + 1, i128::from(i64::MIN) - 1] {
        let error = signed(beyond).expect_err("too large");
        assert_eq!(error.code(), Code::CountOverflow);
    }
}

/// Values that have a common prefix, are empty, or sort differently by UTF-16 and by UTF-8.
const VALUES: [&str; 7] = ["", "a", "aa", "b", "ключ", "\u{ffee}", "😀"];

/// A response: a gap before it and its length, both in minutes, and its rows.
type Response = (i64, i64, BTreeMap<(usize, usize), [u64; 3]>);

/// Responses in time order. None of their sums overflows.
fn responses() -> impl Strategy<Value = Vec<Response>> {
    let lengths = prop::sample::select(vec![1, 5, 5, 5, 10, 15, 15, 30, 60]);
    let gaps = prop::sample::select(vec![0, 0, 0, 5, 15, 60, 1_440]);
    let rows = prop::collection::btree_map(
        (0..VALUES.len(), 0..VALUES.len()),
        prop::array::uniform3(prop_oneof![Just(0), 0..9_u64, 0..1_u64 << 56]),
        0..8,
    );
    prop::collection::vec((gaps, lengths, rows), 1..12)
}

fn minute(minute: i64) -> Timestamp {
    Timestamp::from_unix_ms((START + minute) * 60_000).expect("a year of four digits")
}

/// The tables of responses, each of one window.
fn tables(responses: &[Response]) -> Vec<CountTable> {
    let mut now = 0;
    let table = |(gap, length, rows): &Response| {
        let (start, end) = (now + gap, now + gap + length);
        now = end;
        let totals = rows.values().fold([0; 3], |sum: [u64; 3], counts| {
            [sum[0] + counts[0], sum[1] + counts[1], sum[2] + counts[2]]
        });
        let digits = |[success, errors, filtered]: [u64; 3]| {
            json!({
                "success": success.to_string(),
                "errors": errors.to_string(),
                "filtered": filtered.to_string(),
            })
        };
        let row = |((key, integration), counts): (&(usize, usize), &[u64; 3])| {
            let mut row = digits(*counts);
            row["values"] = json!([VALUES[*key], VALUES[*integration]]);
            row
        };
        let saved = json!({
            "format": "tallyfold-table/1", "metric": null, "filter": [],
            "dimensions": ["write_key", "integration"], "totals": digits(totals),
            "windows": [{
                "start": minute(start).to_string(), "end": minute(end).to_string(),
                "reported": null, "notes": {"repeated_combinations": 0, "null_dimensions": 0},
                "rows": rows.iter().map(row).collect::<Vec<_>>(),
            }],
        });
        CountTable::from_json(saved.to_string().as_bytes()).expect("a good table")
    };
    responses.iter().map(table).collect()
}

fn merged(mut tables: Vec<CountTable>, turn: usize) -> CountTable {
    let turn = turn % tables.len();
    tables.rotate_left(turn);
    let mut tables = tables.into_iter();
    let first = tables.next().expect("at least one");
    tables.fold(first, |sum, table| sum.merge(&table, false).expect("different times"))
}

type Sums = BTreeMap<Vec<String>, Counts>;

fn add(sums: &mut Sums, values: Vec<String>, counts: Counts) {
    let sum = sums.entry(values).or_default();
    sum.success += counts.success;
    sum.errors += counts.errors;
    sum.filtered += counts.filtered;
}

fn sums_of(table: &CountTable) -> Sums {
    let mut sums = Sums::new();
    for row in table.rows() {
        add(&mut sums, row.values().map(str::to_owned).collect(), row.counts());
    }
    sums
}

fn sums_over_windows(series: &Series, inside: impl Fn(Window) -> bool) -> Sums {
    let mut sums = Sums::new();
    for row in series.rows().filter(|row| inside(row.window())) {
        add(&mut sums, row.values().map(str::to_owned).collect(), row.counts());
    }
    sums
}

fn step() -> impl Strategy<Value = TimeStep> {
    let texts = prop::sample::select(vec!["1m", "5m", "15m", "30m", "1h", "3h", "1d"]);
    texts.prop_map(|text| TimeStep::parse(text).expect("a good step"))
}

fn check_order(series: &Series) {
    let keys: Vec<(u32, Vec<&str>)> = series
        .rows()
        .map(|row| (series.window_ids()[row.index()], row.values().collect()))
        .collect();
    assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
    let windows = series.windows();
    assert!(windows.is_sorted_by(|one, other| one.window.end() <= other.window.start()));
}

fn of_counts(counts: Counts) -> [i128; 3] {
    [counts.success, counts.errors, counts.filtered].map(i128::from)
}

fn of_deltas(deltas: Deltas) -> [i128; 3] {
    [deltas.success, deltas.errors, deltas.filtered]
}

/// Checks that each side has the rows of its table, and that the rows are sorted.
fn check_sides(comparison: &Comparison, before: &CountTable, after: &CountTable) {
    let mut sides = [Sums::new(), Sums::new()];
    for row in comparison.rows() {
        let values: Vec<String> = row.values().map(str::to_owned).collect();
        for (side, counts) in sides.iter_mut().zip([row.before(), row.after()]) {
            if let Some(counts) = counts {
                side.insert(values.clone(), counts);
            }
        }
        let presence = match (row.before(), row.after()) {
            (Some(_), Some(_)) => Presence::Both,
            (None, _) => Presence::New,
            (_, None) => Presence::Vanished,
        };
        assert_eq!(row.presence(), presence);
    }
    assert_eq!(sides, [sums_of(before), sums_of(after)]);
    let values: Vec<Vec<&str>> = comparison.rows().map(|row| row.values().collect()).collect();
    assert!(values.is_sorted_by(|one, other| one < other), "{values:?}");
    let totals = [comparison.before_totals(), comparison.after_totals()];
    assert_eq!(totals, [before.totals(), after.totals()]);
    assert_eq!(comparison.before_coverage(), before.coverage());
    assert_eq!(comparison.after_coverage(), after.coverage());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn each_window_keeps_its_response(responses in responses(), turn in 0..12_usize) {
        let tables = tables(&responses);
        let table = merged(tables.clone(), turn);
        let series = table.by_window(None).expect("no step");
        check_order(&series);
        let windows: Vec<Window> = series.windows().iter().map(|of| of.window).collect();
        prop_assert_eq!(windows, table.windows());
        prop_assert!(series.windows().iter().all(|of| of.complete));
        for one in &tables {
            let found = sums_over_windows(&series, |window| window == one.windows()[0]);
            prop_assert_eq!(found, sums_of(one));
        }
        prop_assert_eq!(sums_over_windows(&series, |_| true), sums_of(&table));
        prop_assert_eq!(series.totals(), table.totals());
    }

    #[test]
    fn merging_all_at_once_is_merging_one_by_one(responses in responses(), turn in 0..12_usize) {
        let mut tables = tables(&responses);
        let one_by_one = merged(tables.clone(), 0);
        let turn = turn % tables.len();
        tables.rotate_left(turn);
        prop_assert_eq!(CountTable::merge_all(&tables), Ok(one_by_one.clone()));
        let all: Vec<CountTable> = tables.iter().chain(&tables[..1]).cloned().collect();
        let error = CountTable::merge_all(&all).expect_err("the same time twice");
        prop_assert_eq!(error.code(), Code::OverlappingCoverage);
        let regrouped = [tables[0].clone(), one_by_one.group_by(&["write_key"]).expect("a dimension")];
        let error = CountTable::merge_all(&regrouped).expect_err("other dimensions");
        prop_assert_eq!(error.code(), Code::IncompatibleTables);
    }

    /// Coverage and gaps are the range: none twice, none missing.
    #[test]
    fn gaps_are_what_coverage_leaves(responses in responses(), from in -90..90_i64, length in 1..9_000_i64) {
        let table = merged(tables(&responses), 0);
        let range = Window::new(minute(from), minute(from + length)).expect("a window");
        let inside = table.windows().into_iter().filter(|window| window.overlaps(range));
        let clipped = inside.map(|window| {
            Window::new(window.start().max(range.start()), window.end().min(range.end())).expect("a window")
        });
        let mut tiles: Vec<Window> = clipped.chain(table.gaps(Some(range))).collect();
        tiles.sort_unstable();
        let mut reached = range.start();
        for tile in tiles {
            prop_assert_eq!(tile.start(), reached);
            reached = tile.end();
        }
        prop_assert_eq!(reached, range.end());
        let coverage = table.coverage();
        let between: Vec<Window> = coverage
            .windows(2)
            .map(|pair| Window::new(pair[0].end(), pair[1].start()).expect("a gap"))
            .collect();
        prop_assert_eq!(table.gaps(None), between);
    }

    #[test]
    fn steps_add_up_to_the_table(responses in responses(), turn in 0..12_usize, step in step()) {
        let tables = tables(&responses);
        let table = merged(tables.clone(), turn);
        let fits = |table: &CountTable| {
            let window = table.windows()[0];
            step.after(window.start()).is_some_and(|end| window.end() <= end)
        };
        let Ok(series) = table.by_window(Some(step)) else {
            prop_assert!(!tables.iter().all(fits));
            return Ok(());
        };
        prop_assert!(tables.iter().all(fits));
        check_order(&series);
        prop_assert_eq!(sums_over_windows(&series, |_| true), sums_of(&table));
        for bucket in series.windows() {
            let (start, end) = (bucket.window.start(), bucket.window.end());
            prop_assert_eq!((step.floor(start), step.after(start)), (start, Some(end)));
            let inside: Vec<CountTable> = tables
                .iter()
                .filter(|table| bucket.window.contains(table.windows()[0]))
                .cloned()
                .collect();
            let alone = merged(inside, 0);
            prop_assert_eq!(bucket.complete, alone.coverage() == [bucket.window]);
            prop_assert!(!bucket.provisional);
            let found = sums_over_windows(&series, |window| window == bucket.window);
            prop_assert_eq!(found, sums_of(&alone));
        }
    }

    #[test]
    fn a_series_of_a_group_is_the_group_of_a_series(responses in responses(), step in step()) {
        let table = merged(tables(&responses), 0);
        let Ok(series) = table.by_window(Some(step)) else { return Ok(()) };
        let grouped = table.group_by(&["integration"]).expect("a dimension of the table");
        let grouped = grouped.by_window(Some(step)).expect("the same windows");
        for bucket in series.windows() {
            let mut sums = Sums::new();
            for (values, counts) in sums_over_windows(&series, |window| window == bucket.window) {
                add(&mut sums, values[1..].to_vec(), counts);
            }
            prop_assert_eq!(sums_over_windows(&grouped, |window| window == bucket.window), sums);
        }
    }

    /// Each window has each combination once; what was there is unchanged, and all else is 0.
    #[test]
    fn a_filled_series_has_every_combination_in_every_window(responses in responses(), step in prop::option::of(step())) {
        let table = merged(tables(&responses), 0);
        for table in [table.clone(), table.group_by::<&str>(&[]).expect("no dimension")] {
            let Ok(series) = table.by_window(step) else { return Ok(()) };
            let filled = series.fill_zeros().expect("few rows");
            check_order(&filled);
            let per_window = if table.dimensions().is_empty() { 1 } else { table.len() };
            prop_assert_eq!(filled.len(), series.windows().len() * per_window);
            prop_assert_eq!(filled.windows(), series.windows());
            prop_assert_eq!(filled.complete(), series.windows().iter().all(|of| of.complete));
            prop_assert_eq!(filled.totals(), series.totals());
            for bucket in series.windows() {
                let inside = |window: Window| window == bucket.window;
                let mut found = sums_over_windows(&filled, inside);
                let expected = sums_over_windows(&series, inside);
                found.retain(|values, counts| *counts != Counts::default() || expected.contains_key(values));
                prop_assert_eq!(found, expected);
            }
            prop_assert_eq!(filled.fill_zeros().expect("no more rows"), filled);
        }
    }

    /// The parts before, in and after a range are the whole, if no window is cut.
    #[test]
    fn slices_of_time_add_up(responses in responses(), from in -90..90_i64, length in 1..9_000_i64) {
        let table = merged(tables(&responses), 0);
        let cut = |start, end| Window::new(minute(start), minute(end)).expect("a window");
        let range = cut(from, from + length);
        let is_inside = |window: &Window| range.contains(*window);
        match table.between(range) {
            Ok(slice) => {
                let inside: Vec<Window> = table.windows().into_iter().filter(is_inside).collect();
                prop_assert_eq!(slice.windows(), inside);
                let others = [cut(-10_000, from), cut(from + length, 30_000)];
                let others = others.into_iter().filter_map(|range| table.between(range).ok());
                let all: Vec<CountTable> = others.chain([slice]).collect();
                prop_assert_eq!(CountTable::merge_all(&all), Ok(table));
            }
            Err(error) => {
                let overlaps = |window: &Window| range.overlaps(*window) && !is_inside(window);
                let is_cut = table.windows().iter().any(overlaps);
                let expected = if is_cut { Code::UnalignedWindow } else { Code::InvalidWindow };
                prop_assert_eq!(error.code(), expected);
            }
        }
    }

    /// What is equal has the same JSON, and the same JSON is of what is equal.
    #[test]
    fn equal_frames_have_equal_json(responses in responses(), other in responses(), turn in 0..12_usize) {
        let (table, other) = (merged(tables(&responses), turn), merged(tables(&other), 0));
        let again = CountTable::from_json(table.to_json().as_bytes()).expect("what was just written");
        prop_assert_eq!(&again, &table);
        prop_assert_eq!(table == other, table.to_json() == other.to_json());
        let (one, two) = (table.by_window(None), other.by_window(None));
        let (one, two) = (one.expect("no step"), two.expect("no step"));
        prop_assert_eq!(again.by_window(None).expect("no step"), one.clone());
        prop_assert_eq!(one == two, one.to_json() == two.to_json());
        let filled = one.fill_zeros().expect("few rows");
        prop_assert_eq!(one == filled, one.to_json() == filled.to_json());
        let (one, two) = (compare(&table, &other), compare(&table, &table));
        let (one, two) = (one.expect("the same dimensions"), two.expect("the same dimensions"));
        prop_assert_eq!(compare(&again, &other).expect("the same dimensions"), one.clone());
        prop_assert_eq!(one == two, one.to_json() == two.to_json());
    }

    #[test]
    fn before_and_delta_make_after(one in responses(), other in responses()) {
        let (before, after) = (merged(tables(&one), 0), merged(tables(&other), 0));
        let comparison = compare(&before, &after).expect("the same dimensions");
        check_sides(&comparison, &before, &after);
        let mut total = [0; 3];
        for row in comparison.rows() {
            let of = |counts: Option<Counts>| counts.map_or([0; 3], of_counts);
            let (old, new, delta) = (of(row.before()), of(row.after()), of_deltas(row.delta()));
            for count in 0..3 {
                prop_assert_eq!(old[count] + delta[count], new[count]);
                total[count] += delta[count];
            }
        }
        prop_assert_eq!(total, of_deltas(comparison.total_delta()));
        let back = compare(&after, &before).expect("the same dimensions");
        for (row, back) in comparison.rows().zip(back.rows()) {
            prop_assert!(row.values().eq(back.values()));
            prop_assert_eq!(of_deltas(row.delta()), of_deltas(back.delta()).map(|delta| -delta));
            prop_assert_eq!(row.share(), back.share());
        }
    }

    #[test]
    fn shares_add_up_to_one(one in responses(), other in responses()) {
        let (before, after) = (merged(tables(&one), 0), merged(tables(&other), 0));
        let comparison = compare(&before, &after).expect("the same dimensions");
        let total = of_deltas(comparison.total_delta());
        let mut sums = [0.0; 3];
        let mut sizes = [0.0; 3];
        for row in comparison.rows() {
            let shares = row.share();
            let shares = [shares.success, shares.errors, shares.filtered];
            for count in 0..3 {
                prop_assert_eq!(shares[count].is_none(), total[count] == 0);
                sums[count] += shares[count].unwrap_or(0.0);
                sizes[count] += shares[count].unwrap_or(0.0).abs();
            }
        }
        for count in (0..3).filter(|count| total[*count] != 0) {
            let error = (sums[count] - 1.0).abs();
            prop_assert!(error <= sizes[count] * 1e-14, "{} of {}", error, sizes[count]);
        }
    }

    #[test]
    fn nothing_changes_from_a_table_to_itself(responses in responses()) {
        let table = merged(tables(&responses), 0);
        let comparison = compare(&table, &table).expect("the same table");
        prop_assert_eq!(comparison.len(), table.len());
        prop_assert_eq!(comparison.total_delta(), Deltas::default());
        for row in comparison.rows() {
            prop_assert_eq!(row.presence(), Presence::Both);
            prop_assert_eq!(row.delta(), Deltas::default());
            prop_assert_eq!(row.share().success, None);
        }
    }

    #[test]
    fn top_has_the_largest_changes(one in responses(), other in responses(), n in 0..9_usize) {
        let (before, after) = (merged(tables(&one), 0), merged(tables(&other), 0));
        let comparison = compare(&before, &after).expect("the same dimensions");
        for (count, by) in CountName::ALL.iter().enumerate() {
            let size = |row: usize| {
                let row = comparison.row(row).expect("a row");
                of_deltas(row.delta())[count].unsigned_abs()
            };
            let mut order: Vec<usize> = (0..comparison.len()).collect();
            order.sort_by(|one, other| size(*other).cmp(&size(*one)).then(one.cmp(other)));
            order.truncate(n);
            prop_assert_eq!(comparison.top(n, (*by).into()), order);
        }
    }
}
