//! A TOML document, with the position of each key.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use tallyfold::text::nearest;
use toml::de::{DeTable, DeValue};

use crate::arguments::given::Origin;
use crate::failure::{Failure, Result};

/// The characters of a key that messages show.
const SHOWN_CHARS: usize = 64;

/// The bytes of a line up to which columns are counted in characters.
const COUNTED_BYTES: usize = 4 * 1024;

/// A parsed document.
pub(crate) struct Document<'d> {
    path: Arc<Path>,
    text: &'d str,
    /// Where each line starts.
    lines: Vec<usize>,
    root: DeTable<'d>,
    /// Why no command of it is run, if somebody else can change the file.
    pub(crate) distrust: Option<String>,
}

/// A table of a document.
#[derive(Clone)]
pub(crate) struct Table<'d> {
    document: &'d Document<'d>,
    key: String,
    table: &'d DeTable<'d>,
}

/// A key of a table, with its value.
#[derive(Clone)]
pub(crate) struct Entry<'d> {
    /// The document.
    pub(crate) document: &'d Document<'d>,
    /// The key itself.
    pub(crate) name: &'d str,
    /// The key with the tables that it is in.
    key: String,
    at: usize,
    /// What is written there.
    pub(crate) value: &'d DeValue<'d>,
}

/// Text of the bytes of a file.
///
/// # Errors
/// At the first byte that is not UTF-8.
pub(crate) fn text_of<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str> {
    // Editors of Windows put this mark at the beginning.
    let (skipped, bytes) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => (3, rest),
        None => (0, bytes),
    };
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = skipped + error.valid_up_to();
        let path = path.display();
        Failure::usage(format!("{path}: byte {offset}: want UTF-8 text"))
    })
}

impl<'d> Document<'d> {
    /// Parses a text.
    ///
    /// # Errors
    /// With line and column of the first syntax error. No value is quoted.
    pub(crate) fn parse(path: &Path, text: &'d str) -> Result<Self> {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let mut document = Self {
            path: path.into(),
            text,
            lines: std::iter::once(0).chain(ends).collect(),
            root: DeTable::new(),
            distrust: None,
        };
        match DeTable::parse(text) {
            Ok(root) => document.root = root.into_inner(),
            Err(error) => return Err(document.no_toml(&error)),
        }
        Ok(document)
    }

    /// The table of the keys that are in no other.
    pub(crate) fn root(&'d self) -> Table<'d> {
        Table {
            document: self,
            key: String::new(),
            table: &self.root,
        }
    }

    /// The place of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn no_toml(&self, error: &toml::de::Error) -> Failure {
        let (line, column) = self.position(error.span().map_or(self.text.len(), |span| span.start));
        let (path, message) = (self.path.display(), error.message());
        Failure::usage(format!("{path}:{line}:{column}: {message}"))
    }

    /// Line and column of a byte, from 1. Far out in a long line, columns are bytes: to count the characters for each of
    /// a hundred thousand keys would take minutes.
    fn position(&self, at: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let start = self.lines[line - 1];
        let before = self.text.get(start..at).unwrap_or_default();
        let column = match before.len() > COUNTED_BYTES {
            true => before.len(),
            false => before.chars().count(),
        };
        (line, column + 1)
    }
}

impl<'d> Table<'d> {
    /// All keys, in the order of the file.
    pub(crate) fn entries(&self) -> Vec<Entry<'d>> {
        let entries = self.table.iter().map(|(name, value)| Entry {
            document: self.document,
            name: name.get_ref(),
            key: match self.key.is_empty() {
                true => shown(name.get_ref()).into_owned(),
                false => format!("{}.{}", self.key, shown(name.get_ref())),
            },
            at: name.span().start,
            value: value.get_ref(),
        });
        let mut entries: Vec<Entry<'d>> = entries.collect();
        entries.sort_by_key(|entry| entry.at);
        entries
    }
}

impl<'d> Entry<'d> {
    /// Where the key stands.
    pub(crate) fn origin(&self) -> Origin {
        let (line, column) = self.document.position(self.at);
        Origin::File {
            path: Arc::clone(&self.document.path),
            line,
            column,
            key: self.key.clone(),
        }
    }

