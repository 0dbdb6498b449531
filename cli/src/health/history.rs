//! The counts that rules look back on, kept between runs: a folder for each query of a cluster, with a file for each day
//! or week.
//!
//! A file is a saved table with a checksum, as `to_json` of every language writes it. It is compressed by gzip, because
//! the values of dimensions repeat in every window. It is always replaced as a whole. A damaged file is ignored,
//! because its counts can be read from the service again.
//!
//! `read` gets the counts from the files, and from the service only what the files lack.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tallyfold::{
    Collect, CollectOptions, CountTable, Dimension, Frame, Metric, Progress, TimeStep, Timestamp,
    Window,
};
use tokio::task::spawn_blocking;

use crate::arguments::given::Given;
use crate::arguments::query::joined;
use crate::failure::{Failure, Result};
use crate::files::{file_lock, open_regular, replace_locked};
use crate::host::ranges::{Keeper, finished, gather};
use crate::host::session::Session;

const DAY_MS: i64 = 86_400_000;

/// Windows up to this length are kept by day, longer ones by week, so that a file holds some dozens of windows.
const LONGEST_OF_A_DAY_S: u32 = 3_600;

/// Which counts rules need.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The metric.
    pub(crate) metric: Metric,
    /// The dimensions to count by.
    pub(crate) dimensions: Vec<Dimension>,
    /// The length of a window.
    pub(crate) step: TimeStep,
    /// The range, which begins and ends at edges of windows.
    pub(crate) range: Window,
}

/// The files of one query of one cluster, locked against other processes.
#[derive(Debug)]
pub(crate) struct History {
    folder: PathBuf,
    span_ms: i64,
    /// The operating system releases the lock when the process ends, even if it is killed.
    _lock: File,
}

/// The time range of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start_ms: i64,
    /// The part of it that is wanted.
    pub(crate) range: Window,
}

impl History {
    /// The history of a query, which need not exist yet. `cluster` is the folder of the cluster, and `service`
    /// identifies the service, so that counts of two services with the same cluster name are never mixed.
    ///
    /// # Errors
    /// For a folder that can't be used, or that another process uses.
    pub(crate) fn open(cluster: &Path, service: &str, wanted: &Wanted) -> Result<Self> {
        let metric = match wanted.metric {
            Metric::EventDelivery => "delivery",
            Metric::EventIngestion => "ingestion",
        };
        let by = match wanted.dimensions.is_empty() {
            true => "all".to_owned(),
            false => joined(&wanted.dimensions, "+"),
        };
        let folder = cluster.join(format!("{metric}-{}-{by}-{service}", wanted.step));
        fs::create_dir_all(&folder)
            .map_err(|error| Failure::file("make the folder", &folder, &error))?;
        let lock = file_lock(&folder.join("lock"), &folder)?;
        let days = match wanted.step.seconds() <= LONGEST_OF_A_DAY_S {
            true => 1,
            false => 7,
        };
        Ok(Self {
            folder,
            span_ms: days * DAY_MS,
            _lock: lock,
        })
    }

    /// The files of a range, the newest first, so that a run that ends early has read the most important counts.
    pub(crate) fn spans(&self, range: Window) -> Vec<Span> {
        let (start, end) = (range.start().unix_ms(), range.end().unix_ms());
        let first = start.div_euclid(self.span_ms) * self.span_ms;
        let starts = (0..).map(|index| first + index * self.span_ms);
        let spans = starts
            .take_while(|start_ms| *start_ms < end)
            .filter_map(|start_ms| {
                let from = Timestamp::from_unix_ms(start_ms.max(start))?;
                let to = Timestamp::from_unix_ms(end.min(start_ms + self.span_ms))?;
                let range = Window::new(from, to).ok()?;
                Some(Span { start_ms, range })
            });
        let mut spans: Vec<Span> = spans.collect();
        spans.reverse();
        spans
    }

