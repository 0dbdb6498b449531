//! The position of a follow, as its state shows it: which windows are open, and how many revisions of each it has returned.

use serde::Deserialize;
use tallyfold::{Code, Error, Follow, Result, Timestamp, Window, WindowRows};

/// The windows that a follow still has to settle.
pub(crate) struct Position {
    /// The windows that it has opened, sorted.
    open: Vec<OpenWindow>,
    /// The start of the first window that it has not opened.
    next: Timestamp,
}

/// A window that is not settled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OpenWindow {
    window: Window,
    /// How many of its revisions the follow has returned; `None` if the state was written before revisions had numbers.
    revisions: Option<u32>,
}

/// The parts of a follow's state that describe its windows.
#[derive(Deserialize)]
struct SavedPosition {
    next: String,
    /// The starts and ends of the open windows that were not read yet.
    unread: Vec<String>,
    /// For each window of the table, how many of its revisions were returned.
    revisions: Option<Vec<String>>,
    /// The open windows that were read.
    table: Option<ReadWindows>,
}

#[derive(Deserialize)]
struct ReadWindows {
    windows: Vec<ReadWindow>,
}

#[derive(Deserialize)]
struct ReadWindow {
    start: String,
    end: String,
}

impl Position {
    /// The position of a caller that adds windows in order, up to `next`, without the state of a follow.
    pub(crate) fn at(next: Timestamp) -> Self {
        let open = Vec::new();
        Self { open, next }
    }

    /// The position just before a follow's first revision. The follow had opened `window`, and the earlier windows that are still
    /// open in `after`, and had returned no revision.
    pub(crate) fn before_first(window: Window, after: &Self) -> Self {
        let earlier = after.open.iter().filter(|open| open.window.end() <= window.start());
        let unreturned = |open: &OpenWindow| OpenWindow {
            window: open.window,
            revisions: open.revisions.map(|_| 0),
        };
        let mut open: Vec<OpenWindow> = earlier.map(unreturned).collect();
        open.push(OpenWindow { window, revisions: Some(0) });
        Self { open, next: window.end() }
    }

    /// Parses the state of a follow; `None` for any other text.
    ///
    /// # Errors
    /// `invalid_argument` for an empty text, `invalid_checkpoint` for a state that is truncated or was changed.
    pub(crate) fn of(state: &str) -> Result<Option<Self>> {
        if !Follow::is_state(state)? {
            return Ok(None);
        }
        let invalid = |error| {
            let message = format!("want the state of the follow: {error}");
            Error::argument("state", Code::InvalidCheckpoint, message)
        };
        let saved: SavedPosition = serde_json::from_str(state).map_err(invalid)?;
        let mut open = Vec::new();
        for edges in saved.unread.chunks_exact(2) {
            open.push(OpenWindow {
                window: Window::parse(&edges[0], &edges[1])?,
                revisions: Some(0),
            });
        }
        let read = saved.table.iter().flat_map(|table| &table.windows);
        for (place, read) in read.enumerate() {
            let revisions = saved.revisions.iter().flatten().nth(place);
            open.push(OpenWindow {
                window: Window::parse(&read.start, &read.end)?,
                revisions: revisions.and_then(|text| text.parse().ok()),
            });
        }
        open.sort_unstable();
        let next = Timestamp::parse(&saved.next)?;
        Ok(Some(Self { open, next }))
    }

    /// Returns the first range that was still to be settled, but is neither in `windows` nor still to be settled in `after`.
    pub(crate) fn gap(&self, after: &Self, windows: &[Window]) -> Option<Window> {
        let open = after.open.iter().map(|open| open.window);
        let mut known: Vec<Window> = open.chain(windows.iter().copied()).collect();
        known.sort_unstable();
        let mut missing = Vec::new();
        let unopened = Window::new(self.next, after.next).ok();
        let open = self.open.iter().map(|open| open.window);
        for window in open.chain(unopened) {
            let (mut from, end) = (window.start(), window.end().min(after.next));
            let first = known.partition_point(|known| known.end() <= from);
            for known in known.iter().skip(first).take_while(|known| known.start() < end) {
                missing.extend(Window::new(from, known.start()).ok());
                from = known.end();
            }
            missing.extend(Window::new(from, end).ok());
        }
        let mut missing = missing.into_iter();
        let first = missing.next()?;
        let end = missing.fold(first.end(), |end, window| match window.start() == end {
            true => window.end(),
            false => end,
        });
        Window::new(first.start(), end).ok()
    }

    /// Checks that the follow has returned exactly this revision between this position and `after`: the revision of a window with
    /// this number, and the last one if the window is settled.
    ///
    /// # Errors
    /// `out_of_order`, if this revision was returned before, or if another one was returned, too.
    pub(crate) fn check_one(&self, after: &Self, rows: &WindowRows, number: u32) -> Result<()> {
        let window = rows.window;
        let refused = |argument: &'static str, message: String| {
            Err(Error::argument(argument, Code::OutOfOrder, message))
        };
        let expected = (!rows.settled).then(|| Some(number.saturating_add(1)));
        let (then, now) = (self.revisions(window), after.revisions(window));
        if then == Some(None) || now == Some(None) {
            return Ok(());
        }
        if then.flatten().is_none_or(|next| number < next) {
            let message = format!("revision {number} of {window:?} was put in before");
            return refused("revision", message);
        }
        let all = self.open.iter().chain(&after.open).map(|open| open.window);
        let mut others = all.filter(|other| *other != window);
        let is_skipped = |other: &Window| {
            let (then, now) = (self.revisions(*other), after.revisions(*other));
            then != now && then != Some(None) && now != Some(None)
        };
        let skipped = others.find(is_skipped);
        // A window that was opened and settled in between is in neither state.
        let skipped = skipped.or_else(|| self.gap(after, &[window]));
        if let Some(repeated) = after.gap(self, &[]) {
            let message = format!(
                "{repeated:?} was settled before: from this state, the follow would read it again"
            );
            return refused("state", message);
        }
        let is_next = then.flatten() == Some(number) && now == expected;
        let Some(skipped) = skipped.or((!is_next).then_some(window)) else {
            return Ok(());
        };
        let message = format!(
            "a revision of {skipped:?} was skipped: want the state of the follow just after revision {number} of {window:?}; \
             resume the follow from the state in the outbox"
        );
        refused("state", message)
    }

    /// Returns how many revisions of a window were returned: `None` for a settled window, `Some(None)` if the state doesn't show it.
    fn revisions(&self, window: Window) -> Option<Option<u32>> {
        let open = self.open.binary_search_by_key(&window, |open| open.window);
        match open {
            Ok(place) => Some(self.open[place].revisions),
            Err(_) => (window.start() >= self.next).then_some(Some(0)),
        }
    }
}
