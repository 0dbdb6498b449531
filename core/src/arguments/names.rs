//! Closed lists of names, the same in every language.

use crate::code::Code;
use crate::error::Error;

/// Declares an enum whose variants have the same names in every language, for use as an argument.
#[macro_export]
#[doc(hidden)]
macro_rules! names {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Enum:ident {
            $( $(#[$variant_meta:meta])* $Variant:ident = $name:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
        $vis enum $Enum { $(
            $(#[$variant_meta])*
            #[cfg_attr(feature = "surface", schemars(rename = $name))]
            $Variant
        ),+ }

        impl $Enum {
            /// All variants, in order.
            pub const ALL: &'static [Self] = &[$(Self::$Variant),+];

            /// The names of all variants, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name in every language.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// The variant with exactly that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                let place = Self::NAMES.iter().position(|one| *one == name);
                place.map(|place| Self::ALL[place])
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $Enum {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Enum {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
                Self::from_name(&name).ok_or_else(|| {
                    serde::de::Error::invalid_value(serde::de::Unexpected::Str(&name), &stringify!($Enum))
                })
            }
        }

        impl $crate::arguments::Parameter for $Enum {
            const KIND: $crate::arguments::Kind = $crate::arguments::Kind::Text;

            fn from_value(value: $crate::arguments::Value) -> $crate::Result<Self> {
                let name = String::from_value(value)?;
                Self::from_name(&name).ok_or_else(|| $crate::arguments::want_one_of(Self::NAMES))
            }

            fn to_value(&self) -> Option<$crate::arguments::Value> {
                Some($crate::arguments::Value::Text(self.as_str().to_owned()))
            }

            fn choices() -> Vec<&'static str> {
                Self::ALL.iter().map(|one| one.as_str()).collect()
            }
        }
    };
}

/// The error for a text that is not one of these names.
#[doc(hidden)]
pub fn want_one_of(names: &[&str]) -> Error {
    let mut message = String::from("want ");
    let last = names.len() - 1;
    for (index, name) in names.iter().enumerate() {
        message.push_str(match index {
            0 => "",
            _ if index == last => " or ",
            _ => ", ",
        });
        message.push_str(name);
    }
    Error::new(Code::InvalidArgument, message)
}
