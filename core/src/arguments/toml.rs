//! TOML documents that know the line and column of each key.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::text::nearest;

/// How many characters of a key error messages show.
const SHOWN_CHARS: usize = 64;

/// Up to this byte of a line, columns count characters; after it, bytes.
const COUNTED_BYTES: usize = 4 * 1024;

/// The result of reading a document.
pub type Result<T> = std::result::Result<T, Wrong>;

/// What is wrong in a document, where, and what would be right. It quotes no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Where it is wrong.
    pub place: Place,
    /// What would be right.
    pub text: String,
}

/// A place in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, if the document has one.
    pub file: Option<Arc<Path>>,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// How many bytes are before it.
    pub offset: usize,
    /// The key with the tables that it is in; empty for the document itself.
    pub key: String,
}

/// `rules.toml:3:1: rule[0].kind`, or without a file `line 3, column 1: rule[0].kind`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}:{}:{}", file.display(), self.line, self.column)?,
            None => write!(f, "line {}, column {}", self.line, self.column)?,
        }
        match self.key.as_str() {
            "" => Ok(()),
            key => write!(f, ": {key}"),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// A parsed document.
#[derive(Debug)]
pub struct Document<'d> {
    file: Option<Arc<Path>>,
    text: &'d str,
    /// Where each line starts.
    lines: Vec<usize>,
    root: DeTable<'d>,
}

/// A table of a document.
#[derive(Clone, Debug)]
pub struct Table<'d> {
    document: &'d Document<'d>,
    /// Its name in error messages; empty for the document itself.
    key: String,
    at: usize,
    table: &'d DeTable<'d>,
}

/// A value of a document: the value of a key, or an item of a list.
#[derive(Clone, Debug)]
pub struct Entry<'d> {
    document: &'d Document<'d>,
    /// The key itself.
    pub name: &'d str,
    /// The key with the tables that it is in.
    key: String,
    at: usize,
    value: &'d DeValue<'d>,
}

impl<'d> Document<'d> {
    /// Parses a text. `file` is the file that it comes from, if it comes from one.
    ///
    /// # Errors
    /// With the place at which the text is not TOML.
    pub fn parse(file: Option<&Path>, text: &'d str) -> Result<Self> {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let mut document = Self {
            file: file.map(Arc::from),
            text,
            lines: std::iter::once(0).chain(ends).collect(),
            root: DeTable::new(),
        };
        match DeTable::parse(text) {
            Ok(root) => document.root = root.into_inner(),
            Err(error) => {
                let at = error.span().map_or(text.len(), |span| span.start);
                return Err(document.wrong(at, "", error.message()));
            }
        }
        Ok(document)
    }

    /// The top-level table.
    #[must_use]
    pub fn root(&'d self) -> Table<'d> {
        Table { document: self, key: String::new(), at: 0, table: &self.root }
    }

    fn wrong(&self, at: usize, key: &str, text: impl fmt::Display) -> Wrong {
        Wrong { place: self.place(at, key), text: text.to_string() }
    }

    /// The place of a byte. If more than 4 KiB of the line come before it, the column is counted in bytes, because counting
    /// the characters for each of many keys would take minutes.
    fn place(&self, at: usize, key: &str) -> Place {
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let start = self.lines[line - 1];
        let before = self.text.get(start..at).unwrap_or_default();
        let column = match before.len() > COUNTED_BYTES {
            true => before.len(),
            false => before.chars().count(),
        };
        Place { file: self.file.clone(), line, column: column + 1, offset: at, key: key.to_owned() }
    }
}

impl<'d> Table<'d> {
    /// All keys, in the order of the document.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'d>> {
        let entries = self.table.iter().map(|(name, value)| Entry {
            document: self.document,
            name: name.get_ref(),
            key: match self.key.is_empty() {
                true => shown(name.get_ref()),
                false => format!("{}.{}", self.key, shown(name.get_ref())),
            },
            at: name.span().start,
            value: value.get_ref(),
        });
        let mut entries: Vec<Entry<'d>> = entries.collect();
        entries.sort_by_key(|entry| entry.at);
        entries
    }

    /// The entry of a key.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<Entry<'d>> {
        self.entries().into_iter().find(|entry| entry.name == name)
    }

    /// Refuses unknown keys.
    ///
    /// # Errors
    /// For the first unknown key, with the nearest known one.
    pub fn check_keys(&self, known: &[&str]) -> Result<()> {
        let entries = self.entries();
        let unknown = entries.iter().find(|entry| !known.contains(&entry.name));
        match unknown {
            Some(entry) => Err(entry.unknown_key(known)),
            None => Ok(()),
        }
    }

    /// An error about the table as a whole.
    #[must_use]
    pub fn wrong(&self, text: impl fmt::Display) -> Wrong {
        self.document.wrong(self.at, &self.key, text)
    }

    /// An error about a key of the table, or about the table as a whole if the key is not there.
    #[must_use]
    pub fn wrong_at(&self, key: &str, text: impl fmt::Display) -> Wrong {
        match self.entry(key) {
            Some(entry) => entry.wrong(text),
            None => self.wrong(text),
        }
    }
}

impl<'d> Entry<'d> {
    /// The place of the key.
    #[must_use]
    pub fn place(&self) -> Place {
        self.document.place(self.at, &self.key)
    }

