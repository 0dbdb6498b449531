//! Draws the table of rows, and on a tall screen a panel below the table. The panel shows the windows of the selected row and,
//! on a wide screen, the largest changes.

use std::cmp::Reverse;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line as TextLine, Span, Text};
use ratatui::widgets::{Cell, HighlightSpacing, Row, StatefulWidget, Table, TableState, Widget};

use super::text::{
    HEADER, Look, PLAIN, SELECTED, TITLE, bar, cut, delivered, left, line_of, number, percent,
    sign, signed, window,
};
use crate::arguments::query::joined;
use crate::output::safe::{fit, width};
use crate::watch::history::{Line, Stage};
use crate::watch::state::{Order, State, name_of};

/// The columns of the table, in their order on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Rank,
    Name,
    Errors,
    Change,
    Filtered,
    Delivered,
    Rate,
    Windows,
}

/// The columns that a narrow screen omits, in this order.
const OMITTED_FIRST: [Column; 4] =
    [Column::Rate, Column::Delivered, Column::Filtered, Column::Rank];

/// The width that the column of names keeps on a narrow screen.
const SHORT_NAME: usize = 12;
/// The number of windows that remain visible on a narrow screen.
const FEW_WINDOWS: usize = 8;

/// The maximum width of a window, in columns of the terminal.
const WIDEST_WINDOW: usize = 3;

/// The number of lines above the rows: the names of the columns, and the marks of the windows.
const HEAD: u16 = 2;

/// The mark of the selected row, before its rank.
const MARK: &str = ">";

/// Draws the table, and returns the number of its lines.
pub(super) fn draw(
    state: &State,
    rows: &[&Line],
    look: Look,
    area: Rect,
    buffer: &mut Buffer,
) -> u16 {
    let names: Vec<String> = rows.iter().map(|row| name_of(row)).collect();
    let stages = state.cluster().history.stages();
    let by = match state.title.by.is_empty() {
        true => "all".to_owned(),
        false => joined(&state.title.by, " · "),
    };
    let columns = Columns::new(area.width.into(), rows, &names, &by, stages.len());
    let stages = &stages[stages.len() - columns.windows..];
    let visible = usize::from(area.height.saturating_sub(HEAD));
    let selected = state.position(rows);
    // Scroll so that the selected row is in the middle, except near the ends of the list.
    let first = match look.is_live {
        true => selected.saturating_sub(visible / 2).min(rows.len().saturating_sub(visible)),
        false => 0,
    };
    let shown = rows.iter().zip(&names).enumerate().skip(first);
    let shown = shown.take(visible).map(|(position, (row, name))| {
        let cells = columns.widths.iter();
        Row::new(cells.map(|(column, width)| match column {
            Column::Rank => right(position + 1),
            Column::Name => Cell::new(fit(name, *width)),
            Column::Errors => right(number(row.sums.errors)),
            Column::Change => {
                let style = look.change(row.change.unwrap_or(0));
                right(row.change.map_or_else(String::new, signed)).style(style)
            }
            Column::Filtered => right(number(row.sums.filtered)),
            Column::Delivered => right(number(row.sums.success)),
            Column::Rate => right(percent(row.sums.error_rate())),
            Column::Windows => Cell::new(columns.bars(row, stages, look)),
        }))
    });
    let header = columns.widths.iter();
    let header = header.map(|(column, width)| column.header(state, &by, *width));
    let has_rank = columns.has(Column::Rank);
    let table = Table::new(shown, columns.constraints())
        .header(Row::new(header).style(HEADER).bottom_margin(HEAD - 1))
        .highlight_symbol(MARK)
        .highlight_spacing(match has_rank {
            true => HighlightSpacing::Always,
            false => HighlightSpacing::Never,
        })
        .row_highlight_style(SELECTED);
    let mark = look.is_live && !rows.is_empty();
    let mut selection = TableState::new().with_selected(mark.then(|| selected - first));
    StatefulWidget::render(table, area, buffer, &mut selection);
    let signs = stages.iter().map(|stage| {
        let text = sign(*stage).repeat(columns.window_width);
        Span::styled(text, look.stage(*stage))
    });
    let above_windows = Rect { x: area.x + columns.start_of_windows(), ..line_of(area, HEAD - 1) };
    TextLine::from_iter(signs).render(above_windows.intersection(area), buffer);
    match rows.is_empty() {
        true => {
            left(line_of(area, HEAD), nothing(state), PLAIN, buffer);
            HEAD + 1
        }
        // The number of drawn rows is at most the number of lines, which is a `u16`.
        false => HEAD + (rows.len() - first).min(visible) as u16,
    }
}

