//! Reads a whole JSON document at once, for documents that tallyfold has written.

use std::borrow::Cow;

use crate::code::Code;
use crate::wire::json::event::{Event, Visitor};
use crate::wire::json::lexer::Lexer;
use crate::wire::json::path::{Place, Shown};
use crate::wire::limits::Limits;

/// A JSON value. There is one type for all documents, so that reading is compiled once. Fields are
/// checked when they are taken out.
#[derive(Default)]
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(crate) enum Tree<'a> {
    /// `null`, or a missing field.
    #[default]
    Null,
    /// A number below 2^64 without a sign, a fraction or an exponent.
    Whole(u64),
    Text(Cow<'a, str>),
    Flag(bool),
    List(Vec<Tree<'a>>),
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
    /// Any other value.
    Other,
    /// The text of a value, in a document that was read by [`Tree::read_fields`].
    Written(&'a str),
}

impl<'a> Tree<'a> {
    /// Reads a whole document.
    pub(crate) fn read(json: &'a [u8]) -> Result<Self, NoJson> {
        let mut builder = TreeBuilder { json, open: Vec::new(), whole: Tree::Null };
        read(json, &mut builder)?;
        Ok(builder.whole)
    }

    /// Reads a document, but keeps the fields of its object as they are written; `Null` if it
    /// isn't an object.
    pub(crate) fn read_fields(json: &'a [u8]) -> Result<Self, NoJson> {
        let mut builder = FieldsBuilder { json, fields: None, depth: 0, start: None };
        read(json, &mut builder)?;
        Ok(builder.fields.map_or(Tree::Null, Tree::Object))
    }

    /// The fields of an object, in the order of the names; `None` if this is not an object, or if
    /// it has any other field.
    pub(crate) fn fields<const N: usize>(&self, names: [&str; N]) -> Option<[&Self; N]> {
        let mut fields = [&Tree::Null; N];
        self.find_fields(&names, &mut fields).then_some(fields)
    }

    fn find_fields<'t>(&'t self, names: &[&str], fields: &mut [&'t Self]) -> bool {
        let Self::Object(entries) = self else {
            return false;
        };
        entries.iter().all(|(key, value)| {
            let place = names.iter().position(|name| name == key);
            place.map(|place| fields[place] = value).is_some()
        })
    }

    /// Whether this is an object that has no other fields than these.
    pub(crate) fn has_only(&self, names: &[&str]) -> bool {
        match self {
            Self::Object(fields) => {
                fields.iter().all(|(key, _)| names.iter().any(|name| name == key))
            }
            _ => false,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The unparsed text of a field.
    pub(crate) fn written(&self, name: &str) -> Option<&'a str> {
        let Self::Object(fields) = self else {
            return None;
        };
        let (_, value) = fields.iter().find(|(key, _)| key == name)?;
        match value {
            Self::Written(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&self) -> Option<Vec<&str>> {
        self.list()?.iter().map(Self::text).collect()
    }

    /// The value, unless it is `null` or missing.
    pub(crate) fn given(&self) -> Option<&Self> {
        (!matches!(self, Self::Null)).then_some(self)
    }
}

/// Why a document can't be read.
pub(crate) struct NoJson {
    pub(crate) problem: &'static str,
    pub(crate) offset: u64,
}

/// The documents are the user's own, so only their depth has a limit.
const LIMITS: Limits = Limits {
    depth: 127,
    string_bytes: usize::MAX,
    keys: usize::MAX,
    body_bytes: u64::MAX,
    groups: 0,
    table_bytes: 0,
};

fn read(json: &[u8], builder: &mut dyn Visitor) -> Result<(), NoJson> {
    let mut lexer = Lexer::new(LIMITS, Shown::All);
    let pushed = lexer.push(json, builder);
    let read = pushed.and_then(|()| lexer.finish(builder));
    read.map_err(|error| match error.code() {
        Code::EmptyBody | Code::TruncatedBody => NoJson {
            problem: "the JSON is not complete",
            offset: (json.len() as u64).saturating_sub(1),
        },
        code => NoJson {
            problem: match code {
                Code::DuplicateKey => "the same key occurs twice in one object",
                _ => "there is no JSON here",
            },
            offset: error.offset().unwrap_or_default(),
        },
    })
}

/// Builds the tree of a whole document.
struct TreeBuilder<'a> {
    json: &'a [u8],
    /// The lists and objects that have not ended, without the value that is being read.
    open: Vec<Tree<'a>>,
    whole: Tree<'a>,
}

impl<'a> TreeBuilder<'a> {
    fn add(&mut self, value: Tree<'a>) {
        let place = match self.open.last_mut() {
            Some(Tree::List(list)) => return list.push(value),
            Some(Tree::Object(fields)) => fields.last_mut().map(|(_, value)| value),
            _ => Some(&mut self.whole),
        };
        if let Some(place) = place {
            *place = value;
        }
    }
}

impl Visitor for TreeBuilder<'_> {
    fn event(&mut self, event: Event<'_>, place: &Place<'_>) -> crate::error::Result<()> {
        match event {
            Event::BeginObject => self.open.push(Tree::Object(Vec::new())),
            Event::BeginArray => self.open.push(Tree::List(Vec::new())),
            Event::EndObject | Event::EndArray => {
                let ended = self.open.pop().unwrap_or_default();
                self.add(ended);
            }
            Event::Key(key) => {
                let key = text_at(self.json, place, key);
                if let Some(Tree::Object(fields)) = self.open.last_mut() {
                    fields.push((key, Tree::Null));
                }
            }
            Event::String(text) => self.add(Tree::Text(text_at(self.json, place, text))),
            Event::Number(number) => self.add(number.parse().map_or(Tree::Other, Tree::Whole)),
            Event::Bool => {
                let first = self.json.get(place.offset as usize);
                self.add(Tree::Flag(first == Some(&b't')));
            }
            Event::Null => self.add(Tree::Null),
        }
        Ok(())
    }
}

/// Keeps the fields of a document's object as they are written.
struct FieldsBuilder<'a> {
    json: &'a [u8],
    fields: Option<Vec<(Cow<'a, str>, Tree<'a>)>>,
    /// How many lists and objects have not ended.
    depth: usize,
    /// Where the value of the last key starts.
    start: Option<usize>,
}

impl FieldsBuilder<'_> {
    /// Keeps the value of the last key. Between it and this offset are only white space, and
    /// perhaps a comma.
    fn end_value(&mut self, end: usize) {
        let last = self.fields.as_mut().and_then(|fields| fields.last_mut());
        if let (Some((_, value)), Some(start)) = (last, self.start.take()) {
            let written = self.json[start..end].trim_ascii_end();
            let written = written.strip_suffix(b",").unwrap_or(written);
            let written = str::from_utf8(written.trim_ascii_end());
            *value = Tree::Written(written.unwrap_or_default());
        }
    }
}

impl Visitor for FieldsBuilder<'_> {
    fn event(&mut self, event: Event<'_>, place: &Place<'_>) -> crate::error::Result<()> {
        let at = place.offset as usize;
        match (self.depth, event) {
            (0, Event::BeginObject) => self.fields = Some(Vec::new()),
            (1, Event::Key(key)) => {
                self.end_value(at);
                let key = text_at(self.json, place, key);
                self.fields.get_or_insert_default().push((key, Tree::Null));
            }
            (1, Event::EndObject) => self.end_value(at),
            _ => _ = self.start.get_or_insert(at),
        }
        match event {
            Event::BeginObject | Event::BeginArray => self.depth += 1,
            Event::EndObject | Event::EndArray => self.depth -= 1,
            _ => {}
        }
        Ok(())
    }
}

