//! Documents that a caller stores between two runs: JSON with a kind, a version and a checksum.
//!
//! A document begins with `{"format":"KIND/VERSION","digest":"CHECKSUM",`. The checksum covers all other bytes. It protects
//! against accidents, not against someone who changes a document on purpose.

use crate::checksum::checksum;
use crate::code::Code;
use crate::counts::table::CountTable;
use crate::counts::tree::{NoJson, Tree};
use crate::error::{Error, Result};
use crate::spelling::{Name, Words, words};
use crate::time::settling::ALARMING_MS;
use crate::time::timestamp::Timestamp;
use crate::wire::json::writer::json_of;

/// The bytes before the checksum.
const BEFORE: &[u8] = b"\"digest\":\"";

const DAMAGED: &str =
    "this was damaged or changed since it was written: its checksum does not match";

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentKind {
    /// The first field, such as `tallyfold-ledger/1`. Its number grows when old readers can't read new documents.
    pub format: &'static str,
    /// What error messages call it, such as `state of tallyfold check`.
    pub what: &'static str,
}

impl DocumentKind {
    /// The document with these fields, which are a JSON object.
    ///
    /// ```
    /// use tallyfold::keeper::DocumentKind;
    ///
    /// const NOTE: DocumentKind = DocumentKind { format: "note/1", what: "note" };
    /// let document = NOTE.write(r#"{"text":"x"}"#);
    /// assert!(document.starts_with(r#"{"format":"note/1","digest":""#));
    /// assert_eq!(NOTE.read(document.as_bytes())?, br#"{"text":"x"}"#);
    /// # Ok::<(), tallyfold::Error>(())
    /// ```
    #[must_use]
    pub fn write(&self, fields: &str) -> String {
        let head = ["{\"format\":\"", self.format, "\",\"digest\":\""].concat();
        let rest = ["\",", fields.get(1..).unwrap_or_default()].concat();
        let digest = digest(head.as_bytes(), rest.as_bytes());
        [head, digest, rest].concat()
    }

    /// The fields of a document, as a JSON object.
    ///
    /// # Errors
    /// `invalid_checkpoint` if the document has another kind or version, is truncated or was changed.
    pub fn read(&self, json: &[u8]) -> Result<Vec<u8>> {
        if json.trim_ascii().is_empty() {
            return Err(self.wrong("it is empty"));
        }
        let name = |format: &[u8]| format.split(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
        let is_ours = |format: &&[u8]| name(format) == name(self.format.as_bytes());
        let written = json
            .strip_prefix(b"{\"format\":\"")
            .and_then(|rest| rest.split(|byte| *byte == b'"').next());
        let Some(written) = written.filter(is_ours) else {
            return Err(self.wrong("it has another format"));
        };
        if written != self.format.as_bytes() {
            let written = String::from_utf8_lossy(written);
            let why = format!("it is {written}, want {}", self.format);
            return Err(self.wrong(why));
        }
        let at = after(json).and_then(|at| Some(at + end_of_digest(&json[at..])?));
        let fields = at.and_then(|at| json[at..].strip_prefix(b"\","));
        match fields.filter(|_| is_sealed(json)) {
            Some(fields) => Ok([b"{", fields].concat()),
            None => Err(Error::new(Code::InvalidCheckpoint, DAMAGED)),
        }
    }

    /// The error for a document of this kind that can't be used.
    #[must_use]
    pub fn wrong(&self, why: impl std::fmt::Display) -> Error {
        let message = format!("invalid {}: {why}", self.what);
        Error::new(Code::InvalidCheckpoint, message)
    }
}

/// Whether the checksum of a document of any kind matches its bytes.
pub(crate) fn is_sealed(json: &[u8]) -> bool {
    let parts = after(json).and_then(|at| {
        let (written, rest) = json[at..].split_at(end_of_digest(&json[at..])?);
        Some((&json[..at], written, rest))
    });
    parts.is_some_and(|(head, written, rest)| digest(head, rest).as_bytes() == written)
}

/// The checksum of all bytes of a document, except the checksum itself and its quotes.
fn digest(head: &[u8], rest: &[u8]) -> String {
    checksum(&[&head[..head.len() - 1], &rest[1..]])
}

/// The offset at which the checksum begins.
fn after(json: &[u8]) -> Option<usize> {
    let mut places = json.windows(BEFORE.len());
    Some(places.position(|of| of == BEFORE)? + BEFORE.len())
}

fn end_of_digest(json: &[u8]) -> Option<usize> {
    json.iter().position(|byte| *byte == b'"')
}

/// A document of the core. Each error about it has a path.
pub(crate) struct Stored<'a> {
    json: &'a [u8],
    fields: Tree<'a>,
    /// What error messages call it.
    what: &'static str,
}

