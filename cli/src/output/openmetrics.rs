//! OpenMetrics of several clusters as one text. Each metric's samples must stand together below one header, and
//! `# EOF` stands once at the end; so the texts are joined metric by metric.

use std::io::{self, Write};

use tallyfold_export::Export;

/// What a metric's header begins with.
const HEADER: &[u8] = b"# TYPE ";

/// Writes the texts of several exports as one.
///
/// # Errors
/// Those of the writer.
pub(crate) fn write_joined(exports: Vec<Export>, out: &mut dyn Write) -> io::Result<()> {
    let mut texts: Vec<Text> = exports.into_iter().map(Text::new).collect();
    while let Some(metric) = texts.iter_mut().find_map(Text::metric) {
        let mut has_header = false;
        for text in &mut texts {
            if text.metric().as_ref() != Some(&metric) {
                continue;
            }
            while let Some(line) = text.line().filter(|line| line.starts_with(b"# ")) {
                if !has_header {
                    out.write_all(line)?;
                }
                text.pass();
            }
            while let Some(line) = text.line().filter(|line| !line.starts_with(b"# ")) {
                out.write_all(line)?;
                text.pass();
            }
            has_header = true;
        }
    }
    out.write_all(b"# EOF\n")
}

/// The text of an export, read line by line. Lines are lines: a line feed in a label's value is escaped.
struct Text {
    export: Export,
    piece: Vec<u8>,
    /// What was read of the export and not passed yet begins here.
    held: Vec<u8>,
    start: usize,
}

impl Text {
    fn new(export: Export) -> Self {
        Self {
            export,
            piece: Vec::new(),
            held: Vec::new(),
            start: 0,
        }
    }

    /// The metric whose header is next.
    fn metric(&mut self) -> Option<Vec<u8>> {
        let line = self.line()?.strip_prefix(HEADER)?;
        let name = line.split(|byte| *byte == b' ').next()?;
        Some(name.to_vec())
    }

    /// The next line, with its line feed.
    fn line(&mut self) -> Option<&[u8]> {
        loop {
            let rest = self.held.get(self.start..)?;
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                return self.held.get(self.start..=self.start + end);
            }
            self.export.next_piece(&mut self.piece)?;
            self.held.drain(..self.start);
            self.start = 0;
            self.held.extend_from_slice(&self.piece);
        }
    }

    /// Goes to the line after.
    fn pass(&mut self) {
        self.start += self.line().map_or(0, <[u8]>::len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::exported::Plan;
    use crate::output::report::Counted;
    use crate::output::testing::{named_pair, report_of, show, table};
    use tallyfold_export::Format;

    fn written(report: &crate::output::report::Report) -> String {
        let mut out = Vec::new();
        let plan = Plan::new(report, &show(&[]), Format::OpenMetrics).unwrap();
        plan.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn metrics_of_several_clusters_stand_together() {
        let text = written(&named_pair());
        let headers = text.lines().filter(|line| line.starts_with("# TYPE"));
        assert_eq!(headers.count(), 3);
        assert_eq!(text.matches("# EOF").count(), 1);
        assert!(text.ends_with("# EOF\n"));
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(samples.count(), 12);
        // The metric of each line, repeats taken out: none comes twice.
        let name = |line: &str| {
            let line = line
                .strip_prefix("# ")
                .map_or(line, |rest| rest.split_once(' ').map_or("", |of| of.1));
            line.split(['{', ' ']).next().unwrap_or_default().to_owned()
        };
        let mut names: Vec<String> = text
            .lines()
            .take_while(|line| *line != "# EOF")
            .map(name)
            .collect();
        names.dedup();
        assert_eq!(names.len(), 3, "{names:?}");
    }

    #[test]
    fn one_cluster_is_written_as_the_export_writes_it() {
        let rows = &[("a\n# EOF", 1, 2, 3), ("b", 4, 5, 6)];
        let table = table(rows);
        let options = tallyfold_export::ExportOptions::with_defaults(Format::OpenMetrics);
        let mut alone = Vec::new();
        Export::new(&table, &options)
            .unwrap()
            .write_to(&mut alone)
            .unwrap();
        let report = report_of(vec![("default", Counted::Table(table))]);
        assert_eq!(written(&report).as_bytes(), alone);
    }

    #[test]
    fn a_cluster_without_counts_changes_nothing() {
        let mut report = named_pair();
        let text = written(&report);
        let mut other = report_of(vec![("ap", Counted::Table(table(&[])))]);
        report.parts.insert(0, other.parts.remove(0));
        assert_eq!(written(&report), text);
    }
}
