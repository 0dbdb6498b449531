//! Writes a report in the format that the user wants.

use std::io::Write;

use tallyfold::CountName;
use tallyfold_export::Format;

use super::exported::Plan;
use super::flags::{OutputFormat, ShowFlags};
use super::pick::{Picked, Ranking};
use super::report::Report;
use super::sink::{Screen, WriteError, write_to};
use super::{change_table, changes, documented, parquet, plain, remarks, table};
use crate::failure::{Failure, Result};
use crate::voice::Voice;

/// Writes a report, and says on stderr what should be known of it and is not written.
///
/// # Errors
/// For a place that can't be written, and for counts that the format can't carry.
pub(crate) fn write(report: &Report, flags: &ShowFlags, voice: &Voice) -> Result<()> {
    if report.parts.is_empty() && flags.format != OutputFormat::Json {
        // Nothing was found: a file with the last counts stays as it is.
        return Ok(());
    }
    let planned = match planned(flags.format) {
        Some(format) if report.asked.before.is_none() => Some(Plan::new(report, flags, format)?),
        _ => None,
    };
    let leaves_out = planned.as_ref().map(|plan| plan.tell(voice)).transpose()?;
    write_to(flags.output.as_deref(), |screen, out| {
        if !says_all(flags.format, screen) {
            tell(report, leaves_out.unwrap_or_default(), voice);
        }
        match (flags.format, &planned) {
            (OutputFormat::Parquet, Some(_)) if screen.width.is_some() => {
                Err(Failure::usage("Parquet is no text for a terminal: want --output FILE").into())
            }
            (OutputFormat::Parquet, Some(plan)) => parquet::write_parquet(plan, out),
            (_, Some(plan)) => plan.write(out),
            (format, None) => write_rows(report, flags, format, screen, out),
        }
    })
}

/// The format of the export that a format is made by.
fn planned(format: OutputFormat) -> Option<Format> {
    match format {
        OutputFormat::Table | OutputFormat::Json => None,
        OutputFormat::Ndjson => Some(Format::Ndjson),
        OutputFormat::Csv | OutputFormat::Parquet => Some(Format::Csv),
        OutputFormat::Openmetrics => Some(Format::OpenMetrics),
        OutputFormat::OtlpJson => Some(Format::OtlpJson),
        OutputFormat::Influx => Some(Format::Influx),
        OutputFormat::Dogstatsd => Some(Format::DogStatsD),
    }
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
        OutputFormat::Csv => changes::write_csv(report, &picked, &flags.labels, out),
        OutputFormat::Ndjson => changes::write_ndjson(report, &picked, &flags.labels, out),
        OutputFormat::Table if screen.width.is_none() => plain::write_plain(report, &picked, out),
        OutputFormat::Table if compares => {
            let by = ranking.by.unwrap_or(CountName::Errors);
            change_table::write_changes(report, &picked, by, screen, out)
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
fn tell(report: &Report, leaves_out: bool, voice: &Voice) {
    if let Some(text) = remarks::provisional(report).filter(|_| !leaves_out) {
        voice.warning(text);
    }
    for part in &report.parts {
        if let Some(text) = remarks::unbalanced(part) {
            voice.warning(format_args!("{}{text}", remarks::of(report, &part.cluster)));
        }
    }
}
