//! Reads a whole JSON document at once, for documents that tallyfold has written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON value. There is one type for all documents, so that reading is compiled once. Fields are
/// checked when they are taken out.
#[derive(Default, PartialEq)]
#[cfg_attr(test, derive(Debug))]
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
    /// Any other value; also an object in which a name occurs twice.
    Other,
    /// The unparsed text of a value, in a document that was read by [`Tree::read_fields`].
    Written(&'a str),
}

impl<'a> Tree<'a> {
    /// Reads a document without parsing the fields of its object.
    pub(crate) fn read_fields(json: &'a [u8]) -> serde_json::Result<Self> {
        let WrittenFields(tree) = serde_json::from_slice(json)?;
        Ok(tree)
    }

    /// The fields of an object, in the order of the names; `None` if this is not an object, or if
    /// it has any other field.
    pub(crate) fn into_fields<const N: usize>(self, names: [&str; N]) -> Option<[Self; N]> {
        let mut fields = [const { Tree::Null }; N];
        self.take_fields(&names, &mut fields).then_some(fields)
    }

    fn take_fields(self, names: &[&str], fields: &mut [Self]) -> bool {
        let Self::Object(entries) = self else {
            return false;
        };
        entries.into_iter().all(|(key, value)| {
            let place = names.iter().position(|name| *name == key);
            place.map(|place| fields[place] = value).is_some()
        })
    }

    pub(crate) fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn into_written(self) -> Option<&'a str> {
        match self {
            Self::Written(text) => Some(text),
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

    pub(crate) fn into_whole(self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn into_list(self) -> Option<Vec<Self>> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// A list of texts.
    pub(crate) fn into_texts(self) -> Option<Vec<Cow<'a, str>>> {
        self.into_list()?.into_iter().map(Self::into_text).collect()
    }

    /// The value, unless it is `null` or missing.
    pub(crate) fn given(self) -> Option<Self> {
        (self != Self::Null).then_some(self)
    }
}

impl<'de> Deserialize<'de> for Tree<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue { written: false })
    }
}

struct WrittenFields<'a>(Tree<'a>);

impl<'de> Deserialize<'de> for WrittenFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tree = deserializer.deserialize_any(AnyValue { written: true });
        tree.map(WrittenFields)
    }
}

struct AnyValue {
    /// Whether to keep fields unparsed.
    written: bool,
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Tree::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Tree::Whole(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Tree::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Tree::Other)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Tree::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Tree::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut object: Vec<(Cow<'de, str>, Tree<'de>)> = Vec::new();
        let mut is_repeated = false;
        while let Some(key) = fields.next_key()? {
            let value = if self.written {
                Tree::Written(fields.next_value::<&RawValue>()?.get())
            } else {
                fields.next_value()?
            };
            // A key is always a string.
            let Tree::Text(key) = key else { continue };
            is_repeated |= object.iter().any(|(other, _)| *other == key);
            object.push((key, value));
        }
        Ok(if is_repeated {
            Tree::Other
        } else {
            Tree::Object(object)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Tree<'_>, serde_json::Error> {
        serde_json::from_str(json)
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
        let object = vec![
            ("a".into(), Tree::List(list)),
            ("b\n".into(), Tree::Object(Vec::new())),
        ];
        assert_eq!(read(json).unwrap(), Tree::Object(object));
    }

    #[test]
    fn fields_are_those_that_are_named_and_each_is_there_once() {
        let fields = |json| read(json).unwrap().into_fields(["a", "b"]);
        let expected = [Tree::Null, Tree::Whole(1)];
        assert_eq!(fields(r#"{"b": 1}"#), Some(expected));
        assert_eq!(fields(r#"{"b": 1, "c": null}"#), None);
        assert_eq!(fields("[]"), None);
        assert_eq!(fields(r#"{"b": 1, "b": 1}"#), None);
        let inner = fields(r#"{"b": {"c": 1, "c": 2}}"#);
        assert_eq!(inner, Some([Tree::Null, Tree::Other]));
    }
}
