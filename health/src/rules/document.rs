//! A TOML document that knows the line and column of each key.

use tallyfold::text::nearest;
use tallyfold::{Code, Error, Result};
use toml::de::{DeTable, DeValue};

/// The maximum size of a rules file, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

/// How many characters of a key or value error messages show.
const SHOWN_CHARS: usize = 64;

/// Up to this byte of a line, columns count characters; after it, bytes.
const COUNTED_BYTES: usize = 4 * 1024;

/// A parsed document.
pub(crate) struct Document<'d> {
    text: &'d str,
    /// Where each line starts.
    lines: Vec<usize>,
    root: DeTable<'d>,
}

/// A table of a document.
#[derive(Clone)]
pub(crate) struct Table<'d> {
    document: &'d Document<'d>,
    /// Its name in error messages; empty for the document itself.
    key: String,
    at: usize,
    table: &'d DeTable<'d>,
}

/// A value of a document: of a key, or an item of a list.
#[derive(Clone)]
pub(crate) struct Entry<'d> {
    document: &'d Document<'d>,
    /// The key itself.
    pub(crate) name: &'d str,
    /// The full key, with the tables that contain it.
    key: String,
    at: usize,
    value: &'d DeValue<'d>,
}

impl<'d> Document<'d> {
    /// Parses a text.
    ///
    /// # Errors
    /// `invalid_rules`, with the line and column at which the text is not TOML.
    pub(crate) fn parse(text: &'d str) -> Result<Self> {
        if text.len() > MOST_BYTES {
            return Err(invalid(format!("want at most {MOST_BYTES} bytes")));
        }
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let mut document = Self {
            text,
            lines: std::iter::once(0).chain(ends).collect(),
            root: DeTable::new(),
        };
        match DeTable::parse(text) {
            Ok(root) => document.root = root.into_inner(),
            Err(error) => {
                let at = error.span().map_or(text.len(), |span| span.start);
                return Err(document.wrong_at(at, "", error.message()));
            }
        }
        Ok(document)
    }

    /// The top-level table.
    pub(crate) fn root(&'d self) -> Table<'d> {
        Table {
            document: self,
            key: String::new(),
            at: 0,
            table: &self.root,
        }
    }

    fn wrong_at(&self, at: usize, key: &str, text: impl std::fmt::Display) -> Error {
        let (line, column) = self.position(at);
        let colon = if key.is_empty() { "" } else { ": " };
        invalid(format!("line {line}, column {column}: {key}{colon}{text}"))
    }

    /// The line and column of a byte, both from 1. Far out in a long line, the column is in bytes: counting the
    /// characters for each of many keys would take minutes.
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
    pub(crate) fn entry(&self, name: &str) -> Option<Entry<'d>> {
        self.entries().into_iter().find(|entry| entry.name == name)
    }

    /// Refuses unknown keys.
    pub(crate) fn check_keys(&self, known: &[&str]) -> Result<()> {
        match self
            .entries()
            .iter()
            .find(|entry| !known.contains(&entry.name))
        {
            Some(entry) => Err(entry.unknown("key", entry.name, known)),
            None => Ok(()),
        }
    }

    /// An error about the table as a whole.
    pub(crate) fn wrong(&self, text: impl std::fmt::Display) -> Error {
        self.document.wrong_at(self.at, &self.key, text)
    }
}

impl<'d> Entry<'d> {
    /// An error about the key or its value.
    pub(crate) fn wrong(&self, text: impl std::fmt::Display) -> Error {
        self.document.wrong_at(self.at, &self.key, text)
    }

    /// An error about an unknown name.
    pub(crate) fn unknown(&self, what: &str, name: &str, known: &[&str]) -> Error {
        let all = known.join(", ");
        match nearest(name, known) {
            Some(near) => self.wrong(format_args!(
                "there is no such {what}; did you mean {near}?"
            )),
            None if known.is_empty() => self.wrong(format_args!("there is no such {what}")),
            None => self.wrong(format_args!("there is no such {what}; want one of {all}")),
        }
    }

    /// The value, which must be a table.
    pub(crate) fn table(&self, wanted: &str) -> Result<Table<'d>> {
        match self.value {
            DeValue::Table(table) => Ok(Table {
                document: self.document,
                key: self.key.clone(),
                at: self.at,
                table,
            }),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The items of a list. The name of each is its position.
    pub(crate) fn items(&self, wanted: &str) -> Result<Vec<Self>> {
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

    /// The value, which must be a text.
    pub(crate) fn text(&self, wanted: &str) -> Result<&'d str> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The value, which must be a text or a list of texts.
    pub(crate) fn texts(&self, wanted: &str) -> Result<Vec<String>> {
        if let DeValue::String(text) = self.value {
            return Ok(vec![text.to_string()]);
        }
        let items = self.items(wanted)?;
        let texts = items.iter().map(|item| Ok(item.text(wanted)?.to_owned()));
        texts.collect()
    }

    /// The value, which must be an instant: a text, or a date of TOML.
    pub(crate) fn instant_text(&self, wanted: &str) -> Result<String> {
        match self.value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Datetime(instant) => Ok(instant.to_string()),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The value, which must be a number, of which this gives the digits, or a text.
    pub(crate) fn number_text(&self, wanted: &str) -> Result<String> {
        match self.value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            _ => Err(self.wrong(wanted)),
        }
    }

    /// The value, which must be a whole number within limits.
    pub(crate) fn whole(&self, least: u64, most: u64, what: &str) -> Result<u64> {
        let number = match self.value {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
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

/// The error for a rules file.
fn invalid(message: String) -> Error {
    Error::new(Code::InvalidRules, message)
}

/// A key or value as a message shows it: in quotes if it is not plain, and cut if it is long.
pub(crate) fn shown(name: &str) -> String {
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
