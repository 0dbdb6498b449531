//! The beginning of a body that refuses a request, as one line that an error may quote.

use crate::secret::Secret;
use crate::text::is_unseen;
use crate::wire::json::writer::json_of;

/// How much of a body is read.
const MOST_BYTES: usize = 1024;

/// How much of it is quoted.
const MOST_CHARACTERS: usize = 200;

/// So many characters that a text has in common with a secret are masked, because the text may hold
/// only the beginning of the secret.
const TELLING: usize = 8;

/// What is left out of the text in place of a secret, whose length nobody is to see. (It is DEL, a control character.)
const MASKED: char = '\u{7f}';

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
    pub(crate) fn text<'a>(&mut self, secrets: impl Iterator<Item = &'a Secret>) -> Option<String> {
        for secret in secrets {
            mask(&mut self.0, json_of(secret.expose()).trim_matches('"'));
            mask(&mut self.0, secret.expose());
        }
        let mut line = String::new();
        let mut length = 0;
        let mut is_apart = false;
        for character in valid(&self.0).chars() {
            if character == MASKED {
                continue;
            }
            if character.is_whitespace() || is_unseen(character) {
                is_apart = length > 0;
                continue;
            }
            if length == 0 && character == '<' {
                return None;
            }
            for shown in is_apart.then_some(' ').into_iter().chain([character]) {
                if length == MOST_CHARACTERS {
                    line.push('…');
                    return Some(line);
                }
                line.push(shown);
                length += 1;
            }
            is_apart = false;
        }
        (length > 0).then_some(line)
    }
}

/// The bytes up to the first that is not UTF-8.
fn valid(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes)
        .or_else(|wrong| std::str::from_utf8(&bytes[..wrong.valid_up_to()]))
        .unwrap_or_default()
}

/// Masks a secret in a text, and each longer beginning of it.
fn mask(text: &mut [u8], secret: &str) {
    let secret = secret.as_bytes();
    let mut at = 0;
    while at < text.len() {
        let rest = &mut text[at..];
        let pairs = rest.iter().zip(secret);
        let common = pairs.take_while(|(one, other)| one == other).count();
        if common > 0 && (common >= TELLING || common == secret.len()) {
            rest[..common].fill(MASKED as u8);
            rest[..common.min(3)].fill(b'*');
            at += common;
        } else {
            at += 1;
        }
    }
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
        excerpt.text(std::iter::once(&secret))
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
