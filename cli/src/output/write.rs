//! Writes a report in the format that the user wants.

use std::io::Write;

use super::flags::{OutputFormat, ShowFlags};
use super::report::{Counted, Report};
use super::sink::{WriteError, write_to};
use crate::failure::{Failure, Result};

/// Writes a report.
///
/// # Errors
/// For a place that can't be written, and for counts that the format can't carry.
pub(crate) fn write(report: &Report, flags: &ShowFlags) -> Result<()> {
    write_to(flags.output.as_deref(), |_screen, out| match flags.format {
        OutputFormat::Table => plain(report, out),
        _ => Err(Failure::usage("this format is not written yet").into()),
    })
}

fn plain(report: &Report, out: &mut dyn Write) -> Result<(), WriteError> {
    for part in &report.parts {
        if let Counted::Table(table) = &part.counts {
            use tallyfold::Frame;
            for row in table.rows() {
                let values: Vec<&str> = row.values().collect();
                let counts = row.counts();
                writeln!(
                    out,
                    "{} {} {} {} {}",
                    part.cluster,
                    values.join(" "),
                    counts.success,
                    counts.errors,
                    counts.filtered
                )?;
            }
        }
    }
    Ok(())
}
