//! Reports in the formats of `tallyfold-export`.

use std::io::Write;

use tallyfold_export::{Export, ExportOptions, Format, NoteKind, Windows};

use super::flags::ShowFlags;
use super::labeled::labels;
use super::openmetrics::write_joined;
use super::pick::{Picked, Ranking};
use super::report::Report;
use super::sink::WriteError;
use super::sources::Rows;
use crate::arguments::given::{Origin, Raw};
use crate::failure::Result;
use crate::stderr::Stderr;

/// What is exported: the rows of each part, and if not all of them are written, or not as they are sorted, which.
pub(crate) struct Plan<'a> {
    parts: Vec<(Rows<'a>, ExportOptions)>,
    runs: Option<Vec<Run>>,
    format: Format,
}

/// Rows of a part that are written together.
#[derive(Debug)]
struct Run {
    part: usize,
    rows: Vec<usize>,
}

impl<'a> Plan<'a> {
    /// Plans an export. `format` decides what is refused and which windows are written.
    ///
    /// # Errors
    /// For labels and options that can't be used, and for counts that the format can't carry.
    pub(crate) fn new(report: &'a Report, flags: &ShowFlags, format: Format) -> Result<Self> {
        let mut given = flags.export.given.clone();
        given.set("format", Raw::Text(format.to_string()), Origin::Flag);
        let options: ExportOptions = given.read()?;
        let ranking = Ranking::of(report, flags);
        let has_rows = has_rows(format);
        let sums = has_rows && options.windows != Some(Windows::Settled);
        let parts = report.parts.iter().zip(labels(report, &flags.labels)?);
        let parts: Vec<(Rows<'_>, ExportOptions)> = parts
            .map(|(part, labels)| {
                let rows = Rows::of(&part.counts, sums, ranking.by.is_some())?;
                let mut options = options.clone();
                options.labels = labels;
                Ok((rows, options))
            })
            .collect::<Result<_>>()?;
        let runs = ranking.by.map(|_| {
            let picked = Picked::of_frames(parts.iter().map(|(rows, _)| rows.frame()), ranking);
            match has_rows {
                true => ordered(&picked),
                false => sorted(&picked, parts.len()),
            }
        });
        Ok(Self {
            parts,
            runs,
            format,
        })
    }

    /// Says what should be known of what is exported, each thing once. Gives whether windows are left out.
    ///
    /// # Errors
    /// For what the format can't carry.
    pub(crate) fn tell(&self, stderr: &Stderr) -> Result<bool> {
        let mut told: Vec<NoteKind> = Vec::new();
        // Exports of single rows would all say the same.
        let exports = match has_rows(self.format) {
            true => self
                .parts
                .iter()
                .map(|(rows, options)| Ok(Export::new(rows.all()?, options)?))
                .collect::<Result<Vec<_>>>()?,
            false => self.exports()?,
        };
        for note in exports.iter().flat_map(Export::notes) {
            if told.contains(&note.kind) {
                continue;
            }
            told.push(note.kind);
            match note.message.split_once("; the option windows") {
                Some((message, _)) => {
                    stderr.warning(format_args!("{message}; --windows all writes them too"));
                }
                None => stderr.warning(&note.message),
            }
        }
        Ok(told.contains(&NoteKind::WindowsLeftOut))
    }

    /// All exports at once: one for each part.
    fn exports(&self) -> Result<Vec<Export>> {
        let mut exports = Vec::new();
        self.each(&mut |export| {
            exports.push(export);
            Ok(())
        })
        .map_err(WriteError::into_failure)?;
        Ok(exports)
    }

    /// Gives the exports one after the other.
    ///
    /// # Errors
    /// Those of the exports, and of the function.
    pub(crate) fn each(
        &self,
        to: &mut dyn FnMut(Export) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        match &self.runs {
            None => {
                for (rows, options) in &self.parts {
                    to(Export::new(rows.all()?, options)?)?;
                }
            }
            Some(runs) => {
                for run in runs {
                    let (rows, options) = &self.parts[run.part];
                    to(Export::new(rows.some(&run.rows)?, options)?)?;
                }
            }
        }
        Ok(())
    }

    /// Writes all of it in its format.
    ///
    /// # Errors
    /// Those of the exports, and of the writer.
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<(), WriteError> {
        match self.format {
            Format::OpenMetrics => Ok(write_joined(self.exports()?, out)?),
            Format::Csv => self.write_csv(out),
            _ => self.each(&mut |mut export| {
                let mut piece = Vec::new();
                while export.next_piece(&mut piece).is_some() {
                    out.write_all(&piece)?;
                    // A message of JSON has no line feed of its own; each is a line here.
                    if piece.last().is_some_and(|last| *last != b'\n') {
                        out.write_all(b"\n")?;
                    }
                }
                Ok(())
            }),
        }
    }

    /// Writes CSV with one header.
    fn write_csv(&self, out: &mut dyn Write) -> Result<(), WriteError> {
        let mut has_header = false;
        self.each(&mut |mut export| {
            let mut piece = Vec::new();
            let mut is_first = true;
            while export.next_piece(&mut piece).is_some() {
                // The names in a header have no line feed.
                let end = piece.iter().position(|byte| *byte == b'\n');
                let skipped = match end {
                    Some(end) if is_first && has_header => end + 1,
                    _ => 0,
                };
                out.write_all(&piece[skipped..])?;
                is_first = false;
            }
            has_header = true;
            Ok(())
        })
    }
}

/// Whether a format has rows whose order a reader sees, and is written anew each time: a file, not samples of a system that
/// keeps them.
fn has_rows(format: Format) -> bool {
    matches!(format, Format::Csv | Format::Ndjson)
}

/// Rows in the order of their ranks. Those of one group stay together.
fn ordered(picked: &Picked) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for line in &picked.lines {
        match runs.last_mut() {
            // The rows of an export are sorted, so a row that sorts before the last one needs another export.
            Some(run) if run.part == line.part && run.rows.last() < Some(&line.row) => {
                run.rows.push(line.row);
            }
            _ => runs.push(Run {
                part: line.part,
                rows: vec![line.row],
            }),
        }
    }
    if runs.is_empty() {
        // There is a header even without rows.
        runs.push(Run {
            part: 0,
            rows: Vec::new(),
        });
    }
    runs
}

