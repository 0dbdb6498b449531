//! Keeps the counts that rules look back on, from one run to the next. Each query of a cluster has a folder, with a file,
//! called a page, for each day or week.
//!
//! A page is always replaced as a whole. It contains the windows of its day or week, and the sums that the rules judge, so that
//! a check reads the sums instead of all rows. Its head, at the beginning of the file, lists what the page contains. If a page
//! lacks the sums of a rule, they are computed from its rows. If a page is damaged, its windows are read from the service
//! again.
//!
//! `read` brings the pages up to date. It requests only windows that the pages lack, and windows whose counts may still change.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tallyfold::{
    Collect, CollectOptions, CountTable, Dimension, Metric, Progress, TimeStep, Timestamp, Window,
};
use tallyfold_health::{Page, PageHead, Pages, ReadPage, SumsBy};
use tokio::task::spawn_blocking;

use crate::arguments::given::Given;
use crate::arguments::query::{DAY_MS, joined};
use crate::failure::{Failure, Result};
use crate::files::{if_exists, lock_folder, open_regular, replace_locked};
use crate::host::ranges::{Keeper, finished, gather};
use crate::host::session::Session;

/// The end of the message about a page that can't be stored.
const LAST_DAY: &str = "; until pages can be stored, only the windows of the last day are read";

/// Windows up to this length, in seconds, are stored by day. Longer windows are stored by week, because a day contains only a
/// few.
const LONGEST_OF_A_DAY_S: u32 = 3_600;

/// The counts that rules need.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) metric: Metric,
    /// The dimensions to count by.
    pub(crate) dimensions: Vec<Dimension>,
    /// The length of a window.
    pub(crate) step: TimeStep,
    /// The time range. It begins and ends at edges of windows.
    pub(crate) range: Window,
    /// The sums that the rules judge.
    pub(crate) sums: Vec<SumsBy>,
}

impl Wanted {
    /// Returns the length of a page's time range in milliseconds: a day, or a week for long windows.
    fn span_ms(&self) -> i64 {
        match self.step.seconds() <= LONGEST_OF_A_DAY_S {
            true => DAY_MS,
            false => 7 * DAY_MS,
        }
    }

    /// Limits the range to the pages of its last day. A long first run judges these pages before it reads the other pages.
    pub(crate) fn recent(&self) -> Self {
        let day = Timestamp::from_unix_ms(self.range.end().unix_ms() - DAY_MS);
        let start = day.map_or(self.range.start(), |day| day.max(self.range.start()));
        let range = Window::new(start, self.range.end());
        let recent = Self { range: range.unwrap_or(self.range), ..self.clone() };
        recent.whole()
    }

    /// Extends the range back to the start of its first page, so that the check uses this whole page.
    pub(crate) fn whole(mut self) -> Self {
        let start_ms = self.range.start().unix_ms();
        let start = Timestamp::from_unix_ms(start_ms - start_ms.rem_euclid(self.span_ms()));
        let range = start.and_then(|start| Window::new(start, self.range.end()).ok());
        self.range = range.unwrap_or(self.range);
        self
    }
}

/// A cluster's files for one query, locked against other processes.
#[derive(Debug)]
pub(crate) struct History {
    folder: PathBuf,
    span_ms: i64,
    /// The lock, or why no page can be stored. The operating system releases the lock when the process ends, even if it is
    /// killed.
    lock: Result<File>,
}

/// A page after the attempt to store it.
#[derive(Debug)]
struct Stored {
    head: PageHead,
    /// If the page could not be stored, its bytes and the reason.
    unstored: Option<(Vec<u8>, Failure)>,
}

/// The time range of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start_ms: i64,
    /// The part of the file's time range that is needed.
    pub(crate) range: Window,
}

