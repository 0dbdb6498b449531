//! Makes values of the service and of users safe to display.

use std::fmt::Write;

/// Whether a character controls a terminal, or is a format character of Unicode (category Cf), such as a character that
/// reverses the direction of text. Line and paragraph separators count, too.
#[must_use]
pub fn is_unseen(character: char) -> bool {
    let is_in = |(first, last): &(char, char)| (*first..=*last).contains(&character);
    UNSEEN.iter().any(is_in)
}

/// The first and the last character of each range. (A table is smaller in WebAssembly than a pattern.)
const UNSEEN: [(char, char); 21] = [
    ('\0', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e007f}'),
];

/// Writes a character as `\n`, `\x1b` or `\u{202e}`.
pub fn escape(character: char, to: &mut String) {
    // Writing to a String can't fail.
    let _ = match character {
        '\n' => write!(to, "\\n"),
        '\r' => write!(to, "\\r"),
        '\t' => write!(to, "\\t"),
        '\0'..='\u{ff}' => write!(to, "\\x{:02x}", u32::from(character)),
        _ => write!(to, "{}", character.escape_unicode()),
    };
}

/// Makes a text safe for a sentence or a message: replaces each [unseen](is_unseen) character by `U+FFFD`.
#[must_use]
pub fn harmless(text: &str) -> String {
    text.chars()
        .map(|character| match is_unseen(character) {
            true => '\u{fffd}',
            false => character,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_replaced_or_escaped() {
        assert_eq!(harmless("a\u{202e}b\u{1b}[2J é日本"), "a\u{fffd}b\u{fffd}[2J é日本");
        let mut escaped = String::new();
        for character in ['\n', '\u{1b}', '\u{202e}'] {
            escape(character, &mut escaped);
        }
        assert_eq!(escaped, "\\n\\x1b\\u{202e}");
    }
}
