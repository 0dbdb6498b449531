//! Writes counts as a table for a terminal, or as lines for other programs.
//!
//! If the output of `--format table` is not a terminal, it contains only a line for each row, with tabs between fields.
//! The fields are: the cluster, if clusters have names; the values of the dimensions; with `--by-window`, start and end
//! of the window; `success`, `errors`, `filtered`. For a comparison, the fields after the dimensions are: `both`, `new`
//! or `vanished`; then, for each count, the value before, the value after, and the change. Numbers have no thousands
//! separators. An empty value is written as `(none)`, so no field is empty, and programs can split lines at whitespace
//! unless values contain spaces. Tabs, line feeds and other control characters in values are written as escapes such as
//! `\t`, `\n` and `\x1b`, and a backslash as two backslashes.

use std::io::Write;

use anstyle::Style;
use tallyfold::text::grouped;
use tallyfold::{Counts, Frame, Metric, TimeStep, Timestamp, Window};

use super::grid::{Cells, Column, Grid, Holds, percent, write_styled};
use super::report::{
    Counted, INCOMPLETE, PROVISIONAL, Report, faults, incomplete, provisional, span,
};
use super::safe::{escaped, fit, shown, wrapped};
use super::show::{Line, Picked};
use super::sink::{Screen, USUAL_WIDTH, WriteError};
use crate::arguments::query::{DAY_MS, joined};

/// Writes a table with a title, a line of totals, and remarks.
///
/// # Errors
/// The errors of the writer.
pub(crate) fn write_table(
    report: &Report,
    picked: &Picked,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    write_title(&title(report), screen, out)?;
    if picked.lines.is_empty() {
        writeln!(out, "no counts")?;
    } else {
        grid(report, picked).write(screen, out)?;
    }
    write_remarks(report, picked, screen, out)
}

/// Writes a title and an empty line.
///
/// # Errors
/// The errors of the writer.
pub(crate) fn write_title(
    title: &str,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    write_wrapped(title, Style::new().bold(), screen, out)?;
    Ok(writeln!(out)?)
}

/// Writes the remarks below a table.
///
/// # Errors
/// The errors of the writer.
pub(crate) fn write_remarks(
    report: &Report,
    picked: &Picked,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let mut remarks = Vec::new();
    if picked.left_out > 0 {
        let left_out = grouped(picked.left_out);
        remarks.push(match picked.left_out {
            1 => "1 more group is left out by --top but included in the total".to_owned(),
            _ => format!("{left_out} more groups are left out by --top but included in the total"),
        });
    }
    remarks.extend(provisional(report).map(|text| format!("{PROVISIONAL} {text}")));
    remarks.extend(incomplete(report).map(|text| format!("{INCOMPLETE} {text}")));
    remarks.extend(faults(report));
    if !remarks.is_empty() {
        writeln!(out)?;
    }
    for remark in remarks {
        write_wrapped(&remark, Style::new().dimmed(), screen, out)?;
    }
    Ok(())
}