impl History {
    /// Opens the history of a query. If nothing was stored, the history is empty. `cluster` is the folder of the cluster.
    /// `service` identifies the service, so that the counts of two services are never mixed, even if their clusters have the
    /// same name. If the disk is full or read-only, or the user has no permission to write, the history is read but not
    /// changed.
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
        let lock = match fs::create_dir_all(&folder) {
            Ok(()) => lock_folder(&folder.join("lock"), &folder),
            Err(error) => Err(Failure::file("make the folder", &folder, &error)),
        };
        match lock {
            Err(failure) if !failure.is_unwritable() => Err(failure),
            lock => Ok(Self { folder, span_ms: wanted.span_ms(), lock }),
        }
    }

    /// Returns the files of a range, the newest first. A run that ends early has then read the newest counts, which matter
    /// most.
    pub(crate) fn spans(&self, range: Window) -> Vec<Span> {
        let (start, end) = (range.start().unix_ms(), range.end().unix_ms());
        let first = start.div_euclid(self.span_ms) * self.span_ms;
        let starts = (0..).map(|index| first + index * self.span_ms);
        let spans = starts.take_while(|start_ms| *start_ms < end).filter_map(|start_ms| {
            let from = Timestamp::from_unix_ms(start_ms.max(start))?;
            let to = Timestamp::from_unix_ms(end.min(start_ms + self.span_ms))?;
            let range = Window::new(from, to).ok()?;
            Some(Span { start_ms, range })
        });
        let mut spans: Vec<Span> = spans.collect();
        spans.reverse();
        spans
    }

    /// Returns how many windows of a range have no page, and whether the whole range has no page.
    pub(crate) fn lacks(&self, wanted: &Wanted) -> (u64, bool) {
        let spans = self.spans(wanted.range);
        let is_there = |start_ms: i64| {
            let mut paths = [self.path(start_ms), self.old_path(start_ms)].into_iter();
            paths.any(|path| path.exists())
        };
        let lacking = spans.iter().filter(|span| !is_there(span.start_ms));
        let lacking: Vec<&Span> = lacking.collect();
        let length_ms = u64::from(wanted.step.seconds()) * 1_000;
        let windows = lacking.iter().map(|span| span.range.length_ms() / length_ms);
        (windows.sum(), lacking.len() == spans.len())
    }

    /// Reads the head of a page; returns `None` if the page does not exist.
    ///
    /// # Errors
    /// The outer error means that the file can't be read, or that a later version has written it. The inner error means that
    /// the file is damaged.
    fn head(&self, span: Span) -> Result<Result<Option<PageHead>>> {
        let path = self.path(span.start_ms);
        let as_failure = |error: io::Error| Failure::file("read", &path, &error);
        let wrong = |what: &str| Failure::usage(format!("{}: {what}", path.display()));
        let Some(mut file) = if_exists(open_regular(&path)).map_err(as_failure)? else {
            return Ok(Ok(None));
        };
        let length = file.metadata().map_err(as_failure)?.len();
        let mut bytes = Vec::new();
        let mut read = |until: usize, bytes: &mut Vec<u8>| {
            let left = until.saturating_sub(bytes.len()) as u64;
            let read = (&mut file).take(left).read_to_end(bytes);
            read.map_err(as_failure)
        };
        read(PageHead::FIRST, &mut bytes)?;
        let head = match PageHead::length(&bytes) {
            Ok(length) => {
                read(length, &mut bytes)?;
                PageHead::parse(&bytes)
            }
            Err(error) => Err(error),
        };
        match head {
            Ok(head) if head.page_length() == length => Ok(Ok(Some(head))),
            Ok(_) => Ok(Err(wrong("it is incomplete"))),
            Err(error) if PageHead::is_later(&error) => Err(wrong(&error.message())),
            Err(error) => Ok(Err(wrong(&error.message()))),
        }
    }

    /// Reads the counts of a page; returns `None` if the page is damaged or does not exist.
    ///
    /// # Errors
    /// For a file that can't be read.
    fn page(&self, span: Span) -> Result<Option<Page>> {
        let path = self.path(span.start_ms);
        let bytes = if_exists(fs::read(&path));
        let bytes = bytes.map_err(|error| Failure::file("read", &path, &error))?;
        Ok(bytes.and_then(|bytes| Page::parse(&bytes).ok()))
    }

    /// Reads the table that version 0.1 stored in place of a page; returns `None` if the file is damaged or does not exist.
    fn table(&self, span: Span) -> Option<CountTable> {
        let mut json = Vec::new();
        let file = open_regular(&self.old_path(span.start_ms)).ok()?;
        GzDecoder::new(file).read_to_end(&mut json).ok()?;
        CountTable::from_json(&json).ok()
    }

    /// Replaces a page, and removes the table that version 0.1 stored in its place. If the page can't be written, returns its
    /// bytes, so that the rules can still judge it.
    ///
    /// # Errors
    /// For a page that can't be read back, and an old table that can't be removed.
    async fn store(&self, span: Span, page: Page, sums: &[SumsBy]) -> Result<Stored> {
        let path = self.path(span.start_ms);
        let as_failure = |error| Failure::file("write", &path, &error);
        let (to, sums) = (path.clone(), sums.to_vec());
        let lock = self.lock.as_ref().map(drop).map_err(Failure::clone);
        let stored = spawn_blocking(move || {
            let bytes = page.to_bytes(&sums);
            let head = PageHead::parse(&bytes).map_err(io::Error::other)?;
            let replace = |()| {
                let replaced = replace_locked(&to, &bytes);
                replaced.map_err(|error| Failure::file("write", &to, &error))
            };
            let failure = lock.and_then(replace).err();
            Ok(Stored { head, unstored: failure.map(|failure| (bytes, failure)) })
        });
        let stored = stored.await;
        let stored = stored.unwrap_or_else(|error| Err(io::Error::other(error)));
        let stored = stored.map_err(as_failure)?;
        if stored.unstored.is_none() {
            if_exists(fs::remove_file(self.old_path(span.start_ms))).map_err(as_failure)?;
        }
        Ok(stored)
    }

    /// Removes the files whose time range ends at or before a timestamp, if the history can be changed.
    ///
    /// # Errors
    /// For a file that can't be removed.
    fn drop_before(&self, start: Timestamp) -> Result<()> {
        if self.lock.is_err() {
            return Ok(());
        }
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
        self.named(start_ms, PAGE)
    }

    fn old_path(&self, start_ms: i64) -> PathBuf {
        self.named(start_ms, TABLE)
    }

    fn named(&self, start_ms: i64, end: &str) -> PathBuf {
        let day = Timestamp::from_unix_ms(start_ms).map_or_else(String::new, Timestamp::date);
        self.folder.join(format!("{day}{end}"))
    }
}