impl<'a> Stored<'a> {
    /// Reads a document of a kind, with no other fields than these.
    pub(crate) fn read(json: &'a [u8], kind: DocumentKind, names: &[&str]) -> Result<Self> {
        let stored = Self { json, fields: fields(json, kind.what)?, what: kind.what };
        // The format is checked first, because another format may have other fields.
        if let Some(found) = stored.fields.written("format") {
            stored.check("$.format", found, &json_of(&kind.format))?;
        }
        check_names(&stored.fields, names, "$")?;
        Ok(stored)
    }

    /// The value of a field, as raw JSON; empty if the field is missing.
    pub(crate) fn field(&self, name: &str) -> &'a str {
        self.fields.written(name).unwrap_or_default()
    }

    /// Refuses a query that differs from `expected` (JSON), except in the fields named in `may_differ`. A fingerprint
    /// may stand in place of the identity. Returns its fields.
    pub(crate) fn check_query(
        &self,
        expected: &str,
        names: &[&'static str],
        may_differ: &[&str],
        fingerprint: &str,
    ) -> Result<Tree<'a>> {
        let found = fields(self.field("query").as_bytes(), self.what)?;
        check_names(&found, names, "$.query")?;
        let expected = fields(expected.as_bytes(), self.what)?;
        for name in names.iter().filter(|name| !may_differ.contains(name)) {
            let [found, expected] =
                [&found, &expected].map(|of| of.written(name).unwrap_or_default());
            if found != expected && found != json_of(&fingerprint) {
                let what = Name::from(match *name {
                    "cluster" => "identity",
                    name => name,
                });
                let start: String = found.chars().take(120).collect();
                let message = words![
                    format!("this isn't a {} of this query: it was made with ", self.what),
                    what.clone(),
                    format!(" {start}, not {expected}; to resume it, pass the same "),
                    what
                ];
                return Err(self.wrong(&format!("$.query.{name}"), message, found));
            }
        }
        Ok(found)
    }

    /// Refuses a value that differs from the expected JSON.
    pub(crate) fn check(&self, path: &str, found: &str, expected: &str) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let start: String = found.chars().take(120).collect();
        let message = format!("this isn't a {} of this query: {start}, want {expected}", self.what);
        Err(self.wrong(path, message, found))
    }

    /// Refuses a document whose checksum doesn't match. Call this last, so that an error about a field comes first and
    /// has that field's path.
    pub(crate) fn check_digest(&self) -> Result<()> {
        if is_sealed(self.json) {
            return Ok(());
        }
        Err(self.wrong("$.digest", DAMAGED, self.field("digest")))
    }

    /// The list of texts in a field.
    pub(crate) fn texts(&self, name: &str, what: &str) -> Result<Vec<String>> {
        let written = self.field(name);
        let found = Tree::read(written.as_bytes()).ok();
        let found = found.as_ref().and_then(Tree::texts);
        let found = found.map(|texts| texts.into_iter().map(str::to_owned).collect());
        found.ok_or_else(|| {
            let message = format!("want a list of {what}");
            self.wrong(&format!("$.{name}"), message, written)
        })
    }

    /// The list of whole numbers in a field, which the document stores as strings.
    pub(crate) fn numbers(&self, name: &str) -> Result<Vec<i64>> {
        let texts = self.texts(name, "numbers as strings")?;
        let numbers: Result<Vec<i64>, _> = texts.iter().map(|text| text.parse()).collect();
        numbers
            .map_err(|_| self.wrong(&format!("$.{name}"), "want whole numbers", self.field(name)))
    }

    /// The table in the field `table`; `None` for `null`.
    pub(crate) fn table(&self) -> Result<Option<CountTable>> {
        let found = self.field("table");
        if found == "null" {
            return Ok(None);
        }
        let table = CountTable::from_json(found.as_bytes()).map_err(|error| {
            let inside = error.path().and_then(|path| path.strip_prefix('$'));
            let path = format!("$.table{}", inside.unwrap_or_default());
            let offset = error.offset().map(|offset| offset + offset_in(self.json, found));
            let error = invalid(&path, error.message());
            offset.map_or(error.clone(), |offset| error.with_offset(offset))
        });
        table.map(Some)
    }

    /// The error for a value, with its offset.
    pub(crate) fn wrong(&self, path: &str, message: impl Into<Words>, value: &str) -> Error {
        invalid(path, message).with_offset(offset_in(self.json, value))
    }
}

