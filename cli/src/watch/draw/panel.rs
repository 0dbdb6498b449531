//! What a tall screen shows below the table: the selected row's windows, and on a wide one also what has changed.

use std::cmp::Reverse;
use std::ops::Range;

use super::super::history::{Line, Stage};
use super::super::state::{State, name_of};
use super::canvas::{Canvas, sign};
use super::delivered;
use super::text::{number, signed, window};
use crate::output::safe::fit;

/// From this many columns on the changes stand beside the windows.
const WIDE: usize = 130;

/// The columns of the windows: their right edges.
const WINDOW_EDGES: [usize; 4] = [26, 39, 52, 65];

/// How many lines the panel takes: at most a third of the screen.
pub(super) fn height(state: &State, rows: u16) -> u16 {
    let windows = state.cluster().history.starts().len();
    // A line of space, a title and the names of the columns.
    let wanted = u16::try_from(windows + 3).unwrap_or(u16::MAX);
    wanted.min(rows / 3)
}

/// Draws it into these lines.
pub(super) fn draw(state: &State, rows: &[&Line], canvas: &mut Canvas<'_>, lines: Range<u16>) {
    let body = lines.start + 1..lines.end;
    if let Some(row) = rows.get(state.position(rows)) {
        windows(state, row, canvas, body.clone());
    }
    if canvas.columns() >= WIDE {
        let mut area = canvas.area;
        area.x += WINDOW_EDGES[3] as u16 + 4;
        area.width -= WINDOW_EDGES[3] as u16 + 4;
        let mut beside = Canvas::new(canvas.buffer, area, canvas.look);
        changes(state, rows, &mut beside, body);
    }
}

/// The windows of a row, the newest first.
fn windows(state: &State, row: &Line, canvas: &mut Canvas<'_>, lines: Range<u16>) {
    let (title, plain) = (canvas.look.title(), canvas.look.plain());
    canvas.put(0, lines.start, &fit(&name_of(row), WINDOW_EDGES[3]), title);
    let names = ["errors", "change", "filtered", delivered(state)];
    for (name, edge) in names.into_iter().zip(WINDOW_EDGES) {
        canvas.right(edge, lines.start + 1, name, plain);
    }
    canvas.put(0, lines.start + 1, "window", plain);
    canvas.mark(
        0,
        lines.start + 1,
        WINDOW_EDGES[3].min(canvas.columns()),
        canvas.look.header(),
    );
    let history = &state.cluster().history;
    let stages = history.stages();
    let starts: Vec<i64> = history.starts().collect();
    let newest_first = (0..starts.len()).rev();
    for (y, position) in (lines.start + 2..lines.end).zip(newest_first) {
        let start = starts[position];
        let stage: Stage = stages[position];
        let text = format!(
            "{} {}",
            window(start, start + history.step_ms()),
            sign(stage)
        );
        canvas.put(0, y, &text, canvas.look.stage(stage));
        let Some(counts) = row.windows[position] else {
            continue;
        };
        let before = position
            .checked_sub(1)
            .and_then(|before| row.windows[before]);
        let change = before.map(|before| i128::from(counts.errors) - i128::from(before.errors));
        let texts = [
            number(counts.errors.into()),
            change.map_or_else(String::new, signed),
            number(counts.filtered.into()),
            number(counts.success.into()),
        ];
        for (text, edge) in texts.iter().zip(WINDOW_EDGES) {
            canvas.right(edge, y, text, plain);
        }
    }
}

/// The rows whose errors have changed most since the window before the newest.
fn changes(state: &State, rows: &[&Line], canvas: &mut Canvas<'_>, lines: Range<u16>) {
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
    canvas.left(lines.start, &title, canvas.look.title());
    let mut changed: Vec<(i128, &Line)> = rows
        .iter()
        .filter_map(|row| Some((row.change.filter(|change| *change != 0)?, *row)))
        .collect();
    changed.sort_by_key(|(change, _)| Reverse(change.unsigned_abs()));
    if changed.is_empty() {
        canvas.left(lines.start + 2, "no change of errors", canvas.look.plain());
    }
    let position = history.starts().position(|start| start == newest);
    for (y, (change, row)) in (lines.start + 2..lines.end).zip(changed) {
        let errors = |back: usize| {
            let counts = position.and_then(|position| row.windows.get(position.checked_sub(back)?));
            counts.copied().flatten().map_or(0, |counts| counts.errors)
        };
        let (before, after) = (number(errors(1).into()), number(errors(0).into()));
        canvas.right(13, y, &signed(change), canvas.look.change(change));
        let room = canvas.columns().saturating_sub(15);
        let text = format!("{}: {before} → {after}", name_of(row));
        canvas.put(15, y, &fit(&text, room), canvas.look.plain());
    }
}