/// Returns a right-aligned cell.
fn right(number: impl ToString) -> Cell<'static> {
    Cell::new(Text::from(number.to_string()).right_aligned())
}

/// Returns the text to show if there are no rows.
fn nothing(state: &State) -> &'static str {
    let history = &state.cluster().history;
    match (state.filter.is_empty(), history.newest_ms()) {
        (false, _) if !history.lines().is_empty() => {
            "no row contains the filter's text; Esc shows all"
        }
        (_, Some(_)) => "no events in these windows",
        (_, None) => "nothing has been read yet",
    }
}

impl Column {
    /// Returns the header of the column, with a mark if rows are ranked by the column.
    fn header(self, state: &State, by: &str, room: usize) -> Cell<'static> {
        let (name, order) = match self {
            Self::Rank => ("#", None),
            Self::Name => (by, Some(Order::Name)),
            Self::Errors => ("errors", Some(Order::Errors)),
            Self::Change => ("change", Some(Order::Change)),
            Self::Filtered => ("filtered", Some(Order::Filtered)),
            Self::Delivered => (delivered(state.title.metric), Some(Order::Delivered)),
            Self::Rate => ("rate", Some(Order::Rate)),
            Self::Windows if room < width(WINDOWS_NAME) => ("trend", None),
            Self::Windows => (WINDOWS_NAME, None),
        };
        let mark = match (order == Some(state.order), state.order) {
            (false, _) => "",
            (true, Order::Name) => "▲",
            (true, _) => "▼",
        };
        let text = format!("{}{mark}", cut(name, room - mark.chars().count()));
        match self {
            Self::Name | Self::Windows => Cell::new(text),
            _ => right(text),
        }
    }
}

/// The name of the last column. A narrow column has a shorter name.
const WINDOWS_NAME: &str = "errors by window";

/// The layout of the columns.
#[derive(Debug)]
struct Columns {
    /// The columns that fit, with their widths. The last column gets the remaining width.
    widths: Vec<(Column, usize)>,
    /// The number of windows that are shown, counted from the newest.
    windows: usize,
    window_width: usize,
}

impl Columns {
    /// Divides the width `room` among the columns. `names` are the names of the rows, and `header` is the header of the column
    /// with these names.
    fn new(room: usize, rows: &[&Line], names: &[String], header: &str, windows: usize) -> Self {
        let longest = names.iter().map(|name| width(name)).max().unwrap_or(0);
        let longest = longest.max(width(header) + 1);
        let mut widths = numbers(rows);
        let least = longest.min(SHORT_NAME) + 1 + windows.min(FEW_WINDOWS);
        for column in OMITTED_FIRST {
            if taken(&widths) + least > room {
                widths.retain(|(other, _)| *other != column);
            }
        }
        let left = room.saturating_sub(taken(&widths) + 1);
        let name =
            left.saturating_sub(windows).clamp(SHORT_NAME, longest.max(SHORT_NAME)).min(left);
        let left = left - name;
        let window_width = (left / windows.max(1)).clamp(1, WIDEST_WINDOW);
        let after_rank = widths.iter().take_while(|(column, _)| *column == Column::Rank);
        widths.insert(after_rank.count(), (Column::Name, name));
        widths.push((Column::Windows, left));
        Self { widths, windows: windows.min(left / window_width), window_width }
    }