/// The string at a place of the document, borrowed if it is written without escapes.
fn text_at<'a>(json: &'a [u8], place: &Place<'_>, text: &str) -> Cow<'a, str> {
    let start = place.offset as usize + 1;
    let written = json.get(start..start + text.len());
    match written.and_then(|written| str::from_utf8(written).ok()) {
        Some(written) if written == text => Cow::Borrowed(written),
        _ => Cow::Owned(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<Tree<'_>> {
        Tree::read(json.as_bytes()).ok()
    }

    #[test]
    fn values_of_every_kind() {
        let json = r#"{"a": [null, 7, "x", -1, 1.5, true], "b\n": {}}"#;
        let list = vec![
            Tree::Null,
            Tree::Whole(7),
            Tree::Text("x".into()),
            Tree::Other,
            Tree::Other,
            Tree::Flag(true),
        ];
        let object = vec![("a".into(), Tree::List(list)), ("b\n".into(), Tree::Object(Vec::new()))];
        assert_eq!(read(json).unwrap(), Tree::Object(object));
    }

    #[test]
    fn fields_are_those_that_are_named_and_each_is_there_once() {
        let tree = |json| read(json).unwrap();
        let expected = [&Tree::Null, &Tree::Whole(1)];
        assert_eq!(tree(r#"{"b": 1}"#).fields(["a", "b"]), Some(expected));
        assert_eq!(tree(r#"{"b": 1, "c": null}"#).fields(["a", "b"]), None);
        assert_eq!(tree("[]").fields(["a", "b"]), None);
    }

    #[test]
    fn a_document_that_is_read_to_where_it_breaks() {
        let broken = |json: &str| {
            let error = Tree::read(json.as_bytes()).err();
            error.map(|error| (error.problem, error.offset))
        };
        let incomplete = "the JSON is not complete";
        let nested = "[".repeat(128);
        assert_eq!(broken(""), Some((incomplete, 0)));
        assert_eq!(broken(r#"{"a": [1"#), Some((incomplete, 7)));
        assert_eq!(broken("[1,]"), Some(("there is no JSON here", 3)));
        assert_eq!(broken(&nested), Some(("there is no JSON here", 127)));
        let twice = "the same key occurs twice in one object";
        assert_eq!(broken(r#"[{"b": 1, "b": 1}]"#), Some((twice, 10)));
    }

    #[test]
    fn fields_as_they_are_written() {
        let json = r#" {"a" : "x\"," , "b\n":[ {"c": [1, 2]} ],"d": -1e9 } "#;
        let fields = Tree::read_fields(json.as_bytes()).ok();
        let expected = [("a", r#""x\",""#), ("b\n", r#"[ {"c": [1, 2]} ]"#), ("d", "-1e9")];
        let expected = expected.map(|(key, written)| (key.into(), Tree::Written(written)));
        assert_eq!(fields, Some(Tree::Object(expected.into())));
        assert_eq!(Tree::read_fields(b"{}").ok(), Some(Tree::Object(Vec::new())));
        assert_eq!(Tree::read_fields(br#"[{"a": 1}]"#).ok(), Some(Tree::Null));
    }
}
