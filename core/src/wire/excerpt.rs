//! The beginning of a body that refuses a request, as one line that an error may quote.

use crate::secret::Secret;
use crate::wire::json::writer::json_of;

/// How much of a body is read.
const MOST_BYTES: usize = 1024;

/// How much of it is quoted.
const MOST_CHARACTERS: usize = 200;

/// So many characters that a text has in common with a secret are masked, because the text may hold
/// only the beginning of the secret.
const TELLING: usize = 8;

const MASK: &str = "***";

/// The first bytes of a body.
#[derive(Default)]
pub(crate) struct Excerpt(Vec<u8>);

impl Excerpt {
    /// Takes more of the body, and gives whether even more is wanted.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> bool {
        let room = MOST_BYTES - self.0.len();
        self.0.extend_from_slice(&chunk[..chunk.len().min(room)]);
        self.0.len() < MOST_BYTES
    }

    /// The text without secrets, in one line; `None` if there is none, or if it is HTML.
    pub(crate) fn text<'a>(&self, secrets: impl Iterator<Item = &'a Secret>) -> Option<String> {
        let mut text = String::from_utf8_lossy(&self.0).into_owned();
        for secret in secrets {
            let json = json_of(secret.expose());
            text = masked(&text, secret.expose());
            text = masked(&text, json.trim_matches('"'));
        }
        let spaced = text.replace(is_invisible, " ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let line = words.join(" ");
        if line.is_empty() || line.starts_with('<') {
            return None;
        }
        Some(match line.char_indices().nth(MOST_CHARACTERS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        })
    }
}

/// Control characters, and those that change how a terminal shows the text around them.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The text with the secret masked, and with each longer beginning of the secret.
fn masked(text: &str, secret: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let common: usize = rest
            .chars()
            .zip(secret.chars())
            .take_while(|(one, other)| one == other)
            .map(|(one, _)| one.len_utf8())
            .sum();
        let is_telling = common > 0 && (common >= TELLING || common == secret.len());
        if is_telling {
            shown.push_str(MASK);
        } else {
            shown.push(first);
        }
        rest = &rest[if is_telling { common } else { first.len_utf8() }..];
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::Excerpt;
    use crate::secret::Secret;

    fn text(body: &str, secret: &str) -> Option<String> {
        let secret = Secret::from(secret.to_owned());
        let mut excerpt = Excerpt::default();
        for chunk in body.as_bytes().chunks(3) {
            if !excerpt.push(chunk) {
                break;
            }
        }
        excerpt.text([&secret].into_iter())
    }

    #[test]
    fn it_is_one_line_of_what_can_be_seen() {
        let body = " window\r\n\tlonger \u{1b}[31m than\u{202e} 24h\u{0} ";
        let shown = text(body, "secret").unwrap();
        assert_eq!(shown, "window longer [31m than 24h");
        assert_eq!(text(" \n\u{0}", "secret"), None);
        assert_eq!(text("", "secret"), None);
    }

    #[test]
    fn html_is_left_out() {
        assert_eq!(text("\n<!doctype html><h1>502</h1>", "secret"), None);
    }

    #[test]
    fn two_hundred_characters_are_quoted() {
        let shown = text(&"ä".repeat(3000), "secret").unwrap();
        assert_eq!(shown, format!("{}…", "ä".repeat(200)));
        assert_eq!(text(&"ä".repeat(200), "secret"), Some("ä".repeat(200)));
    }

    #[test]
    fn a_secret_is_masked_whole_and_cut_and_escaped() {
        let secret = "canary \"é\"  secret";
        let body = format!("no {secret} and {secret:?}, {secret}{secret}; canary \"");
        assert_eq!(
            text(&body, secret).unwrap(),
            "no *** and \"***\", ******; ***"
        );
        let cut = format!("{}{secret}", " ".repeat(1014));
        assert_eq!(text(&cut, secret).unwrap(), "***");
        assert_eq!(text("say abc, ab", "abc").unwrap(), "say ***, ab");
    }
}