    /// The counts in a file; `None` if there is no file.
    ///
    /// # Errors
    /// The outer error is for a file that can't be read, the inner one for a damaged file.
    pub(crate) fn load(&self, span: Span) -> Result<Result<Option<CountTable>, Failure>> {
        let path = self.path(span.start_ms);
        let mut bytes = Vec::new();
        match open_regular(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(None)),
            Err(error) => return Err(Failure::file("read", &path, &error)),
        };
        let damaged = |what: String| Err(Failure::usage(format!("{}: {what}", path.display())));
        let mut json = Vec::new();
        if let Err(error) = GzDecoder::new(&*bytes).read_to_end(&mut json) {
            return Ok(damaged(error.to_string()));
        }
        Ok(match CountTable::from_json(&json) {
            Ok(table) => Ok(Some(table)),
            Err(error) => damaged(Failure::from(error).text),
        })
    }

    /// Replaces the counts in a file.
    ///
    /// # Errors
    /// For a file that can't be written.
    pub(crate) async fn store(&self, span: Span, table: &CountTable) -> Result<()> {
        let path = self.path(span.start_ms);
        let as_failure = |error| Failure::file("write", &path, &error);
        let (to, json) = (path.clone(), table.to_json());
        let stored = spawn_blocking(move || replace_locked(&to, &compressed(&json)?)).await;
        stored
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(as_failure)
    }

    /// Removes the files whose time range ends before a timestamp.
    ///
    /// # Errors
    /// For a file that can't be removed.
    pub(crate) fn drop_before(&self, start: Timestamp) -> Result<()> {
        let as_failure = |error| Failure::file("tidy", &self.folder, &error);
        for entry in fs::read_dir(&self.folder).map_err(as_failure)? {
            let entry = entry.map_err(as_failure)?;
            let of = entry.file_name().to_str().and_then(start_of);
            if of.is_some_and(|start_ms| start_ms + self.span_ms <= start.unix_ms()) {
                fs::remove_file(entry.path()).map_err(as_failure)?;
            }
        }
        Ok(())
    }

    fn path(&self, start_ms: i64) -> PathBuf {
        let day = Timestamp::from_unix_ms(start_ms).map_or_else(String::new, Timestamp::date);
        self.folder.join(format!("{day}.json.gz"))
    }
}

fn compressed(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// When the time range of a file begins, according to its name.
fn start_of(name: &str) -> Option<i64> {
    let day = name.strip_suffix(".json.gz")?;
    let start = Timestamp::parse(&format!("{day}T00:00:00Z")).ok()?;
    Some(start.unix_ms())
}

/// The counts of a range, and what is missing.
#[derive(Debug)]
pub(crate) struct Past {
    /// The counts that are known.
    pub(crate) table: CountTable,
    /// The ranges that are missing.
    pub(crate) gaps: Vec<Window>,
    /// Why they are missing.
    pub(crate) failure: Option<Failure>,
    /// Whether the service was queried and no window could be read.
    pub(crate) is_unanswered: bool,
}

/// The progress of the reading, in windows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// The windows to read, in all files.
    pub(crate) planned: u32,
    /// The windows that were read.
    pub(crate) done: u32,
    /// The windows that failed.
    pub(crate) failed: u32,
    /// The time until the next attempt, while the service does not answer.
    pub(crate) waiting_ms: Option<u32>,
}

/// A file of the history, and its missing windows.
struct Page {
    span: Span,
    collect: Collect,
    /// How many windows are to be read.
    left: u32,
}

/// Reads a history. Before the first request, `begin` is called with the number of windows that have to be read, and
/// with whether nothing was stored before.
///
/// # Errors
/// For files that can't be used, and if there are no counts at all.
pub(crate) async fn read(
    session: &Session,
    (history, wanted, given): (&History, &Wanted, &Given),
    begin: impl FnOnce(u32, bool),
    mut on_progress: impl FnMut(Reading),
) -> Result<Past> {
    let mut pages = Vec::new();
    let mut is_new = true;
    for span in history.spans(wanted.range) {
        let options = options(wanted, span.range, given)?;
        let have = stored(session, history, span)?;
        is_new &= have.is_none();
        let collect = session.machine.collect(options.have(have))?;
        let Progress { planned, done, .. } = collect.progress();
        let left = planned - done;
        pages.push(Page {
            span,
            collect,
            left,
        });
    }
    let mut reading = Reading {
        planned: pages.iter().map(|page| page.left).sum(),
        ..Reading::default()
    };
    begin(reading.planned, is_new);
    let mut failures = Vec::new();
    for page in pages.iter_mut().filter(|page| page.left > 0) {
        let before = reading;
        let known = page.collect.progress().done;
        gather(session, &mut page.collect, &mut Keeper::default(), |now| {
            reading = before.and(now, known);
            on_progress(reading);
        })
        .await?;
        let (table, failure) = outcome(&page.collect);
        let has_read = page.collect.progress().done > known;
        if let Some(table) = table.filter(|_| has_read) {
            history.store(page.span, &table).await?;
        }
        failures.extend(failure);
        if !has_read {
            // The service is down or refuses requests, so the other files would fail too.
            break;
        }
    }
    finish(wanted, &pages, failures, reading)
}

impl Reading {
    fn and(self, now: Progress, known: u32) -> Self {
        Self {
            planned: self.planned,
            done: self.done + now.done.saturating_sub(known),
            failed: self.failed + now.failed,
            waiting_ms: now.waiting_ms,
        }
    }
}

/// The counts of a file. If the file is damaged, its windows are read from the service again.
fn stored(session: &Session, history: &History, span: Span) -> Result<Option<CountTable>> {
    match history.load(span)? {
        Ok(table) => Ok(table),
        Err(wrong) => {
            let text = format_args!("{wrong}; its windows are read again");
            session.stderr.warning(text);
            Ok(None)
        }
    }
}

