//! Results as JSON that every language reads exactly.

use serde::Serialize;

/// The JSON of a result, with each whole number as a text, because JavaScript would round it. A float is its shortest decimal,
/// which every language reads back to the same bits.
pub(crate) fn exact(result: &impl Serialize) -> String {
    let json = serde_json::to_string(result).expect("a plain value");
    let mut text = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '"' => text_of(rest),
            '-' | '0'..='9' => rest
                .find(|letter| !matches!(letter, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'))
                .unwrap_or(rest.len()),
            _ => letter.len_utf8(),
        };
        let (part, after) = rest.split_at(length);
        let is_whole = letter.is_ascii_digit() || letter == '-';
        if is_whole && !part.contains(['.', 'e', 'E']) {
            text += &format!("\"{part}\"");
        } else {
            text += part;
        }
        rest = after;
    }
    text
}

/// How long the text at the beginning is, with its quotes.
fn text_of(json: &str) -> usize {
    let mut is_escaped = true;
    let end = json.find(|letter| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 1)
}
