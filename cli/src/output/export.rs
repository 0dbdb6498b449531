//! Writes reports in the formats of `tallyfold-export`.

use std::io::Write;
use std::sync::Arc;

use tallyfold::{CountTable, Frame, Series, Window, Windowed, WindowedColumns};
use tallyfold_export::{
    Export, ExportOptions, Format, Labels, Note, NoteKind, Place, Source, Windows,
};

use super::report::{Asked, Counted, Report, labels};
use super::show::{Picked, Ranking, ShowFlags};
use super::sink::WriteError;
use crate::config::settings::Pair;
use crate::failure::{Failure, Result};
use crate::stderr::Stderr;

/// The error for a comparison in a format that can't represent one.
pub(crate) const NO_COMPARISON: &str =
    "this format can't represent a comparison: want --format table, json, ndjson or csv";

/// Checks the options of an export, and the labels of each cluster, before the counts are read.
///
/// # Errors
/// For labels and options that the format does not support.
pub(crate) fn check(
    asked: &Asked,
    labels: Vec<Vec<Pair>>,
    flags: &ShowFlags,
    format: Format,
) -> Result<()> {
    let options = ExportOptions::with_defaults(format);
    let options = flags.export.given.read_over(options)?;
    let columns = WindowedColumns {
        metric: Some(asked.metric),
        dimensions: asked.by.iter().map(ToString::to_string).collect(),
        dictionaries: vec![Arc::default(); asked.by.len()],
        ids: vec![Vec::new(); asked.by.len()],
        ..WindowedColumns::default()
    };
    let nothing = Source::of_rows(Windowed::of_columns(columns)?, None);
    let sources = labels.into_iter();
    let sources = sources.map(|labels| Ok((nothing.clone(), Labels::new(labels)?)));
    let sources = sources.collect::<Result<Vec<_>>>()?;
    Export::of_sources(sources, &options)?;
    Ok(())
}