    /// The file of the document, if it has one.
    #[must_use]
    pub fn file(&self) -> Option<&'d Path> {
        self.document.file.as_deref()
    }

    /// An error about the key or its value.
    #[must_use]
    pub fn wrong(&self, text: impl fmt::Display) -> Wrong {
        self.document.wrong(self.at, &self.key, text)
    }

    /// An error about a key that is not known.
    #[must_use]
    pub fn unknown_key(&self, known: &[&str]) -> Wrong {
        self.unknown("key", self.name, known)
    }

    /// An error about an unknown name.
    #[must_use]
    pub fn unknown(&self, what: &str, name: &str, known: &[&str]) -> Wrong {
        match nearest(name, known) {
            Some(near) => self.wrong(format_args!("there is no such {what}; did you mean {near}?")),
            None if known.is_empty() => self.wrong(format_args!("there is no such {what}")),
            None => self
                .wrong(format_args!("there is no such {what}; want one of {}", known.join(", "))),
        }
    }

    /// The value, which must be a table.
    ///
    /// # Errors
    /// For another type of value.
    pub fn table(&self, wanted: &str) -> Result<Table<'d>> {
        match self.value {
            DeValue::Table(table) => {
                Ok(Table { document: self.document, key: self.key.clone(), at: self.at, table })
            }
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The items of a list. Each has its position as the last part of its key.
    ///
    /// # Errors
    /// For another type of value.
    pub fn items(&self, wanted: &str) -> Result<Vec<Self>> {
        let DeValue::Array(items) = self.value else {
            return Err(self.wrong(wanted));
        };
        let items = items.iter().enumerate().map(|(place, item)| Self {
            key: format!("{}[{place}]", self.key),
            at: item.span().start,
            value: item.get_ref(),
            ..self.clone()
        });
        Ok(items.collect())
    }

    /// The value, if it is a text.
    #[must_use]
    pub fn as_text(&self) -> Option<&'d str> {
        match self.value {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value, which must be a text.
    ///
    /// # Errors
    /// For another type of value.
    pub fn text(&self, wanted: &str) -> Result<&'d str> {
        self.as_text().ok_or_else(|| self.wrong(wanted))
    }

    /// The value, which must be a list of texts.
    ///
    /// # Errors
    /// For another type of value, or of an item.
    pub fn texts(&self, wanted: &str) -> Result<Vec<String>> {
        let items = self.items(wanted)?;
        let texts = items.iter().map(|item| item.as_text().map(str::to_owned));
        let texts: Option<Vec<String>> = texts.collect();
        texts.ok_or_else(|| self.wrong(wanted))
    }

    /// The value, which must be a timestamp: a text, or a date and time of TOML.
    ///
    /// # Errors
    /// For another type of value.
    pub fn timestamp_text(&self, wanted: &str) -> Result<String> {
        match self.value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Datetime(instant) => Ok(instant.to_string()),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The digits of the value, which must be a decimal number, or a text.
    ///
    /// # Errors
    /// For another type of value.
    pub fn number_text(&self, wanted: &str) -> Result<String> {
        match self.value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The value, which must be true or false.
    ///
    /// # Errors
    /// For another type of value.
    pub fn flag(&self, wanted: &str) -> Result<bool> {
        match self.value {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The value, which must be a whole number. A number outside of `i128` becomes its least or greatest value.
    ///
    /// # Errors
    /// For another type of value.
    pub fn whole(&self, wanted: &str) -> Result<i128> {
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

    /// The value, which must be a whole number within limits.
    ///
    /// # Errors
    /// For another type of value, or a number beyond the limits. The message calls the wanted value `what`.
    pub fn within(&self, least: u64, most: u64, what: &str) -> Result<u64> {
        let number = self.whole("").ok().and_then(|whole| whole.try_into().ok());
        let within = number.filter(|number| (least..=most).contains(number));
        within.ok_or_else(|| {
            let limits = match most {
                u64::MAX => format!("{least} or more"),
                _ => format!("from {least} to {most}"),
            };
            self.wrong(format_args!("want {what}, {limits}"))
        })
    }
}

/// A key or value as a message shows it: in quotes if it is not plain, and cut if it is long.
#[must_use]
pub fn shown(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.len() <= SHOWN_CHARS && name.bytes().all(is_plain) {
        return name.to_owned();
    }
    let mut beginning: String = name.chars().take(SHOWN_CHARS).collect();
    if beginning.len() < name.len() {
        beginning.push('…');
    }
    format!("{beginning:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let path = Path::new("t.toml");
        match Document::parse(Some(path), text) {
            Err(wrong) => wrong.to_string(),
            Ok(document) => document.root().entries()[0].wrong("wrong").to_string(),
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
            ("x = 'é', y", "t.toml:1:8: unexpected key or value, expected newline, `#`"),
            ("a = ", "t.toml:1:5: string values must be quoted, expected literal string"),
            ("a = \"canary", "t.toml:1:12: invalid basic string, expected `\"`"),
            ("a = canary", "t.toml:1:5: string values must be quoted, expected literal string"),
            ("a", "t.toml:1:2: key with no value, expected `=`"),
        ] {
            assert_eq!(wrong(text), expected, "{text}");
        }
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
            let document = Document::parse(None, text).unwrap();
            let whole = document.root().entries()[0].whole("want a whole number");
            assert_eq!(whole.unwrap(), expected, "{text}");
        }
    }
}
