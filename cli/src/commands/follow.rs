//! `tallyfold follow`: prints each window's counts when the window has ended, and prints corrections.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::rc::Rc;

use clap::{Args, ValueEnum};
use futures_util::future::join_all;
use serde::Serialize;
use tallyfold::text::{grouped, signed};
use tallyfold::{Comparison, Counts, Deltas, FollowOptions, Frame, Revision, Row, Timestamp};
use tallyfold_export::{Export, ExportOptions, Format, Labels};

use crate::app::App;
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::following::FollowFlags;
use crate::config::settings::{Cluster, labels_of};
use crate::failure::{Exit, Failure, Result};
use crate::host::ranges::Following;
use crate::host::session::{Session, unix_ms};
use crate::host::shutdown::{Shutdown, until_shut_down};
use crate::host::state::StateFile;
use crate::output::document::{ChangesOf, CountsOf};
use crate::output::documented::write_document;
use crate::output::grid::{Cells, Column, Grid, Holds};
use crate::output::safe::{Terminal, shown};
use crate::output::sink::Screen;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold follow --by integration,reason
      Each 15-minute window when it has ended, and again if late events change its counts.
  tallyfold follow --since 24h --state follow.json --format ndjson >> changes.ndjson
      Begins a day back. When started again, the command resumes where it stopped. If it was
      killed, it may write the last revision again: keep the last line for each window, revision
      and group.
  tallyfold follow --from 2026-01-31T00:00:00Z --until 2026-02-01T00:00:00Z --format csv
      Ends when all windows of that day are settled.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct FollowCommand {
    #[command(flatten)]
    follow: FollowFlags,
    #[command(flatten)]
    endurance: Declared<Endurance>,
    /// Where to store the position for the next run: a file, or a folder with a file for each named cluster
    ///
    /// The command stores its position after it has written a revision, so no revision is missing after a restart. If the command
    /// was killed, the next run may write the last revision again, with the same number: keep the last line for each window,
    /// revision and group.
    #[arg(long, value_name = "PATH", help_heading = "Following")]
    state: Option<PathBuf>,
    /// The format of revisions [default: table]
    #[arg(
        long,
        value_enum,
        default_value = "table",
        hide_default_value = true,
        help_heading = "Output"
    )]
    format: RevisionFormat,
    /// A label for each row of csv and ndjson, such as env=production; may be repeated
    #[arg(
        long = "label",
        value_name = "NAME=VALUE",
        hide_short_help = true,
        help_heading = "Output"
    )]
    labels: Vec<String>,
}

/// The flag for how long a follow waits while the service is down.
#[derive(Clone, Debug)]
struct Endurance;

impl Flags for Endurance {
    type Options = FollowOptions;

    const NAMES: &'static [&'static str] = &["patience_ms"];
    const HEADING: &'static str = "Following";
}

/// The follow of one cluster, and the printer of its revisions.
struct Printing<'a> {
    app: &'a App,
    cluster: Cluster,
    labels: Labels,
    following: Following,
    file: Option<StateFile>,
    printer: Rc<RefCell<Printer<Box<dyn Write>>>>,
}

/// Prints revisions until all windows are settled, or until Ctrl-C or SIGTERM.
///
/// # Errors
/// For flags, settings and states that can't be used. In this case, this function sends no request.
pub(crate) async fn run(app: &App, flags: &FollowCommand) -> Result<Exit> {
    let printer = Rc::new(RefCell::new(Printer::of_stdout(flags.format)));
    let mut all = Vec::new();
    for (cluster, session) in app.sessions()? {
        all.push(begin(app, flags, cluster, session, &printer).await?);
    }
    let shutdown = Shutdown::new();
    let work = join_all(all.iter_mut().map(|one| one.run(&shutdown)));
    Ok(match until_shut_down(&app.stop, &shutdown, work).await {
        Err(exit) => exit,
        Ok(results) => Exit::of_clusters(&results),
    })
}

