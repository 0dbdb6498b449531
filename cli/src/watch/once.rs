//! Prints the view as text.

use std::io::{self, Write};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tallyfold::{Frame, Series};

use super::draw::text::Look;
use super::draw::view::{AROUND, draw_once};
use super::state::{ClusterView, State};
use crate::output::report::{Counted, Part};
use crate::output::safe::width;

/// The width of output other than a terminal.
const USUAL_WIDTH: usize = 100;

/// The maximum number of rows. It bounds the memory, because all rows are drawn before the first is written.
const MOST_ROWS: usize = 2_000;

/// Fills a view with the counts and gaps of a cluster.
pub(crate) fn fill(view: &mut ClusterView, part: &Part, now_ms: i64) {
    let Counted::Series(series) = &part.found else {
        return;
    };
    for (id, of) in (0..).zip(series.windows()) {
        view.settle(of.window, rows(series, id), !of.provisional, now_ms);
        if !of.complete {
            view.history
                .fail(of.window, "a part of it is missing".to_owned());
        }
    }
    for gap in &part.gaps {
        let is_in = |start: &i64| gap.start().unix_ms() <= *start && *start < gap.end().unix_ms();
        let starts: Vec<i64> = view.history.starts().filter(is_in).collect();
        for start in starts {
            let end = start + view.history.step_ms();
            if let Ok(window) = super::reader::window_of(start, end) {
                // The command writes the error itself to stderr.
                view.history.fail(window, "it could not be read".to_owned());
            }
        }
    }
}

fn rows(series: &Series, window: u32) -> impl Iterator<Item = (Vec<String>, tallyfold::Counts)> {
    let rows = series.rows();
    let ids = series.window_ids();
    let of_window = rows.filter(move |row| ids[row.index()] == window);
    of_window.map(|row| (row.values().map(str::to_owned).collect(), row.counts()))
}

/// Prints the clusters of a state, one after the other.
///
/// # Errors
/// If the text can't be written.
pub(crate) fn print(
    state: &mut State,
    width: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = width.unwrap_or(USUAL_WIDTH).clamp(40, 300);
    for position in 0..state.clusters.len() {
        state.current = position;
        if position > 0 {
            writeln!(out)?;
        }
        for line in lines(state, width) {
            writeln!(out, "{line}")?;
        }
        if let Some(more @ 1..) = state.rows().len().checked_sub(MOST_ROWS) {
            writeln!(out, "and {more} more rows")?;
        }
    }
    Ok(())
}

/// The lines of the current cluster.
pub(crate) fn lines(state: &State, width: usize) -> Vec<String> {
    let look = Look {
        color: false,
        is_live: false,
    };
    let rows = state.rows().len().min(MOST_ROWS);
    // Both values fit into a `u16`.
    let area = Rect::new(0, 0, width as u16, rows as u16 + AROUND);
    let mut buffer = Buffer::empty(area);
    let drawn = draw_once(state, look, area, &mut buffer);
    (0..drawn).map(|y| line_of(&buffer, y)).collect()
}

/// A line of a buffer as text, without trailing spaces.
pub(crate) fn line_of(buffer: &Buffer, y: u16) -> String {
    let mut text = String::new();
    let mut x = 0;
    while x < buffer.area.width {
        let symbol = buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
        text.push_str(symbol);
        // A wide character occupies the next cell, too.
        x += width(symbol).max(1) as u16;
    }
    text.trim_end().to_owned()
}