    fn has(&self, wanted: Column) -> bool {
        self.widths.iter().any(|(column, _)| *column == wanted)
    }

    fn constraints(&self) -> impl Iterator<Item = Constraint> {
        let mark = MARK.len();
        // All columns together are as wide as a terminal, whose width is a `u16`.
        self.widths.iter().map(move |(column, width)| match column {
            Column::Rank => Constraint::Length((width - mark) as u16),
            _ => Constraint::Length(*width as u16),
        })
    }

    fn start_of_windows(&self) -> u16 {
        let before = self.widths.len() - 1;
        taken(&self.widths[..before]) as u16
    }

    /// Returns a bar for the errors of each of the newest windows.
    fn bars(&self, row: &Line, stages: &[Stage], look: Look) -> TextLine<'static> {
        let windows = &row.windows[row.windows.len() - self.windows..];
        let highest = windows.iter().flatten().map(|counts| counts.errors).max();
        let bars = windows.iter().zip(stages).map(|(counts, stage)| {
            let bar = counts.map_or(" ", |counts| bar(counts.errors, highest.unwrap_or(0)));
            Span::styled(bar.repeat(self.window_width), look.stage(*stage))
        });
        TextLine::from_iter(bars)
    }
}

/// Returns the total width of columns, including a space after each column.
fn taken(widths: &[(Column, usize)]) -> usize {
    widths.iter().map(|(_, width)| width + 1).sum()
}

/// Returns the columns with numbers. Each is wide enough for its header and its widest number.
fn numbers(rows: &[&Line]) -> Vec<(Column, usize)> {
    let widest = |least: usize, text: &dyn Fn(&Line) -> String| {
        let widths = rows.iter().map(|row| width(&text(row)));
        widths.max().unwrap_or(0).max(least)
    };
    vec![
        (Column::Rank, MARK.len() + rows.len().to_string().len()),
        (Column::Errors, widest(7, &|row| number(row.sums.errors))),
        (Column::Change, widest(7, &|row| signed(row.change.unwrap_or(0)))),
        (Column::Filtered, widest(9, &|row| number(row.sums.filtered))),
        (Column::Delivered, widest(10, &|row| number(row.sums.success))),
        (Column::Rate, widest(6, &|row| percent(row.sums.error_rate()))),
    ]
}

/// A screen with at least this many columns shows the changes next to the windows.
const WIDE: u16 = 130;

/// The width of the column with a window's time and mark.
const TIME_WIDTH: u16 = 13;
/// The width of each column with numbers.
const NUMBER_WIDTH: u16 = 12;

/// The width of the list of windows, with four columns of numbers.
const WINDOWS_WIDTH: u16 = TIME_WIDTH + 4 * (1 + NUMBER_WIDTH);

/// Returns the height of the panel: at most a third of the screen's `rows`.
pub(super) fn panel_height(state: &State, rows: u16) -> u16 {
    let windows = state.cluster().history.starts().len();
    // Above the windows are an empty line, a title and the names of the columns.
    let wanted = u16::try_from(windows + 3).unwrap_or(u16::MAX);
    wanted.min(rows / 3)
}

/// Draws an empty line, and the panel below it.
pub(super) fn draw_panel(
    state: &State,
    rows: &[&Line],
    look: Look,
    area: Rect,
    buffer: &mut Buffer,
) {
    let body = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let [windows_area, changes_area] =
        Layout::horizontal([Constraint::Length(WINDOWS_WIDTH), Constraint::Fill(1)])
            .spacing(4)
            .areas(body);
    let is_wide = area.width >= WIDE;
    if let Some(row) = rows.get(state.position(rows)) {
        let area = if is_wide { windows_area } else { body };
        windows(state, row, look, area, buffer);
    }
    if is_wide {
        changes(state, rows, look, changes_area, buffer);
    }
}

