//! Reads the history that rules look back on: from the files, and from the service only what the files lack.

use tallyfold::{Collect, CollectOptions, CountTable, Progress, Window};

use super::history::{History, Span, Wanted};
use crate::arguments::given::{Given, Origin, Raw};
use crate::failure::{Failure, Result};
use crate::host::checkpoint::Keeper;
use crate::host::ranges::{finished, gather};
use crate::host::session::Session;

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
        let collect = session
            .machine
            .collect(CollectOptions { have, ..options })?;
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
    let mut all = Given::default();
    let text = |text: String| Raw::Text(text);
    let mut set = |name: &str, raw| all.set(name, raw, Origin::Flag);
    set("metric", text(wanted.metric.to_string()));
    set("start", text(range.start().to_string()));
    set("end", text(range.end().to_string()));
    set("window", text(wanted.step.to_string()));
    let dimensions = wanted.dimensions.iter().cloned().map(Raw::Text);
    set("dimensions", Raw::List(dimensions.collect()));
    all.overlay(given.clone());
    all.read()
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
