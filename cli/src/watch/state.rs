//! The state of the live view, and the handling of keys, without any I/O.

use std::cmp::{Ordering, Reverse};

use clap::ValueEnum;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tallyfold::{Counts, Dimension, Metric, Window};

use super::findings::FindingLine;
use super::history::{Group, History, Line};
use crate::output::safe::shown;

/// The state of the live view.
#[derive(Debug)]
pub(crate) struct State {
    /// The query, which the title shows.
    pub(crate) title: Title,
    /// The clusters, in the order of the configuration. There is at least one.
    pub(crate) clusters: Vec<ClusterView>,
    /// The index of the cluster that is shown.
    pub(crate) current: usize,
    /// What rows are ranked by.
    pub(crate) order: Order,
    /// The maximum number of rows to show; `None` for all.
    pub(crate) top: Option<usize>,
    /// Only rows that contain this text are shown; case does not matter.
    pub(crate) filter: String,
    /// The current meaning of keys.
    pub(crate) mode: Mode,
    /// The row that the user has selected; `None` selects the first row.
    pub(crate) selected: Option<Group>,
    /// The time now, in milliseconds since 1970.
    pub(crate) now_ms: i64,
}

/// The query that the title describes.
#[derive(Clone, Debug)]
pub(crate) struct Title {
    /// The endpoint.
    pub(crate) metric: Metric,
    /// The dimensions of the groups.
    pub(crate) by: Vec<Dimension>,
    /// The conditions, as the user wrote them.
    pub(crate) only: Vec<String>,
    /// Whether the clusters have names in the configuration.
    pub(crate) is_named: bool,
}

/// The meaning of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Keys are commands.
    #[default]
    Rows,
    /// Keys edit the filter.
    Filter,
    /// Any key closes the help.
    Help,
}

/// What rows are ranked by. Counts are in descending order, names in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Events that were not sent due to an error: they are lost.
    #[default]
    Errors,
    /// How much the errors have risen since the window before.
    Change,
    /// Events that were filtered on purpose.
    Filtered,
    /// Events that were delivered.
    Delivered,
    /// The share of attempts that failed: errors / (success + errors).
    Rate,
    /// The names, in ascending order.
    Name,
}

impl Order {
    /// Returns the next column to rank by.
    pub(crate) fn next(self) -> Self {
        let all = Self::value_variants();
        all[(self as usize + 1) % all.len()]
    }

    fn compare(self, one: &Line, other: &Line) -> Ordering {
        let by_name = one.group.cmp(&other.group);
        let highest = |of: fn(&Line) -> u128| of(other).cmp(&of(one));
        let first = match self {
            Self::Errors => Ordering::Equal,
            Self::Change => Reverse(one.change).cmp(&Reverse(other.change)),
            Self::Filtered => highest(|line| line.sums.filtered),
            Self::Delivered => highest(|line| line.sums.success),
            Self::Rate => {
                // Rows without a rate come last.
                let rate = |line: &Line| line.sums.error_rate().unwrap_or(-1.0);
                rate(other).total_cmp(&rate(one))
            }
            Self::Name => by_name,
        };
        first.then_with(|| highest(|line| line.sums.errors)).then(by_name)
    }
}

/// A cluster in the live view.
#[derive(Debug)]
pub(crate) struct ClusterView {
    /// The cluster's name.
    pub(crate) name: String,
    /// The cluster's counts.
    pub(crate) history: History,
    /// The outage, while the service does not answer.
    pub(crate) outage: Option<Outage>,
    /// When a window was last read, in milliseconds since 1970.
    pub(crate) read_ms: Option<i64>,
    /// The last window whose errors changed after they were shown.
    pub(crate) correction: Option<Correction>,
    /// The findings of the rules, the most severe first.
    pub(crate) findings: Vec<FindingLine>,
}

/// A service that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    /// Why the last request failed.
    pub(crate) text: String,
    /// When the next attempt is due, in milliseconds since 1970.
    pub(crate) next_ms: i64,
}

/// A change of a window's errors after they were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Correction {
    /// The start of the window, in milliseconds since 1970.
    pub(crate) start_ms: i64,
    /// The change of the window's errors.
    pub(crate) errors: i128,
}

