//! Writes the revisions of a follow as they arrive.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;
use tallyfold::text::{grouped, signed};
use tallyfold::{Comparison, Counts, Deltas, Frame, Revision, Row, Timestamp};
use tallyfold_export::{Export, ExportOptions, Format, Labels};

use super::safe::{left, right, shown, width};
use crate::failure::{Failure, Result};

/// How revisions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RevisionFormat {
    /// For a person: the newest counts of each group that has changed, with the change.
    Table,
    /// One JSON document on each line, for each revision: the newest counts of the window and their changes.
    Json,
    /// One JSON object on each line, for each group that has changed: the signed changes. Their sum is the newest counts.
    Ndjson,
    /// The same as comma-separated values.
    Csv,
}

/// Writes revisions to an output.
pub(crate) struct Printer<W> {
    out: W,
    format: RevisionFormat,
    /// Whether rows have been written, after which the header is not repeated.
    has_begun: bool,
}

/// The result of writing a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// It was written.
    Whole,
    /// The reader has closed the pipe.
    NobodyReads,
}

/// The cluster of a revision.
pub(crate) struct Origin<'a> {
    /// Its name, if it has one.
    pub(crate) cluster: Option<&'a str>,
    /// The labels of its counts.
    pub(crate) labels: &'a Labels,
}

impl<W: Write> Printer<W> {
    /// A printer that writes to `out`.
    pub(crate) fn new(out: W, format: RevisionFormat) -> Self {
        Self {
            out,
            format,
            has_begun: false,
        }
    }

    /// Writes a whole revision, and flushes the output.
    ///
    /// # Errors
    /// If the output can't be written.
    pub(crate) fn print(&mut self, origin: &Origin<'_>, revision: &Revision) -> Result<Printed> {
        let mut text = Vec::new();
        match self.format {
            RevisionFormat::Table => write_table(origin, revision, &mut text),
            RevisionFormat::Json => write_json(origin, revision, &mut text)?,
            RevisionFormat::Ndjson => {
                self.write_rows(Format::Ndjson, origin, revision, &mut text)?
            }
            RevisionFormat::Csv => self.write_rows(Format::Csv, origin, revision, &mut text)?,
        }
        match self.out.write_all(&text).and_then(|()| self.out.flush()) {
            Ok(()) => Ok(Printed::Whole),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Printed::NobodyReads),
            Err(error) => Err(Failure::usage(format!("can't write to stdout: {error}"))),
        }
    }

    fn write_rows(
        &mut self,
        format: Format,
        origin: &Origin<'_>,
        revision: &Revision,
        text: &mut Vec<u8>,
    ) -> Result<()> {
        let options = ExportOptions {
            labels: origin.labels.clone(),
            ..ExportOptions::with_defaults(format)
        };
        let mut export = Export::new(revision, &options)?;
        if std::mem::replace(&mut self.has_begun, true) {
            export = export.continued();
        }
        let written = export.write_to(text);
        written.map_err(|error| Failure::usage(format!("can't write a revision: {error}")))
    }
}

/// A revision as JSON. Counts are strings, because many JSON readers round large numbers.
#[derive(Serialize)]
struct RevisionDocument<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    start: String,
    end: String,
    revision: u32,
    settled: bool,
    dimensions: Vec<&'static str>,
    rows: Vec<RevisionRow<'a>>,
}

#[derive(Serialize)]
struct RevisionRow<'a> {
    values: Vec<&'a str>,
    counts: Three,
    changes: Three,
}

impl<'a> From<Row<'a, Comparison>> for RevisionRow<'a> {
    fn from(row: Row<'a, Comparison>) -> Self {
        Self {
            values: row.values().collect(),
            counts: row.after().unwrap_or_default().into(),
            changes: row.delta().into(),
        }
    }
}

#[derive(Serialize)]
struct Three {
    success: String,
    errors: String,
    filtered: String,
}

impl From<Counts> for Three {
    fn from(counts: Counts) -> Self {
        Self {
            success: counts.success.to_string(),
            errors: counts.errors.to_string(),
            filtered: counts.filtered.to_string(),
        }
    }
}

impl From<Deltas> for Three {
    fn from(changes: Deltas) -> Self {
        Self {
            success: changes.success.to_string(),
            errors: changes.errors.to_string(),
            filtered: changes.filtered.to_string(),
        }
    }
}

fn write_json(origin: &Origin<'_>, revision: &Revision, text: &mut Vec<u8>) -> Result<()> {
    let document = RevisionDocument {
        cluster: origin.cluster,
        start: revision.window.start().to_string(),
        end: revision.window.end().to_string(),
        revision: revision.number,
        settled: revision.settled,
        dimensions: revision.changes.dimensions().names(),
        rows: revision.changes.rows().map(RevisionRow::from).collect(),
    };
    serde_json::to_writer(&mut *text, &document)
        .map_err(|error| Failure::usage(format!("can't write a revision: {error}")))?;
    text.push(b'\n');
    Ok(())
}

