//! Where texts are put, and how they look.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::super::history::Stage;
use super::text::cut;
use crate::output::safe::width;

/// A part of the screen.
pub(crate) struct Canvas<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) area: Rect,
    pub(crate) look: Look,
}

impl<'a> Canvas<'a> {
    /// This area of a buffer.
    pub(crate) fn new(buffer: &'a mut Buffer, area: Rect, look: Look) -> Self {
        let area = area.intersection(buffer.area);
        Self { buffer, area, look }
    }

    /// How many columns it has.
    pub(crate) fn columns(&self) -> usize {
        self.area.width.into()
    }

    /// Puts a text at a column of a line; what is over the edge is cut.
    pub(crate) fn put(&mut self, x: usize, y: u16, text: &str, style: Style) {
        if y >= self.area.height || x >= self.columns() {
            return;
        }
        let room = self.columns() - x;
        // The column lies within the area, whose width is a u16.
        let column = self.area.x + x as u16;
        self.buffer
            .set_stringn(column, self.area.y + y, text, room, style);
    }

    /// Puts a text at the beginning of a line, shortened to its width.
    pub(crate) fn left(&mut self, y: u16, text: &str, style: Style) {
        self.put(0, y, &cut(text, self.columns()), style);
    }

    /// Puts a text so that it ends before a column.
    pub(crate) fn right(&mut self, end: usize, y: u16, text: &str, style: Style) {
        self.put(end.saturating_sub(width(text)), y, text, style);
    }

    /// Puts a text at the beginning of a line and one at its end. The first is shortened if there is no room for both.
    pub(crate) fn both(&mut self, y: u16, left: (&str, Style), right: (&str, Style)) {
        let columns = self.columns();
        let right_text = cut(right.0, columns / 2);
        let taken = match width(&right_text) {
            0 => 0,
            taken => taken + 2,
        };
        self.put(0, y, &cut(left.0, columns - taken), left.1);
        self.right(columns, y, &right_text, right.1);
    }

    /// Adds a style to columns of a line.
    pub(crate) fn mark(&mut self, x: usize, y: u16, columns: usize, style: Style) {
        let right = self.columns().min(x + columns);
        for column in x..right {
            let position = (self.area.x + column as u16, self.area.y + y);
            if let Some(cell) = self.buffer.cell_mut(position) {
                cell.set_style(style);
            }
        }
    }
}

/// Colours, or none. Whatever a colour says, a sign or a style says too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Whether colours are wanted.
    pub(crate) color: bool,
    /// Whether keys are pressed here: then a row is selected.
    pub(crate) is_live: bool,
}

impl Look {
    /// Usual text.
    pub(crate) fn plain(self) -> Style {
        Style::new()
    }

    /// The title.
    pub(crate) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The names of columns.
    pub(crate) fn header(self) -> Style {
        Style::new().add_modifier(Modifier::UNDERLINED)
    }

    /// The keys.
    pub(crate) fn keys(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The selected row.
    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Something is wrong.
    pub(crate) fn bad(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A change of errors.
    pub(crate) fn change(self, change: i128) -> Style {
        match change {
            0 => self.plain(),
            1.. => self.colored(Color::Red),
            _ => self.colored(Color::Green),
        }
    }

    /// The counts of a window.
    pub(crate) fn stage(self, stage: Stage) -> Style {
        match stage {
            Stage::Settled | Stage::Unread => self.colored(Color::Cyan),
            Stage::Provisional => self.colored(Color::Yellow).add_modifier(Modifier::ITALIC),
            Stage::Failed => self.colored(Color::Red),
        }
    }

    fn colored(self, color: Color) -> Style {
        match self.color {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }
}

/// The sign above a window.
pub(crate) fn sign(stage: Stage) -> &'static str {
    match stage {
        Stage::Settled => " ",
        Stage::Unread => "?",
        Stage::Provisional => "~",
        Stage::Failed => "!",
    }
}
