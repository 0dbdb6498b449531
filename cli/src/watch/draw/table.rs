//! The table of groups.

use std::ops::Range;

use super::super::history::{Line, Stage};
use super::super::state::{Order, State, name_of};
use super::canvas::{Canvas, sign};
use super::columns::{Column, Columns};
use super::delivered;
use super::text::{bar, cut, number, percent, signed};
use crate::output::safe::{fit, width as columns_of};

/// Draws the table into these lines and gives the line after it.
pub(super) fn draw(
    state: &State,
    rows: &[&Line],
    canvas: &mut Canvas<'_>,
    lines: Range<u16>,
) -> u16 {
    let names: Vec<String> = rows.iter().map(|row| name_of(row)).collect();
    let stages = state.cluster().history.stages();
    let columns = Columns::new(
        canvas.columns(),
        rows,
        &names,
        &state.title.by.join(" · "),
        stages.len(),
    );
    let stages = &stages[stages.len() - columns.windows..];
    header(state, &columns, canvas, lines.start);
    signs(&columns, stages, canvas, lines.start + 1);
    let body = lines.start + 2..lines.end;
    if rows.is_empty() {
        canvas.left(body.start, &nothing(state), canvas.look.plain());
        return body.start + 1;
    }
    let selected = state.position(rows);
    let visible = usize::from(body.end.saturating_sub(body.start));
    // The selected row stays in the middle, except near the ends.
    let first = match canvas.look.is_live {
        true => selected
            .saturating_sub(visible / 2)
            .min(rows.len().saturating_sub(visible)),
        false => 0,
    };
    let shown = rows.iter().zip(&names).enumerate().skip(first);
    let mut y = body.start;
    for (position, (row, name)) in shown.take(visible) {
        let sign = match canvas.look.is_live && position == selected {
            true => ">",
            false => "",
        };
        let digits = rows.len().to_string().len();
        let rank = format!("{sign:1}{:>digits$}", position + 1);
        let drawn = Drawn {
            row,
            rank,
            name,
            stages,
        };
        drawn.draw(&columns, canvas, y);
        if !sign.is_empty() {
            canvas.mark(0, y, canvas.columns(), canvas.look.selected());
        }
        y += 1;
    }
    y
}

/// What is said in place of rows.
fn nothing(state: &State) -> String {
    let history = &state.cluster().history;
    match (state.filter.is_empty(), history.newest_ms()) {
        (false, _) if !history.lines().is_empty() => {
            "no row contains the filter's text; Esc shows all".to_owned()
        }
        (_, Some(_)) => "no events in these windows".to_owned(),
        (_, None) => "nothing has been read yet".to_owned(),
    }
}

fn header(state: &State, columns: &Columns, canvas: &mut Canvas<'_>, y: u16) {
    let by = match state.title.by.is_empty() {
        true => "all".to_owned(),
        false => state.title.by.join(" · "),
    };
    let names = [
        (Column::Rank, "#".to_owned(), None),
        (Column::Name, by, Some(Order::Name)),
        (Column::Errors, "errors".to_owned(), Some(Order::Errors)),
        (Column::Change, "change".to_owned(), Some(Order::Change)),
        (
            Column::Filtered,
            "filtered".to_owned(),
            Some(Order::Filtered),
        ),
        (
            Column::Delivered,
            delivered(state).to_owned(),
            Some(Order::Delivered),
        ),
        (Column::Rate, "rate".to_owned(), Some(Order::Rate)),
        (Column::Windows, "errors by window".to_owned(), None),
    ];
    let mut x = 0;
    for (column, width) in &columns.widths {
        let found = names.iter().find(|(other, _, _)| other == column);
        if let Some((_, name, order)) = found {
            let marker = match (*order == Some(state.order), state.order) {
                (false, _) => "",
                (true, Order::Name) => "▲",
                (true, _) => "▼",
            };
            let text = match column {
                // The last column's name may be wider than the windows.
                Column::Windows => match canvas.columns().saturating_sub(x) {
                    room if room < columns_of(name) => cut("trend", room),
                    _ => name.clone(),
                },
                _ => format!("{}{marker}", cut(name, width - marker.chars().count())),
            };
            cell(canvas, *column, (x, *width), y, &text);
        }
        x += width + 1;
    }
    canvas.mark(0, y, canvas.columns(), canvas.look.header());
}

/// Puts a text into a cell: names and windows to the left, numbers to the right.
fn cell(canvas: &mut Canvas<'_>, column: Column, (x, width): (usize, usize), y: u16, text: &str) {
    let style = canvas.look.plain();
    match column {
        Column::Name | Column::Windows => canvas.put(x, y, text, style),
        _ => canvas.right(x + width, y, text, style),
    }
}

/// The signs above the windows.
fn signs(columns: &Columns, stages: &[Stage], canvas: &mut Canvas<'_>, y: u16) {
    let mut x = start_of(columns, Column::Windows);
    for stage in stages {
        let text = sign(*stage).repeat(columns.window_width);
        canvas.put(x, y, &text, canvas.look.stage(*stage));
        x += columns.window_width;
    }
}

fn start_of(columns: &Columns, wanted: Column) -> usize {
    let before = columns
        .widths
        .iter()
        .take_while(|(column, _)| *column != wanted);
    before.map(|(_, width)| width + 1).sum()
}

/// A row that is being drawn.
struct Drawn<'a> {
    row: &'a Line,
    rank: String,
    name: &'a str,
    stages: &'a [Stage],
}

impl Drawn<'_> {
    fn draw(&self, columns: &Columns, canvas: &mut Canvas<'_>, y: u16) {
        let sums = self.row.sums;
        let mut x = 0;
        for (column, width) in &columns.widths {
            let text = match column {
                Column::Rank => self.rank.clone(),
                Column::Name => fit(self.name, *width),
                Column::Errors => number(sums.errors),
                Column::Change => self.row.change.map_or_else(String::new, signed),
                Column::Filtered => number(sums.filtered),
                Column::Delivered => number(sums.success),
                Column::Rate => percent(sums.error_rate()),
                Column::Windows => {
                    self.bars(columns, canvas, x, y);
                    continue;
                }
            };
            cell(canvas, *column, (x, *width), y, &text);
            if *column == Column::Change {
                let style = canvas.look.change(self.row.change.unwrap_or(0));
                canvas.mark(x, y, *width, style);
            }
            x += width + 1;
        }
    }

    fn bars(&self, columns: &Columns, canvas: &mut Canvas<'_>, mut x: usize, y: u16) {
        let windows = &self.row.windows[self.row.windows.len() - columns.windows..];
        let highest = windows.iter().flatten().map(|counts| counts.errors).max();
        for (counts, stage) in windows.iter().zip(self.stages) {
            let bar = counts.map_or(" ", |counts| bar(counts.errors, highest.unwrap_or(0)));
            let text = bar.repeat(columns.window_width);
            canvas.put(x, y, &text, canvas.look.stage(*stage));
            x += columns.window_width;
        }
    }
}
