//! Writes a report in the format that the user selects.

use std::io::Write;

use tallyfold::RankBy;

use super::report::{self, Asked, Report};
use super::safe::Terminal;
use super::show::{OutputFormat, Picked, Ranking, ShowFlags};
use super::sink::{Screen, WriteError, check_output, write_result};
use super::{comparison, documented, export, parquet, table};
use crate::config::settings::{Settings, label_pairs};
use crate::failure::{Exit, Failure, Result};
use crate::stderr::Stderr;

/// Checks the output flags of a command that [`write`]s a report, before the command reads the counts.
///
/// # Errors
/// For labels and options that the format does not support, for Parquet on a terminal, and for a path that can't be written.
pub(crate) fn check(settings: &Settings, asked: &Asked, flags: &ShowFlags) -> Result<()> {
    let output = flags.output.as_deref();
    if flags.format == OutputFormat::Parquet && Screen::of(output).width.is_some() {
        return Err(Failure::usage("Parquet can't be shown on a terminal: want --output FILE"));
    }
    let clusters = settings.clusters.iter();
    let clusters = clusters.map(|one| (one.name.as_str(), one.labels.as_slice()));
    let clusters: Vec<_> = clusters.collect();
    // Labels are checked for every format, even if the format does not write them.
    let labels = label_pairs(&clusters, settings.is_named, &flags.labels)?;
    match flags.format.exported() {
        Some(_) if asked.before.is_some() => comparison::check_labels(asked, &labels)?,
        Some(format) => export::check(asked, labels, flags, format)?,
        None => {}
    }
    check_output(output)
}

/// Writes a report. If its format does not contain the remarks, prints them on stderr. If no cluster has a result, writes only a
/// JSON document, and no other format.
///
/// # Errors
/// If the output can't be written, and for counts that the format does not support.
pub(crate) fn write(report: &Report, flags: &ShowFlags, stderr: &Stderr) -> Result<()> {
    if report.parts.is_empty() && flags.format != OutputFormat::Json {
        // There is no result to write, so an existing file keeps its counts.
        return Ok(());
    }
    let export = match flags.format.exported() {
        Some(format) if report.asked.before.is_none() => {
            Some(export::export_of(report, flags, format)?)
        }
        _ => None,
    };
    let leaves_out = export.as_ref().is_some_and(|export| export::warn(export, stderr));
    let is_complete = report.exit() == Exit::Fine;
    let output = flags.output.as_deref();
    write_result(output, is_complete, stderr, |screen, out| {
        if !contains_remarks(flags.format, screen) {
            print_remarks(report, leaves_out, stderr);
        }
        match (flags.format, export) {
            (OutputFormat::Parquet, Some(export)) => parquet::write_parquet(&export, out),
            // These formats have no colours, so any colour sequence comes from a value, and is escaped.
            (_, Some(export)) if screen.width.is_some() => {
                export::write(export, &mut Terminal::new(out, false))
            }
            (_, Some(export)) => export::write(export, out),
            (format, None) => write_rows(report, flags, format, screen, out),
        }
    })
}

/// Writes the formats that aren't exports: tables, documents, and comparisons.
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
            let by = ranking.by.unwrap_or(RankBy::Errors).count();
            comparison::write_changes(report, &picked, by, screen, out)
        }
        OutputFormat::Table => table::write_table(report, &picked, screen, out),
        _ => Err(Failure::usage(export::NO_COMPARISON).into()),
    }
}

/// Returns whether the output itself contains the remarks, as a table on a terminal and the JSON document do.
fn contains_remarks(format: OutputFormat, screen: Screen) -> bool {
    match format {
        OutputFormat::Json => true,
        OutputFormat::Table => screen.width.is_some(),
        _ => false,
    }
}

/// Prints the remarks about counts on stderr. With `leaves_out`, omits the remark about counts that may still change, because
/// `export::warn` has reported that they were left out.
fn print_remarks(report: &Report, leaves_out: bool, stderr: &Stderr) {
    if let Some(text) = report::provisional(report).filter(|_| !leaves_out) {
        stderr.warning(text);
    }
    let partial = report::partial(report);
    if !partial.is_empty() {
        stderr.warning(format_args!(
            "counted only in part: {}; begin and end the range at edges of --by-window",
            report::spans(&partial)
        ));
    }
    for part in &report.parts {
        if let Some(text) = report::contradiction(part.reconciliation) {
            stderr.warning(format_args!("{}{text}", report.place(&part.cluster)));
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
        let flags: Vec<&str> = ["--output", path_text].iter().chain(flags).copied().collect();
        write(report, &show(&flags), &Stderr::new(true, false))?;
        Ok(fs::read(&path).ok())
    }

    fn names() -> Vec<String> {
        let formats = OutputFormat::value_variants().iter();
        let names = formats.map(|format| format.to_possible_value().unwrap());
        names.map(|name| name.get_name().to_owned()).collect()
    }

    #[test]
    fn every_format_can_represent_a_table() {
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
    fn a_comparison_is_written_or_refused() {
        let report = report_of(vec![("default", Counted::Comparison(change()))]);
        for name in names() {
            let is_supported = ["table", "json", "ndjson", "csv"].contains(&name.as_str());
            match written(&report, &["--format", &name]) {
                Ok(bytes) => assert!(is_supported && !bytes.unwrap().is_empty(), "{name}"),
                Err(failure) => {
                    assert!(!is_supported, "{name}");
                    assert!(failure.text.contains("comparison"), "{failure}");
                }
            }
        }
    }

    #[test]
    fn without_any_result_only_json_is_written() {
        let report = report_of(Vec::new());
        for name in names() {
            let bytes = written(&report, &["--format", &name]).unwrap();
            assert_eq!(bytes.is_some(), name == "json", "{name}");
        }
    }
}
