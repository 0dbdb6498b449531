//! Writes values as JSON: texts, whole numbers, flags, lists and structs. Nothing else is ever written. The writer of
//! serde_json, which also writes floats and maps, is twice as large in WebAssembly.

use std::fmt::{self, Write};

use serde::ser::{Impossible, SerializeSeq, SerializeStruct, SerializeTuple};
use serde::{Serialize, Serializer};

/// The JSON of a value, without white space.
pub(crate) fn json_of(value: &(impl Serialize + ?Sized)) -> String {
    let mut writer = Writer(String::new());
    // Only values of other kinds fail, and no caller passes one.
    _ = value.serialize(&mut writer);
    writer.0
}

struct Writer(String);

impl Writer {
    /// Writes the comma before a value or a key, unless it is the first one.
    fn separate(&mut self) {
        // No value ends with one of these bytes.
        if !matches!(self.0.as_bytes().last(), Some(b'{' | b'[')) {
            self.0.push(',');
        }
    }

    fn key(&mut self, key: &str) -> fmt::Result {
        self.separate();
        self.serialize_str(key)?;
        self.mark(':')
    }

    fn mark(&mut self, mark: char) -> fmt::Result {
        self.0.push(mark);
        Ok(())
    }
}

/// Writes the inside of a string.
impl Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            let short = match byte {
                b'"' | b'\\' => byte,
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0x08 => b'b',
                0x0C => b'f',
                ..b' ' => b'u',
                _ => continue,
            };
            self.0.push_str(&text[plain..at]);
            self.0.push('\\');
            self.0.push(char::from(short));
            if short == b'u' {
                write!(self.0, "{:04x}", u32::from(byte))?;
            }
            plain = at + 1;
        }
        self.0.push_str(&text[plain..]);
        Ok(())
    }
}

/// The methods for kinds of values that are never written.
macro_rules! refuse {
    ($($method:ident($($type:ty),*) -> $Ok:ty;)+) => { $(
        fn $method(self, $(_: $type),*) -> Result<$Ok, fmt::Error> {
            Err(fmt::Error)
        }
    )+ };
}

impl Serializer for &mut Writer {
    type Ok = ();
    type Error = fmt::Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Impossible<(), fmt::Error>;
    type SerializeTupleVariant = Impossible<(), fmt::Error>;
    type SerializeMap = Impossible<(), fmt::Error>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<(), fmt::Error>;

    fn serialize_bool(self, flag: bool) -> fmt::Result {
        write!(self.0, "{flag}")
    }

    fn serialize_u32(self, number: u32) -> fmt::Result {
        self.serialize_u64(number.into())
    }

    fn serialize_u64(self, number: u64) -> fmt::Result {
        write!(self.0, "{number}")
    }

    fn serialize_str(self, text: &str) -> fmt::Result {
        self.0.push('"');
        self.write_str(text)?;
        self.mark('"')
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, text: &T) -> fmt::Result {
        self.0.push('"');
        write!(self, "{text}")?;
        self.mark('"')
    }

    fn serialize_none(self) -> fmt::Result {
        self.0.push_str("null");
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> fmt::Result {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, fmt::Error> {
        self.0.push('[');
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, fmt::Error> {
        self.serialize_seq(None)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, fmt::Error> {
        self.0.push('{');
        Ok(self)
    }

    refuse! {
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> fmt::Result {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> fmt::Result {
        Err(fmt::Error)
    }
}

/// Writes a list, for which serde has several traits.
macro_rules! write_as_list {
    ($($List:ident),+) => { $(
        impl $List for &mut Writer {
            type Ok = ();
            type Error = fmt::Error;

            fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> fmt::Result {
                self.separate();
                value.serialize(&mut **self)
            }

            fn end(self) -> fmt::Result {
                self.mark(']')
            }
        }
    )+ };
}

write_as_list!(SerializeSeq, SerializeTuple);

impl SerializeStruct for &mut Writer {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> fmt::Result {
        self.key(key)?;
        value.serialize(&mut **self)
    }

    fn end(self) -> fmt::Result {
        self.mark('}')
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Serialize)]
    struct All<'a> {
        text: &'a str,
        texts: Vec<String>,
        whole: u64,
        pair: Option<(u32, u32)>,
        flag: bool,
        none: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u64>,
        nested: Vec<Nested>,
    }

    #[derive(Serialize)]
    struct Nested {}

    proptest! {
        #[test]
        fn it_is_what_serde_json_writes(
            text in "[\\x00-\\x7Fé\u{10FFFF}]*",
            texts in prop::collection::vec("\\PC{0,3}|[\\x00-\\x1F\\[{,]", 0..3),
            whole: u64,
            pair: Option<(u32, u32)>,
            flag: bool,
            nested in 0..3_usize,
        ) {
            let all = All {
                text: &text,
                texts,
                whole,
                pair,
                flag,
                none: None,
                left_out: None,
                nested: (0..nested).map(|_| Nested {}).collect(),
            };
            prop_assert_eq!(json_of(&all), serde_json::to_string(&all).unwrap());
        }

        #[test]
        fn what_is_displayed_is_escaped_too(text in "[\\x00-\\x7F]*") {
            struct Displayed(String);
            impl Serialize for Displayed {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(&self.0)
                }
            }
            prop_assert_eq!(json_of(&Displayed(text.clone())), json_of(&text));
        }
    }
}
