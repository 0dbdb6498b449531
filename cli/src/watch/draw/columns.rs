//! How the columns of the table share the width.

use super::super::history::Line;
use super::text::{number, percent, signed};
use crate::output::safe::width;

/// A column of the table, in its order on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Rank,
    Name,
    Errors,
    Change,
    Filtered,
    Delivered,
    Rate,
    Windows,
}

/// The order in which columns give way on a narrow screen.
const GIVING_WAY: [Column; 4] = [
    Column::Rate,
    Column::Delivered,
    Column::Filtered,
    Column::Rank,
];

/// How few columns the name gets if it is longer, and how few windows are shown if there are more.
const SHORT_NAME: usize = 12;
const FEW_WINDOWS: usize = 8;

/// A window is at most so wide.
const WIDEST_WINDOW: usize = 3;

/// Where the columns are.
#[derive(Debug)]
pub(super) struct Columns {
    /// The columns that there is room for, with their widths.
    pub(super) widths: Vec<(Column, usize)>,
    /// How many of the newest windows are shown.
    pub(super) windows: usize,
    /// How wide each window is.
    pub(super) window_width: usize,
}

impl Columns {
    /// Shares the room of a line. `names` are those of the rows, `header` is that of the column of names.
    pub(super) fn new(
        room: usize,
        rows: &[&Line],
        names: &[String],
        header: &str,
        windows: usize,
    ) -> Self {
        let longest = names.iter().map(|name| width(name)).max().unwrap_or(0);
        let longest = longest.max(width(header) + 1);
        let mut numbers = numbers(rows);
        let least = longest.min(SHORT_NAME) + 1 + windows.min(FEW_WINDOWS);
        for column in GIVING_WAY {
            if taken(&numbers) + least > room {
                numbers.retain(|(other, _)| *other != column);
            }
        }
        let left = room.saturating_sub(taken(&numbers) + 1);
        let name = left
            .saturating_sub(windows)
            .clamp(SHORT_NAME, longest.max(SHORT_NAME))
            .min(left);
        let left = left - name;
        let window_width = (left / windows.max(1)).clamp(1, WIDEST_WINDOW);
        let shown = windows.min(left / window_width);
        let place = numbers
            .iter()
            .take_while(|(column, _)| *column == Column::Rank)
            .count();
        numbers.insert(place, (Column::Name, name));
        numbers.push((Column::Windows, shown * window_width));
        Self {
            widths: numbers,
            windows: shown,
            window_width,
        }
    }
}

/// The width of the columns of numbers with the space after each.
fn taken(numbers: &[(Column, usize)]) -> usize {
    numbers.iter().map(|(_, width)| width + 1).sum()
}

fn numbers(rows: &[&Line]) -> Vec<(Column, usize)> {
    let widest = |least: usize, of: &dyn Fn(&Line) -> String| {
        rows.iter()
            .map(|row| width(&of(row)))
            .max()
            .unwrap_or(0)
            .max(least)
    };
    vec![
        (Column::Rank, rows.len().to_string().len() + 1),
        (Column::Errors, widest(7, &|row| number(row.sums.errors))),
        (
            Column::Change,
            widest(7, &|row| signed(row.change.unwrap_or(0))),
        ),
        (
            Column::Filtered,
            widest(9, &|row| number(row.sums.filtered)),
        ),
        (
            Column::Delivered,
            widest(10, &|row| number(row.sums.success)),
        ),
        (
            Column::Rate,
            widest(6, &|row| percent(row.sums.error_rate())),
        ),
    ]
}