async fn begin<'a>(
    app: &'a App,
    flags: &FollowCommand,
    cluster: Cluster,
    session: Rc<Session>,
    printer: &Rc<RefCell<Printer<Box<dyn Write>>>>,
) -> Result<Printing<'a>> {
    let labels = labels_of(&app.settings, &cluster, &flags.labels)?;
    let path = flags.state.as_deref();
    let file = path.map(|path| StateFile::of_cluster(path, &app.settings, &cluster)).transpose()?;
    let stored = file.as_ref().map(StateFile::read).transpose()?.flatten();
    // The core reports a state that is not UTF-8 as damaged.
    let stored = stored.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let options = flags.follow.options(stored.as_deref(), unix_ms())?;
    let options = flags.endurance.given.read_over(options)?;
    let following = Following::new(session, &options, file.as_ref())?;
    if let (Some(file), None) = (&file, stored) {
        file.replace(following.state()).await?;
    }
    Ok(Printing { app, labels, cluster, following, file, printer: Rc::clone(printer) })
}

impl Printing<'_> {
    /// Prints all revisions. Reports a failure immediately, because the follows of other clusters may run for days.
    async fn run(&mut self, shutdown: &Shutdown) -> Option<Exit> {
        let result = self.print_all(shutdown).await;
        self.app.fail_if(&self.cluster.name, result)
    }

    async fn print_all(&mut self, shutdown: &Shutdown) -> Result<()> {
        let (app, file) = (self.app, self.file.as_ref());
        let origin = Origin {
            cluster: app.settings.is_named.then_some(&self.cluster.name),
            labels: &self.labels,
        };
        while let Some(revision) = app.next_revision(&mut self.following, file, shutdown).await? {
            let is_read = self.printer.borrow_mut().print(&origin, &revision)?;
            if !is_read {
                shutdown.begin();
                break;
            }
            if let Some(file) = file {
                file.replace(self.following.state()).await?;
            }
        }
        Ok(())
    }
}

/// The formats of revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RevisionFormat {
    /// For people: the newest counts of each group that has changed, with the change.
    Table,
    /// One JSON document per revision, each on a line: the newest counts of the window and their changes.
    Json,
    /// One JSON object per changed group, each on a line, with the signed changes. A group's changes over all revisions of a
    /// window add up to its newest counts.
    Ndjson,
    /// The same rows as ndjson, as comma-separated values.
    Csv,
}

/// Writes revisions to an output.
struct Printer<W> {
    out: W,
    format: RevisionFormat,
    /// Whether the output already has a header or rows. If so, the printer writes no header.
    has_begun: bool,
    /// The file that stdout is redirected to; `None` for a terminal, a pipe or a device.
    file: Option<File>,
    /// Whether the last line of the file is incomplete, because an earlier process was killed while writing.
    is_torn: bool,
}

/// The cluster that a revision belongs to.
struct Origin<'a> {
    /// The name of the cluster, if it has one.
    cluster: Option<&'a str>,
    /// The labels of the cluster's counts.
    labels: &'a Labels,
}

impl Printer<Box<dyn Write>> {
    /// Creates a printer to stdout. If stdout is a file that already has rows, the printer adds rows and no header.
    fn of_stdout(format: RevisionFormat) -> Self {
        let out: Box<dyn Write> = match io::stdout().is_terminal() {
            true => Box::new(Terminal::new(io::stdout(), false)),
            false => Box::new(io::stdout()),
        };
        let file = file_of_stdout();
        let length = file.as_ref().and_then(|file| file.metadata().ok());
        let has_begun = length.is_some_and(|length| length.len() > 0);
        Self {
            has_begun,
            is_torn: has_begun && ends_within_a_line().unwrap_or(false),
            file,
            ..Self::new(out, format)
        }
    }
}

/// Returns the file that stdout is redirected to; `None` for a terminal, a pipe or a device.
fn file_of_stdout() -> Option<File> {
    #[cfg(unix)]
    let file = File::from(std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned().ok()?);
    #[cfg(windows)]
    let file = File::from(
        std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned().ok()?,
    );
    file.metadata().is_ok_and(|found| found.is_file()).then_some(file)
}

