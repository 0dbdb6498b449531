//! Creates and writes the JSON document of a report.

use std::io::{self, Write};

use serde::Serialize;
use tallyfold::{
    Comparison, CountTable, Counts, Deltas, Frame, Reconciliation, Row, Series, SeriesWindow,
};

use super::document::{
    AskedDocument, Change, ChangeOf, ChangeRowDocument, ChangesOf, ClusterDocument,
    ComparisonDocument, Count, CountsDocument, CountsOf, FailureDocument, FilterDocument,
    FormatName, MissingDocument, Pairs, ReconciliationDocument, ReportDocument, RowDocument, Rows,
    SeriesDocument, SeriesRowDocument, TableDocument, WindowDocument,
};
use super::report::{Asked, Counted, Missing, Part, Report};
use super::show::{Picked, Ranking};
use super::sink::{Screen, WriteError};
use crate::failure::Failure;

/// Writes the document: indented on a terminal, otherwise on one line.
///
/// # Errors
/// The errors of the writer.
pub(crate) fn write_json(
    report: &Report,
    picked: &Picked,
    ranking: Ranking,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let document = document(report, picked, ranking);
    Ok(write_document(&document, screen.width.is_some(), out)?)
}

/// Writes any document, followed by a line feed.
///
/// # Errors
/// The errors of the writer.
pub(crate) fn write_document(
    document: &impl Serialize,
    is_indented: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    match is_indented {
        true => serde_json::to_writer_pretty(&mut *out, document)?,
        false => serde_json::to_writer(&mut *out, document)?,
    }
    writeln!(out)
}

/// Creates the document of a cluster without any counts.
pub(crate) fn missing_of(missing: &Missing) -> MissingDocument<'_> {
    MissingDocument { cluster: &missing.cluster, failure: (&missing.failure).into() }
}

/// Creates the document of a report, with the rows that were picked.
pub(crate) fn document<'a>(
    report: &'a Report,
    picked: &Picked,
    ranking: Ranking,
) -> ReportDocument<'a> {
    let missing = report.missing.iter().map(missing_of);
    let mut positions = vec![Vec::new(); report.parts.len()];
    for line in &picked.lines {
        positions[line.part].push(line.row);
    }
    let parts = report.parts.iter().zip(positions);
    ReportDocument {
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
        .map(|(dimension, values)| FilterDocument { dimension: *dimension, values });
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
    ClusterDocument {
        cluster: &part.cluster,
        labels: Pairs::of(&part.labels),
        gaps: &part.gaps,
        provisional: &part.provisional,
        failure: part.failure.as_ref().map(Into::into),
        counts: match &part.found {
            Counted::Table(of) => CountsDocument::Table(table(of, part.reconciliation, rows)),
            Counted::Series(of) => CountsDocument::Series(series(of, part.reconciliation, rows)),
            Counted::Comparison(of) => CountsDocument::Comparison(comparison(of, rows)),
        },
    }
}