impl ClusterView {
    /// Creates a cluster without counts.
    pub(crate) fn new(name: String, history: History) -> Self {
        Self { name, history, outage: None, read_ms: None, correction: None, findings: Vec::new() }
    }

    /// Stores the counts of a window. Records a correction if an earlier reading of the window had a different number of
    /// errors.
    pub(crate) fn settle(
        &mut self,
        window: Window,
        rows: impl IntoIterator<Item = (Vec<String>, Counts)>,
        is_settled: bool,
        now_ms: i64,
    ) {
        let change = self.history.settle(window, rows, is_settled);
        self.read_ms = Some(now_ms);
        self.outage = None;
        if let Some(errors) = change.filter(|errors| *errors != 0) {
            let start_ms = window.start().unix_ms();
            self.correction = Some(Correction { start_ms, errors });
        }
    }

    /// Returns whether the service does not answer or a window could not be read.
    pub(crate) fn is_troubled(&self) -> bool {
        self.outage.is_some() || self.history.failure().is_some()
    }
}

impl State {
    /// Creates a view that shows the first of these clusters.
    pub(crate) fn new(title: Title, clusters: Vec<ClusterView>, order: Order, now_ms: i64) -> Self {
        Self {
            title,
            clusters,
            current: 0,
            order,
            top: None,
            filter: String::new(),
            mode: Mode::Rows,
            selected: None,
            now_ms,
        }
    }

    /// Sets the current time, and drops windows that are too old.
    pub(crate) fn advance(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        for cluster in &mut self.clusters {
            cluster.history.advance(now_ms);
        }
    }

    /// Returns the cluster that is shown.
    pub(crate) fn cluster(&self) -> &ClusterView {
        &self.clusters[self.current]
    }

    /// Returns the rows to show, in order of rank.
    pub(crate) fn rows(&self) -> Vec<&Line> {
        let wanted = self.filter.to_lowercase();
        let lines = self.cluster().history.lines().iter();
        let mut rows: Vec<&Line> = lines
            .filter(|line| wanted.is_empty() || name_of(line).to_lowercase().contains(&wanted))
            .collect();
        rows.sort_by(|one, other| self.order.compare(one, other));
        rows.truncate(self.top.unwrap_or(usize::MAX));
        rows
    }

    /// Returns the index of the selected row among `rows`; 0 if it is not among them.
    pub(crate) fn position(&self, rows: &[&Line]) -> usize {
        let is_it = |line: &&Line| Some(&line.group) == self.selected.as_ref();
        rows.iter().position(is_it).unwrap_or(0)
    }

    /// Moves the selection by `by` rows.
    pub(crate) fn step(&mut self, by: isize) {
        let rows = self.rows();
        let last = rows.len().saturating_sub(1);
        let position = self.position(&rows).saturating_add_signed(by).min(last);
        // `None` selects the first row, so the selection stays at the top when the ranking changes.
        self.selected = match position {
            0 => None,
            _ => rows.get(position).map(|line| line.group.clone()),
        };
    }

    /// Shows the next cluster.
    pub(crate) fn next_cluster(&mut self) {
        self.current = (self.current + 1) % self.clusters.len().max(1);
        self.selected = None;
    }
}

/// Returns the name of a row: its values, escaped for a terminal.
pub(crate) fn name_of(line: &Line) -> String {
    match line.group.is_empty() {
        true => "all".to_owned(),
        false => line.group.iter().map(|value| shown(value)).collect::<Vec<_>>().join(" · "),
    }
}

/// What the event loop does after a key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Draw again.
    Draw,
    /// Immediately read the counts that may have changed.
    Read,
    Quit,
    /// Quit as Ctrl-C does.
    Interrupt,
    /// Give the terminal back to the shell until the process is resumed.
    Suspend,
}

/// The number of rows by which a page key moves the selection.
const PAGE: isize = 10;

/// The maximum length of the filter, in characters.
const LONGEST_FILTER: usize = 100;