/// Returns whether stdout is a file that does not end with a line feed. The shell opens the file only for writing, so this
/// function opens it again for reading. Some systems do not support that.
fn ends_within_a_line() -> io::Result<bool> {
    let mut file = File::open("/dev/stdout")?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

impl<W: Write> Printer<W> {
    /// Creates a printer that writes to `out`.
    fn new(out: W, format: RevisionFormat) -> Self {
        Self { out, format, has_begun: false, file: None, is_torn: false }
    }

    /// Writes a revision, and flushes the output. Returns false if the reader has closed the pipe.
    ///
    /// # Errors
    /// If the output can't be written.
    fn print(&mut self, origin: &Origin<'_>, revision: &Revision) -> Result<bool> {
        let mut text = Vec::new();
        let before = (self.has_begun, self.is_torn);
        if std::mem::take(&mut self.is_torn) {
            text.push(b'\n');
        }
        let length = self.file.as_ref().and_then(|file| file.metadata().ok());
        match self.format {
            RevisionFormat::Table => write_table(origin, revision, &mut text).map_err(unwritten)?,
            RevisionFormat::Json => write_json(origin, revision, &mut text).map_err(unwritten)?,
            RevisionFormat::Ndjson => {
                self.write_rows(Format::Ndjson, origin, revision, &mut text)?
            }
            RevisionFormat::Csv => self.write_rows(Format::Csv, origin, revision, &mut text)?,
        }
        // Write to the file directly: after an error, stdout would still write its buffer when the process ends.
        let written = match &mut self.file {
            Some(file) => file.write_all(&text),
            None => self.out.write_all(&text).and_then(|()| self.out.flush()),
        };
        match written {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => {
                // The next process writes this revision again, so remove the part that was written. Other clusters, and processes
                // that share stdout, write where the file then ends.
                if let (Some(file), Some(length)) = (&mut self.file, length) {
                    let _ = file.set_len(length.len());
                    let _ = file.seek(SeekFrom::Start(length.len()));
                    (self.has_begun, self.is_torn) = before;
                }
                Err(Failure::usage(format!("can't write to stdout: {error}")))
            }
        }
    }

    fn write_rows(
        &mut self,
        format: Format,
        origin: &Origin<'_>,
        revision: &Revision,
        text: &mut Vec<u8>,
    ) -> Result<()> {
        let options = ExportOptions::with_defaults(format).labels(origin.labels.clone());
        let mut export = Export::new(revision, &options)?;
        if std::mem::replace(&mut self.has_begun, true) {
            export = export.continued();
        }
        export.write_to(text).map_err(unwritten)
    }
}

fn unwritten(error: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("can't write a revision: {error}"))
}

/// A revision as JSON.
#[derive(Serialize)]
struct RevisionDocument<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    start: Timestamp,
    end: Timestamp,
    revision: u32,
    settled: bool,
    dimensions: Vec<&'static str>,
    rows: Vec<RevisionRow<'a>>,
}

#[derive(Serialize)]
struct RevisionRow<'a> {
    values: Vec<&'a str>,
    counts: CountsOf,
    changes: ChangesOf,
}

fn write_json(origin: &Origin<'_>, revision: &Revision, text: &mut Vec<u8>) -> io::Result<()> {
    let rows = revision.changes.rows().map(|row| RevisionRow {
        values: row.values().collect(),
        counts: row.after().unwrap_or_default().into(),
        changes: row.delta().into(),
    });
    let document = RevisionDocument {
        cluster: origin.cluster,
        start: revision.window.start(),
        end: revision.window.end(),
        revision: revision.number,
        settled: revision.settled,
        dimensions: revision.changes.dimensions().names(),
        rows: rows.collect(),
    };
    write_document(&document, false, text)
}

