//! Writes a report in the format that the user wants.

use std::io::Write;

use tallyfold::CountName;

use super::report::{self, Report};
use super::show::{OutputFormat, Picked, Ranking, ShowFlags};
use super::sink::{Screen, WriteError, write_to};
use super::{comparison, documented, export, parquet, table};
use crate::failure::{Failure, Result};
use crate::stderr::Stderr;

/// Writes a report, and says on stderr what should be known of it and is not written.
///
/// # Errors
/// For a place that can't be written, and for counts that the format can't carry.
pub(crate) fn write(report: &Report, flags: &ShowFlags, stderr: &Stderr) -> Result<()> {
    if report.parts.is_empty() && flags.format != OutputFormat::Json {
        // Nothing was found: a file with the last counts stays as it is.
        return Ok(());
    }
    // Whatever the format is: a label that can't be written is a mistake in a table's command line too.
    report::labels(report, &flags.labels)?;
    let export = match flags.format.exported() {
        Some(format) if report.asked.before.is_none() => {
            Some(export::export_of(report, flags, format)?)
        }
        _ => None,
    };
    let leaves_out = export
        .as_ref()
        .is_some_and(|export| export::warn(export, stderr));
    write_to(flags.output.as_deref(), |screen, out| {
        if !says_all(flags.format, screen) {
            tell(report, leaves_out, stderr);
        }
        match (flags.format, export) {
            (OutputFormat::Parquet, Some(_)) if screen.width.is_some() => {
                Err(Failure::usage("Parquet is no text for a terminal: want --output FILE").into())
            }
            (OutputFormat::Parquet, Some(export)) => parquet::write_parquet(&export, out),
            (_, Some(export)) => export::write(export, out),
            (format, None) => write_rows(report, flags, format, screen, out),
        }
    })
}

/// Writes what is no export: tables, documents, and comparisons.
fn write_rows(
    report: &Report,
    flags: &ShowFlags,
    format: OutputFormat,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let ranking = Ranking::of(report, flags);
    let picked = Picked::of(report, ranking);
    let compares = report.asked.before.is_some();
    match format {
        OutputFormat::Json => documented::write_json(report, &picked, ranking, screen, out),
        OutputFormat::Csv => comparison::write_csv(report, &picked, &flags.labels, out),
        OutputFormat::Ndjson => comparison::write_ndjson(report, &picked, &flags.labels, out),
        OutputFormat::Table if screen.width.is_none() => table::write_plain(report, &picked, out),
        OutputFormat::Table if compares => {
            let by = ranking.by.unwrap_or(CountName::Errors);
            comparison::write_changes(report, &picked, by, screen, out)
        }
        OutputFormat::Table => table::write_table(report, &picked, screen, out),
        _ => {
            let text =
                "this format can't carry a comparison: want --format table, json, ndjson or csv";
            Err(Failure::usage(text).into())
        }
    }
}

/// Whether a format says itself what should be known of its counts: a table for a person and the JSON document do.
fn says_all(format: OutputFormat, screen: Screen) -> bool {
    match format {
        OutputFormat::Json => true,
        OutputFormat::Table => screen.width.is_some(),
        _ => false,
    }
}

/// Says what should be known of counts. Those that may still change are not spoken of if they were left out.
fn tell(report: &Report, leaves_out: bool, stderr: &Stderr) {
    if let Some(text) = report::provisional(report).filter(|_| !leaves_out) {
        stderr.warning(text);
    }
    for part in &report.parts {
        if let Some(text) = report::unbalanced(part) {
            stderr.warning(format_args!("{}{text}", report::of(report, &part.cluster)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report::Counted;
    use crate::output::testing::{ROWS, change, report_of, show, table};
    use clap::ValueEnum;
    use std::fs;

    fn written(report: &Report, flags: &[&str]) -> Result<Option<Vec<u8>>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        let path_text = path.to_str().unwrap();
        let flags: Vec<&str> = ["--output", path_text]
            .iter()
            .chain(flags)
            .copied()
            .collect();
        write(report, &show(&flags), &Stderr::new(true, false))?;
        Ok(fs::read(&path).ok())
    }

    fn names() -> Vec<String> {
        let formats = OutputFormat::value_variants().iter();
        let names = formats.map(|format| format.to_possible_value().unwrap());
        names.map(|name| name.get_name().to_owned()).collect()
    }

    #[test]
    fn every_format_carries_a_table() {
        let report = report_of(vec![("default", Counted::Table(table(ROWS)))]);
        for name in names() {
            for more in [&[][..], &["--top", "2"], &["--order", "filtered"]] {
                let flags: Vec<&str> = ["--format", &name].iter().chain(more).copied().collect();
                let bytes = written(&report, &flags).unwrap().unwrap();
                let warehouse = b"Warehouse";
                let has_top = bytes.windows(warehouse.len()).any(|part| part == warehouse);
                assert!(has_top, "{flags:?}");
            }
        }
    }

    #[test]
    fn a_comparison_is_carried_or_refused() {
        let report = report_of(vec![("default", Counted::Comparison(change()))]);
        for name in names() {
            let carries = ["table", "json", "ndjson", "csv"].contains(&name.as_str());
            match written(&report, &["--format", &name]) {
                Ok(bytes) => assert!(carries && !bytes.unwrap().is_empty(), "{name}"),
                Err(failure) => {
                    assert!(!carries, "{name}");
                    assert!(failure.text.contains("comparison"), "{failure}");
                }
            }
        }
    }

    #[test]
    fn if_nothing_was_found_only_a_document_is_written() {
        let report = report_of(Vec::new());
        for name in names() {
            let bytes = written(&report, &["--format", &name]).unwrap();
            assert_eq!(bytes.is_some(), name == "json", "{name}");
        }
    }
}