/// Begins the export of a report: the rows of each cluster with the cluster's labels. The flags may select some of the
/// rows, or another order. `format` decides which counts are refused and, without `--windows`, which windows are written.
///
/// # Errors
/// For invalid labels and options, and for counts that the format does not support.
pub(crate) fn export_of(report: &Report, flags: &ShowFlags, format: Format) -> Result<Export> {
    let options = ExportOptions::with_defaults(format);
    let options = flags.export.given.read_over(options)?;
    let ranking = Ranking::of(report, flags);
    let sums = format.is_file() && options.windows != Some(Windows::Settled);
    let parts = report.parts.iter().zip(labels(report, &flags.labels)?);
    let parts: Vec<(Rows<'_>, Labels)> = parts
        .map(|(part, labels)| {
            let rows = Rows::of(&part.found, sums, ranking.by.is_some())?;
            Ok((rows, labels))
        })
        .collect::<Result<_>>()?;
    let all = |(rows, labels): &(Rows<'_>, Labels)| Ok((rows.all()?, labels.clone()));
    if ranking.by.is_none() {
        let sources = parts.iter().map(all).collect::<Result<Vec<_>>>()?;
        return Ok(Export::of_sources(sources, &options)?);
    }
    let picked = Picked::of_frames(parts.iter().map(|(rows, _)| rows.frame()), ranking);
    if format.is_file() {
        let sources = parts.iter().map(all).collect::<Result<Vec<_>>>()?;
        let places = picked.lines.iter().map(|line| Place { source: line.part, row: line.row });
        return Ok(Export::of_sources(sources, &options)?.choosing(places.collect())?);
    }
    // The formats of other systems sort the rows themselves, so the order of the ranking is not kept.
    let sources = parts.iter().enumerate().map(|(part, (rows, labels))| {
        let of_part = picked.lines.iter().filter(|line| line.part == part);
        let mut positions: Vec<usize> = of_part.map(|line| line.row).collect();
        positions.sort_unstable();
        Ok((rows.some(&positions)?, labels.clone()))
    });
    let sources = sources.collect::<Result<Vec<_>>>()?;
    Ok(Export::of_sources(sources, &options)?)
}

/// Prints the notes about an export on stderr, only the first of each kind. Returns whether windows are left out.
pub(crate) fn warn(export: &Export, stderr: &Stderr) -> bool {
    let mut reported: Vec<NoteKind> = Vec::new();
    for note in export.notes() {
        if reported.contains(&note.kind()) {
            continue;
        }
        reported.push(note.kind());
        match note {
            Note::WindowsLeftOut { .. } => {
                stderr.warning(format_args!("{note}; --windows all writes them too"));
            }
            _ => stderr.warning(note),
        }
    }
    reported.contains(&NoteKind::WindowsLeftOut)
}

/// Writes an export.
///
/// # Errors
/// The errors of the writer.
pub(crate) fn write(mut export: Export, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut piece = Vec::new();
    while export.next_piece(&mut piece).is_some() {
        out.write_all(&piece)?;
        // Adds the line feed that JSON messages lack, so that each message is on its own line.
        if piece.last().is_some_and(|last| *last != b'\n') {
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// The rows of a part for the export.
#[derive(Debug)]
pub(crate) enum Rows<'a> {
    /// One row for each group, with the counts of the whole range.
    Sum(&'a CountTable, Window),
    /// The rows of each response.
    Responses(&'a CountTable),
    /// The rows of each window.
    Series(Arc<Series>),
}

impl<'a> Rows<'a> {
    /// Returns the rows of a part.
    ///
    /// A table stores settled counts separately from counts that may still change. With `sums`, each group gets a single row
    /// anyway, as users expect in a file. This row is settled only if all counts of the table are settled. Without `sums`, for
    /// systems that store samples, settled counts have rows of their own. A table with gaps is never summed, because no single
    /// window describes what it covers. If `picks` is true, the caller will select rows, so a table that isn't summed becomes a
    /// series: each row of a series keeps its window.
    ///
    /// # Errors
    /// For a comparison.
    pub(crate) fn of(counts: &'a Counted, sums: bool, picks: bool) -> Result<Self> {
        let table = match counts {
            Counted::Table(table) => table,
            Counted::Series(series) => return Ok(Self::Series(Arc::clone(series))),
            Counted::Comparison(_) => return Err(Failure::usage(NO_COMPARISON)),
        };
        Ok(match table.coverage()[..] {
            [window] if sums => Self::Sum(table, window),
            _ if picks => Self::Series(Arc::new(table.by_window(None)?)),
            _ => Self::Responses(table),
        })
    }

    /// Returns the frame to pick rows from, and whether it is a series.
    pub(crate) fn frame(&self) -> (&dyn Frame, bool) {
        match self {
            Self::Sum(table, _) | Self::Responses(table) => (*table, false),
            Self::Series(series) => (&**series, true),
        }
    }

    /// Returns all rows.
    ///
    /// # Errors
    /// The errors of the core.
    pub(crate) fn all(&self) -> Result<Source> {
        match self {
            Self::Sum(table, _) if table.windows().len() > 1 => {
                self.some(&(0..table.len()).collect::<Vec<_>>())
            }
            Self::Sum(table, _) | Self::Responses(table) => Ok(Source::from(*table)),
            Self::Series(series) => Ok(Source::from(series)),
        }
    }

    /// Returns the rows at these positions, which must be sorted.
    ///
    /// # Errors
    /// The errors of the core.
    pub(crate) fn some(&self, rows: &[usize]) -> Result<Source> {
        let (frame, _) = self.frame();
        let keys = frame.keys();
        let pick = |ids: &Vec<u32>| rows.iter().map(|row| ids[*row]).collect();
        let (windows, window_ids) = self.windows(rows);
        let columns = WindowedColumns {
            metric: frame.metric(),
            dimensions: frame.dimensions().names().into_iter().map(str::to_owned).collect(),
            dictionaries: keys.dictionaries.to_vec(),
            ids: keys.ids.iter().map(pick).collect(),
            windows,
            window_ids,
            counts: self.counts(rows),
            ..WindowedColumns::default()
        };
        Ok(Source::of_rows(Windowed::of_columns(columns)?, None))
    }

    /// Returns the windows, each with whether it is settled, and for each row the position of its window.
    fn windows(&self, rows: &[usize]) -> (Vec<(Window, bool)>, Vec<u32>) {
        match self {
            Self::Sum(table, window) => {
                let is_settled = table.provisional().is_empty();
                (vec![(*window, is_settled)], vec![0; rows.len()])
            }
            Self::Responses(_) => (Vec::new(), Vec::new()),
            Self::Series(series) => {
                let windows = series.windows().iter();
                let windows = windows.map(|of| (of.window, of.complete && !of.provisional));
                let ids = rows.iter().map(|row| series.window_ids()[*row]);
                (windows.collect(), ids.collect())
            }
        }
    }

    fn counts(&self, rows: &[usize]) -> [Vec<u64>; 3] {
        let columns = match self {
            Self::Sum(table, _) | Self::Responses(table) => {
                [table.success(), table.errors(), table.filtered()]
            }
            Self::Series(series) => {
                let counts = series.counts();
                [counts.success(), counts.errors(), counts.filtered()]
            }
        };
        columns.map(|column| rows.iter().map(|row| column[*row]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::{
        hours, named_pair, partly_provisional, provisional_table, report_of, show, table,
    };

    fn written(report: &Report, format: Format, flags: &[&str]) -> String {
        let mut out = Vec::new();
        let export = export_of(report, &show(flags), format).unwrap();
        write(export, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn csv_of_several_clusters_has_one_header_and_the_cluster_first() {
        let text = written(&named_pair(), Format::Csv, &["--label", "env=a,b"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "cluster,env,window_start,window_end,settled,integration,success,errors,filtered",
                "eu,\"a,b\",2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,true,a,1,5,0",
                "eu,\"a,b\",2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,true,b,2,1,0",
                "us,\"a,b\",2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,true,a,3,3,0",
                "us,\"a,b\",2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,true,c,4,9,0",
            ]
        );
        assert!(text.ends_with("\r\n"));
    }

    #[test]
    fn files_have_the_requested_order() {
        let text = written(&named_pair(), Format::Csv, &["--top", "3"]);
        let ends: Vec<&str> =
            text.lines().map(|line| line.rsplit_once("Z,true,").map_or(line, |of| of.1)).collect();
        let header = "cluster,window_start,window_end,settled,integration,success,errors,filtered";
        assert_eq!(ends, [header, "c,4,9,0", "a,1,5,0", "a,3,3,0"]);
        let text = written(&named_pair(), Format::Ndjson, &["--order", "success"]);
        let clusters: Vec<&str> = text.lines().map(|line| &line[..15]).collect();
        let cluster = |name: &str| format!(r#"{{"cluster":"{name}""#);
        assert_eq!(clusters, ["us", "us", "eu", "eu"].map(cluster));
    }

    #[test]
    fn a_group_has_one_row_in_files_even_if_some_counts_may_change() {
        let settled = hours(&[&[("a", 1, 2, 3)], &[("a", 10, 0, 0)]]);
        let report = report_of(vec![("eu", Counted::Table(settled))]);
        let text = written(&report, Format::Csv, &[]);
        let row = "2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,true,a,11,2,3";
        assert_eq!(text.lines().nth(1), Some(row));
        // OpenMetrics has a sample for each window: two windows with three counts.
        let text = written(&report, Format::OpenMetrics, &[]);
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 6);
        let report = report_of(vec![("eu", Counted::Table(provisional_table(&[("a", 1, 2, 3)])))]);
        assert!(written(&report, Format::Csv, &[]).contains(",false,a,1,2,3"));
        assert_eq!(written(&report, Format::OpenMetrics, &[]), "# EOF\n");
        assert_eq!(written(&report, Format::Csv, &["--windows", "settled"]).lines().count(), 1);
    }

    #[test]
    fn a_sum_is_settled_only_if_all_its_counts_are() {
        let table = partly_provisional(&[("a", 1, 2, 3)], &[("a", 10, 0, 0)]);
        let report = report_of(vec![("eu", Counted::Table(table))]);
        for flags in [&[][..], &["--order", "errors"]] {
            let text = written(&report, Format::Csv, flags);
            let row = "2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,false,a,11,2,3";
            assert_eq!(text.lines().nth(1), Some(row));
            // Systems that store samples get only settled windows.
            let text = written(&report, Format::Influx, flags);
            assert_eq!(text.lines().count(), 1);
            assert!(text.contains("success=1i,errors=2i,filtered=3i"), "{text}");
        }
        for flags in [&["--windows", "settled"][..], &["--windows", "settled", "--order", "errors"]]
        {
            let text = written(&report, Format::Csv, flags);
            assert_eq!(text.lines().count(), 2);
            assert!(text.contains("T01:00:00Z,true,a,1,2,3"));
        }
    }

    #[test]
    fn samples_of_the_top_groups_are_exact_in_every_window() {
        let table = hours(&[&[("a", 1, 6, 0), ("b", 1, 4, 0)], &[("b", 1, 5, 0), ("c", 1, 1, 0)]]);
        let report = report_of(vec![("eu", Counted::Table(table))]);
        let text = written(&report, Format::Influx, &["--top", "1"]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.lines().all(|line| line.contains("integration=b")));
        assert!(text.contains("errors=4") && text.contains("errors=5"), "{text}");
    }

    #[test]
    fn files_without_rows_have_a_header() {
        for flags in [&[][..], &["--top", "3"]] {
            let report = report_of(vec![("eu", Counted::Table(table(&[])))]);
            let text = written(&report, Format::Csv, flags);
            assert_eq!(
                text,
                "window_start,window_end,settled,integration,success,errors,filtered\r\n"
            );
        }
    }

    #[test]
    fn each_message_is_one_line() {
        let text = written(&named_pair(), Format::OtlpJson, &[]);
        assert_eq!(text.lines().count(), 2);
        for line in text.lines() {
            assert!(
                serde_json::from_str::<serde_json::Value>(line).unwrap()["resourceMetrics"]
                    .is_array()
            );
        }
        let text = written(&named_pair(), Format::DogStatsD, &[]);
        assert_eq!(text.lines().count(), 12);
        assert!(text.lines().all(|line| line.contains("|c|#cluster:") && line.contains("|T")));
    }

    #[test]
    fn an_export_of_a_comparison_is_refused() {
        let change = crate::output::testing::change();
        let report = report_of(vec![("eu", Counted::Comparison(change))]);
        let failure = export_of(&report, &show(&[]), Format::Influx).err().unwrap();
        assert!(failure.text.contains("comparison"), "{failure}");
    }

    #[test]
    fn samples_of_several_clusters_are_grouped_by_metric() {
        let text = written(&named_pair(), Format::OpenMetrics, &[]);
        let headers = text.lines().filter(|line| line.starts_with("# TYPE"));
        assert_eq!(headers.count(), 3);
        assert_eq!(text.matches("# EOF").count(), 1);
        assert!(text.ends_with("# EOF\n"));
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(samples.count(), 12);
        // Names the metric of each line, and removes adjacent repeats. If the lines of each metric are adjacent, each name
        // remains once.
        let name = |line: &str| {
            let line = line
                .strip_prefix("# ")
                .map_or(line, |rest| rest.split_once(' ').map_or("", |of| of.1));
            line.split(['{', ' ']).next().unwrap_or_default().to_owned()
        };
        let mut names: Vec<String> =
            text.lines().take_while(|line| *line != "# EOF").map(name).collect();
        names.dedup();
        assert_eq!(names.len(), 3, "{names:?}");
    }

    #[test]
    fn one_cluster_is_written_as_by_the_library() {
        let rows = &[("a\n# EOF", 1, 2, 3), ("b", 4, 5, 6)];
        let table = table(rows);
        let options = ExportOptions::with_defaults(Format::OpenMetrics);
        let mut alone = Vec::new();
        Export::new(&table, &options).unwrap().write_to(&mut alone).unwrap();
        let report = report_of(vec![("default", Counted::Table(table))]);
        assert_eq!(written(&report, Format::OpenMetrics, &[]).as_bytes(), alone);
    }

    #[test]
    fn a_cluster_without_counts_changes_nothing() {
        let mut report = named_pair();
        let text = written(&report, Format::OpenMetrics, &[]);
        let mut other = report_of(vec![("ap", Counted::Table(table(&[])))]);
        report.parts.insert(0, other.parts.remove(0));
        assert_eq!(written(&report, Format::OpenMetrics, &[]), text);
    }
}
