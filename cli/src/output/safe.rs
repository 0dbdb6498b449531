//! Escapes and shortens values, so that they can't control a terminal or break the layout of a table.

use std::io::{self, Write};

use tallyfold::text::{escape, is_unseen};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text for an empty value, such as the reason of an event without one.
pub(crate) const NONE: &str = "(none)";

/// The maximum number of combining marks after a character. Some scripts need two or three. Hundreds would cover other
/// lines of the terminal.
const MOST_MARKS: usize = 4;

/// The character in the middle of a shortened text.
const CUT: char = '…';

/// Escapes a value for a terminal. Control characters, and invisible characters that change the layout of text, are
/// written as escapes such as `\n`, `\x1b` or `\u{202e}`, and a backslash as two backslashes. An empty value is
/// `(none)`.
pub(crate) fn shown(value: &str) -> String {
    match value {
        "" => NONE.to_owned(),
        value => escaped(value),
    }
}

/// Escapes a text in the same way, but leaves an empty text empty.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    // Starts at the limit, so that a combining mark at the beginning is escaped. Otherwise, it would attach to the character
    // before the text.
    let mut marks = MOST_MARKS;
    for character in text.chars() {
        let is_mark = character.width() == Some(0);
        marks = if is_mark { marks + 1 } else { 0 };
        if is_unseen(character) || (is_mark && marks > MOST_MARKS) {
            escape(character, &mut shown);
            // A mark must not attach to the escape sequence.
            marks = MOST_MARKS;
        } else if character == '\\' {
            shown.push_str("\\\\");
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Reads the escapes that [`escaped`] writes. Any other backslash stands for itself.
pub(crate) fn unescaped(text: &str) -> String {
    let hex = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        let braced = || escape.strip_prefix("u{")?.split_once('}');
        let read = match escape.chars().next() {
            Some('n') => Some(('\n', 1)),
            Some('r') => Some(('\r', 1)),
            Some('t') => Some(('\t', 1)),
            Some('\\') => Some(('\\', 1)),
            Some('x') => escape.get(1..3).and_then(hex).map(|read| (read, 3)),
            Some('u') => braced().and_then(|(digits, _)| Some((hex(digits)?, 3 + digits.len()))),
            _ => None,
        };
        let (character, length) = read.unwrap_or(('\\', 0));
        out.push_str(before);
        out.push(character);
        rest = &escape[length..];
    }
    out + rest
}

/// A writer to a terminal, for output in any format. Escapes control characters, and invisible characters that change the
/// layout of text, so that no value of an event can control the terminal. With `color`, sequences that select a colour pass, so
/// the caller must have escaped all values.
pub(crate) struct Terminal<W: Write> {
    inner: W,
    /// Whether sequences that select a colour are passed on.
    color: bool,
    /// An incomplete character or colour sequence, or a carriage return that may be followed by a line feed.
    held: Vec<u8>,
}

impl<W: Write> Terminal<W> {
    /// Creates a writer, with or without colours.
    pub(crate) fn new(inner: W, color: bool) -> Self {
        Self { inner, color, held: Vec::new() }
    }

    /// Writes the complete characters of `held`. Returns their number of bytes.
    fn pass_on(&mut self) -> io::Result<usize> {
        let text = match std::str::from_utf8(&self.held) {
            Ok(text) => text,
            Err(error) => match error.error_len() {
                // Bytes that aren't UTF-8 are written as a replacement character.
                Some(length) if error.valid_up_to() == 0 => {
                    self.inner.write_all("\u{fffd}".as_bytes())?;
                    return Ok(length);
                }
                _ => std::str::from_utf8(&self.held[..error.valid_up_to()]).unwrap_or_default(),
            },
        };
        let mut seen = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let colored = match character {
                '\x1b' if self.color => colors(rest),
                '\r' if rest.len() == 1 => Sequence::Begun,
                _ => Sequence::None,
            };
            let length = match colored {
                Sequence::Whole(length) => {
                    seen.push_str(&rest[..length]);
                    length
                }
                Sequence::Begun => break,
                Sequence::None => {
                    match character {
                        '\n' | '\t' => seen.push(character),
                        '\r' if rest.starts_with("\r\n") => seen.push(character),
                        character if is_unseen(character) => escape(character, &mut seen),
                        character => seen.push(character),
                    }
                    character.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        self.inner.write_all(seen.as_bytes())?;
        Ok(text.len() - rest.len())
    }
}

/// What a text begins with.
enum Sequence {
    /// A sequence that selects a colour or an effect, with its length.
    Whole(usize),
    /// An incomplete sequence, or a carriage return that may be followed by a line feed.
    Begun,
    None,
}

/// Recognizes a colour sequence at the beginning of a text that begins with an escape character.
fn colors(text: &str) -> Sequence {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        None => return Sequence::Begun,
        Some(b'[') => {}
        Some(_) => return Sequence::None,
    }
    let is_parameter = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
    let parameters = bytes[2..].iter().take_while(|byte| is_parameter(byte)).count();
    match bytes.get(2 + parameters) {
        None => Sequence::Begun,
        Some(b'm') => Sequence::Whole(parameters + 3),
        Some(_) => Sequence::None,
    }
}

impl<W: Write> Write for Terminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        loop {
            let written = self.pass_on()?;
            self.held.drain(..written);
            if written == 0 || self.held.is_empty() {
                return Ok(bytes.len());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns the width of a text in columns of a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Shortens a text to at most `most` columns. Replaces its middle by an ellipsis, because names often differ only at
/// their ends.
pub(crate) fn fit(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(1) else {
        return String::new();
    };
    let head = longest(text, room.div_ceil(2));
    let rest = &text[head.len()..];
    let tail = ending(rest, room - width(head));
    format!("{head}{CUT}{tail}")
}

/// Returns the longest beginning of a text that has at most `most` columns.
fn longest(text: &str, most: usize) -> &str {
    let mut end = 0;
    for (start, character) in text.char_indices() {
        let next = start + character.len_utf8();
        if width(&text[..next]) > most {
            break;
        }
        end = next;
    }
    &text[..end]
}

/// Returns the longest end of a text that has at most `most` columns. The end does not begin with a combining mark,
/// which would attach to the ellipsis.
fn ending(text: &str, most: usize) -> &str {
    let mut start = text.len();
    for (place, character) in text.char_indices().rev() {
        if width(&text[place..]) > most {
            break;
        }
        if character.width() != Some(0) {
            start = place;
        }
    }
    &text[start..]
}

/// Pads a text with spaces on the right.
pub(crate) fn left(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Pads a text with spaces on the left.
pub(crate) fn right(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{}{text}", " ".repeat(missing))
}

/// Wraps words into lines of at most `columns`. A word that is longer has a line of its own.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_control_characters_in_any_format() {
        let seen = |text: &str, color| {
            let bytes = |piece: usize| {
                let mut terminal = Terminal::new(Vec::new(), color);
                for piece in text.as_bytes().chunks(piece) {
                    terminal.write_all(piece).unwrap();
                }
                String::from_utf8(terminal.inner).unwrap()
            };
            assert_eq!(bytes(1), bytes(1_000), "{text:?}");
            bytes(3)
        };
        let hostile = "a\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\u{1b}[2J\u{1b}[31mé日\t1\r2\r\n";
        let harmless = "a\\x1b]0;x\\x07\\x9b31m\\u{202e}\\x1b[2J";
        assert_eq!(seen(hostile, false), format!("{harmless}\\x1b[31mé日\t1\\r2\r\n"));
        assert_eq!(seen(hostile, true), format!("{harmless}\u{1b}[31mé日\t1\\r2\r\n"));
    }

    use proptest::prelude::*;

    #[test]
    fn only_escapes_are_read_as_escapes() {
        for (text, read) in [
            (r"\n\x00\u{202e}\\", "\n\0\u{202e}\\"),
            (r"a\b\x0\xzz\u{}\u{d800}\", r"a\b\x0\xzz\u{}\u{d800}\"),
            (r"\xé", r"\xé"),
        ] {
            assert_eq!(unescaped(text), read);
        }
    }

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(shown("\x1b[2J"), "\\x1b[2J");
        assert_eq!(shown("a\nb\tc\r"), "a\\nb\\tc\\r");
        assert_eq!(shown("\u{9b}31m"), "\\x9b31m");
        assert_eq!(shown("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(shown("C:\\x1b"), "C:\\\\x1b");
        assert_eq!(shown(""), "(none)");
        assert_eq!(shown("é日本"), "é日本");
    }

    #[test]
    fn combining_marks_are_limited_and_stay_within_their_value() {
        assert_eq!(shown("\u{301}a"), "\\u{301}a");
        assert_eq!(shown("a\u{301}"), "a\u{301}");
        assert_eq!(shown("\n\u{301}"), "\\n\\u{301}");
        let pile = "\u{301}".repeat(100);
        assert_eq!(shown(&format!("a{pile}")).matches("\\u{301}").count(), 96);
    }

    #[test]
    fn long_texts_lose_their_middle() {
        assert_eq!(fit("warehouse-eu-1", 9), "ware…eu-1");
        assert_eq!(fit("warehouse", 9), "warehouse");
        // A wide character that does not fit leaves a column free.
        assert_eq!(fit("日本語日本語", 6), "日…本語".replace('本', "").as_str());
        assert_eq!(fit("abc", 1), "…");
        assert_eq!(fit("abc", 0), "");
    }

    proptest! {
        #[test]
        fn no_value_can_control_the_terminal(value in ".{0,60}|[\\x00-\\x1f\\x7f-\\x9f\\PC]{0,20}|\\PC{0,200}", most in 1_usize..40) {
            let text = shown(&value);
            prop_assert!(!text.chars().any(char::is_control));
            prop_assert_eq!(unescaped(&escaped(&value)), value);
            let fitted = fit(&text, most);
            prop_assert!(width(&fitted) <= most);
            prop_assert!(!fitted.is_empty());
            prop_assert_eq!(width(&left(&fitted, most)), most);
            prop_assert_eq!(width(&right(&fitted, most)), most);
        }
    }
}
