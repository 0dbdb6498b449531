//! The state of the live view, and the handling of keys, without any I/O.

use std::cmp::{Ordering, Reverse};

use clap::ValueEnum;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tallyfold::{Counts, Dimension, Metric, Window};

use super::findings::FindingLine;
use super::history::{Group, History, Line};
use crate::output::safe::shown;

/// The live view.
#[derive(Debug)]
pub(crate) struct State {
    /// The query.
    pub(crate) title: Title,
    /// The clusters, in the order of the configuration. There is at least one.
    pub(crate) clusters: Vec<ClusterView>,
    /// The position of the cluster that is shown.
    pub(crate) current: usize,
    /// What rows are ranked by.
    pub(crate) order: Order,
    /// The maximum number of rows to show.
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

/// The query.
#[derive(Clone, Debug)]
pub(crate) struct Title {
    /// Which endpoint.
    pub(crate) metric: Metric,
    /// The names of the dimensions.
    pub(crate) by: Vec<Dimension>,
    /// The conditions, as the user wrote them.
    pub(crate) only: Vec<String>,
    /// Whether clusters have names.
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
    /// The share of errors among the events to be sent.
    Rate,
    /// The names.
    Name,
}

impl Order {
    /// The next column to rank by.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Errors => Self::Change,
            Self::Change => Self::Filtered,
            Self::Filtered => Self::Delivered,
            Self::Delivered => Self::Rate,
            Self::Rate => Self::Name,
            Self::Name => Self::Errors,
        }
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
        first
            .then_with(|| highest(|line| line.sums.errors))
            .then(by_name)
    }
}

/// One cluster.
#[derive(Debug)]
pub(crate) struct ClusterView {
    /// Its name.
    pub(crate) name: String,
    /// Its counts.
    pub(crate) history: History,
    /// Set while the service does not answer.
    pub(crate) outage: Option<Outage>,
    /// When a window was last read, in milliseconds since 1970.
    pub(crate) read_ms: Option<i64>,
    /// The last window whose errors changed after they were shown.
    pub(crate) correction: Option<Correction>,
    /// The findings of the rules, the worst first.
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

/// A change of counts after they were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Correction {
    /// The start of the window.
    pub(crate) start_ms: i64,
    /// The change of its errors.
    pub(crate) errors: i128,
}

impl ClusterView {
    /// A cluster without any counts yet.
    pub(crate) fn new(name: String, history: History) -> Self {
        Self {
            name,
            history,
            outage: None,
            read_ms: None,
            correction: None,
            findings: Vec::new(),
        }
    }

    /// Stores the counts of a window.
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

    /// Whether the service does not answer or a window could not be read.
    pub(crate) fn is_troubled(&self) -> bool {
        self.outage.is_some() || self.history.failure().is_some()
    }
}

impl State {
    /// A view of these clusters.
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

    /// Sets the current time.
    pub(crate) fn advance(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        for cluster in &mut self.clusters {
            cluster.history.advance(now_ms);
        }
    }

    /// The cluster that is shown.
    pub(crate) fn cluster(&self) -> &ClusterView {
        &self.clusters[self.current]
    }

    /// The rows to show, ranked.
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

    /// The position of the selected row among the shown rows.
    pub(crate) fn position(&self, rows: &[&Line]) -> usize {
        let is_it = |line: &&Line| Some(&line.group) == self.selected.as_ref();
        rows.iter().position(is_it).unwrap_or(0)
    }

    /// Moves the selection by `by` rows.
    pub(crate) fn step(&mut self, by: isize) {
        let rows = self.rows();
        let last = rows.len().saturating_sub(1);
        let position = self.position(&rows).saturating_add_signed(by).min(last);
        // `None` keeps the first row selected, whichever group it shows, as before the user selected a row.
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

/// A row's name: its values, escaped for a terminal.
pub(crate) fn name_of(line: &Line) -> String {
    let values = line.group.iter().map(|value| shown(value));
    let name = values.collect::<Vec<_>>().join(" · ");
    match line.group.is_empty() {
        true => "all".to_owned(),
        false => name,
    }
}

#[cfg(test)]
pub(crate) mod tests;

/// What the event loop does after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Draw again.
    Draw,
    /// Read the counts that may have changed, now.
    Read,
    /// Quit.
    Quit,
    /// Quit as Ctrl-C does.
    Interrupt,
    /// Give the terminal back to the shell until the process is resumed.
    Suspend,
}

/// How many rows a page key moves.
const PAGE: isize = 10;

/// The maximum length of the filter.
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
