//! Writes the results of pushes as a table or JSON.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;
use tallyfold_export::PushReport;

use super::documented::write_document;
use super::sink::write_to;
use crate::failure::Result;

/// How the report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PushedFormat {
    /// A line for each cluster.
    Table,
    /// One document.
    Json,
}

/// The result of pushing the counts of one cluster.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Pushed {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// What was sent.
    #[serde(flatten)]
    pub(crate) report: PushReport,
}

/// Adds a report to the total.
pub(crate) fn add(total: &mut PushReport, report: &PushReport) {
    total.messages += report.messages;
    total.samples += report.samples;
    total.bytes += report.bytes;
    total.retries += report.retries;
    total.unsure += report.unsure;
    total.rejected.extend(report.rejected.iter().cloned());
}

/// Writes the report to stdout.
///
/// # Errors
/// If stdout can't be written.
pub(crate) fn write(pushed: &[Pushed], format: PushedFormat) -> Result<()> {
    write_to(None, |_, out| match format {
        PushedFormat::Table => Ok(write_lines(pushed, out)?),
        PushedFormat::Json => Ok(write_document(&pushed, false, out)?),
    })
}

fn write_lines(pushed: &[Pushed], out: &mut dyn Write) -> io::Result<()> {
    if pushed.is_empty() {
        return Ok(());
    }
    let width = pushed
        .iter()
        .map(|one| one.cluster.len())
        .max()
        .unwrap_or(0)
        .max("cluster".len());
    writeln!(
        out,
        "{:width$}  messages     samples  retries  rejected  unsure",
        "cluster"
    )?;
    for Pushed { cluster, report } in pushed {
        // A destination may reject points without their number; each such report counts as one.
        let rejected: u64 = report
            .rejected
            .iter()
            .map(|rejected| rejected.points.unwrap_or(1))
            .sum();
        writeln!(
            out,
            "{cluster:width$}  {:>8}  {:>10}  {:>7}  {rejected:>8}  {:>6}",
            report.messages, report.samples, report.retries, report.unsure
        )?;
    }
    Ok(())
}
