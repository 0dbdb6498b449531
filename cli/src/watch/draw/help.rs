//! The help, over everything else.

use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Widget};

use super::canvas::Canvas;

/// The keys come first, because a small screen shows the beginning only.
const LINES: [&str; 14] = [
    "q Ctrl-C   quit",
    "↑↓ j k     move; PgUp PgDn g G jump",
    "s          rank by the next column",
    "/ Esc      filter rows; show all",
    "c          next cluster",
    "r          read now what may change",
    "~ may still change   ! not read",
    "· no errors in a window   ? unread",
    "",
    "errors    were lost",
    "filtered  were dropped on purpose",
    "change    of errors since the window",
    "          before, as of the newest",
    "rate      errors of all to be sent",
];

/// Draws it in the middle.
pub(super) fn draw(canvas: &mut Canvas<'_>) {
    let area = canvas.area;
    let longest = LINES.iter().map(|line| super::width(line)).max();
    let wanted = [longest.unwrap_or(0) + 4, LINES.len() + 2];
    let [width, height] = wanted.map(|length| u16::try_from(length).unwrap_or(u16::MAX));
    let (width, height) = (width.min(area.width), height.min(area.height - 1));
    let area = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - 1 - height) / 2,
        width,
        height,
    };
    Clear.render(area, canvas.buffer);
    Block::bordered()
        .title(" Help ")
        .render(area, canvas.buffer);
    let inner = Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(3),
        height: area.height.saturating_sub(2),
    };
    let look = canvas.look;
    let mut inside = Canvas::new(canvas.buffer, inner, look);
    for (y, line) in (0..inner.height).zip(LINES) {
        inside.left(y, line, look.plain());
    }
}
