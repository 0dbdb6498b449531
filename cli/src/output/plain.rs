//! Rows for other programs, where `--format table` does not write to a terminal: a line for each row and a tab between
//! fields, and nothing else.
//!
//! The fields are: the cluster, if clusters have names; the values of the dimensions; with `--by-window`, start and end of
//! the window; `success`, `errors`, `filtered`. Of a comparison: the dimensions; `both`, `new` or `vanished`; for each count
//! the number before, after, and the change. Digits are not grouped. A field is never empty, so that programs that split at
//! any space count fields as they should if values have none: an empty value is `(none)`. Tabs, line feeds and other
//! control characters in values are written as `\t`, `\n` and `\x1b`, and a backslash as two.

use std::io::Write;

use super::pick::{Line, Picked};
use super::report::{Counted, Report};
use super::sink::WriteError;
use super::table::key_cells;

/// Writes all rows.
///
/// # Errors
/// Those of the writer.
pub(crate) fn write_plain(
    report: &Report,
    picked: &Picked,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    for line in &picked.lines {
        let mut fields = key_cells(report, *line);
        fields.extend(numbers(report, *line).into_iter().flatten());
        writeln!(out, "{}", fields.join("\t"))?;
    }
    Ok(())
}

fn numbers(report: &Report, line: Line) -> Option<Vec<String>> {
    use tallyfold::Frame;
    let digits = |count: u64| count.to_string();
    Some(match &report.parts[line.part].counts {
        Counted::Table(table) => table.row(line.row)?.counts().each().map(digits).into(),
        Counted::Series(series) => {
            let row = series.row(line.row)?;
            let window = row.window();
            let mut fields = vec![window.start().to_string(), window.end().to_string()];
            fields.extend(row.counts().each().map(digits));
            fields
        }
        Counted::Comparison(comparison) => {
            let row = comparison.row(line.row)?;
            let before = row.before().unwrap_or_default().each();
            let after = row.after().unwrap_or_default().each();
            let mut fields = vec![row.presence().to_string()];
            for ((before, after), delta) in before.iter().zip(after).zip(row.delta().each()) {
                fields.extend([digits(*before), digits(after), delta.to_string()]);
            }
            fields
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::pick::Ranking;
    use crate::output::testing::{HOSTILE, change, report_of, series, table};
    use proptest::prelude::*;
    use tallyfold::CountName;

    fn written(report: &Report, by: Option<CountName>) -> String {
        let picked = Picked::of(report, Ranking { by, top: None });
        let mut out = Vec::new();
        write_plain(report, &picked, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_but_data() {
        let rows: &[_] = &[("a b", 1_234_567, 5, 0), ("", 1, 2, 3)];
        let mut report = report_of(vec![("eu", Counted::Table(table(rows)))]);
        assert_eq!(
            written(&report, None),
            "(none)\t1\t2\t3\na b\t1234567\t5\t0\n"
        );
        report.is_named = true;
        assert_eq!(
            written(&report, Some(CountName::Errors)),
            "eu\ta b\t1234567\t5\t0\neu\t(none)\t1\t2\t3\n"
        );
    }

    #[test]
    fn windows_and_changes() {
        let report = report_of(vec![("eu", Counted::Series(series(&[&[("a", 1, 2, 3)]])))]);
        let text = "a\t2026-01-01T00:00:00Z\t2026-01-01T01:00:00Z\t1\t2\t3\n";
        assert_eq!(written(&report, None), text);
        let report = report_of(vec![("eu", Counted::Comparison(change()))]);
        let text = written(&report, Some(CountName::Errors));
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "Warehouse\tboth\t1000\t1200\t200\t10\t500\t490\t0\t0\t0"
        );
        assert!(
            text.contains("Old\tvanished\t7\t0\t-7\t3\t0\t-3\t1\t0\t-1\n"),
            "{text}"
        );
    }

    #[test]
    fn hostile_values_stay_in_their_fields() {
        let report = report_of(vec![("eu", Counted::Table(table(HOSTILE)))]);
        let text = written(&report, None);
        assert_eq!(text.lines().count(), HOSTILE.len());
        assert!(text.lines().all(|line| line.split('\t').count() == 4));
    }

    proptest! {
        #[test]
        fn every_line_has_four_fields(value in any::<String>()) {
            let report = report_of(vec![("eu", Counted::Table(table(&[(&value, 1, 2, 3)])))]);
            let text = written(&report, None);
            prop_assert_eq!(text.lines().count(), 1);
            prop_assert_eq!(text.split('\t').count(), 4);
            prop_assert!(text.split('\t').all(|field| !field.is_empty()));
            prop_assert!(!text.trim_end_matches('\n').replace('\t', "").chars().any(char::is_control));
        }
    }
}
