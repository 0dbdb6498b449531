//! Writes comparisons as a table for a terminal, as CSV and as NDJSON.
//!
//! A table on a terminal shows one count before and after, and its change. CSV and NDJSON have a row for each group
//! with all counts before and after, and their changes. Their columns are: the labels; the dimensions; `presence`
//! (`both`, `new` or `vanished`); `before_success` and so on, `after_…`, and `change_…`. The data frames of the Python
//! package also use `before_…` and `after_…`. If a group exists only before or only after, the counts of the other side
//! are 0. NDJSON writes numbers as JSON does (see `document`): above 2^53 - 1, they are strings.

use std::io::Write;

use serde::{Serialize, Serializer};
use tallyfold::text::{grouped, signed};
use tallyfold::{Code, Comparison, CountName, Counts, Error, Frame, Presence};

use super::document::{Change, Count};
use super::grid::{Cells, Column, Grid, Holds, share};
use super::report::{Asked, Counted, PROVISIONAL, Report, pairs, span, spans};
use super::show::{Line, Picked};
use super::sink::{Screen, WriteError};
use super::table::{key_cells, key_columns, subject, write_remarks, write_title};
use crate::config::settings::Pair;
use crate::failure::Result;

/// Writes the comparisons of a report for one count, as a table. The table ends with the total of that count and the
/// totals of the other counts, so that users notice changes there, too.
///
/// # Errors
/// The errors of the writer.
pub(crate) fn write_changes(
    report: &Report,
    picked: &Picked,
    by: CountName,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    write_title(&title(report, by), screen, out)?;
    let mut columns = key_columns(report);
    let keys = columns.len();
    let numbers = ["before", "after", "change", "share"];
    columns.extend(numbers.map(|name| Column::new(name, Holds::Numbers)));
    let lines = picked.lines.iter();
    let lines = lines.filter_map(|line| line_of(report, *line, by));
    let others = CountName::ALL.iter().filter(|name| **name != by);
    let totals = std::iter::once(&by).chain(others);
    let totals = totals.map(|name| total(report, *name, keys));
    let lines = lines.chain(totals).collect();
    Grid { columns, lines }.write(screen, out)?;
    write_remarks(report, picked, screen, out)
}

fn title(report: &Report, by: CountName) -> String {
    let asked = &report.asked;
    let before = match asked.before {
        Some(before) => span(before),
        None => comparisons(report)
            .next()
            .map_or_else(String::new, |first| spans(first.before_coverage())),
    };
    let after = span(asked.range);
    format!("{by} of {}, {before}, then {after}", subject(report))
}

fn comparisons(report: &Report) -> impl Iterator<Item = &Comparison> {
    report.parts.iter().filter_map(|part| match &part.found {
        Counted::Comparison(comparison) => Some(&**comparison),
        _ => None,
    })
}

fn line_of(report: &Report, line: Line, by: CountName) -> Option<Cells> {
    let Counted::Comparison(comparison) = &report.parts[line.part].found else {
        return None;
    };
    let row = comparison.row(line.row)?;
    let presence = row.presence();
    let (deltas, shares) = (row.delta(), row.share());
    let (change, caused) = match by {
        CountName::Success => (deltas.success, shares.success),
        CountName::Errors => (deltas.errors, shares.errors),
        CountName::Filtered => (deltas.filtered, shares.filtered),
    };
    let mut cells = key_cells(report, line);
    cells.extend([
        side(presence != Presence::New, row.before().map(|counts| by.of(counts))),
        side(presence != Presence::Vanished, row.after().map(|counts| by.of(counts))),
        signed(change),
        share(caused),
    ]);
    let is_provisional = !report.parts[line.part].provisional.is_empty();
    Some(Cells {
        cells,
        marks: is_provisional.then_some(PROVISIONAL).into_iter().collect(),
        is_total: false,
    })
}

/// Formats a count, or returns `none` if the group did not exist on that side of the comparison.
fn side(is_there: bool, count: Option<u64>) -> String {
    match count {
        Some(count) if is_there => grouped(count),
        _ => "none".to_owned(),
    }
}

fn total(report: &Report, by: CountName, keys: usize) -> Cells {
    let mut sums = [0_i128; 2];
    for comparison in comparisons(report) {
        sums[0] += i128::from(by.of(comparison.before_totals()));
        sums[1] += i128::from(by.of(comparison.after_totals()));
    }
    let [before, after] = sums;
    let change = signed(after - before);
    let numbers = [grouped(before), grouped(after), change, String::new()];
    Cells::total(&format!("total {by}"), keys, numbers)
}

/// A value of a row: a text or a number. Numbers are written so that no JSON reader rounds them.
#[derive(Serialize)]
#[serde(untagged)]
enum Cell {
    Text(String),
    Count(Count),
    Change(Change),
}

impl Cell {
    /// Formats the value as a CSV field.
    fn field(&self) -> String {
        match self {
            Self::Text(text) => field(text),
            Self::Count(count) => count.0.to_string(),
            Self::Change(change) => change.0.to_string(),
        }
    }
}

/// Writes comparisons as CSV.
///
/// # Errors
/// For labels that can't be used, and the errors of the writer.
pub(crate) fn write_csv(
    report: &Report,
    picked: &Picked,
    given: &[String],
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let labels = pairs(report, given)?;
    let own = labels.iter().take(1).flatten().map(|(name, _)| name.clone());
    let header: Vec<String> = own.chain(names(&report.asked)).collect();
    write!(out, "{}\r\n", header.join(","))?;
    for line in &picked.lines {
        let own = labels[line.part].iter().map(|(_, value)| field(value));
        let cells = cells(report, *line).into_iter().map(|cell| cell.field());
        let fields: Vec<String> = own.chain(cells).collect();
        write!(out, "{}\r\n", fields.join(","))?;
    }
    Ok(())
}

