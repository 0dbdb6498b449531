//! States for tests.

use tallyfold::{Counts, Metric, TimeStep, Timestamp, Window};

use super::{ClusterView, Order, State, Title};
use crate::watch::history::History;

/// The counts of a group in the window with that position.
pub(crate) type Sample = fn(u64) -> Counts;

/// The time of all tests: 2026-01-01T12:07:30Z.
pub(crate) const NOW_MS: i64 = 1_767_269_250_000;

const QUARTER_MS: i64 = 900_000;

/// How many windows histories of tests have.
pub(crate) const WINDOWS: usize = 12;

pub(crate) fn counts(success: u64, errors: u64, filtered: u64) -> Counts {
    Counts {
        success,
        errors,
        filtered,
    }
}

/// The window with that position; the last is 11, which has closed at noon.
pub(crate) fn window(position: i64) -> Window {
    let start = NOW_MS.div_euclid(QUARTER_MS) * QUARTER_MS + (position - 12) * QUARTER_MS;
    let at = |ms| Timestamp::from_unix_ms(ms).unwrap();
    Window::new(at(start), at(start + QUARTER_MS)).unwrap()
}

pub(crate) fn empty() -> History {
    History::new(TimeStep::parse("15m").unwrap(), WINDOWS, NOW_MS)
}

/// Rows as a reading has them.
pub(crate) fn rows(rows: &[(&str, Counts)]) -> Vec<(Vec<String>, Counts)> {
    rows.iter()
        .map(|(name, counts)| (vec![(*name).to_owned()], *counts))
        .collect()
}

/// A history of which so many windows were read, and fewer are settled.
pub(crate) fn history(groups: &[(&str, Sample)], read: i64, settled: i64) -> History {
    let mut history = empty();
    for position in 0..read {
        let of_window: Vec<(&str, Counts)> = groups
            .iter()
            .map(|(name, sample)| (*name, sample(position.unsigned_abs())))
            .collect();
        history.settle(window(position), rows(&of_window), position < settled);
    }
    history
}

pub(crate) fn view(name: &str, history: History) -> ClusterView {
    let mut view = ClusterView::new(name.to_owned(), history);
    view.read_ms = view.history.newest_ms().map(|_| NOW_MS - 3_000);
    view
}

pub(crate) fn state(clusters: Vec<ClusterView>) -> State {
    let title = Title {
        metric: Metric::EventDelivery,
        by: vec!["integration".to_owned()],
        only: Vec::new(),
        is_named: false,
    };
    State::new(title, clusters, Order::Errors, NOW_MS)
}
