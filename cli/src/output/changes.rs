//! Comparisons as CSV and NDJSON: a row for each group with its counts before and after, and the changes.
//!
//! The columns are: the labels; the dimensions; `presence` (`both`, `new` or `vanished`); `before_success` and so on,
//! `after_…`, as the Python package names the columns of its data frames, and `change_…`. Where a group was not there, its
//! count is 0. In NDJSON all numbers are strings of digits, as in all NDJSON of this project.

use std::io::Write;

use serde::{Serialize, Serializer};
use tallyfold::{Counts, Frame};

use super::labeled::pairs;
use super::pick::{Line, Picked};
use super::report::{Counted, Report};
use super::sink::WriteError;

/// Names and values, as the members of an object in that order.
struct Members(Vec<(String, String)>);

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Writes comparisons as CSV.
///
/// # Errors
/// For labels that can't be used, and those of the writer.
pub(crate) fn write_csv(
    report: &Report,
    picked: &Picked,
    given: &[String],
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let labels = pairs(report, given)?;
    let own = labels
        .iter()
        .take(1)
        .flatten()
        .map(|(name, _)| name.clone());
    let header: Vec<String> = own.chain(names(report)).collect();
    write!(out, "{}\r\n", header.join(","))?;
    for line in &picked.lines {
        let own = labels[line.part].iter().map(|(_, value)| field(value));
        let cells = cells(report, *line).into_iter().map(|cell| field(&cell));
        let fields: Vec<String> = own.chain(cells).collect();
        write!(out, "{}\r\n", fields.join(","))?;
    }
    Ok(())
}

/// Writes comparisons as NDJSON.
///
/// # Errors
/// For labels that can't be used, and those of the writer.
pub(crate) fn write_ndjson(
    report: &Report,
    picked: &Picked,
    given: &[String],
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let labels = pairs(report, given)?;
    let names = names(report);
    for line in &picked.lines {
        let cells = names.iter().cloned().zip(cells(report, *line));
        let members = Members(labels[line.part].iter().cloned().chain(cells).collect());
        serde_json::to_writer(&mut *out, &members).map_err(std::io::Error::from)?;
        writeln!(out)?;
    }
    Ok(())
}

/// The names of the columns after the labels.
fn names(report: &Report) -> Vec<String> {
    let mut names = report.asked.by.clone();
    names.push("presence".to_owned());
    for side in ["before", "after", "change"] {
        names.extend(Counts::NAMES.map(|name| format!("{side}_{name}")));
    }
    names
}

fn cells(report: &Report, line: Line) -> Vec<String> {
    let Counted::Comparison(comparison) = &report.parts[line.part].counts else {
        return Vec::new();
    };
    let Some(row) = comparison.row(line.row) else {
        return Vec::new();
    };
    let mut cells: Vec<String> = row.values().map(str::to_owned).collect();
    cells.push(row.presence().to_string());
    for side in [row.before(), row.after()] {
        let counts = side.unwrap_or_default().each();
        cells.extend(counts.map(|count| count.to_string()));
    }
    cells.extend(row.delta().each().map(|change| change.to_string()));
    cells
}

/// A field of CSV (RFC 4180): quoted if it has a comma, a quote or an end of line.
fn field(value: &str) -> String {
    match value.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::pick::Ranking;
    use crate::output::testing::{change, report_of};
    use tallyfold::CountName;

    fn report() -> (Report, Picked) {
        let mut report = report_of(vec![("e\"u", Counted::Comparison(change()))]);
        report.is_named = true;
        let ranking = Ranking {
            by: Some(CountName::Errors),
            top: Some(2),
        };
        let picked = Picked::of(&report, ranking);
        (report, picked)
    }

    #[test]
    fn csv() {
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
    fn ndjson() {
        let (report, picked) = report();
        let mut out = Vec::new();
        write_ndjson(&report, &picked, &["env=x".to_owned()], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = r#"{"cluster":"e\"u","env":"x","integration":"Warehouse","presence":"both","before_success":"1000","#;
        assert!(text.starts_with(first), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
}