/// The same rows as an export sorts them, part by part.
fn sorted(picked: &Picked, parts: usize) -> Vec<Run> {
    let runs = (0..parts).map(|part| {
        let of_part = picked.lines.iter().filter(|line| line.part == part);
        let mut rows: Vec<usize> = of_part.map(|line| line.row).collect();
        rows.sort_unstable();
        Run { part, rows }
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report::Counted;
    use crate::output::testing::{
        hours, named_pair, partly_provisional, provisional_table, report_of, show, table,
    };

    fn written(report: &Report, format: Format, flags: &[&str]) -> String {
        let mut out = Vec::new();
        let plan = Plan::new(report, &show(flags), format).unwrap();
        plan.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn csv_of_several_clusters_has_one_header_and_the_cluster_first() {
        let text = written(&named_pair(), Format::Csv, &["--label", "env=a,b"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "cluster,env,start,end,settled,integration,success,errors,filtered",
                "eu,\"a,b\",2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,true,a,1,5,0",
                "eu,\"a,b\",2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,true,b,2,1,0",
                "us,\"a,b\",2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,true,a,3,3,0",
                "us,\"a,b\",2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,true,c,4,9,0",
            ]
        );
        assert!(text.ends_with("\r\n"));
    }

    #[test]
    fn files_have_the_order_that_is_wanted() {
        let text = written(&named_pair(), Format::Csv, &["--top", "3"]);
        let ends: Vec<&str> = text
            .lines()
            .map(|line| line.rsplit_once("Z,true,").map_or(line, |of| of.1))
            .collect();
        let header = "cluster,start,end,settled,integration,success,errors,filtered";
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
        // A gauge has a sample for each window.
        let text = written(&report, Format::OpenMetrics, &[]);
        assert_eq!(
            text.lines().filter(|line| !line.starts_with('#')).count(),
            6
        );
        let report = report_of(vec![(
            "eu",
            Counted::Table(provisional_table(&[("a", 1, 2, 3)])),
        )]);
        assert!(written(&report, Format::Csv, &[]).contains(",false,a,1,2,3"));
        assert_eq!(written(&report, Format::OpenMetrics, &[]), "# EOF\n");
        assert_eq!(
            written(&report, Format::Csv, &["--windows", "settled"])
                .lines()
                .count(),
            1
        );
    }

    #[test]
    fn a_sum_is_settled_only_if_all_of_it_is() {
        let table = partly_provisional(&[("a", 1, 2, 3)], &[("a", 10, 0, 0)]);
        let report = report_of(vec![("eu", Counted::Table(table))]);
        for flags in [&[][..], &["--order", "errors"]] {
            let text = written(&report, Format::Csv, flags);
            let row = "2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,false,a,11,2,3";
            assert_eq!(text.lines().nth(1), Some(row));
            // What keeps samples gets those that no longer change.
            let text = written(&report, Format::Influx, flags);
            assert_eq!(text.lines().count(), 1);
            assert!(text.contains("success=1i,errors=2i,filtered=3i"), "{text}");
        }
        let text = written(&report, Format::Csv, &["--windows", "settled"]);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("T01:00:00Z,true,a,1,2,3"));
    }

    #[test]
    fn samples_of_the_top_groups_are_exact_in_every_window() {
        let table = hours(&[
            &[("a", 1, 6, 0), ("b", 1, 4, 0)],
            &[("b", 1, 5, 0), ("c", 1, 1, 0)],
        ]);
        let report = report_of(vec![("eu", Counted::Table(table))]);
        let text = written(&report, Format::Influx, &["--top", "1"]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.lines().all(|line| line.contains("integration=b")));
        assert!(
            text.contains("errors=4") && text.contains("errors=5"),
            "{text}"
        );
    }

    #[test]
    fn files_without_rows_have_a_header() {
        for flags in [&[][..], &["--top", "3"]] {
            let report = report_of(vec![("eu", Counted::Table(table(&[])))]);
            let text = written(&report, Format::Csv, flags);
            assert_eq!(
                text,
                "start,end,settled,integration,success,errors,filtered\r\n"
            );
        }
    }

    #[test]
    fn messages_are_lines() {
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
        assert!(
            text.lines()
                .all(|line| line.contains("|c|#cluster:") && line.contains("|T"))
        );
    }

    #[test]
    fn comparisons_are_refused() {
        let change = crate::output::testing::change();
        let report = report_of(vec![("eu", Counted::Comparison(change))]);
        let failure = Plan::new(&report, &show(&[]), Format::Influx)
            .err()
            .unwrap();
        assert!(failure.text.contains("comparison"), "{failure}");
    }
}