/// Handles a key.
pub(crate) fn press(state: &mut State, key: KeyEvent) -> Action {
    if key.kind == KeyEventKind::Release {
        return Action::Draw;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Action::Interrupt,
            KeyCode::Char('z') => Action::Suspend,
            _ => Action::Draw,
        };
    }
    match state.mode {
        Mode::Rows => command(state, key.code),
        Mode::Filter => {
            edit(state, key.code);
            Action::Draw
        }
        Mode::Help => {
            state.mode = Mode::Rows;
            Action::Draw
        }
    }
}

fn command(state: &mut State, key: KeyCode) -> Action {
    match key {
        KeyCode::Char('q') => return Action::Quit,
        KeyCode::Char('r') => return Action::Read,
        KeyCode::Down | KeyCode::Char('j') => state.step(1),
        KeyCode::Up | KeyCode::Char('k') => state.step(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => state.step(PAGE),
        KeyCode::PageUp => state.step(-PAGE),
        KeyCode::Home | KeyCode::Char('g') => state.step(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => state.step(isize::MAX),
        KeyCode::Char('s') => state.order = state.order.next(),
        KeyCode::Char('c') => state.next_cluster(),
        KeyCode::Char('/') => state.mode = Mode::Filter,
        KeyCode::Char('?' | 'h') => state.mode = Mode::Help,
        KeyCode::Esc => state.filter.clear(),
        _ => {}
    }
    Action::Draw
}

fn edit(state: &mut State, key: KeyCode) {
    match key {
        KeyCode::Enter => state.mode = Mode::Rows,
        KeyCode::Esc => {
            state.filter.clear();
            state.mode = Mode::Rows;
        }
        KeyCode::Backspace => {
            state.filter.pop();
        }
        KeyCode::Char(letter)
            if !letter.is_control() && state.filter.chars().count() < LONGEST_FILTER =>
        {
            state.filter.push(letter);
        }
        _ => {}
    }
}

/// Tests of the live view's state. They also provide states for the drawing tests.
#[cfg(test)]
pub(crate) mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use tallyfold::{Counts, Metric, TimeStep, Timestamp, Window};

    use super::{Action, ClusterView, Mode, Order, State, Title, press};
    use crate::watch::history::{History, Line, Stage};

    /// Returns the counts of a group in the window at this position.
    pub(crate) type Sample = fn(u64) -> Counts;

    /// The time of all tests: 2026-01-01T12:07:30Z.
    pub(crate) const NOW_MS: i64 = 1_767_269_250_000;

    const QUARTER_MS: i64 = 900_000;

    /// The number of windows in the histories of tests.
    pub(crate) const WINDOWS: usize = 12;

    pub(crate) fn counts(success: u64, errors: u64, filtered: u64) -> Counts {
        Counts { success, errors, filtered }
    }

    /// Returns the window at this position. The last closed window, at position 11, ends at noon.
    pub(crate) fn window(position: i64) -> Window {
        let start = NOW_MS.div_euclid(QUARTER_MS) * QUARTER_MS + (position - 12) * QUARTER_MS;
        let at = |ms| Timestamp::from_unix_ms(ms).unwrap();
        Window::new(at(start), at(start + QUARTER_MS)).unwrap()
    }

    pub(crate) fn empty() -> History {
        History::new(TimeStep::parse("15m").unwrap(), WINDOWS, NOW_MS)
    }

    /// Converts rows to the form that a history accepts.
    pub(crate) fn rows(rows: &[(&str, Counts)]) -> Vec<(Vec<String>, Counts)> {
        rows.iter().map(|(name, counts)| (vec![(*name).to_owned()], *counts)).collect()
    }

    /// Returns a history whose first `read` windows were read and whose first `settled` windows are settled.
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
            by: vec![tallyfold::Dimension::Integration],
            only: Vec::new(),
            is_named: false,
        };
        State::new(title, clusters, Order::Errors, NOW_MS)
    }

    fn names(state: &State) -> Vec<String> {
        state.rows().iter().map(|row| row.group.join("+")).collect()
    }

    fn selected(state: &State) -> String {
        let rows = state.rows();
        rows[state.position(&rows)].group.join("+")
    }

    fn typed(state: &mut State, text: &str) -> Action {
        let mut last = Action::Draw;
        for letter in text.chars() {
            let code = match letter {
                '\n' => KeyCode::Enter,
                '\x08' => KeyCode::Backspace,
                '\x1b' => KeyCode::Esc,
                letter => KeyCode::Char(letter),
            };
            last = press(state, KeyEvent::new(code, KeyModifiers::NONE));
        }
        last
    }

    fn three() -> State {
        let groups: Vec<(&str, Sample)> = vec![
            ("b", |n| counts(100, n, 5)),
            ("a", |n| counts(1_000, 20 - n, 0)),
            ("c", |_| counts(10, 9, 50)),
        ];
        state(vec![view("default", history(&groups, 12, 12))])
    }

    #[test]
    fn rows_are_ranked_by_each_column() {
        let mut state = three();
        for (order, expected) in [
            (Order::Errors, ["a", "c", "b"]),
            (Order::Change, ["b", "c", "a"]),
            (Order::Filtered, ["c", "b", "a"]),
            (Order::Delivered, ["a", "b", "c"]),
            (Order::Rate, ["c", "b", "a"]),
            (Order::Name, ["a", "b", "c"]),
        ] {
            assert_eq!(state.order, order);
            assert_eq!(names(&state), expected, "{order:?}");
            typed(&mut state, "s");
        }
        state.top = Some(2);
        assert_eq!(names(&state), ["a", "c"]);
    }

    #[test]
    fn lines_contain_sums_changes_and_windows() {
        let mut history = empty();
        history.settle(window(9), rows(&[("old", counts(1, 2, 3))]), true);
        history.settle(window(10), rows(&[("both", counts(4, 10, 5))]), true);
        history.settle(
            window(11),
            rows(&[("both", counts(4, 7, 5)), ("new", counts(0, 6, 0))]),
            false,
        );
        let found = |name: &str| -> Line {
            let mut lines = history.lines().iter();
            lines.find(|line| line.group[0] == name).unwrap().clone()
        };
        assert_eq!(
            [found("old"), found("both"), found("new")].map(|line| line.change),
            [Some(0), Some(-3), Some(6)]
        );
        let both = found("both");
        assert_eq!((both.sums.success, both.sums.errors, both.sums.filtered), (8, 17, 10));
        assert_eq!(both.windows[8], None);
        assert_eq!(both.windows[9], Some(counts(0, 0, 0)));
        assert_eq!(both.windows[11], Some(counts(4, 7, 5)));
        assert_eq!(
            history.stages()[8..],
            [Stage::Unread, Stage::Settled, Stage::Settled, Stage::Provisional]
        );
    }

    #[test]
    fn a_change_needs_two_adjacent_windows() {
        let mut history = empty();
        history.settle(window(9), rows(&[("a", counts(1, 2, 3))]), true);
        history.settle(window(11), rows(&[("a", counts(1, 9, 3))]), true);
        assert_eq!(history.lines()[0].change, None);
        history.settle(window(10), rows(&[]), true);
        assert_eq!(history.lines()[0].change, Some(9));
    }

    #[test]
    fn sums_of_the_largest_counts_do_not_overflow() {
        let groups: Vec<(&str, Sample)> = vec![("a", |_| counts(u64::MAX, u64::MAX, u64::MAX))];
        let history = history(&groups, 12, 12);
        let sums = history.lines()[0].sums;
        assert_eq!(sums.errors, 12 * u128::from(u64::MAX));
        assert_eq!(sums.error_rate(), Some(0.5));
    }

    #[test]
    fn old_windows_and_their_groups_are_dropped() {
        let mut history = empty();
        for position in 0..200 {
            let name = format!("group {position}");
            history.settle(window(position), rows(&[(&name, counts(1, 1, 1))]), true);
            assert!(history.lines().len() <= 12);
        }
        assert_eq!(history.lines().len(), 12);
        assert_eq!(history.held(), (12, 12));
        // A window that has become too old is ignored, too.
        history.settle(window(0), rows(&[("late", counts(1, 1, 1))]), true);
        history.fail(window(1), "no".to_owned());
        assert_eq!(history.held(), (12, 12));
        assert_eq!(history.failure(), None);
        history.advance(NOW_MS + 400 * 900_000);
        assert_eq!(history.held(), (0, 0));
    }

    #[test]
    fn a_changed_number_of_errors_is_a_correction() {
        let mut view = view("default", empty());
        view.settle(window(3), rows(&[("a", counts(1, 2, 3))]), false, NOW_MS);
        assert_eq!(view.correction, None);
        view.settle(window(3), rows(&[("a", counts(9, 2, 3))]), false, NOW_MS);
        assert_eq!(view.correction, None);
        view.settle(
            window(3),
            rows(&[("a", counts(1, 2, 3)), ("b", counts(0, 4, 0))]),
            true,
            NOW_MS,
        );
        let correction = view.correction.unwrap();
        assert_eq!((correction.start_ms, correction.errors), (window(3).start().unix_ms(), 4));
    }

    #[test]
    fn a_failed_reading_keeps_the_earlier_counts() {
        let mut history = empty();
        history.settle(window(11), rows(&[("a", counts(1, 2, 3))]), false);
        history.fail(window(11), "refused".to_owned());
        assert_eq!(history.stages()[11], Stage::Failed);
        assert_eq!(history.failure(), Some((window(11).start().unix_ms(), "refused")));
        assert_eq!(history.lines()[0].sums.errors, 2);
        history.settle(window(11), rows(&[("a", counts(1, 2, 3))]), true);
        assert_eq!(history.failure(), None);
    }

    #[test]
    fn reading_again_starts_at_the_first_window_that_may_change() {
        let groups: Vec<(&str, Sample)> = vec![("a", |_| counts(1, 1, 1))];
        let start = |read, settled| history(&groups, read, settled).unsettled_ms();
        assert_eq!(start(0, 0), window(0).start().unix_ms());
        assert_eq!(start(12, 8), window(8).start().unix_ms());
        assert_eq!(start(12, 12), window(12).start().unix_ms());
    }

    #[test]
    fn the_selection_stays_with_its_row() {
        let mut state = three();
        assert_eq!(selected(&state), "a");
        typed(&mut state, "jj");
        assert_eq!(selected(&state), "b");
        typed(&mut state, "s");
        assert_eq!(selected(&state), "b");
        typed(&mut state, "j");
        assert_eq!(selected(&state), "c");
        typed(&mut state, "G");
        assert_eq!(selected(&state), "a");
        typed(&mut state, "g");
        // The first row is selected, whichever group it shows.
        typed(&mut state, "s");
        assert_eq!(selected(&state), "c");
    }

    #[test]
    fn a_filter_is_typed_kept_and_cleared() {
        let mut state = three();
        typed(&mut state, "/Bq");
        assert_eq!((state.mode, state.filter.as_str()), (Mode::Filter, "Bq"));
        assert!(names(&state).is_empty());
        typed(&mut state, "\x08\n");
        assert_eq!((state.mode, names(&state)), (Mode::Rows, vec!["b".to_owned()]));
        typed(&mut state, "\x1b");
        assert_eq!(names(&state).len(), 3);
        typed(&mut state, "/x\x1b");
        assert_eq!((state.mode, state.filter.as_str()), (Mode::Rows, ""));
        typed(&mut state, &format!("/{}", "x".repeat(500)));
        assert_eq!(state.filter.len(), 100);
    }

    #[test]
    fn keys_quit_read_and_suspend() {
        let mut state = three();
        assert_eq!(typed(&mut state, "q"), Action::Quit);
        assert_eq!(typed(&mut state, "r"), Action::Read);
        assert_eq!(typed(&mut state, "?q"), Action::Draw);
        assert_eq!(state.mode, Mode::Rows);
        for (letter, expected) in [('c', Action::Interrupt), ('z', Action::Suspend)] {
            for mode in [Mode::Rows, Mode::Filter, Mode::Help] {
                state.mode = mode;
                let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
                assert_eq!(press(&mut state, key), expected);
            }
        }
    }

    #[test]
    fn the_key_c_shows_the_next_cluster() {
        let groups: Vec<(&str, Sample)> = vec![("other", |_| counts(1, 1, 1))];
        let mut state = three();
        state.clusters.push(view("eu", history(&groups, 1, 1)));
        state.title.metric = Metric::EventIngestion;
        typed(&mut state, "jc");
        assert_eq!(names(&state), ["other"]);
        assert_eq!(selected(&state), "other");
        typed(&mut state, "c");
        assert_eq!(names(&state).len(), 3);
    }
}