/// The suffix of a page's name. [`TABLE`] is the suffix of the tables that version 0.1 stored.
const PAGE: &str = ".page";
const TABLE: &str = ".json.gz";

/// Returns whether a file with this name contains stored counts.
pub(crate) fn is_page(name: &str) -> bool {
    name.ends_with(PAGE) || name.ends_with(TABLE)
}

/// Returns the start of a file's time range, in milliseconds since 1970, from its name; `None` for other files.
fn start_of(name: &str) -> Option<i64> {
    // A killed run leaves a partly written page with this suffix.
    let name = name.strip_suffix(".new").unwrap_or(name);
    let day = name.strip_suffix(PAGE).or_else(|| name.strip_suffix(TABLE))?;
    let start = Timestamp::parse(&format!("{day}T00:00:00Z")).ok()?;
    Some(start.unix_ms())
}

/// The stored counts of a range, and what is missing.
#[derive(Debug)]
pub(crate) struct Past {
    /// Holds the lock, so that no other process replaces a page while this process judges it.
    history: History,
    wanted: Wanted,
    /// The heads of the pages, the oldest first.
    heads: Vec<PageHead>,
    files: Files,
    /// The ranges that are missing.
    pub(crate) gaps: Vec<Window>,
    /// Why the ranges are missing, if the reason is known.
    pub(crate) failure: Option<Failure>,
    /// Why some of the pages could not be stored. These pages are in memory.
    pub(crate) unstored: Option<Failure>,
    /// Whether the service was queried, but no window could be read.
    pub(crate) is_unanswered: bool,
}

