//! A table that comes from another memory, in two parts: its grand totals, and its rows as columns.

use std::ops::Range;

use tallyfold_engine::{Counts, Rows};

use super::parse::refusal;
use super::table::CountTable;
use super::windowed_columns::WindowedColumns;
use crate::code::Code;
use crate::error::{Error, Result};

impl CountTable {
    /// Rebuilds a table that was taken apart for a program whose parts have separate memories, such as two instances of
    /// WebAssembly. `totals` is the table grouped by no dimension, which has the properties of each window. `columns`
    /// are the columns of the table by window.
    ///
    /// # Errors
    /// `unknown_dimension` and `repeated_dimension`; `invalid_argument` if they are not of the same table;
    /// `sum_overflow`, and `group_limit` for more than 1 GiB of values.
    pub fn of_columns(totals: &Self, columns: &WindowedColumns) -> Result<Self> {
        let other = || {
            let message = "want the columns of a table as they are, and the totals of the same one";
            Error::argument("counts", Code::InvalidArgument, message)
        };
        let dimensions = columns.checked()?;
        let windows = columns.windows.iter().map(|(window, _)| *window);
        let is_same = totals.subject.dimensions.is_empty()
            && totals.subject.metric == columns.metric
            && columns.before.is_none()
            && totals.parts.iter().map(|part| part.window).eq(windows);
        if !is_same {
            return Err(other());
        }
        let mut parts = totals.parts.clone();
        let mut start = 0;
        for (id, part) in (0..).zip(&mut parts) {
            let rest = &columns.window_ids[start..];
            let end = start + rest.partition_point(|own| *own <= id);
            let rows = columns.rows(start..end)?;
            start = end;
            if rows.totals() != part.rows.totals() {
                return Err(other());
            }
            part.rows = rows.into();
        }
        Self::of_parts(totals.subject.grouped_by(dimensions), parts)
    }
}

impl WindowedColumns {
    fn rows(&self, range: Range<usize>) -> Result<Rows> {
        let ids: Vec<&[u32]> = self.ids.iter().map(|ids| &ids[range.clone()]).collect();
        let [success, errors, filtered] = &self.counts;
        let counts = range.map(|row| Counts {
            success: success[row],
            errors: errors[row],
            filtered: filtered[row],
        });
        Rows::of_sorted(&self.dictionaries, &ids, counts).map_err(refusal)
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::counts::frame::Frame;
    use crate::counts::metric::Metric;
    use crate::fold::aggregator::{Aggregator, AggregatorOptions};
    use crate::time::window::Window;

    /// A quarter of an hour in which some integrations sent something; `seed` determines which, and how much.
    fn quarter(number: u64, seed: u64) -> CountTable {
        let instant =
            |number: u64| format!("2026-01-01T{:02}:{:02}:00Z", number / 4, number % 4 * 15);
        let names = ["a", "b", "c", "d", "é"].iter().zip(0..);
        let counts: Vec<String> = names
            .filter(|(_, at)| !(at + seed).is_multiple_of(3))
            .map(|(name, at)| {
                format!(
                    r#"{{"success":"{}","errors":"{at}","filtered":"0","dimensions":{{"integration":"{name}","reason":"{}"}}}}"#,
                    seed * 100 + at,
                    ["", "x"][(seed % 2) as usize],
                )
            })
            .collect();
        let body = format!(
            r#"{{"start":"{}","end":"{}","totalDelivered":"{seed}","totalErrors":"1","totalFiltered":"0","counts":[{}]}}"#,
            instant(number),
            instant(number + 1),
            counts.join(",")
        );
        let options = AggregatorOptions {
            metric: Some(Metric::EventDelivery),
            ..AggregatorOptions::default()
        };
        let mut aggregator = Aggregator::new(&["integration", "reason"], options).unwrap();
        aggregator.push(body.as_bytes()).unwrap();
        let late = Window::parse("2026-01-01T15:00:00Z", "2026-01-02T00:00:00Z").unwrap();
        aggregator.finish().unwrap().marked(|own| late.contains(own))
    }

    /// Sixty-nine quarters with a gap, so that some are packed and some are not; one has no rows.
    fn table() -> CountTable {
        let mut all: Vec<_> = (0..70).filter(|of| *of != 9).map(|of| quarter(of, of % 7)).collect();
        let window = Window::parse("2026-01-01T20:00:00Z", "2026-01-01T20:15:00Z").unwrap();
        all.push(CountTable::empty(all[0].subject.clone(), window));
        CountTable::merge_all(&all).unwrap()
    }

    /// The columns of a table, as a host reads them from its series.
    fn columns(table: &CountTable) -> WindowedColumns {
        let series = table.by_window(None).unwrap();
        let counts = series.counts();
        WindowedColumns {
            metric: table.metric(),
            dimensions: table.dimensions().names().iter().map(|of| (*of).to_owned()).collect(),
            dictionaries: series.keys().dictionaries.to_vec(),
            ids: series.keys().ids.to_vec(),
            windows: series
                .windows()
                .iter()
                .map(|of| (of.window, of.complete && !of.provisional))
                .collect(),
            window_ids: series.window_ids().to_vec(),
            counts: [counts.success(), counts.errors(), counts.filtered()].map(<[u64]>::to_vec),
            ..WindowedColumns::default()
        }
    }

    fn grand(table: &CountTable) -> CountTable {
        CountTable::from_json(table.group_by::<&str>(&[]).unwrap().to_json().as_bytes()).unwrap()
    }

    #[test]
    fn it_is_the_table_that_was_taken_apart() {
        let wanted = [("integration".to_owned(), vec!["a".to_owned(), "é".to_owned()])];
        let table = table();
        assert!(table.parts.iter().any(|part| part.rows.is_packed()));
        assert_eq!(table.provisional().len(), 10);
        for table in [table.filter(&wanted).unwrap(), table] {
            let rejoined = CountTable::of_columns(&grand(&table), &columns(&table)).unwrap();
            assert_eq!(rejoined, table);
            assert_eq!(rejoined.to_json(), table.to_json());
        }
    }

    #[test]
    fn parts_of_two_tables_are_refused() {
        type Spoil = fn(&mut WindowedColumns);
        let spoils: [(&str, Spoil); 5] = [
            ("another count", |of| of.counts[0][0] += 1),
            ("another metric", |of| of.metric = None),
            ("a window less", |of| {
                of.windows.pop();
            }),
            ("changes", |of| of.before = Some(of.counts.clone())),
            ("a short column", |of| {
                of.counts[1].pop();
            }),
        ];
        let table = table();
        for (what, spoil) in spoils {
            let mut spoilt = columns(&table);
            spoil(&mut spoilt);
            let error = CountTable::of_columns(&grand(&table), &spoilt).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{what}");
        }
        let error = CountTable::of_columns(&table, &columns(&table)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }

    #[test]
    fn a_sum_that_is_too_large_is_refused() {
        let table = table();
        let mut spoilt = columns(&table);
        spoilt.counts[0][0] = u64::MAX;
        let error = CountTable::of_columns(&grand(&table), &spoilt).unwrap_err();
        assert_eq!(error.code(), Code::SumOverflow);
    }
}