/// Writes a line about the window, then a line for each group that has changed.
fn write_table(origin: &Origin<'_>, revision: &Revision, text: &mut Vec<u8>) {
    let Revision {
        window,
        changes,
        settled,
        number,
        ..
    } = revision;
    let cluster = origin
        .cluster
        .map(|name| format!("  {}", shown(name)))
        .unwrap_or_default();
    let state = match settled {
        true => "settled",
        false => "provisional",
    };
    let changed: Vec<_> = changes
        .rows()
        .filter(|row| row.delta() != Deltas::default())
        .collect();
    let nothing = match (changed.is_empty(), number) {
        (true, 0) => ", no events",
        (true, _) => ", no changes",
        _ => "",
    };
    let (start, end) = (window.start(), until(window.start(), window.end()));
    let mut lines = format!("{start} to {end}{cluster}  revision {number}, {state}{nothing}\n");
    for line in aligned(&cells(changes, &changed, *number > 0)) {
        lines.push_str(&line);
    }
    text.extend_from_slice(lines.as_bytes());
}

/// The end of a window, without its date if the start has the same date.
fn until(start: Timestamp, end: Timestamp) -> String {
    let (start, end) = (start.to_string(), end.to_string());
    match (start.split_once('T'), end.split_once('T')) {
        (Some((day, _)), Some((same, time))) if day == same => time.to_owned(),
        _ => end,
    }
}

/// The texts of the header or a row: the values of dimensions, and the counts.
type Cells = (Vec<String>, Vec<String>);

fn cells(changes: &Comparison, rows: &[Row<'_, Comparison>], shows_changes: bool) -> Vec<Cells> {
    if rows.is_empty() {
        return Vec::new();
    }
    let names = changes
        .dimensions()
        .names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let header = (
        names,
        ["success", "errors", "filtered"].map(str::to_owned).into(),
    );
    let row = |row: &Row<'_, Comparison>| {
        let number = |(count, change): (i128, i128)| match shows_changes {
            true => format!("{} ({})", grouped(count), signed(change)),
            false => grouped(count),
        };
        let counts = row.after().unwrap_or_default().each();
        let pairs = counts.into_iter().map(i128::from).zip(row.delta().each());
        (
            row.values().map(shown).collect(),
            pairs.map(number).collect(),
        )
    };
    std::iter::once(header)
        .chain(rows.iter().map(row))
        .collect()
}

/// Lines with values aligned left and counts aligned right.
fn aligned(rows: &[Cells]) -> impl Iterator<Item = String> {
    let widest = |cells: &dyn Fn(&Cells) -> Vec<usize>| {
        let mut widths: Vec<usize> = Vec::new();
        for row in rows {
            let of_row = cells(row);
            widths.resize(widths.len().max(of_row.len()), 0);
            for (width, new) in widths.iter_mut().zip(of_row) {
                *width = (*width).max(new);
            }
        }
        widths
    };
    let values = widest(&|row| row.0.iter().map(|text| width(text)).collect());
    let counts = widest(&|row| row.1.iter().map(|text| width(text)).collect());
    rows.iter().map(move |row| {
        let values = row.0.iter().zip(&values);
        let counts = row.1.iter().zip(&counts);
        let cells = values
            .map(|(text, width)| left(text, *width))
            .chain(counts.map(|(text, width)| right(text, *width)));
        let mut line: String = cells.map(|cell| format!("  {cell}")).collect();
        line.push('\n');
        line
    })
}

#[cfg(test)]
mod tests {
    use tallyfold::compare;

    use super::*;
    use crate::output::testing::{HOSTILE, hour, table};

    #[test]
    fn a_table_is_harmless_and_its_numbers_are_grouped() {
        let before = table(&[("Warehouse", 1_234_567, 0, 0)]);
        let mut rows = HOSTILE.to_vec();
        rows.push(("zero\u{200b}width", 1, 0, 0));
        rows.push(("Warehouse", 1_236_000, 0, 0));
        let after = table(&rows);
        let revision = Revision {
            window: hour(0),
            changes: compare(&before, &after).unwrap(),
            table: after,
            settled: false,
            number: 1,
        };
        let origin = Origin {
            cluster: None,
            labels: &Labels::default(),
        };
        let mut printer = Printer::new(Vec::new(), RevisionFormat::Table);
        printer.print(&origin, &revision).unwrap();
        let text = String::from_utf8(printer.out).unwrap();
        assert!(text.contains("1,236,000 (+1,433)   0 (0)"), "{text}");
        for escaped in ["right\\u{202e}to left", "zero\\u{200b}width"] {
            assert!(text.contains(escaped), "{text}");
        }
        let is_harmless = |letter: char| letter == '\n' || !letter.is_control();
        assert!(text.chars().all(is_harmless), "{text}");
        assert!(
            !text.contains(['\u{202e}', '\u{200b}', '\u{200d}']),
            "{text}"
        );
    }
}