/// Draws the windows of a row, the newest first.
fn windows(state: &State, row: &Line, look: Look, area: Rect, buffer: &mut Buffer) {
    let [title, area] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let name = fit(&name_of(row), WINDOWS_WIDTH.into());
    left(title, &name, TITLE, buffer);
    // A narrow screen omits the last columns instead of truncating numbers.
    let room = area.width.min(WINDOWS_WIDTH);
    let numbers = usize::from(room.saturating_sub(TIME_WIDTH) / (1 + NUMBER_WIDTH));
    let history = &state.cluster().history;
    let stages = history.stages();
    let starts = history.starts().enumerate().rev();
    let lines = starts.map(|(position, start)| {
        let stage = stages[position];
        let time = window(start, start + history.step_ms());
        let time = Cell::new(format!("{time} {}", sign(stage))).style(look.stage(stage));
        let before = position.checked_sub(1).and_then(|before| row.windows[before]);
        let counts = row.windows[position].map(|counts| {
            let change = before.map(|before| i128::from(counts.errors) - i128::from(before.errors));
            [
                number(counts.errors.into()),
                change.map_or_else(String::new, signed),
                number(counts.filtered.into()),
                number(counts.success.into()),
            ]
        });
        let counts = counts.into_iter().flatten().take(numbers).map(right);
        Row::new(std::iter::once(time).chain(counts))
    });
    let names = ["errors", "change", "filtered", delivered(state.title.metric)];
    let names = names.into_iter().take(numbers).map(right);
    let header = Row::new(std::iter::once(Cell::new("window")).chain(names));
    let widths = std::iter::repeat_n(Constraint::Length(NUMBER_WIDTH), numbers);
    let widths = std::iter::once(Constraint::Length(TIME_WIDTH)).chain(widths);
    let area = Rect { width: room, ..area };
    Widget::render(Table::new(lines, widths).header(header.style(HEADER)), area, buffer);
}

/// Draws the rows with the largest changes of errors between the two newest windows.
fn changes(state: &State, rows: &[&Line], look: Look, area: Rect, buffer: &mut Buffer) {
    let history = &state.cluster().history;
    let Some(newest) = history.newest_ms() else {
        return;
    };
    let step_ms = history.step_ms();
    let title = format!(
        "Changed in {}, against {}",
        window(newest, newest + step_ms),
        window(newest - step_ms, newest)
    );
    left(line_of(area, 0), &title, TITLE, buffer);
    let mut changed: Vec<(i128, &Line)> = rows
        .iter()
        .filter_map(|row| Some((row.change.filter(|change| *change != 0)?, *row)))
        .collect();
    changed.sort_by_key(|(change, _)| Reverse(change.unsigned_abs()));
    if changed.is_empty() {
        left(line_of(area, 2), "no change of errors", PLAIN, buffer);
    }
    let position = history.starts().position(|start| start == newest);
    let room = usize::from(area.width.saturating_sub(TIME_WIDTH + 2));
    let lines = changed.into_iter().map(|(change, row)| {
        let errors = |back: usize| {
            let counts = position.and_then(|position| row.windows.get(position.checked_sub(back)?));
            counts.copied().flatten().map_or(0, |counts| counts.errors)
        };
        let (before, after) = (number(errors(1).into()), number(errors(0).into()));
        let text = format!("{}: {before} → {after}", name_of(row));
        Row::new([right(signed(change)).style(look.change(change)), Cell::new(fit(&text, room))])
    });
    let [_, lines_area] =
        Layout::vertical([Constraint::Length(2), Constraint::Fill(1)]).areas(area);
    let widths = [Constraint::Length(TIME_WIDTH), Constraint::Fill(1)];
    Widget::render(Table::new(lines, widths).column_spacing(2), lines_area, buffer);
}