/// Writes a line about the window, and a line for each group that has changed.
fn write_table(origin: &Origin<'_>, revision: &Revision, text: &mut Vec<u8>) -> io::Result<()> {
    let Revision { window, changes, settled, number, .. } = revision;
    let cluster = origin.cluster.map(|name| format!("  {}", shown(name))).unwrap_or_default();
    let state = match settled {
        true => "settled",
        false => "provisional",
    };
    let changed: Vec<_> = changes.rows().filter(|row| row.delta() != Deltas::default()).collect();
    let nothing = match (changed.is_empty(), number) {
        (true, 0) => ", no events",
        (true, _) => ", no changes",
        _ => "",
    };
    let (start, end) = (window.start(), window.end());
    let end = match start.date() == end.date() {
        true => format!("{}Z", end.time()),
        false => end.to_string(),
    };
    writeln!(text, "{start} to {end}{cluster}  revision {number}, {state}{nothing}")?;
    if changed.is_empty() {
        return Ok(());
    }
    // With unlimited width, no value is shortened. The lines are indented below the line about the window.
    let screen = Screen { width: Some(usize::MAX), ..Screen::PLAIN };
    let mut lines = Vec::new();
    grid(changes, &changed, *number > 0).write(screen, &mut lines)?;
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(b"  ");
        text.extend_from_slice(line);
    }
    Ok(())
}

/// Returns a grid with a line for each row. If `shows_changes` is true, the change follows each count.
fn grid(changes: &Comparison, rows: &[Row<'_, Comparison>], shows_changes: bool) -> Grid {
    let names = changes.dimensions().names().into_iter();
    let names = names.map(|name| Column::new(name, Holds::Texts));
    let counts = Counts::NAMES.map(|name| Column::new(name, Holds::Numbers));
    let number = |(count, change): (i128, i128)| match shows_changes {
        true => format!("{} ({})", grouped(count), signed(change)),
        false => grouped(count),
    };
    let line = |row: &Row<'_, Comparison>| {
        let counts = row.after().unwrap_or_default().each();
        let pairs = counts.into_iter().map(i128::from).zip(row.delta().each());
        Cells {
            cells: row.values().map(shown).chain(pairs.map(number)).collect(),
            ..Cells::default()
        }
    };
    Grid { columns: names.chain(counts).collect(), lines: rows.iter().map(line).collect() }
}

#[cfg(test)]
mod tests {
    use tallyfold::compare;

    use super::*;
    use crate::output::testing::{HOSTILE, hour, table};

    #[test]
    fn the_first_revision_after_a_failed_write_has_a_header() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.csv");
        std::fs::write(&path, "").unwrap();
        let (before, after) = (table(&[]), table(&[("Warehouse", 1, 0, 0)]));
        let revision = Revision {
            window: hour(0),
            changes: compare(&before, &after).unwrap(),
            table: after,
            settled: true,
            number: 0,
            clock_ahead_ms: 0,
        };
        let origin = Origin { cluster: None, labels: &Labels::default() };
        let mut printer = Printer::new(io::sink(), RevisionFormat::Csv);
        // Writing to a file that is open for reading fails.
        printer.file = Some(File::open(&path).unwrap());
        assert!(printer.print(&origin, &revision).is_err());
        printer.file = Some(File::create(&path).unwrap());
        printer.print(&origin, &revision).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("window_start,"), "{text}");
    }

    #[test]
    fn a_table_escapes_values_and_groups_digits() {
        let before = table(&[("Warehouse", 1_234_567, 0, 0)]);
        let mut rows = HOSTILE.to_vec();
        rows.push(("zero\u{200b}width", 1, 0, 0));
        rows.push(("Warehouse", 1_236_000, 0, 0));
        let after = table(&rows);
        let revision = Revision {
            window: hour(0),
            changes: compare(&before, &after).unwrap(),
            table: after,
            settled: false,
            number: 1,
            clock_ahead_ms: 0,
        };
        let origin = Origin { cluster: None, labels: &Labels::default() };
        let mut printer = Printer::new(Vec::new(), RevisionFormat::Table);
        printer.print(&origin, &revision).unwrap();
        let text = String::from_utf8(printer.out).unwrap();
        assert!(text.contains("1,236,000 (+1,433)   0 (0)"), "{text}");
        for escaped in ["right\\u{202e}to left", "zero\\u{200b}width"] {
            assert!(text.contains(escaped), "{text}");
        }
        let is_harmless = |letter: char| letter == '\n' || !letter.is_control();
        assert!(text.chars().all(is_harmless), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{200b}', '\u{200d}']), "{text}");
    }
}