/// Checks that a stored timestamp is at most five minutes ahead of the clock: two clocks may differ by that much.
///
/// # Errors
/// `invalid_checkpoint`, with both times.
pub fn check_past(stored: Timestamp, unix_ms: i64) -> Result<()> {
    if stored.unix_ms().saturating_sub(unix_ms) <= ALARMING_MS {
        return Ok(());
    }
    let now = Timestamp::from_unix_ms(unix_ms);
    let now = now.map_or_else(String::new, |now| now.to_string());
    let message = format!(
        "this is from the future: it reaches {stored}, and the clock shows {now}. Set the clock if it is wrong. If it was \
         ahead before, don't resume from this, because counts may have been settled too early"
    );
    Err(Error::new(Code::InvalidCheckpoint, message))
}

/// The error for a path in a document.
pub(crate) fn invalid(path: &str, message: impl Into<Words>) -> Error {
    Error::new(Code::InvalidCheckpoint, message).with_path(path.to_owned())
}

fn fields<'a>(json: &'a [u8], what: &str) -> Result<Tree<'a>> {
    Tree::read_fields(json).map_err(|NoJson { problem, offset }| {
        let message = match json.trim_ascii() {
            [] => "this is empty; is it unset, or was its file truncated?".to_owned(),
            _ => format!("this isn't a {what}, or it is truncated: {problem}"),
        };
        invalid("$", message).with_offset(offset)
    })
}

/// The offset of a value in its document; 0 for a value that is missing.
fn offset_in(json: &[u8], value: &str) -> u64 {
    if value.is_empty() {
        return 0;
    }
    (value.as_ptr().addr() - json.as_ptr().addr()) as u64
}

/// Refuses an object that has any other field.
fn check_names(object: &Tree<'_>, names: &[&str], path: &str) -> Result<()> {
    if object.has_only(names) {
        return Ok(());
    }
    let names = names.join(", ");
    let message = format!("this isn't a checkpoint: want an object of {names}");
    Err(invalid(path, message))
}

#[cfg(test)]
mod tests {
    use super::DocumentKind;

    const KIND: DocumentKind = DocumentKind { format: "tallyfold-x/2", what: "state of x" };

    #[test]
    fn any_changed_byte_is_found() {
        let document = KIND.write(r#"{"values":["a","b"]}"#);
        assert_eq!(KIND.read(document.as_bytes()).unwrap(), br#"{"values":["a","b"]}"#);
        for at in 0..document.len() {
            let mut changed = document.clone().into_bytes();
            changed[at] ^= 1;
            assert!(KIND.read(&changed).is_err(), "byte {at}");
        }
        for cut in 0..document.len() {
            assert!(KIND.read(&document.as_bytes()[..cut]).is_err(), "{cut} bytes");
        }
    }

    #[test]
    fn an_error_names_the_kind_and_the_version() {
        let wrong = |json: &str| KIND.read(json.as_bytes()).unwrap_err().message().to_owned();
        assert_eq!(wrong("{}"), "invalid state of x: it has another format");
        assert_eq!(wrong(""), "invalid state of x: it is empty");
        assert_eq!(wrong("\n"), "invalid state of x: it is empty");
        assert_eq!(
            wrong(r#"{"format":"tallyfold-x/1","digest":""}"#),
            "invalid state of x: it is tallyfold-x/1, want tallyfold-x/2"
        );
    }
}
