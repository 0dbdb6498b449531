//! The panel below the table on a tall screen: the windows of the selected row and, on a wide screen, the largest
//! changes.

use std::cmp::Reverse;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Row, Table, Widget};

use super::text::{
    HEADER, Look, PLAIN, TITLE, delivered, left, line_of, number, sign, signed, window,
};
use crate::output::safe::fit;
use crate::watch::history::Line;
use crate::watch::state::{State, name_of};

/// A screen with at least this many columns shows the changes next to the windows.
const WIDE: u16 = 130;

/// The width of a window's time with its mark, and of each of its numbers.
const TIME_WIDTH: u16 = 13;
const NUMBER_WIDTH: u16 = 12;

/// The width of the windows, with four numbers.
const WINDOWS_WIDTH: u16 = TIME_WIDTH + 4 * (1 + NUMBER_WIDTH);

/// The height of the panel: at most a third of the screen.
pub(super) fn height(state: &State, rows: u16) -> u16 {
    let windows = state.cluster().history.starts().len();
    // An empty line, a title and the column names.
    let wanted = u16::try_from(windows + 3).unwrap_or(u16::MAX);
    wanted.min(rows / 3)
}

/// Draws the panel, below an empty line.
pub(super) fn draw(state: &State, rows: &[&Line], look: Look, area: Rect, buffer: &mut Buffer) {
    let body = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
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

/// The windows of a row, the newest first.
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
        let before = position
            .checked_sub(1)
            .and_then(|before| row.windows[before]);
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
    let names = [
        "errors",
        "change",
        "filtered",
        delivered(state.title.metric),
    ];
    let names = names.into_iter().take(numbers).map(right);
    let header = Row::new(std::iter::once(Cell::new("window")).chain(names));
    let widths = std::iter::repeat_n(Constraint::Length(NUMBER_WIDTH), numbers);
    let widths = std::iter::once(Constraint::Length(TIME_WIDTH)).chain(widths);
    let area = Rect {
        width: room,
        ..area
    };
    Widget::render(
        Table::new(lines, widths).header(header.style(HEADER)),
        area,
        buffer,
    );
}

/// The rows with the largest change of errors between the two newest windows.
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
        Row::new([
            right(signed(change)).style(look.change(change)),
            Cell::new(fit(&text, room)),
        ])
    });
    let [_, lines_area] =
        Layout::vertical([Constraint::Length(2), Constraint::Fill(1)]).areas(area);
    let widths = [Constraint::Length(TIME_WIDTH), Constraint::Fill(1)];
    Widget::render(
        Table::new(lines, widths).column_spacing(2),
        lines_area,
        buffer,
    );
}

fn right(text: impl Into<String>) -> Cell<'static> {
    Cell::new(Text::from(text.into()).right_aligned())
}
