//! The formatting of texts and numbers for a terminal, and their styles.

use ratatui::buffer::Buffer;
use ratatui::layout::{Offset, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use tallyfold::text::grouped;
use tallyfold::{Metric, Timestamp};
use unicode_truncate::UnicodeTruncateStr;

use crate::output::grid;
use crate::output::safe::width;
use crate::watch::history::Stage;

/// How the view looks. Colours are optional: everything that a colour shows, a mark or another style shows, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Whether to use colours.
    pub(crate) color: bool,
    /// Whether the view is interactive, so that a row is selected.
    pub(crate) is_live: bool,
}

/// The title.
pub(super) const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);

/// The names of columns.
pub(super) const HEADER: Style = Style::new().add_modifier(Modifier::UNDERLINED);

/// The keys.
pub(super) const KEYS: Style = Style::new().add_modifier(Modifier::DIM);

/// The selected row.
pub(super) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Normal text.
pub(super) const PLAIN: Style = Style::new();

impl Look {
    /// Something is wrong.
    pub(super) fn bad(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A change of errors.
    pub(super) fn change(self, change: i128) -> Style {
        match change {
            0 => PLAIN,
            1.. => self.colored(Color::Red),
            _ => self.colored(Color::Green),
        }
    }

    /// The counts of a window.
    pub(super) fn stage(self, stage: Stage) -> Style {
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

/// The line `y` of an area; it is empty below the area.
pub(super) fn line_of(area: Rect, y: u16) -> Rect {
    let line = area.offset(Offset::new(0, y.into()));
    Rect { height: 1, ..line }.intersection(area)
}

/// Draws a text at the left of a line, truncated to its width.
pub(super) fn left(line: Rect, text: &str, style: Style, buffer: &mut Buffer) {
    Line::from(Span::styled(cut(text, line.width.into()), style)).render(line, buffer);
}

/// Draws a text at the left of a line and one at the right. The left text is truncated if both do not fit.
pub(super) fn both(
    line: Rect,
    (at_left, left_style): (&str, Style),
    (at_right, right_style): (&str, Style),
    buffer: &mut Buffer,
) {
    let at_right = cut(at_right, usize::from(line.width) / 2);
    let taken = match width(&at_right) {
        0 => 0,
        taken => taken as u16 + 2,
    };
    let room = Rect {
        width: line.width.saturating_sub(taken),
        ..line
    };
    left(room, at_left, left_style, buffer);
    Line::from(Span::styled(at_right, right_style))
        .right_aligned()
        .render(line, buffer);
}

/// Truncates a text to at most `columns`; a truncated text ends with `…`. Names are shortened in the middle instead, by
/// [`fit`](crate::output::safe::fit).
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    match columns.checked_sub(1) {
        None => String::new(),
        Some(room) => format!("{}…", text.unicode_truncate(room).0),
    }
}

/// The width of the largest number that is written with all its digits.
const LONGEST: usize = "999,999,999".len();

/// A number with grouped digits, or with a unit such as `12.34G` if it is very large.
pub(crate) fn number(number: u128) -> String {
    let exact = grouped(number);
    match exact.len() <= LONGEST {
        true => exact,
        false => short(number),
    }
}

/// A number with its sign; 0 has none.
pub(crate) fn signed(change: i128) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", number(change.unsigned_abs()))
}

/// The first digits of a large number with a unit. They are truncated, not rounded, so that the number never looks larger
/// than it is.
fn short(number: u128) -> String {
    let mut hundredths = number / 10;
    let mut unit = "k";
    for larger in ["M", "G", "T", "P", "E", "Z", "Y"] {
        if hundredths < 100_000 {
            break;
        }
        (hundredths, unit) = (hundredths / 1_000, larger);
    }
    format!("{}.{:02}{unit}", hundredths / 100, hundredths % 100)
}

/// A rate in percent; empty without a rate.
pub(crate) fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| grid::percent(Some(rate)))
}

/// The time of day, UTC, in hours and minutes.
pub(crate) fn minutes(ms: i64) -> String {
    whole(ms, 60_000).map_or_else(String::new, Timestamp::short_time)
}

/// The time of day, UTC, with seconds.
pub(crate) fn seconds(ms: i64) -> String {
    whole(ms, 1_000).map_or_else(String::new, Timestamp::time)
}

/// Day and time, UTC.
pub(crate) fn instant(ms: i64) -> String {
    whole(ms, 60_000).map_or_else(String::new, Timestamp::short)
}

/// A window, from its start and its end.
pub(crate) fn window(start_ms: i64, end_ms: i64) -> String {
    format!("{}–{}", minutes(start_ms), minutes(end_ms))
}

/// A time without the rest of a unit, in milliseconds.
fn whole(ms: i64, unit_ms: i64) -> Option<Timestamp> {
    Timestamp::from_unix_ms(ms.div_euclid(unit_ms) * unit_ms)
}

const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A bar for a count: `·` for 0, otherwise as high as its fraction of the highest count.
///
/// ratatui's `Sparkline` rounds down, so it would show 1 next to 1000 as 0.
pub(crate) fn bar(count: u64, highest: u64) -> &'static str {
    if count == 0 {
        return "·";
    }
    let height = u128::from(count) * 8;
    let level = height.div_ceil(u128::from(highest.max(count)));
    usize::try_from(level - 1)
        .ok()
        .and_then(|level| BARS.get(level))
        .unwrap_or(&BARS[7])
}

/// The mark above a window.
pub(super) fn sign(stage: Stage) -> &'static str {
    match stage {
        Stage::Settled => " ",
        Stage::Unread => "?",
        Stage::Provisional => "~",
        Stage::Failed => "!",
    }
}

/// The name of successes. The reference calls them delivered for event delivery only.
pub(super) fn delivered(metric: Metric) -> &'static str {
    match metric {
        Metric::EventDelivery => "delivered",
        Metric::EventIngestion => "success",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_or_a_unit() {
        for (value, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (123_456_789, "123,456,789"),
            (1_999_999_999, "1.99G"),
            (18_446_744_073_709_551_615, "18.44E"),
            (u128::from(u64::MAX) * 1_000_000, "18.44Y"),
        ] {
            assert_eq!(number(value), expected);
        }
        assert_eq!(
            [0, 5_000, -5_000].map(signed),
            ["0", "+5,000", "-5,000"].map(str::to_owned)
        );
        assert_eq!(percent(Some(1.0)), "100.00%");
        assert_eq!(percent(Some(0.000_01)), "<0.01%");
        assert_eq!(percent(None), "");
    }

    #[test]
    fn a_text_that_is_cut_keeps_to_its_columns() {
        for (text, columns, expected) in [
            ("warehouse", 9, "warehouse"),
            ("warehouse", 8, "warehou…"),
            ("倉庫倉庫", 8, "倉庫倉庫"),
            ("倉庫倉庫", 7, "倉庫倉…"),
            ("倉庫倉庫", 6, "倉庫…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("x", 0, ""),
        ] {
            assert_eq!(cut(text, columns), expected);
            assert!(width(&cut(text, columns)) <= columns);
        }
    }

    #[test]
    fn bars_are_as_high_as_counts() {
        let bars = [0, 1, 125, 126, 500, 999, 1_000].map(|count| bar(count, 1_000));
        assert_eq!(bars.concat(), "·▁▁▂▄██");
        assert_eq!(bar(u64::MAX, u64::MAX), "█");
    }
}
