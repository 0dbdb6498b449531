//! The beginning of a body that refuses a request, as one line that an error may quote.

use crate::secret::Secret;
use crate::text::is_unseen;

/// How many bytes of a body are read.
const MOST_BYTES: usize = 1024;

/// How many characters of it are quoted.
const MOST_CHARACTERS: usize = 200;

/// If a text contains at least this many bytes of the beginning of a secret, they are masked, because
/// the text may contain only the beginning.
const TELLING: usize = 8;

/// Marks a removed secret in the text, without showing its length. (It is DEL, a control character.)
const MASKED: char = '\u{7f}';

/// The first bytes of a body.
#[derive(Default)]
pub(crate) struct Excerpt(Vec<u8>);

impl Excerpt {
    /// Takes a piece of the body. Returns whether to pass more of it.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> bool {
        let room = MOST_BYTES - self.0.len();
        self.0.extend_from_slice(&chunk[..chunk.len().min(room)]);
        self.0.len() < MOST_BYTES
    }

    /// The text without secrets, in one line; `None` if there is none, or if it is HTML.
    pub(crate) fn text<'a>(&mut self, secrets: impl Iterator<Item = &'a Secret>) -> Option<String> {
        for secret in secrets {
            mask_everywhere(&mut self.0, secret.expose().as_bytes());
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

/// Masks a secret in a text: as it is, with its characters escaped as in JSON, HTML and addresses, and in base64.
fn mask_everywhere(text: &mut [u8], secret: &[u8]) {
    mask(text, secret);
    // A credential such as `id:secret` is encoded as a whole, so the secret may begin at any byte of a group of three.
    for before in 0..3 {
        for alphabet in ALPHABETS {
            let encoded = base64(secret, before, alphabet);
            if encoded.len() >= TELLING {
                mask(text, &encoded);
            }
        }
    }
}

/// Reads the next character of a text. Returns its bytes, how many they are, and how many bytes of the text it takes.
type Read = fn(&[u8]) -> Option<([u8; 4], usize, usize)>;

/// Masks a secret in a text, and beginnings of it that are at least [`TELLING`] bytes long. The text is read both as it is
/// and with its escapes resolved, and the longer match counts: a match that ends at an escaped character would leave the
/// rest of the secret unmasked.
fn mask(text: &mut [u8], secret: &[u8]) {
    let mut at = 0;
    while at < text.len() {
        let readings: [Read; 2] = [plain, escaped];
        let found = readings.map(|read| common(&text[at..], secret, read));
        let (common, mut end) = found.into_iter().max().unwrap_or_default();
        if common > 0 && (common >= TELLING || common == secret.len()) {
            end += at;
            text[at..end].fill(MASKED as u8);
            let shown = end.min(at + 3);
            text[at..shown].fill(b'*');
            at = end;
        } else {
            at += 1;
        }
    }
}

/// How many bytes of the beginning of a secret a text begins with, and how many bytes of the text they take.
fn common(text: &[u8], secret: &[u8], read: Read) -> (usize, usize) {
    let (mut common, mut end) = (0, 0);
    while common < secret.len() {
        let rest = &text[end..];
        let decoded =
            read(rest).filter(|(bytes, count, _)| secret[common..].starts_with(&bytes[..*count]));
        let (count, taken) = match (decoded, rest.first()) {
            (Some((_, count, taken)), _) => (count, taken),
            (None, Some(byte)) if *byte == secret[common] => (1, 1),
            _ => break,
        };
        (common, end) = (common + count, end + taken);
    }
    (common, end)
}

fn plain(_: &[u8]) -> Option<([u8; 4], usize, usize)> {
    None
}

/// A character that is escaped: `\u0022`, `\x22` or `\"`, `%22`, `&#34;`, `&#x22;` or `&quot;`, and `+` for a space.
fn escaped(text: &[u8]) -> Option<([u8; 4], usize, usize)> {
    const NAMES: [(&[u8], u32); 5] =
        [(b"amp", 38), (b"lt", 60), (b"gt", 62), (b"quot", 34), (b"apos", 39)];
    let (character, taken) = match text {
        [b'+', ..] => (32, 1),
        [b'%', rest @ ..] => return Some(([number(rest.get(..2)?, 16)? as u8, 0, 0, 0], 1, 3)),
        [b'\\', b'u', rest @ ..] => (number(rest.get(..4)?, 16)?, 6),
        [b'\\', b'x', rest @ ..] => (number(rest.get(..2)?, 16)?, 4),
        [b'\\', escaped, ..] => (u32::from(*escaped), 2),
        [b'&', rest @ ..] => {
            let end = rest.iter().take(10).position(|byte| *byte == b';')?;
            let character = match &rest[..end] {
                [b'#', b'x' | b'X', digits @ ..] => number(digits, 16)?,
                [b'#', digits @ ..] => number(digits, 10)?,
                name => NAMES.iter().find(|(known, _)| *known == name)?.1,
            };
            (character, end + 2)
        }
        _ => return None,
    };
    let mut bytes = [0; 4];
    let count = char::from_u32(character)?.encode_utf8(&mut bytes).len();
    Some((bytes, count, taken))
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    digits.iter().try_fold(0_u32, |number, digit| {
        let digit = char::from(*digit).to_digit(radix)?;
        number.checked_mul(radix)?.checked_add(digit)
    })
}

/// The ends of the two alphabets of base64.
const ALPHABETS: [&[u8; 2]; 2] = [b"+/", b"-_"];

/// The characters that depend only on the secret, in the base64 of `before` bytes, the secret, and any other bytes.
fn base64(secret: &[u8], before: usize, ends: &[u8; 2]) -> Vec<u8> {
    let bit = |at: usize| {
        let byte = (at / 8).checked_sub(before).and_then(|at| secret.get(at))?;
        Some(byte >> (7 - at % 8) & 1)
    };
    let sextet =
        |at: usize| (at * 6..at * 6 + 6).try_fold(0, |sextet, at| Some(sextet << 1 | bit(at)?));
    let characters = 0..(before + secret.len()) * 8 / 6;
    let character = |sextet: u8| match sextet {
        0..26 => b'A' + sextet,
        26..52 => b'a' + sextet - 26,
        52..62 => b'0' + sextet - 52,
        _ => ends[usize::from(sextet) - 62],
    };
    characters.filter_map(|at| sextet(at).map(character)).collect()
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
        assert_eq!(text(&body, secret).unwrap(), "no *** and \"***\", ******; ***");
        let cut = format!("{}{secret}", " ".repeat(1014));
        assert_eq!(text(&cut, secret).unwrap(), "***");
        assert_eq!(text("say abc, ab", "abc").unwrap(), "say ***, ab");
    }

    #[test]
    fn a_secret_is_masked_however_it_is_written() {
        let secret = "s3cr/t \"é\"&<p+w>%41";
        for written in [
            r#"s3cr\/t \"\u00e9\"\u0026\u003Cp\u002Bw\u003e%41"#,
            r#"s3cr/t \x22é\x22&<p+w>%41"#,
            "s3cr%2Ft%20%22%C3%A9%22%26%3Cp%2Bw%3E%2541",
            "s3cr%2ft+%22%c3%a9%22%26%3cp%2bw%3e%2541",
            "s3cr/t &quot;é&quot;&amp;&lt;p+w&gt;%41",
            "s3cr&#47;t &#34;&#xe9;&#x22;&#38;&#60;p&#43;w&#62;&#37;41",
            secret,
        ] {
            let shown = text(&format!("no {written}!"), secret).unwrap();
            assert_eq!(shown, "no ***!", "{written}");
        }
        // The first escaped character comes after a beginning that is long enough to be masked by itself.
        let secret = "T81ZVqN5Tu05/4cG49iO\"nEnOnum=";
        for written in [
            "T81ZVqN5Tu05%2F4cG49iO%22nEnOnum%3D",
            r#"T81ZVqN5Tu05\/4cG49iO\"nEnOnum="#,
            r#"T81ZVqN5Tu05\u002f4cG49iO\u0022nEnOnum\u003D"#,
            "T81ZVqN5Tu05&#x2F;4cG49iO&quot;nEnOnum&#61;",
        ] {
            let shown = text(&format!("no {written}!"), secret).unwrap();
            assert_eq!(shown, "no ***!", "{written}");
        }
    }

    #[test]
    fn a_secret_is_masked_in_base64() {
        let secret = "canary-123456>?";
        // The base64 of the secret alone, and after `i:`, `id:` and `idx:`.
        for (written, rest) in [
            ("Y2FuYXJ5LTEyMzQ1Nj4/", ""),
            ("aTpjYW5hcnktMTIzNDU2Pj8=", "aTp"),
            ("aWQ6Y2FuYXJ5LTEyMzQ1Nj4/", "aWQ6"),
            ("aWQ6Y2FuYXJ5LTEyMzQ1Nj4_", "aWQ6"),
            ("aWR4OmNhbmFyeS0xMjM0NTY+Pw==", "aWR4O"),
        ] {
            let shown = text(&format!("Basic {written}"), secret).unwrap();
            let begin = shown.strip_prefix("Basic ").unwrap();
            assert!(
                begin.starts_with(rest.get(..rest.len().saturating_sub(1)).unwrap()),
                "{shown}"
            );
            assert!(begin.contains("***") && begin.len() <= rest.len() + 8, "{written}: {shown}");
        }
    }
}
