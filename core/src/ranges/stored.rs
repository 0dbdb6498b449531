//! Documents that collects and follows store: their fields as they are written, and a digest of all bytes.

use std::borrow::Cow;

use crate::code::Code;
use crate::counts::table::CountTable;
use crate::counts::tree::{NoJson, Tree};
use crate::error::{Error, Result};
use crate::sealed::is_sealed;
use crate::wire::json::writer::json_of;

/// A stored document. Its first two fields are `format` and `digest`.
pub(super) struct Stored<'a, const N: usize> {
    json: &'a [u8],
    /// The fields, as they are written.
    pub(super) fields: [&'a str; N],
}

impl<'a, const N: usize> Stored<'a, N> {
    /// Reads a document of a format, with fields of these names.
    pub(super) fn read(json: &'a [u8], format: &str, names: [&str; N]) -> Result<Self> {
        let document = fields(json)?;
        // The format is checked first, because another format may have other fields.
        if let Some(found) = document.written("format") {
            check(json, "$.format", found, &json_of(&format))?;
        }
        let fields = fields_of(&document, names, "$")?;
        Ok(Self { json, fields })
    }

    /// Refuses a query that differs from the expected one, which is JSON, but for some fields. Gives its fields.
    pub(super) fn check_query<const M: usize>(
        &self,
        query: &'a str,
        expected: &str,
        names: [&str; M],
        may_differ: &[&str],
    ) -> Result<[&'a str; M]> {
        let found = fields_of(&fields(query.as_bytes())?, names, "$.query")?;
        let expected = fields_of(&fields(expected.as_bytes())?, names, "$.query")?;
        for ((name, found), expected) in names.iter().zip(found).zip(expected) {
            if !may_differ.contains(name) {
                self.check(&format!("$.query.{name}"), found, expected)?;
            }
        }
        Ok(found)
    }

    /// Refuses a value that differs from what would be written.
    pub(super) fn check(&self, path: &str, found: &str, expected: &str) -> Result<()> {
        check(self.json, path, found, expected)
    }

    /// Refuses a document that is not what was sealed. Call this last, so that a mistake is named
    /// where it is, if it can be.
    pub(super) fn check_digest(&self) -> Result<()> {
        if is_sealed(self.json) {
            return Ok(());
        }
        let message = "this was damaged or changed since it was written: its checksum is another";
        Err(self.wrong("$.digest", message, self.fields[1]))
    }

    /// A list of texts.
    pub(super) fn texts(
        &self,
        path: &str,
        written: &'a str,
        what: &str,
    ) -> Result<Vec<Cow<'a, str>>> {
        let found = Tree::read(written.as_bytes()).ok();
        let found = found.and_then(Tree::into_texts);
        found.ok_or_else(|| self.wrong(path, format!("want a list of {what}"), written))
    }

    /// A list of whole numbers, which are written as texts.
    pub(super) fn numbers(&self, path: &str, written: &'a str) -> Result<Vec<i64>> {
        let texts = self.texts(path, written, "numbers as strings")?;
        let numbers: Result<Vec<i64>, _> = texts.iter().map(|text| text.parse()).collect();
        numbers.map_err(|_| self.wrong(path, "want whole numbers", written))
    }

    /// A table; `None` for `null`.
    pub(super) fn table(&self, found: &str) -> Result<Option<CountTable>> {
        if found == "null" {
            return Ok(None);
        }
        let table = CountTable::from_json(found.as_bytes()).map_err(|error| {
            let inside = error.path().and_then(|path| path.strip_prefix('$'));
            let path = format!("$.table{}", inside.unwrap_or_default());
            let offset = error
                .offset()
                .map(|offset| offset + offset_in(self.json, found));
            let error = invalid(&path, error.message());
            offset.map_or(error.clone(), |offset| error.with_offset(offset))
        });
        table.map(Some)
    }

    /// The error for a value, with its offset.
    pub(super) fn wrong(&self, path: &str, message: impl Into<String>, value: &str) -> Error {
        invalid(path, message).with_offset(offset_in(self.json, value))
    }
}

/// The error for a place of a document.
pub(super) fn invalid(path: &str, message: impl Into<String>) -> Error {
    Error::new(Code::InvalidCheckpoint, message.into()).with_path(path.to_owned())
}

fn fields(json: &[u8]) -> Result<Tree<'_>> {
    Tree::read_fields(json).map_err(|NoJson { problem, offset }| {
        let message = format!("this is no checkpoint, or a torn one: {problem}");
        invalid("$", message).with_offset(offset)
    })
}

fn check(json: &[u8], path: &str, found: &str, expected: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let start: String = found.chars().take(120).collect();
    let message = format!("this is no checkpoint of this query: {start}, want {expected}");
    Err(invalid(path, message).with_offset(offset_in(json, found)))
}

/// The offset of a value in its document; 0 for a value that is missing.
fn offset_in(json: &[u8], value: &str) -> u64 {
    if value.is_empty() {
        return 0;
    }
    (value.as_ptr().addr() - json.as_ptr().addr()) as u64
}

fn want_fields(path: &str, names: &[&str]) -> Error {
    let names = names.join(", ");
    let message = format!("this is no checkpoint: want an object of {names}");
    invalid(path, message)
}

/// The fields with these names; the object must not have any others.
fn fields_of<'a, const N: usize>(
    object: &Tree<'a>,
    names: [&str; N],
    path: &str,
) -> Result<[&'a str; N]> {
    let mut fields = [""; N];
    if object.written_fields(&names, &mut fields) {
        return Ok(fields);
    }
    Err(want_fields(path, &names))
}