impl Past {
    /// Returns the pages in the form that rules read.
    ///
    /// # Errors
    /// For pages of different clients.
    pub(crate) fn pages(&self) -> Result<Pages<'_>> {
        Ok(Pages::new(&self.heads, &self.wanted.sums, &self.files)?)
    }

    /// Removes the files whose counts are older than the range.
    ///
    /// # Errors
    /// For a file that can't be removed.
    pub(crate) fn remove_older(&self) -> Result<()> {
        self.history.drop_before(self.wanted.range.start())
    }

    /// Removes a damaged page, so that its windows are read again.
    ///
    /// # Errors
    /// For a file that can't be removed.
    pub(crate) fn remove(&self, session: &Session, page: usize) -> Result<()> {
        let path = &self.files.paths[page];
        let text = format_args!("{}: this is damaged; its windows are read again", path.display());
        session.stderr.warning(text);
        fs::remove_file(path).map_err(|error| Failure::file("remove", path, &error))
    }
}

/// The files of the pages. Pages that are used only in part, and pages that could not be stored, are in memory.
#[derive(Debug, Default)]
struct Files {
    paths: Vec<PathBuf>,
    parts: Vec<Option<Vec<u8>>>,
    /// The position of the page that was read last, and its open file.
    last: RefCell<Option<(usize, File)>>,
}

