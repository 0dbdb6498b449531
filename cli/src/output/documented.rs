//! Creates the JSON document of a report.

use std::io::{self, Write};

use tallyfold::{
    Comparison, CountTable, Counts, Deltas, Frame, Reconciliation, Row, Series, SeriesWindow,
};

use super::document::{
    AskedDocument, Change, ChangeOf, ChangeRowDocument, ChangesOf, ClusterDocument,
    ComparisonDocument, Count, CountsDocument, CountsOf, Document, FailureDocument, FilterDocument,
    FormatName, MissingDocument, Pairs, ReconciliationDocument, RowDocument, Rows, SeriesDocument,
    SeriesRowDocument, TableDocument, WindowDocument,
};
use super::report::{Asked, Counted, Missing, Part, Report};
use super::show::{Picked, Ranking};
use super::sink::{Screen, WriteError};
use crate::failure::Failure;

/// Writes the document: indented on a terminal, otherwise on one line.
///
/// # Errors
/// Those of the writer.
pub(crate) fn write_json(
    report: &Report,
    picked: &Picked,
    ranking: Ranking,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let document = document(report, picked, ranking);
    let written = match screen.width {
        Some(_) => serde_json::to_writer_pretty(&mut *out, &document),
        None => serde_json::to_writer(&mut *out, &document),
    };
    written.map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// The document of a cluster without any counts.
pub(crate) fn missing_of(missing: &Missing) -> MissingDocument<'_> {
    MissingDocument {
        cluster: &missing.cluster,
        failure: (&missing.failure).into(),
    }
}

fn document<'a>(report: &'a Report, picked: &Picked, ranking: Ranking) -> Document<'a> {
    let missing = report.missing.iter().map(missing_of);
    let mut positions = vec![Vec::new(); report.parts.len()];
    for line in &picked.lines {
        positions[line.part].push(line.row);
    }
    let parts = report.parts.iter().zip(positions);
    Document {
        format: FormatName::Report1,
        asked: asked(&report.asked, ranking),
        left_out: picked.left_out as u64,
        clusters: parts.map(|(part, rows)| cluster(part, rows)).collect(),
        missing: missing.collect(),
    }
}

fn asked(asked: &Asked, ranking: Ranking) -> AskedDocument<'_> {
    let filter = asked
        .only
        .iter()
        .map(|(dimension, values)| FilterDocument { dimension, values });
    AskedDocument {
        metric: asked.metric,
        dimensions: &asked.by,
        filter: filter.collect(),
        range: asked.range,
        before: asked.before,
        order: ranking.by,
        top: ranking.top.map(|top| top as u64),
    }
}

fn cluster(part: &Part, rows: Vec<usize>) -> ClusterDocument<'_> {
    let labels = part.labels.iter();
    ClusterDocument {
        cluster: &part.cluster,
        labels: Pairs(labels.map(|(name, value)| (&**name, &**value)).collect()),
        gaps: &part.gaps,
        provisional: &part.provisional,
        failure: part.failure.as_ref().map(Into::into),
        counts: match &part.found {
            Counted::Table(of) => CountsDocument::Table(table(of, rows)),
            Counted::Series(of) => CountsDocument::Series(series(of, rows)),
            Counted::Comparison(of) => CountsDocument::Comparison(comparison(of, rows)),
        },
    }
}

fn table(table: &CountTable, positions: Vec<usize>) -> TableDocument<'_> {
    TableDocument {
        coverage: table.coverage(),
        reconciliation: table.reconciliation().into(),
        totals: table.totals().into(),
        rows: Rows {
            positions,
            row: Box::new(|position| {
                let row = table.row(position)?;
                Some(row_of(table, row, row.counts()))
            }),
        },
    }
}

fn series(series: &Series, positions: Vec<usize>) -> SeriesDocument<'_> {
    SeriesDocument {
        windows: series.windows().iter().map(|of| (*of).into()).collect(),
        totals: series.totals().into(),
        rows: Rows {
            positions,
            row: Box::new(|position| {
                let row = series.row(position)?;
                let window = SeriesWindow {
                    window: row.window(),
                    complete: row.complete(),
                    provisional: row.provisional(),
                };
                Some(SeriesRowDocument {
                    window: window.into(),
                    row: row_of(series, row, row.counts()),
                })
            }),
        },
    }
}

fn comparison(comparison: &Comparison, positions: Vec<usize>) -> ComparisonDocument<'_> {
    ComparisonDocument {
        before_coverage: comparison.before_coverage(),
        after_coverage: comparison.after_coverage(),
        totals: ChangeOf {
            before: Some(comparison.before_totals().into()),
            after: Some(comparison.after_totals().into()),
            change: comparison.total_delta().into(),
        },
        rows: Rows {
            positions,
            row: Box::new(|position| {
                let row = comparison.row(position)?;
                Some(ChangeRowDocument {
                    dimensions: pairs(comparison, row),
                    presence: row.presence(),
                    counts: ChangeOf {
                        before: row.before().map(Into::into),
                        after: row.after().map(Into::into),
                        change: row.delta().into(),
                    },
                    share: row.share(),
                })
            }),
        },
    }
}

fn row_of<'a, F: Frame>(frame: &'a F, row: Row<'a, F>, counts: Counts) -> RowDocument<'a> {
    RowDocument {
        dimensions: pairs(frame, row),
        counts: counts.into(),
        rates: counts.rates(),
    }
}

fn pairs<'a, F: Frame>(frame: &F, row: Row<'a, F>) -> Pairs<'a> {
    let names = frame.dimensions().names().into_iter();
    Pairs(names.zip(row.values()).collect())
}

impl From<Counts> for CountsOf {
    fn from(counts: Counts) -> Self {
        let [success, errors, filtered] = counts.each().map(Count);
        Self {
            success,
            errors,
            filtered,
        }
    }
}

impl From<Deltas> for ChangesOf {
    fn from(deltas: Deltas) -> Self {
        let [success, errors, filtered] = deltas.each().map(Change);
        Self {
            success,
            errors,
            filtered,
        }
    }
}

impl From<Reconciliation> for ReconciliationDocument {
    fn from(reconciliation: Reconciliation) -> Self {
        match reconciliation {
            Reconciliation::Balanced => Self::Balanced,
            Reconciliation::Unavailable => Self::Unavailable,
            Reconciliation::Unbalanced {
                success,
                errors,
                filtered,
            } => Self::Unbalanced(ChangesOf {
                success: Change(success),
                errors: Change(errors),
                filtered: Change(filtered),
            }),
        }
    }
}

impl From<SeriesWindow> for WindowDocument {
    fn from(of: SeriesWindow) -> Self {
        Self {
            window: of.window,
            complete: of.complete,
            provisional: of.provisional,
        }
    }
}

impl<'a> From<&'a Failure> for FailureDocument<'a> {
    fn from(failure: &'a Failure) -> Self {
        Self {
            code: failure.code.map(|code| code.as_str()),
            message: &failure.text,
        }
    }
}

#[cfg(test)]
mod tests;