fn options(wanted: &Wanted, range: Window, given: &Given) -> Result<CollectOptions> {
    let mut options = CollectOptions::new(wanted.metric, range, &wanted.dimensions);
    options.window = wanted.step;
    given.read_over(options)
}

fn outcome(collect: &Collect) -> (Option<CountTable>, Option<Failure>) {
    match finished(collect) {
        Ok((table, _, failure)) => (Some(table), failure),
        Err(failure) => (None, Some(failure)),
    }
}

fn finish(
    wanted: &Wanted,
    pages: &[Page],
    mut failures: Vec<Failure>,
    reading: Reading,
) -> Result<Past> {
    let tables: Vec<CountTable> = pages
        .iter()
        .filter_map(|page| outcome(&page.collect).0)
        .collect();
    let failure = (!failures.is_empty()).then(|| failures.remove(0));
    if tables.is_empty() {
        return Err(failure.unwrap_or_else(|| Failure::usage("there is no window to read")));
    }
    let table = CountTable::merge_all(&tables)?;
    Ok(Past {
        gaps: table.gaps(Some(wanted.range)),
        table,
        is_unanswered: failure.is_some() && reading.done == 0,
        failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(step: &str, start: &str, end: &str) -> Wanted {
        Wanted {
            metric: Metric::EventDelivery,
            dimensions: vec![Dimension::Integration],
            step: TimeStep::parse(step).unwrap(),
            range: Window::parse(start, end).unwrap(),
        }
    }

    #[tokio::test]
    async fn files_are_kept_by_day_and_dropped_when_they_are_old() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted("15m", "2026-01-01T06:00:00Z", "2026-01-03T00:15:00Z");
        let history = History::open(folder.path(), "a1", &wanted).unwrap();
        let spans = history.spans(wanted.range);
        let ranges: Vec<String> = spans.iter().map(|one| format!("{:?}", one.range)).collect();
        assert_eq!(
            ranges,
            [
                "[2026-01-03T00:00:00Z, 2026-01-03T00:15:00Z)",
                "[2026-01-02T00:00:00Z, 2026-01-03T00:00:00Z)",
                "[2026-01-01T06:00:00Z, 2026-01-02T00:00:00Z)",
            ]
        );
        let table = crate::output::testing::table(crate::output::testing::ROWS);
        for span in &spans {
            assert!(history.load(*span).unwrap().unwrap().is_none());
            history.store(*span, &table).await.unwrap();
            assert_eq!(history.load(*span).unwrap().unwrap().unwrap(), table);
        }
        fs::write(history.folder.join("notes.txt"), "mine").unwrap();
        let start = Timestamp::parse("2026-01-02T23:45:00Z").unwrap();
        history.drop_before(start).unwrap();
        assert!(history.load(spans[2]).unwrap().unwrap().is_none());
        assert!(history.load(spans[1]).unwrap().unwrap().is_some());
        assert!(history.folder.join("notes.txt").exists());
    }

    #[test]
    fn long_windows_are_kept_by_week() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted("1d", "2026-01-01T00:00:00Z", "2026-01-15T00:00:00Z");
        let history = History::open(folder.path(), "a1", &wanted).unwrap();
        // 1 January 2026 is a Thursday, as is 1 January 1970, so weeks counted from 1970 begin there.
        assert_eq!(history.spans(wanted.range).len(), 2);
    }

    #[tokio::test]
    async fn a_damaged_file_is_told_from_one_that_can_not_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted("15m", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let history = History::open(folder.path(), "a1", &wanted).unwrap();
        let span = history.spans(wanted.range)[0];
        let path = history.path(span.start_ms);
        let table = crate::output::testing::table(crate::output::testing::ROWS);
        history.store(span, &table).await.unwrap();
        let changed = table.to_json().replace("Warehouse", "Warehous_");
        let whole = fs::read(&path).unwrap();
        for (bytes, expected) in [
            (compressed(&changed).unwrap(), "invalid_table"),
            (
                whole[..whole.len() - 9].to_vec(),
                "incomplete deflate stream",
            ),
            (b"not compressed".to_vec(), "invalid gzip header"),
        ] {
            fs::write(&path, bytes).unwrap();
            let wrong = history.load(span).unwrap().unwrap_err();
            let expected = format!("2026-01-01.json.gz: {expected}");
            assert!(wrong.text.contains(&expected), "{wrong}");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(history.load(span).is_err());
    }

    #[test]
    fn one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted("15m", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let history = History::open(folder.path(), "a1", &wanted).unwrap();
        let refused = History::open(folder.path(), "a1", &wanted).unwrap_err();
        assert!(
            refused.text.contains("another process uses this folder"),
            "{refused}"
        );
        // Another service has another folder.
        let other = History::open(folder.path(), "b2", &wanted).unwrap();
        assert_ne!(history.folder, other.folder);
    }
}