impl ReadPage for Files {
    fn read(&self, page: usize, bytes: Range<u64>) -> Result<Vec<u8>, String> {
        if let Some(part) = &self.parts[page] {
            let [start, end] =
                [bytes.start, bytes.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
            return Ok(part.get(start..end).unwrap_or_default().to_vec());
        }
        let path = &self.paths[page];
        let read = || {
            let mut last = self.last.borrow_mut();
            let (_, file) = match &mut *last {
                Some(last) if last.0 == page => last,
                other => other.insert((page, open_regular(path)?)),
            };
            file.seek(SeekFrom::Start(bytes.start))?;
            let mut read = Vec::new();
            file.take(bytes.end - bytes.start).read_to_end(&mut read)?;
            Ok(read)
        };
        read().map_err(|error: io::Error| format!("{}: {error}", path.display()))
    }
}

/// A page of the history, and what is needed to bring it up to date.
struct Update {
    span: Span,
    /// The head of the page, if the page exists.
    head: Option<PageHead>,
    /// The bytes of the page, if it could not be stored.
    unstored: Option<Vec<u8>>,
    /// Reads the windows that are missing or whose counts may still change; `None` if there are none.
    collect: Option<Collect>,
    /// The number of windows to read.
    left: u32,
}

/// Brings the pages of a history up to date with the service, and returns the counts of the range. A page that can't be stored
/// stays in memory. After such a failure, requests only the windows of the last day, because the next check would have to read
/// all other windows again. If `keeps_all` is set, requests all windows anyway.
///
/// # Errors
/// For files that can't be read, and if there are no counts at all.
pub(crate) async fn read(
    session: &Session,
    (history, wanted, given): (History, &Wanted, &Given),
    keeps_all: bool,
    mut on_progress: impl FnMut(Progress),
) -> Result<Past> {
    let (mut pages, mut unstored) = (Vec::new(), None);
    for span in history.spans(wanted.range) {
        let stored = known(session, (&history, wanted), span).await?;
        let (head, kept) =
            stored.map_or((None, None), |stored| (Some(stored.head), stored.unstored));
        let mut page = update(session, (wanted, given), span, head)?;
        page.keep(kept, &mut unstored);
        pages.push(page);
    }
    let mut reading =
        Progress { planned: pages.iter().map(|page| page.left).sum(), ..Progress::default() };
    let (mut failures, mut unfinished) = (Vec::new(), Vec::new());
    let recent = wanted.recent().range.start();
    for page in &mut pages {
        if let Some(failure) = unstored.as_ref().filter(|_| !keeps_all)
            && page.span.range.end() <= recent
        {
            failures.extend(page.collect.take().map(|_| failure.clone().and(LAST_DAY)));
            continue;
        }
        // Takes the collect out of the page, so that its counts are freed once they are stored.
        let Some(mut collect) = page.collect.take() else {
            continue;
        };
        let before = reading;
        let known = collect.progress().done;
        gather(session, &mut collect, &mut Keeper::default(), |now| {
            reading = Progress {
                planned: before.planned,
                done: before.done + now.done.saturating_sub(known),
                failed: before.failed + now.failed,
                ..now
            };
            on_progress(reading);
        })
        .await?;
        let (table, failure) = match finished(&collect) {
            Ok((table, _, failure)) => (Some(table), failure),
            Err(failure) => (None, Some(failure)),
        };
        failures.extend(failure);
        let has_read = collect.progress().done > known;
        drop(collect);
        let Some(table) = table.filter(|_| has_read) else {
            // The service is down or refuses requests, so reading the other pages would fail, too.
            break;
        };
        let settled: Vec<Window> = page.head.iter().flat_map(PageHead::settled).collect();
        let new = Page::of_table(&table, &settled)?;
        let windows = table.windows();
        unfinished
            .extend(windows.into_iter().filter(|window| !table.gaps(Some(*window)).is_empty()));
        drop(table);
        let all = match history.page(page.span)? {
            Some(old) => old.with(new)?,
            None => new,
        };
        let stored = history.store(page.span, all, &wanted.sums).await?;
        page.head = Some(stored.head);
        page.keep(stored.unstored, &mut unstored);
    }
    pages.reverse();
    let mut past = finish(history, wanted, pages, (failures, reading, unfinished))?;
    past.unstored = unstored;
    Ok(past)
}

impl Update {
    /// If the page could not be stored, keeps its bytes, and sets `failure` to the reason unless `failure` already has one.
    fn keep(&mut self, unstored: Option<(Vec<u8>, Failure)>, failure: &mut Option<Failure>) {
        self.unstored = unstored.map(|(bytes, reason)| {
            failure.get_or_insert(reason);
            bytes
        });
    }
}

/// Returns a page with the sums that the rules judge; `None` if there are no counts. If the file lacks some of the sums, it is
/// replaced by a file that contains them.
async fn known(
    session: &Session,
    (history, wanted): (&History, &Wanted),
    span: Span,
) -> Result<Option<Stored>> {
    let head = match history.head(span)? {
        Ok(head) => head,
        Err(wrong) => {
            let text = format_args!("{wrong}; its windows are read again");
            session.stderr.warning(text);
            None
        }
    };
    let page = match head {
        Some(head) if head.has(&wanted.sums) => {
            return Ok(Some(Stored { head, unstored: None }));
        }
        Some(_) => history.page(span)?,
        None => history.table(span).map(|table| Page::of_table(&table, &[])).transpose()?,
    };
    match page.filter(|page| !page.is_empty()) {
        Some(page) => Ok(Some(history.store(span, page, &wanted.sums).await?)),
        None => Ok(None),
    }
}

/// Prepares the reading of the windows that a page lacks, and of the windows whose counts may still change.
fn update(
    session: &Session,
    (wanted, given): (&Wanted, &Given),
    span: Span,
    head: Option<PageHead>,
) -> Result<Update> {
    let settled: Vec<Window> = head.iter().flat_map(PageHead::settled).collect();
    if let Some(head) = &head {
        head.identity().with(session.machine.identity(), "identity")?;
    }
    let mut options = CollectOptions::new(wanted.metric, span.range, &wanted.dimensions);
    options.window = wanted.step;
    let options = given.read_over(options)?;
    let is_whole = span.range.uncovered(settled.iter().copied()).is_empty();
    let (mut collect, mut left) = (None, 0);
    if !is_whole {
        let have = match settled.is_empty() {
            true => None,
            false => Some(CountTable::without_counts(wanted.metric, &wanted.dimensions, &settled)?),
        };
        let mut own = session.machine.collect(options.have(have))?;
        if let Some(by) = session.shared_by(wanted.metric, &wanted.dimensions) {
            own.request_by(by)?;
        }
        let Progress { planned, done, .. } = own.progress();
        left = planned - done;
        collect = Some(own).filter(|_| left > 0);
    }
    Ok(Update { span, head, unstored: None, collect, left })
}

fn finish(
    history: History,
    wanted: &Wanted,
    pages: Vec<Update>,
    (mut failures, reading, unfinished): (Vec<Failure>, Progress, Vec<Window>),
) -> Result<Past> {
    let failure = (!failures.is_empty()).then(|| failures.remove(0));
    let (mut heads, mut files, mut covered) = (Vec::new(), Files::default(), Vec::new());
    for page in pages {
        let Some(mut head) = page.head else {
            continue;
        };
        let span = page.span;
        let is_wanted = |window: Window| wanted.range.contains(window);
        let mut part = page.unstored;
        if !head.windows().all(is_wanted) {
            // A check of an earlier time must not use windows after that time.
            let whole = match &part {
                Some(bytes) => Some(Page::parse(bytes)?),
                None => history.page(span)?,
            };
            let Some(whole) = whole else {
                continue;
            };
            let page = whole.with_only(is_wanted);
            if page.is_empty() {
                continue;
            }
            let bytes = page.to_bytes(&wanted.sums);
            head = PageHead::parse(&bytes)?;
            part = Some(bytes);
        }
        covered.extend(head.windows().filter(|window| !unfinished.contains(window)));
        heads.push(head);
        files.paths.push(history.path(span.start_ms));
        files.parts.push(part);
    }
    if heads.is_empty() {
        let nothing = || Failure::usage("there is no window to read");
        return Err(failure.unwrap_or_else(nothing));
    }
    Ok(Past {
        history,
        wanted: wanted.clone(),
        heads,
        files,
        gaps: wanted.range.uncovered(covered),
        is_unanswered: failure.as_ref().is_some_and(|failure| failure.io.is_none())
            && reading.done == 0,
        failure,
        unstored: None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tallyfold::Frame;

    use super::*;
    use crate::output::testing::{ROWS, table};

    fn wanted(step: &str, start: &str, end: &str) -> Wanted {
        Wanted {
            metric: Metric::EventDelivery,
            dimensions: vec![Dimension::Integration],
            step: TimeStep::parse(step).unwrap(),
            range: Window::parse(start, end).unwrap(),
            sums: Vec::new(),
        }
    }

    fn page() -> Page {
        Page::of_table(&table(ROWS), &[]).unwrap()
    }

    #[tokio::test]
    async fn short_windows_are_stored_by_day_and_old_days_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted("15m", "2026-01-01T06:00:00Z", "2026-01-03T00:15:00Z").whole();
        let history = History::open(folder.path(), "a1", &wanted).unwrap();
        let spans = history.spans(wanted.range);
        let ranges: Vec<String> = spans.iter().map(|one| format!("{:?}", one.range)).collect();
        assert_eq!(
            ranges,
            [
                "[2026-01-03T00:00:00Z, 2026-01-03T00:15:00Z)",
                "[2026-01-02T00:00:00Z, 2026-01-03T00:00:00Z)",
                "[2026-01-01T00:00:00Z, 2026-01-02T00:00:00Z)",
            ]
        );
        for span in &spans {
            assert!(history.head(*span).unwrap().unwrap().is_none());
            let head = history.store(*span, page(), &[]).await.unwrap().head;
            let windows: Vec<Window> = head.windows().collect();
            assert_eq!(windows, table(ROWS).windows());
            let read = history.head(*span).unwrap().unwrap().unwrap();
            assert_eq!(read.windows().collect::<Vec<_>>(), windows);
            let page = history.page(*span).unwrap().unwrap();
            let bytes = fs::read(history.path(span.start_ms)).unwrap();
            assert_eq!(page.to_bytes(&[]), bytes);
        }
        fs::write(history.folder.join("notes.txt"), "mine").unwrap();
        let torn = crate::files::with_end(&history.path(spans[2].start_ms), ".new");
        fs::write(&torn, "torn").unwrap();
        let start = Timestamp::parse("2026-01-02T23:45:00Z").unwrap();
        history.drop_before(start).unwrap();
        assert!(history.head(spans[2]).unwrap().unwrap().is_none());
        assert!(history.head(spans[1]).unwrap().unwrap().is_some());
        assert!(history.folder.join("notes.txt").exists() && !torn.exists());
    }

    #[test]
    fn long_windows_are_stored_by_week() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted("1d", "2026-01-02T00:00:00Z", "2026-01-15T00:00:00Z").whole();
        let history = History::open(folder.path(), "a1", &wanted).unwrap();
        // Weeks are counted from 1 January 1970, a Thursday. 1 January 2026 is a Thursday, too.
        assert_eq!(wanted.range.start().date(), "2026-01-01");
        assert_eq!(history.spans(wanted.range).len(), 2);
    }

    #[tokio::test]
    async fn a_killed_run_leaves_a_whole_page_and_a_later_version_is_not_damage() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted("15m", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let history = History::open(folder.path(), "a1", &wanted).unwrap();
        let span = history.spans(wanted.range)[0];
        let path = history.path(span.start_ms);
        history.store(span, page(), &[]).await.unwrap();
        let whole = fs::read(&path).unwrap();
        // A killed run leaves a partly written file, which does not replace the page.
        let torn = crate::files::with_end(&path, ".new");
        for length in [0, 1, whole.len() / 2, whole.len()] {
            fs::write(&torn, &whole[..length]).unwrap();
            assert!(history.head(span).unwrap().unwrap().is_some());
            history.store(span, page(), &[]).await.unwrap();
            assert!(!torn.exists());
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        // Wherever the file is cut off, reading it reports that it is damaged.
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let wrong = history.head(span).unwrap().unwrap_err();
            assert!(wrong.text.contains("2026-01-01.page: "), "{wrong}");
        }
        let later = [b"tallyfold-page/2\n", &whole[17..]].concat();
        fs::write(&path, &later).unwrap();
        let refused = history.head(span).unwrap_err();
        assert!(refused.text.contains("later version"), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), later);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(history.head(span).is_err());
        let stored = history.store(span, page(), &[]).await.unwrap();
        let (bytes, refused) = stored.unstored.unwrap();
        assert_eq!(bytes, whole);
        assert!(refused.text.contains("2026-01-01.page"), "{refused}");
    }