fn write_wrapped(
    text: &str,
    style: Style,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let columns = screen.width.unwrap_or(USUAL_WIDTH);
    for line in wrapped(text, columns) {
        write_styled(&fit(&line, columns), style, screen, out)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Returns the title: what is counted, and the time range.
fn title(report: &Report) -> String {
    let asked = &report.asked;
    format!("{}, {}", subject(report), span(asked.range))
}

/// Describes what is counted: the metric, the dimensions and the filters.
pub(crate) fn subject(report: &Report) -> String {
    let asked = &report.asked;
    let mut subject = asked.metric.to_string();
    if !asked.by.is_empty() {
        subject.push_str(" by ");
        subject.push_str(&joined(&asked.by, ", "));
    }
    for (name, values) in &asked.only {
        let values = values.iter().map(|value| shown(value));
        let values = values.collect::<Vec<_>>().join(" or ");
        subject.push_str(&format!(", {name} = {values}"));
    }
    subject
}

fn grid(report: &Report, picked: &Picked) -> Grid {
    let rate = match report.asked.metric {
        Metric::EventDelivery => "delivered",
        Metric::EventIngestion => "ingested",
    };
    let mut columns = key_columns(report);
    if report.parts.iter().any(|part| matches!(part.found, Counted::Series(_))) {
        columns.push(Column::new("window (UTC)", Holds::Times));
    }
    let numbers = Counts::NAMES.iter().chain([&rate]);
    columns.extend(numbers.map(|name| Column::new(*name, Holds::Numbers)));
    let keys = columns.len() - 4;
    let mut lines: Vec<Cells> = picked.lines.iter().map(|line| line_of(report, *line)).collect();
    lines.push(total(report, keys));
    Grid { columns, lines }
}

/// Returns the columns of the cluster and of the dimensions.
pub(crate) fn key_columns(report: &Report) -> Vec<Column> {
    let cluster = report.is_named.then_some("cluster");
    let dimensions = report.asked.by.iter().map(|one| one.as_str());
    let names = cluster.into_iter().chain(dimensions);
    names.map(|name| Column::new(escaped(name), Holds::Texts)).collect()
}

/// Returns the cells of the cluster and of the dimensions.
pub(crate) fn key_cells(report: &Report, line: Line) -> Vec<String> {
    let part = &report.parts[line.part];
    let cluster = report.is_named.then(|| escaped(&part.cluster));
    let values = part.found.frame().keys().values(line.row).map(shown);
    cluster.into_iter().chain(values).collect()
}

fn line_of(report: &Report, line: Line) -> Cells {
    let mut cells = key_cells(report, line);
    let mut marks = String::new();
    let part = &report.parts[line.part];
    match &part.found {
        Counted::Table(_) => marks.extend((!part.provisional.is_empty()).then_some(PROVISIONAL)),
        Counted::Series(series) => {
            if let Some(row) = series.row(line.row) {
                cells.push(window(row.window()));
                marks.extend(row.provisional().then_some(PROVISIONAL));
                marks.extend((!row.complete()).then_some(INCOMPLETE));
            }
        }
        Counted::Comparison(_) => {}
    }
    let counts = part.found.counts(line.row).unwrap_or_default();
    cells.extend(counts.each().map(grouped));
    cells.push(percent(counts.rates().delivery));
    Cells { cells, marks, is_total: false }
}

fn total(report: &Report, keys: usize) -> Cells {
    let sums = totals(report);
    // The sum of several clusters may exceed `u64`. Then no rate is shown.
    let delivery = match sums.map(|sum| u64::try_from(sum).ok()) {
        [Some(success), Some(errors), Some(filtered)] => {
            Counts { success, errors, filtered }.rates().delivery
        }
        _ => None,
    };
    let numbers = sums.map(grouped).into_iter().chain([percent(delivery)]);
    Cells::total("total", keys, numbers)
}

/// Returns the sums of all clusters.
fn totals(report: &Report) -> [u128; 3] {
    let mut sums = [0; 3];
    for part in &report.parts {
        for (sum, count) in sums.iter_mut().zip(part.found.totals().each()) {
            *sum += u128::from(count);
        }
    }
    sums
}

/// Formats a window as `2026-01-01 09:00-09:15`, `2026-01-01 23:45-24:00`, `2026-01-01 23:45-2026-01-02 00:15`, or
/// `2026-01-01` for a day.
fn window(window: Window) -> String {
    let (start, end) = (window.start(), window.end());
    let begins_a_day = |at: Timestamp| TimeStep::DAY.floor(at) == at;
    let day_ms = DAY_MS.unsigned_abs();
    match begins_a_day(end) {
        true if begins_a_day(start) && window.length_ms() == day_ms => start.date(),
        true if window.length_ms() < day_ms => format!("{}-24:00", start.short()),
        false if start.date() == end.date() => format!("{}-{}", start.short(), end.short_time()),
        _ => format!("{}-{}", start.short(), end.short()),
    }
}

/// Writes a line for each row, with tabs between the fields.
///
/// # Errors
/// The errors of the writer.
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
    let digits = |count: u64| count.to_string();
    Some(match &report.parts[line.part].found {
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
    use proptest::prelude::*;
    use tallyfold::RankBy;

    use super::*;
    use crate::failure::{Exit, Failure};
    use crate::output::report::Missing;
    use crate::output::show::Ranking;
    use crate::output::testing::{
        BIG, HOSTILE, ROWS, assert_drawn, change, hour, provisional_table, report_of, series,
        table, unbalanced_table,
    };

    const PLAIN_RANKING: Ranking = Ranking { by: None, top: None };

    fn drawn(report: &Report, ranking: Ranking, width: usize, color: bool) -> String {
        let screen = Screen { width: Some(width), color };
        let mut out = Vec::new();
        let picked = Picked::of(report, ranking);
        write_table(report, &picked, screen, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_cluster_is_shown_at_each_width() {
        let report = report_of(vec![("default", Counted::Table(table(ROWS)))]);
        assert_drawn(drawn(&report, PLAIN_RANKING, 80, false), "one-80.txt");
        assert_drawn(drawn(&report, PLAIN_RANKING, 40, false), "one-40.txt");
        assert_drawn(drawn(&report, PLAIN_RANKING, 200, false), "one-200.txt");
        assert_drawn(drawn(&report, PLAIN_RANKING, 80, true), "one-80-color.txt");
    }

    #[test]
    fn rows_that_top_leaves_out_are_a_remark() {
        let report = report_of(vec![("default", Counted::Table(table(ROWS)))]);
        let ranking = Ranking { by: Some(RankBy::Errors), top: Some(2) };
        assert_drawn(drawn(&report, ranking, 80, false), "top-80.txt");
    }

    #[test]
    fn gaps_failures_and_wrong_totals_are_remarks() {
        let mut report = report_of(vec![
            ("eu", Counted::Table(provisional_table(BIG))),
            ("us", Counted::Table(unbalanced_table())),
        ]);
        report.is_named = true;
        report.parts[1].gaps = vec![hour(3)];
        report.missing.push(Missing {
            cluster: "ap".to_owned(),
            labels: Vec::new(),
            failure: Failure::new(Exit::Service, "no answer from \x1b[31mhttp://ap"),
        });
        assert_drawn(drawn(&report, PLAIN_RANKING, 80, false), "all-80.txt");
        assert_drawn(drawn(&report, PLAIN_RANKING, 40, false), "all-40.txt");
        assert_drawn(drawn(&report, PLAIN_RANKING, 200, false), "all-200.txt");
    }

    #[test]
    fn rows_by_window_are_shown_at_each_width() {
        let series = series(&[ROWS, &ROWS[..2]]);
        let report = report_of(vec![("default", Counted::Series(series))]);
        assert_drawn(drawn(&report, PLAIN_RANKING, 80, false), "series-80.txt");
        assert_drawn(drawn(&report, PLAIN_RANKING, 40, false), "series-40.txt");
    }

    #[test]
    fn hostile_values_are_escaped() {
        let report = report_of(vec![("default", Counted::Table(table(HOSTILE)))]);
        assert_drawn(drawn(&report, PLAIN_RANKING, 80, false), "hostile-80.txt");
    }

    #[test]
    fn a_table_without_rows_shows_no_counts() {
        let report = report_of(vec![("default", Counted::Table(table(&[])))]);
        assert_drawn(drawn(&report, PLAIN_RANKING, 80, false), "nothing-80.txt");
    }

    #[test]
    fn windows_are_abbreviated() {
        let of = |start: &str, end: &str| window(Window::parse(start, end).unwrap());
        let day = |time: &str| format!("2026-01-01T{time}Z");
        assert_eq!(of(&day("00:00:00"), "2026-01-02T00:00:00Z"), "2026-01-01");
        assert_eq!(of(&day("09:00:00"), &day("09:15:00")), "2026-01-01 09:00-09:15");
        assert_eq!(of(&day("23:45:00"), "2026-01-02T00:00:00Z"), "2026-01-01 23:45-24:00");
        assert_eq!(
            of(&day("23:45:00"), "2026-01-02T00:15:00Z"),
            "2026-01-01 23:45-2026-01-02 00:15"
        );
        assert_eq!(of(&day("09:00:00"), &day("09:00:00.5")), "2026-01-01 09:00-09:00:00.500");
    }

    proptest! {
        #[test]
        fn no_value_breaks_the_layout(
            values in prop::collection::btree_set(".{0,30}|[\\x00-\\x1f\\x7f-\\x9f\\u{300}-\\u{310}日😀a]{0,30}", 1..6),
            counts in prop::array::uniform3(0_u64..3_000_000_000_000_000_000),
            width in 40_usize..200,
        ) {
            let [success, errors, filtered] = counts;
            let rows: Vec<(&str, u64, u64, u64)> = values
                .iter()
                .map(|value| (value.as_str(), success, errors, filtered))
                .collect();
            let report = report_of(vec![("eu", Counted::Table(table(&rows)))]);
            let text = drawn(&report, PLAIN_RANKING, width, false);
            prop_assert!(!text.chars().any(|character| character.is_control() && character != '\n'));
            for line in text.lines() {
                prop_assert!(crate::output::safe::width(line) <= width, "{:?}", line);
            }
            // Numbers are never shortened, so each row shows all digits.
            let digits = grouped(success);
            prop_assert!(text.matches(&digits).count() >= rows.len());
            let is_row = |line: &&str| line.contains(&digits) && !line.starts_with("total");
            let ends = text.lines().filter(is_row).map(crate::output::safe::width);
            let ends: std::collections::BTreeSet<usize> = ends.collect();
            prop_assert_eq!(ends.len(), 1, "{}", text);
        }
    }

    fn written(report: &Report, by: Option<RankBy>) -> String {
        let picked = Picked::of(report, Ranking { by, top: None });
        let mut out = Vec::new();
        write_plain(report, &picked, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plain_lines_contain_only_rows() {
        let rows: &[_] = &[("a b", 1_234_567, 5, 0), ("", 1, 2, 3)];
        let mut report = report_of(vec![("eu", Counted::Table(table(rows)))]);
        assert_eq!(written(&report, None), "(none)\t1\t2\t3\na b\t1234567\t5\t0\n");
        report.is_named = true;
        assert_eq!(
            written(&report, Some(RankBy::Errors)),
            "eu\ta b\t1234567\t5\t0\neu\t(none)\t1\t2\t3\n"
        );
    }

    #[test]
    fn plain_lines_contain_windows_and_changes() {
        let report = report_of(vec![("eu", Counted::Series(series(&[&[("a", 1, 2, 3)]])))]);
        let text = "a\t2026-01-01T00:00:00Z\t2026-01-01T01:00:00Z\t1\t2\t3\n";
        assert_eq!(written(&report, None), text);
        let report = report_of(vec![("eu", Counted::Comparison(change()))]);
        let text = written(&report, Some(RankBy::Errors));
        let first = text.lines().next().unwrap();
        assert_eq!(first, "Warehouse\tboth\t1000\t1200\t200\t10\t500\t490\t0\t0\t0");
        assert!(text.contains("Old\tvanished\t7\t0\t-7\t3\t0\t-3\t1\t0\t-1\n"), "{text}");
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
