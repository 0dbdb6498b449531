//! The vectors of what is made of tables: series and rates.

use serde_json::{Value, json};
use tallyfold::{Rates, Result, Series, SeriesRow, TimeStep};

use super::{check_error, list, load_table, run, strings, wanted_of};

#[test]
fn series() {
    run("series", |case| match series_of(case) {
        Ok(series) => {
            let json: Value = serde_json::from_str(&series.to_json()).expect("JSON");
            assert_eq!(Some(&json), case.get("series"));
            assert_eq!(
                rows_of(&series),
                rows_of_windows(&case["series"]["windows"])
            );
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
    table.by_window(case["step"].as_str().map(TimeStep::parse).transpose()?)
}

/// Each row through the rows and through the columns, which must agree.
fn rows_of(series: &Series) -> Vec<Value> {
    let row = |row: SeriesRow<'_>| {
        let (at, counts) = (row.index(), row.counts());
        let columns = series.columns().map(|column| {
            let mut values = column.dictionary.values();
            values.nth(column.ids[at] as usize).expect("a value")
        });
        let values: Vec<&str> = row.values().collect();
        assert!(columns.eq(values.iter().copied()));
        let columns = [
            series.success()[at],
            series.errors()[at],
            series.filtered()[at],
        ];
        assert_eq!(columns, [counts.success, counts.errors, counts.filtered]);
        let window_id = series.window_ids()[at];
        let window = series.windows()[window_id as usize];
        assert_eq!(
            (row.window(), row.complete()),
            (window.window, window.complete)
        );
        let [success, errors, filtered] = columns.map(|count| count.to_string());
        json!([window_id, {
            "values": values, "success": success, "errors": errors, "filtered": filtered,
        }])
    };
    series.rows().map(row).collect()
}

fn rows_of_windows(windows: &Value) -> Vec<Value> {
    let windows = (0_u32..).zip(list(windows));
    windows
        .flat_map(|(id, window)| list(&window["rows"]).iter().map(move |row| (id, row)))
        .map(|(id, row)| json!([id, row]))
        .collect()
}

fn check_rates(expected: &Value, rates: Rates) {
    let rates = [
        ("delivery", rates.delivery),
        ("error", rates.error),
        ("filter", rates.filter),
    ];
    for (name, rate) in rates {
        assert_eq!(bits(&expected[name]), rate.map(f64::to_bits), "{name}");
    }
}

/// The float that a decimal names, to the bit.
fn bits(decimal: &Value) -> Option<u64> {
    let decimal = decimal.as_str()?;
    Some(decimal.parse::<f64>().expect("a decimal").to_bits())
}