    #[tokio::test]
    async fn tables_of_version_0_1_are_read_and_replaced_by_pages() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted("15m", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let history = History::open(folder.path(), "a1", &wanted).unwrap();
        let span = history.spans(wanted.range)[0];
        let path = history.old_path(span.start_ms);
        let compressed = |text: &str| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let whole = compressed(&table(ROWS).to_json());
        let changed = table(ROWS).to_json().replace("Warehouse", "Warehous_");
        for damaged in
            [compressed(&changed), whole[..whole.len() - 9].to_vec(), b"not compressed".to_vec()]
        {
            fs::write(&path, damaged).unwrap();
            assert!(history.table(span).is_none());
        }
        fs::write(&path, whole).unwrap();
        assert_eq!(history.table(span).unwrap(), table(ROWS));
        history.store(span, page(), &[]).await.unwrap();
        assert!(!path.exists() && history.path(span.start_ms).exists());
    }

    #[test]
    fn time_that_no_window_covers_is_missing() {
        let at = |from: u32, to: u32| {
            let hour = |hour: u32| format!("2026-01-01T{hour:02}:00:00Z");
            Window::parse(&hour(from), &hour(to)).unwrap()
        };
        let gaps = |windows: &[Window]| at(2, 10).uncovered(windows.iter().copied());
        assert_eq!(gaps(&[]), [at(2, 10)]);
        assert_eq!(gaps(&[at(2, 10)]), []);
        let some = [at(0, 3), at(4, 5), at(5, 6)];
        assert_eq!(gaps(&some), [at(3, 4), at(6, 10)]);
        assert_eq!(gaps(&[at(0, 1), at(9, 12)]), [at(2, 9)]);
    }

    #[test]
    fn only_one_process_at_a_time_opens_a_history() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = wanted("15m", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let history = History::open(folder.path(), "a1", &wanted).unwrap();
        let refused = History::open(folder.path(), "a1", &wanted).unwrap_err();
        assert!(refused.text.contains("another process uses this folder"), "{refused}");
        // Another service has another folder.
        let other = History::open(folder.path(), "b2", &wanted).unwrap();
        assert_ne!(history.folder, other.folder);
    }
}
