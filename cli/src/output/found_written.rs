//! Writes what `check` has found: sentences, JSON, or OpenMetrics.

use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use tallyfold::{Timestamp, Window};
use tallyfold_health::{Finding, Severity, Status, Unjudged};

use super::document::{FailureDocument, MissingDocument, Pairs};
use super::documented::missing_of;
use super::found::{Found, FoundPart};
use super::found_metrics::write_metrics;
use super::grid::write_styled;
use super::safe::harmless;
use super::sink::{Screen, WriteError, write_to};
use crate::failure::Result;

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FoundFormat {
    /// A sentence for each finding; nothing if there is none.
    Table,
    /// One document, described by a JSON Schema (tallyfold schema check).
    Json,
    /// One JSON object for each finding.
    Ndjson,
    /// OpenMetrics text, such as for the textfile collector of Prometheus' node exporter.
    Openmetrics,
}

/// What rules have found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "tallyfold check --format json")]
pub(crate) struct FoundDocument<'a> {
    /// The version of this document. The number grows when something is removed or means something else; members may be added.
    format: FoundName,
    /// When it was checked; of a replay, the end of its range.
    #[schemars(with = "String")]
    at: Timestamp,
    /// The range of a replay; `null` for a check.
    replay: Option<Window>,
    /// The file with the rules; `null` for the standard rules.
    rules: Option<String>,
    /// Whether nothing is wrong that is more than an info, not silenced and not provisional; of a replay always true.
    healthy: bool,
    /// What was found, in the order of the configuration.
    clusters: Vec<FoundCluster<'a>>,
    /// The clusters of which nothing is known.
    missing: Vec<MissingDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
enum FoundName {
    /// The only version.
    #[serde(rename = "tallyfold-findings/1")]
    Findings1,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FoundCluster<'a> {
    /// The cluster's name; `default` if it has none.
    cluster: &'a str,
    /// The labels that the configuration gives it.
    labels: Pairs<'a>,
    /// Whether nothing is wrong that is more than an info, not silenced and not provisional.
    healthy: bool,
    /// How many windows of groups were judged, of all rules together.
    judged: u64,
    /// What fires, is pending, or was just resolved; of a replay, what fired, in the order of time.
    findings: &'a [Finding],
    /// How many findings were left out, because there are too many.
    left_out: u64,
    /// Rules that could not judge anything, with the reason.
    unjudged: &'a [Unjudged],
    /// The time that could not be read.
    gaps: &'a [Window],
    /// Why `gaps` could not be read; `null` if that is not known.
    failure: Option<FailureDocument<'a>>,
}

/// A line of NDJSON.
#[derive(Serialize)]
struct FoundLine<'a> {
    cluster: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
}

/// Writes what was found to stdout or a file.
///
/// # Errors
/// For a place that can't be written.
pub(crate) fn write(found: &Found, format: FoundFormat, path: Option<&Path>) -> Result<()> {
    write_to(path, |screen, out| match format {
        FoundFormat::Table => Ok(write_sentences(found, screen, out)?),
        FoundFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &document(found)).map_err(io::Error::from)?;
            Ok(writeln!(out)?)
        }
        FoundFormat::Ndjson => write_lines(found, out),
        FoundFormat::Openmetrics => Ok(write_metrics(found, out)?),
    })
}

fn document(found: &Found) -> FoundDocument<'_> {
    let clusters = found.parts.iter().map(|part| {
        let labels = part.labels.iter();
        FoundCluster {
            cluster: &part.cluster,
            labels: Pairs(
                labels
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect(),
            ),
            healthy: part.is_healthy(),
            judged: part.judged(),
            findings: part.findings(),
            left_out: part.left_out(),
            unjudged: part.unjudged(),
            gaps: &part.gaps,
            failure: part.failure.as_ref().map(Into::into),
        }
    });
    FoundDocument {
        format: FoundName::Findings1,
        at: found.at,
        replay: found.replay,
        rules: found.rules.as_ref().map(|path| path.display().to_string()),
        healthy: found.parts.iter().all(FoundPart::is_healthy),
        clusters: clusters.collect(),
        missing: found.missing.iter().map(missing_of).collect(),
    }
}

fn write_lines(found: &Found, out: &mut dyn Write) -> Result<(), WriteError> {
    for part in &found.parts {
        for finding in part.findings() {
            let line = FoundLine {
                cluster: &part.cluster,
                finding,
            };
            serde_json::to_writer(&mut *out, &line).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

fn write_sentences(found: &Found, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    for part in &found.parts {
        for finding in part.findings() {
            if found.is_named {
                write!(out, "{}: ", harmless(&part.cluster))?;
            }
            if found.replay.is_some() {
                write!(out, "{} ", span(finding))?;
            }
            let (word, color) = word_of(finding, found.replay.is_some());
            write_styled(
                word,
                Style::new().fg_color(color.map(Into::into)),
                screen,
                out,
            )?;
            writeln!(out, ": {}", harmless(&finding.sentence))?;
        }
        if part.left_out() > 0 {
            writeln!(out, "and {} more", part.left_out())?;
        }
    }
    Ok(())
}

/// From when to when a finding of a replay lasted.
fn span(finding: &Finding) -> String {
    match finding.resolved {
        Some(end) => format!("{} to {end}", finding.since),
        None => format!("{} to the end", finding.since),
    }
}

fn word_of(finding: &Finding, is_replay: bool) -> (&'static str, Option<AnsiColor>) {
    match finding.status {
        _ if finding.silenced => ("silenced", None),
        Status::Pending => ("pending", None),
        Status::Resolved if !is_replay => ("resolved", Some(AnsiColor::Green)),
        Status::Firing | Status::Resolved => match finding.severity {
            Severity::Critical => ("critical", Some(AnsiColor::Red)),
            Severity::Warning => ("warning", Some(AnsiColor::Yellow)),
            Severity::Info => ("info", None),
        },
    }
}
