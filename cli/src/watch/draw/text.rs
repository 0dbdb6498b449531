//! Formats texts and numbers for a terminal, and defines their styles.

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

/// How the view looks. Colours are optional, because marks or other styles show the same information.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Whether to use colours.
    pub(crate) color: bool,
    /// Whether the view is interactive, so that a row is selected.
    pub(crate) is_live: bool,
}

pub(super) const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);

pub(super) const HEADER: Style = Style::new().add_modifier(Modifier::UNDERLINED);

pub(super) const KEYS: Style = Style::new().add_modifier(Modifier::DIM);

pub(super) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

pub(super) const PLAIN: Style = Style::new();

impl Look {
    /// Returns the style of an error.
    pub(super) fn bad(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Returns the style for a change in errors.
    pub(super) fn change(self, change: i128) -> Style {
        match change {
            0 => PLAIN,
            1.. => self.colored(Color::Red),
            _ => self.colored(Color::Green),
        }
    }

    /// Returns the style of a window's counts.
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

/// Returns the line `y` of an area; an empty one if `y` is below the area.
pub(super) fn line_of(area: Rect, y: u16) -> Rect {
    let line = area.offset(Offset::new(0, y.into()));
    Rect { height: 1, ..line }.intersection(area)
}

/// Draws a text at the left of a line, truncated to the width of the line.
pub(super) fn left(line: Rect, text: &str, style: Style, buffer: &mut Buffer) {
    Line::from(Span::styled(cut(text, line.width.into()), style)).render(line, buffer);
}

/// Draws a text at the left of a line and one at the right. The right text gets at most half of the line, and the left text
/// gets the rest.
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
    let room = Rect { width: line.width.saturating_sub(taken), ..line };
    left(room, at_left, left_style, buffer);
    Line::from(Span::styled(at_right, right_style)).right_aligned().render(line, buffer);
}

/// Truncates a text to at most `columns`; a truncated text ends with `…`. For names, [`fit`](crate::output::safe::fit)
/// truncates the middle.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    match columns.checked_sub(1) {
        None => String::new(),
        Some(room) => format!("{}…", text.unicode_truncate(room).0),
    }
}

/// The width of the longest number that is written with all its digits.
const LONGEST: usize = "999,999,999".len();

/// Formats a number with grouped digits. A very large number has a unit, such as `12.34G`.
pub(crate) fn number(number: u128) -> String {
    let exact = grouped(number);
    match exact.len() <= LONGEST {
        true => exact,
        false => short(number),
    }
}

/// Formats a number with its sign; 0 has none.
pub(crate) fn signed(change: i128) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", number(change.unsigned_abs()))
}

/// Formats a large number as its first digits and a unit. Truncates the number, so that it never looks larger than it is.
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

/// Formats a rate in percent; `None` becomes an empty text.
pub(crate) fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| grid::percent(Some(rate)))
}

/// Formats the time of day, UTC, in hours and minutes.
pub(crate) fn minutes(ms: i64) -> String {
    whole(ms, 60_000).map_or_else(String::new, Timestamp::short_time)
}

/// Formats the time of day, UTC, with seconds.
pub(crate) fn seconds(ms: i64) -> String {
    whole(ms, 1_000).map_or_else(String::new, Timestamp::time)
}

/// Formats the day and the time, UTC.
pub(crate) fn instant(ms: i64) -> String {
    whole(ms, 60_000).map_or_else(String::new, Timestamp::short)
}

/// Formats a window as its start and its end, UTC, in hours and minutes.
pub(crate) fn window(start_ms: i64, end_ms: i64) -> String {
    format!("{}–{}", minutes(start_ms), minutes(end_ms))
}

/// Rounds a time down to a whole unit, both in milliseconds. Returns `None` outside of the years 0 to 9999.
fn whole(ms: i64, unit_ms: i64) -> Option<Timestamp> {
    Timestamp::from_unix_ms(ms.div_euclid(unit_ms) * unit_ms)
}

const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Returns a bar for a count: `·` for 0, otherwise a bar whose height is the count's share of the highest count.
///
/// ratatui's `Sparkline` rounds down, so it would show 1 as 0 if the highest count is 1000.
pub(crate) fn bar(count: u64, highest: u64) -> &'static str {
    if count == 0 {
        return "·";
    }
    let height = u128::from(count) * 8;
    let level = height.div_ceil(u128::from(highest.max(count)));
    usize::try_from(level - 1).ok().and_then(|level| BARS.get(level)).unwrap_or(&BARS[7])
}

/// Returns the mark above a window of this stage.
pub(super) fn sign(stage: Stage) -> &'static str {
    match stage {
        Stage::Settled => " ",
        Stage::Unread => "?",
        Stage::Provisional => "~",
        Stage::Failed => "!",
    }
}

/// Returns the word for successes. The service's reference says "delivered" only for event delivery.
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
        assert_eq!([0, 5_000, -5_000].map(signed), ["0", "+5,000", "-5,000"].map(str::to_owned));
        assert_eq!(percent(Some(1.0)), "100.00%");
        assert_eq!(percent(Some(0.000_01)), "<0.01%");
        assert_eq!(percent(None), "");
    }

    #[test]
    fn a_truncated_text_fits_its_columns() {
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
    fn bars_are_proportional_to_counts() {
        let bars = [0, 1, 125, 126, 500, 999, 1_000].map(|count| bar(count, 1_000));
        assert_eq!(bars.concat(), "·▁▁▂▄██");
        assert_eq!(bar(u64::MAX, u64::MAX), "█");
    }
}