/// Writes comparisons as NDJSON.
///
/// # Errors
/// For labels that can't be used, and the errors of the writer.
pub(crate) fn write_ndjson(
    report: &Report,
    picked: &Picked,
    given: &[String],
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let labels = pairs(report, given)?;
    let names = names(&report.asked);
    for line in &picked.lines {
        let cells = names.iter().cloned().zip(cells(report, *line));
        let labels = labels[line.part].iter().cloned();
        let labels = labels.map(|(name, value)| (name, Cell::Text(value)));
        let mut json = serde_json::Serializer::new(&mut *out);
        let written = json.collect_map(labels.chain(cells));
        written.map_err(std::io::Error::from)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Checks that no label has the name of another column.
///
/// # Errors
/// For such a label.
pub(crate) fn check_labels(asked: &Asked, labels: &[Vec<Pair>]) -> Result<()> {
    let taken = names(asked);
    let mut names = labels.iter().flatten().map(|(name, _)| name);
    let Some(name) = names.find(|name| taken.contains(name)) else {
        return Ok(());
    };
    let message = format!("this format uses the name {name} itself; want another one");
    Err(Error::argument("labels", Code::InvalidArgument, message).into())
}

/// Returns the names of the columns after the labels.
fn names(asked: &Asked) -> Vec<String> {
    let mut names: Vec<String> = asked.by.iter().map(ToString::to_string).collect();
    names.push("presence".to_owned());
    for side in ["before", "after", "change"] {
        names.extend(Counts::NAMES.map(|name| format!("{side}_{name}")));
    }
    names
}

fn cells(report: &Report, line: Line) -> Vec<Cell> {
    let Counted::Comparison(comparison) = &report.parts[line.part].found else {
        return Vec::new();
    };
    let Some(row) = comparison.row(line.row) else {
        return Vec::new();
    };
    let texts = row.values().map(str::to_owned);
    let texts = texts.chain([row.presence().to_string()]);
    let mut cells: Vec<Cell> = texts.map(Cell::Text).collect();
    for side in [row.before(), row.after()] {
        let counts = side.unwrap_or_default().each();
        cells.extend(counts.map(|count| Cell::Count(Count(count))));
    }
    let changes = row.delta().each();
    cells.extend(changes.map(|change| Cell::Change(Change(change))));
    cells
}

/// Formats a CSV field (RFC 4180), and quotes it if it contains a comma, a quote or a line break.
fn field(value: &str) -> String {
    match value.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::show::Ranking;
    use crate::output::testing::{assert_drawn, change, hour, report_of};

    fn drawn(width: usize, by: CountName) -> String {
        let report = report_of(vec![("default", Counted::Comparison(change()))]);
        drawn_of(&report, width, by)
    }

    fn drawn_of(report: &Report, width: usize, by: CountName) -> String {
        let ranking = Ranking { by: Some(by.into()), top: None };
        let screen = Screen { width: Some(width), color: false };
        let mut out = Vec::new();
        let picked = Picked::of(report, ranking);
        write_changes(report, &picked, by, screen, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_largest_change_comes_first() {
        for (width, by, file) in [
            (80, CountName::Errors, "changes-80.txt"),
            (40, CountName::Errors, "changes-40.txt"),
            (200, CountName::Success, "changes-200.txt"),
        ] {
            assert_drawn(drawn(width, by), file);
        }
    }

    #[test]
    fn changes_that_may_still_change_are_marked() {
        let mut report = report_of(vec![("default", Counted::Comparison(change()))]);
        report.parts[0].provisional = vec![hour(0)];
        assert_drawn(drawn_of(&report, 80, CountName::Errors), "changes-provisional-80.txt");
    }

    fn report() -> (Report, Picked) {
        let mut report = report_of(vec![("e\"u", Counted::Comparison(change()))]);
        report.is_named = true;
        let ranking = Ranking { by: Some(CountName::Errors.into()), top: Some(2) };
        let picked = Picked::of(&report, ranking);
        (report, picked)
    }

    #[test]
    fn csv_has_counts_before_and_after_and_their_changes() {
        let (report, picked) = report();
        let mut out = Vec::new();
        write_csv(&report, &picked, &[], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(
            lines,
            [
                "cluster,integration,presence,before_success,before_errors,before_filtered,after_success,\
                 after_errors,after_filtered,change_success,change_errors,change_filtered",
                "\"e\"\"u\",Warehouse,both,1000,10,0,1200,500,0,200,490,0",
                "\"e\"\"u\",New,new,0,0,0,2,60,0,2,60,0",
                "",
            ]
        );
    }

    #[test]
    fn a_label_with_the_name_of_a_column_is_refused() {
        let (report, _) = report();
        for (name, is_refused) in [
            ("integration", true),
            ("presence", true),
            ("change_errors", true),
            ("reason", false),
            ("errors", false),
        ] {
            let labels = vec![vec![(name.to_owned(), String::new())]];
            let checked = check_labels(&report.asked, &labels);
            assert_eq!(checked.is_err(), is_refused, "{name}");
        }
    }

    #[test]
    fn ndjson_has_labels_and_counts_before_and_after() {
        let (report, picked) = report();
        let mut out = Vec::new();
        write_ndjson(&report, &picked, &["env=x".to_owned()], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = r#"{"cluster":"e\"u","env":"x","integration":"Warehouse","presence":"both","before_success":1000,"#;
        assert!(text.starts_with(first), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
}