    /// An error about the key or its value.
    pub(crate) fn wrong(&self, text: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("{}: {text}", self.origin()))
    }

    /// An error about an unknown key.
    pub(crate) fn unknown(&self, known: &[&str]) -> Failure {
        match nearest(self.name, known) {
            Some(near) => self.wrong(format_args!("there is no such key; did you mean {near}?")),
            None => self.wrong(format_args!(
                "there is no such key; want one of {}",
                known.join(", ")
            )),
        }
    }

    /// The table that is written there.
    pub(crate) fn table(&self, wanted: &str) -> Result<Table<'d>> {
        match self.value {
            DeValue::Table(table) => Ok(Table {
                document: self.document,
                key: self.key.clone(),
                table,
            }),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The text that is written there.
    pub(crate) fn text(&self, wanted: &str) -> Result<&'d str> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The texts that are written there.
    pub(crate) fn texts(&self, wanted: &str) -> Result<Vec<String>> {
        let DeValue::Array(items) = self.value else {
            return Err(self.wrong(wanted));
        };
        let texts = items.iter().map(|item| match item.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.wrong(wanted)),
        });
        texts.collect()
    }

    /// The whole number that is written there; the nearest that this type has, if it is longer.
    pub(crate) fn whole(&self, wanted: &str) -> Result<i128> {
        let DeValue::Integer(number) = self.value else {
            return Err(self.wrong(wanted));
        };
        let digits = number.as_str();
        let nearest = match digits.starts_with('-') {
            true => i128::MIN,
            false => i128::MAX,
        };
        Ok(i128::from_str_radix(digits, number.radix()).unwrap_or(nearest))
    }
}

/// A key as a message shows it: in quotes if it is not plain, and cut if it is long.
fn shown(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match !name.is_empty() && name.len() <= SHOWN_CHARS && name.bytes().all(is_plain) {
        true => Cow::Borrowed(name),
        false => {
            let mut beginning: String = name.chars().take(SHOWN_CHARS).collect();
            if beginning.len() < name.len() {
                beginning.push('…');
            }
            Cow::Owned(format!("{beginning:?}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let path = Path::new("t.toml");
        match Document::parse(path, text) {
            Err(failure) => failure.text,
            Ok(document) => document.root().entries()[0].wrong("wrong").text,
        }
    }

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        for (text, expected) in [
            ("a = 1", "t.toml:1:1: a: wrong"),
            ("\n\r\n  a = 1", "t.toml:3:3: a: wrong"),
            ("# é\n\"é\" = 1", "t.toml:2:1: \"é\": wrong"),
            ("\"\\u001b[31m\" = 1", "t.toml:1:1: \"\\u{1b}[31m\": wrong"),
            ("\"\" = 1", "t.toml:1:1: \"\": wrong"),
            ("a = 1\na = 2", "t.toml:2:1: duplicate key"),
            ("[a]\nb = 1\n[a]", "t.toml:3:2: duplicate key"),
            (
                "x = 'é', y",
                "t.toml:1:8: unexpected key or value, expected newline, `#`",
            ),
            (
                "a = ",
                "t.toml:1:5: string values must be quoted, expected literal string",
            ),
            (
                "a = \"canary",
                "t.toml:1:12: invalid basic string, expected `\"`",
            ),
            (
                "a = canary",
                "t.toml:1:5: string values must be quoted, expected literal string",
            ),
            ("a", "t.toml:1:2: key with no value, expected `=`"),
        ] {
            assert_eq!(wrong(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused_at_its_byte() {
        let path = Path::new("t.toml");
        let failure = text_of(path, b"a = \"\xff\"").unwrap_err();
        assert_eq!(failure.text, "t.toml: byte 5: want UTF-8 text");
        let failure = text_of(path, b"\xef\xbb\xbf\xff").unwrap_err();
        assert_eq!(failure.text, "t.toml: byte 3: want UTF-8 text");
        assert_eq!(text_of(path, b"\xef\xbb\xbfa = 1").unwrap(), "a = 1");
    }

    #[test]
    fn deep_documents_are_refused() {
        for text in [
            "[".repeat(10_000),
            format!("a = {}", "[".repeat(100_000)),
            format!("a = {}1{}", "{a=".repeat(10_000), "}".repeat(10_000)),
            format!("{}a = 1", "a.".repeat(100_000)),
            format!("[{}a]", "a.".repeat(100_000)),
        ] {
            assert!(wrong(&text).starts_with("t.toml:1:"), "{}", wrong(&text));
        }
    }

    #[test]
    fn long_keys_are_cut() {
        let text = format!("{} = 1", "a".repeat(1_000));
        assert!(wrong(&text).len() < 100);
    }

    #[test]
    fn numbers_beyond_all_limits_become_the_nearest() {
        for (text, expected) in [
            ("a = 12", 12),
            ("a = 0xff", 255),
            ("a = 1_000", 1_000),
            ("a = 999999999999999999999999999999999999999999", i128::MAX),
            ("a = -999999999999999999999999999999999999999999", i128::MIN),
        ] {
            let document = Document::parse(Path::new("t.toml"), text).unwrap();
            let whole = document.root().entries()[0].whole("want a whole number");
            assert_eq!(whole.unwrap(), expected, "{text}");
        }
    }
}