fn table(
    table: &CountTable,
    reconciliation: Reconciliation,
    positions: Vec<usize>,
) -> TableDocument<'_> {
    TableDocument {
        coverage: table.coverage(),
        reconciliation: reconciliation.into(),
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

fn series(
    series: &Series,
    reconciliation: Reconciliation,
    positions: Vec<usize>,
) -> SeriesDocument<'_> {
    SeriesDocument {
        windows: series.windows().iter().map(|of| (*of).into()).collect(),
        reconciliation: reconciliation.into(),
        totals: series.totals().into(),
        rows: Rows {
            positions,
            row: Box::new(|position| {
                let row = series.row(position)?;
                Some(SeriesRowDocument {
                    window: WindowDocument {
                        window: row.window(),
                        complete: row.complete(),
                        provisional: row.provisional(),
                    },
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
    RowDocument { dimensions: pairs(frame, row), counts: counts.into(), rates: counts.rates() }
}

fn pairs<'a, F: Frame>(frame: &F, row: Row<'a, F>) -> Pairs<'a> {
    let names = frame.dimensions().names().into_iter();
    Pairs(names.zip(row.values()).collect())
}

impl From<Counts> for CountsOf {
    fn from(counts: Counts) -> Self {
        let [success, errors, filtered] = counts.each().map(Count);
        Self { success, errors, filtered }
    }
}

impl From<Deltas> for ChangesOf {
    fn from(deltas: Deltas) -> Self {
        let [success, errors, filtered] = deltas.each().map(Change);
        Self { success, errors, filtered }
    }
}

impl From<Reconciliation> for ReconciliationDocument {
    fn from(reconciliation: Reconciliation) -> Self {
        match reconciliation {
            Reconciliation::Balanced => Self::Balanced,
            Reconciliation::Unavailable => Self::Unavailable,
            Reconciliation::Unbalanced { success, errors, filtered } => {
                Self::Unbalanced(ChangesOf {
                    success: Change(success),
                    errors: Change(errors),
                    filtered: Change(filtered),
                })
            }
        }
    }
}

impl From<SeriesWindow> for WindowDocument {
    fn from(of: SeriesWindow) -> Self {
        Self { window: of.window, complete: of.complete, provisional: of.provisional }
    }
}

impl<'a> From<&'a Failure> for FailureDocument<'a> {
    fn from(failure: &'a Failure) -> Self {
        Self { code: failure.code.map(|code| code.as_str()), message: &failure.text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;
    use crate::output::document::ReportDocument;
    use crate::output::report::Missing;
    use crate::output::testing::{
        BIG, HOSTILE, ROWS, change, hour, provisional_table, report_of, series, table,
        unbalanced_table,
    };
    use serde_json::{Value, json};
    use tallyfold::{Dimension, RankBy};

    const ALL: Ranking = Ranking { by: None, top: None };

    fn written(report: &Report, ranking: Ranking) -> Value {
        let mut out = Vec::new();
        let picked = Picked::of(report, ranking);
        write_json(report, &picked, ranking, Screen::PLAIN, &mut out).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(&out).unwrap()
    }

    /// Returns reports of every kind, with everything that can be missing or wrong.
    fn reports() -> Vec<Report> {
        let mut all = report_of(vec![
            ("eu", Counted::Table(provisional_table(BIG))),
            ("us", Counted::Table(unbalanced_table())),
            ("ap", Counted::Table(table(HOSTILE))),
            (
                "sa",
                Counted::Table(
                    table(ROWS).filter(&[(Dimension::Integration, vec![String::new()])]).unwrap(),
                ),
            ),
        ]);
        all.is_named = true;
        all.asked.only = vec![(Dimension::Integration, vec![String::new()])];
        all.parts[0].labels = vec![("env".to_owned(), "test".to_owned())];
        all.parts[1].gaps = vec![hour(3)];
        all.parts[1].failure = Some(tallyfold::Window::parse("x", "y").unwrap_err().into());
        all.missing.push(Missing {
            cluster: "af".to_owned(),
            labels: Vec::new(),
            failure: Failure::new(Exit::Service, "no answer"),
        });
        vec![
            all,
            report_of(vec![("default", Counted::Series(series(&[ROWS, &ROWS[..1]])))]),
            report_of(vec![("default", Counted::Comparison(change()))]),
            report_of(Vec::new()),
        ]
    }

    #[test]
    fn documents_of_every_kind_fit_the_schema() {
        let schema = schemars::schema_for!(ReportDocument<'static>);
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        for report in reports() {
            let document = written(&report, ALL);
            let faults: Vec<String> =
                validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert_eq!(faults, [""; 0], "{document:#}");
        }
        // The schema rejects wrong documents.
        let document = written(&reports()[0], ALL);
        for (place, wrong) in [
            ("/clusters/0/totals/errors", json!(-1)),
            ("/clusters/0/totals/errors", json!("12")),
            ("/clusters/0/totals/errors", json!(1.5)),
            ("/clusters/0/rows/0/dimensions/integration", json!(null)),
            ("/clusters/0/kind", json!("other")),
            ("/clusters/1/reconciliation/verdict", json!("fine")),
            ("/format", json!("tallyfold-report/2")),
            ("/asked/metric", json!("delivery")),
            ("/missing/0/message", json!(null)),
        ] {
            let mut document = document.clone();
            *document.pointer_mut(place).unwrap() = wrong;
            assert!(!validator.is_valid(&document), "{place}");
        }
    }

    #[test]
    fn counts_that_readers_would_round_are_strings() {
        let largest = (1 << 53) - 1;
        let rows = [("a", largest, largest + 1, u64::MAX)];
        let report = report_of(vec![("default", Counted::Table(table(&rows)))]);
        let document = written(&report, ALL);
        let row = &document["clusters"][0]["rows"][0];
        assert_eq!(row["success"], json!(9_007_199_254_740_991_u64));
        assert_eq!(row["errors"], json!("9007199254740992"));
        assert_eq!(row["filtered"], json!("18446744073709551615"));
        assert_eq!(row["dimensions"], json!({"integration": "a"}));
        assert_eq!(serde_json::to_value(Change(-(1 << 53))).unwrap(), json!("-9007199254740992"));
        assert_eq!(
            serde_json::to_value(Change(1 - (1 << 53))).unwrap(),
            json!(-9_007_199_254_740_991_i64)
        );
    }

    #[test]
    fn a_document_contains_the_query_and_what_is_missing() {
        let document = written(&reports()[0], ALL);
        assert_eq!(
            document["asked"]["filter"],
            json!([{"dimension": "integration", "values": [""]}])
        );
        assert_eq!(
            document["missing"],
            json!([{"cluster": "af", "code": null, "message": "no answer"}])
        );
        assert_eq!(document["clusters"][1]["failure"]["code"], "invalid_timestamp");
        assert_eq!(document["clusters"][1]["gaps"][0]["start"], "2026-01-01T03:00:00Z");
        let reconciliation =
            json!({"verdict": "unbalanced", "success": 0, "errors": 7, "filtered": 0});
        assert_eq!(document["clusters"][1]["reconciliation"], reconciliation);
        assert_eq!(document["clusters"][0]["provisional"][0]["end"], "2026-01-01T01:00:00Z");
    }

    #[test]
    fn top_rows_are_in_order_and_the_other_rows_are_counted() {
        let report = report_of(vec![("default", Counted::Table(table(ROWS)))]);
        let ranking = Ranking { by: Some(RankBy::Errors), top: Some(2) };
        let document = written(&report, ranking);
        let errors = |row: usize| document["clusters"][0]["rows"][row]["errors"].clone();
        assert_eq!([errors(0), errors(1), errors(2)], [json!(12345), json!(3), Value::Null]);
        assert_eq!(document["left_out"], 3);
        assert_eq!(document["clusters"][0]["totals"]["errors"], 12349);
        assert_eq!(document["asked"]["order"], "errors");
    }
}
