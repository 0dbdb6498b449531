//! The vectors of series, rates and comparisons, which are made from tables.

use serde_json::{Value, json};
use tallyfold::{
    Comparison, Counts, Deltas, Frame, Rates, Result, Row, Series, Shares, TimeStep, Timestamp,
    Values, compare,
};

use super::{check_error, check_top, list, load_table, range_of, run, strings, wanted_of};

#[test]
fn series() {
    run("series", |case| match series_of(case) {
        Ok(series) => {
            let json: Value = serde_json::from_str(&series.to_json()).expect("JSON");
            assert_eq!(Some(&json), case.get("series"));
            assert_eq!(rows_of(&series), rows_of_windows(&case["series"]["windows"]));
        }
        Err(error) => check_error(case, &error),
    });
}

#[test]
fn rates() {
    run("rates", |case| {
        let given = load_table(&case["given"]).expect("a good table");
        let expected = list(&case["rates"]);
        assert_eq!(given.len(), expected.len());
        for (row, expected) in given.rows().zip(expected) {
            check_rates(expected, row.counts().rates());
        }
        check_rates(&case["totals"], given.totals().rates());
    });
}

#[test]
fn comparisons() {
    run("comparisons", |case| {
        let [before, after] = ["before", "after"].map(|side| load_table(&case[side]));
        let outcome = compare(&before.expect("a good table"), &after.expect("a good table"));
        let comparison = match outcome {
            Ok(comparison) => comparison,
            Err(error) => return check_error(case, &error),
        };
        if let Some(top) = case.get("top") {
            return check_top(case, top, &comparison);
        }
        let json: Value = serde_json::from_str(&comparison.to_json()).expect("JSON");
        assert_eq!(Some(&json), case.get("comparison"));
        check_comparison(&case["comparison"], &comparison);
        let shares = list(&case["shares"]);
        assert_eq!(comparison.len(), shares.len());
        for (row, expected) in comparison.rows().zip(shares) {
            check_shares(expected, row.share());
        }
    });
}

fn series_of(case: &Value) -> Result<Series> {
    let mut tables = list(&case["tables"]).iter().map(load_table);
    let first = tables.next().expect("a table")?;
    let mut table = tables.try_fold(first, |sum, table| sum.merge(&table?, false))?;
    if let Some(filter) = case.get("filter") {
        table = table.filter(&wanted_of(filter))?;
    }
    if let Some(names) = case.get("group_by") {
        table = table.group_by(&strings(names).expect("names"))?;
    }
    if let Some(range) = case.get("between") {
        table = table.between(range_of(range)?)?;
    }
    let step = case["step"].as_str().map(TimeStep::parse).transpose()?;
    let mut series = match case["zone"].as_str() {
        None => table.by_window(step)?,
        Some(zone) => {
            let midnights = list(&case["midnights"]).iter();
            let midnights = midnights.map(|at| Timestamp::parse(at.as_str().expect("text")));
            table.by_window_in(step, zone, &midnights.collect::<Result<Vec<_>>>()?)?
        }
    };
    if case.get("filled").is_some() {
        series = series.fill_zeros()?;
    }
    Ok(series)
}

/// The rows of a series. Checks that each row is the same when it is read from the columns.
fn rows_of(series: &Series) -> Vec<Value> {
    let row = |row: Row<'_, Series>| {
        let (at, counts) = (row.index(), row.counts());
        let values: Vec<&str> = row.values().collect();
        assert_eq!(column_values(series, at), values);
        let counts_of = series.counts();
        let columns = [counts_of.success()[at], counts_of.errors()[at], counts_of.filtered()[at]];
        assert_eq!(columns, [counts.success, counts.errors, counts.filtered]);
        let window_id = series.window_ids()[at];
        let window = series.windows()[window_id as usize];
        assert_eq!(
            (row.window(), row.complete(), row.provisional()),
            (window.window, window.complete, window.provisional)
        );
        let [success, errors, filtered] = columns.map(|count| count.to_string());
        json!([window_id, {
            "values": values, "success": success, "errors": errors, "filtered": filtered,
        }])
    };
    series.rows().map(row).collect()
}

/// A row's dimension values, read from the columns.
fn column_values(frame: &dyn Frame, at: usize) -> Vec<&str> {
    let columns = frame.columns().into_iter();
    let values = columns.filter_map(|column| match column.values {
        Values::Texts { dictionary, ids } => Some(dictionary.value(ids[at])),
        _ => None,
    });
    values.collect()
}

fn rows_of_windows(windows: &Value) -> Vec<Value> {
    let windows = (0_u32..).zip(list(windows));
    windows
        .flat_map(|(id, window)| list(&window["rows"]).iter().map(move |row| (id, row)))
        .map(|(id, row)| json!([id, row]))
        .collect()
}

fn check_rates(expected: &Value, rates: Rates) {
    let rates = [("delivery", rates.delivery), ("error", rates.error), ("filter", rates.filter)];
    for (name, rate) in rates {
        assert_eq!(bits(&expected[name]), rate.map(f64::to_bits), "{name}");
    }
}

/// The bits of the float that a decimal represents.
fn bits(decimal: &Value) -> Option<u64> {
    let decimal = decimal.as_str()?;
    Some(decimal.parse::<f64>().expect("a decimal").to_bits())
}

/// Checks the rows of a comparison. Each row must be the same when it is read from the columns.
fn check_comparison(expected: &Value, comparison: &Comparison) {
    let row = |row: Row<'_, Comparison>| {
        let at = row.index();
        let values: Vec<&str> = row.values().collect();
        assert_eq!(column_values(comparison, at), values);
        assert_eq!(row.presence(), comparison.presences()[at]);
        assert!(comparison.positions(row.presence()).any(|position| position == at));
        let sides =
            [(row.before(), comparison.before_counts()), (row.after(), comparison.after_counts())];
        let [before, after] = sides.map(|(counts, columns)| {
            let columns = [columns.success(), columns.errors(), columns.filtered()];
            assert_eq!(columns.map(|column| column[at]), of_counts(counts.unwrap_or_default()));
            counts.map(|counts| digits(of_counts(counts)))
        });
        let Deltas { success, errors, filtered } = row.delta();
        let delta = digits([success, errors, filtered]);
        json!({
            "values": values, "presence": row.presence().as_str(),
            "before": before, "after": after, "delta": delta,
        })
    };
    assert_eq!(Value::from_iter(comparison.rows().map(row)), expected["rows"]);
}

fn of_counts(counts: Counts) -> [u64; 3] {
    [counts.success, counts.errors, counts.filtered]
}

fn digits<N: ToString>([success, errors, filtered]: [N; 3]) -> Value {
    json!({
        "success": success.to_string(),
        "errors": errors.to_string(),
        "filtered": filtered.to_string(),
    })
}

fn check_shares(expected: &Value, shares: Shares) {
    let Shares { success, errors, filtered } = shares;
    for (name, share) in Counts::NAMES.into_iter().zip([success, errors, filtered]) {
        assert_eq!(bits(&expected[name]), share.map(f64::to_bits), "{name}");
    }
}
