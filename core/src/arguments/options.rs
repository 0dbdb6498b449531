//! All arguments of a function together.

use super::argument::{Argument, Kind};
use super::nearest::nearest;
use super::source::Arguments;
use super::value::{Value, Values};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::spelling::Name;

/// The options of a function. [`options!`](crate::options) makes them.
pub trait Options: Sized {
    /// Every argument, in the order of the declaration.
    const ARGUMENTS: &'static [Argument];

    /// The options that these values mean.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument.
    fn from_values(values: Values) -> Result<Self>;
}

/// Reads the options of a function, and refuses names that are neither among its arguments nor among
/// those that the host handles by itself, `others`, in the host's own spelling.
///
/// # Errors
/// `unknown_argument` with the nearest known name, `missing_argument`, and what the values are refused with.
pub fn read<T: Options, A: Arguments>(from: &A, others: &[&str]) -> Result<T, A::Error> {
    Ok(T::from_values(read_values(from, T::ARGUMENTS, others)?)?)
}

/// The values of all arguments. It is compiled once for each host, whatever the options.
fn read_values<A: Arguments>(
    from: &A,
    arguments: &'static [Argument],
    others: &[&str],
) -> Result<Values, A::Error> {
    let own = arguments.iter();
    let own = own.filter(|argument| !matches!(argument.kind, Kind::Host));
    let own: Vec<String> = own.map(|argument| argument.spelled(A::SPELLING)).collect();
    let known: Vec<&str> = own
        .iter()
        .map(String::as_str)
        .chain(others.iter().copied())
        .collect();
    for name in from.names()? {
        if !known.contains(&name.as_str()) {
            return Err(unknown(&name, nearest(&name, &known)).into());
        }
    }
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let name = argument.spelled(A::SPELLING);
        values.push(match argument.kind {
            Kind::Host => None,
            Kind::Nested(arguments) => match from.nested(&name)? {
                Some(nested) => Some(Value::Nested(read_values(&nested, arguments, &[])?)),
                None => None,
            },
            kind => from.value(&name, kind)?,
        });
    }
    Ok(Values::new(arguments, values))
}

fn unknown(name: &str, near: Option<&str>) -> Error {
    let message = match near {
        Some(near) => format!("there is no such argument; did you mean {near}?"),
        None => "there is no such argument".to_owned(),
    };
    Error::argument(Name::of_caller(name), Code::UnknownArgument, message)
}

/// Declares the options of a function: a struct, and beside it what every host reads of it.
///
/// Each field is an argument. Its type says how a value is read, or else a [`Kind`](crate::arguments::Kind)
/// in brackets; `[Host]` is for what the host sets by itself after reading, and is not read under its name. An argument without a default is
/// required. Times end in `_ms` or `_s`, which each host spells in its own way.
///
/// The struct has a function `with_defaults`, which takes the required arguments; `struct X: Default` says
/// that there are none.
///
/// ```
/// tallyfold::options! {
///     /// How to wait.
///     #[derive(Debug, PartialEq)]
///     pub struct WaitOptions {
///         /// For whom.
///         name: String,
///         /// For how long, in milliseconds.
///         patience_ms: u64 [Milliseconds] = 900_000,
///         /// What else to look at.
///         also: Option<Vec<String>> = None,
///     }
/// }
/// assert_eq!(WaitOptions::with_defaults("me".to_owned()).patience_ms, 900_000);
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Options:ident $(: $Default:ident)? {
            $(
                $(#[doc = $doc:expr])*
                $field:ident : $type:ty $([$kind:ident])? $(= $default:expr)?
            ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $Options {
            $( $(#[doc = $doc])* pub $field: $type, )+
        }

        impl $crate::arguments::Options for $Options {
            const ARGUMENTS: &'static [$crate::arguments::Argument] = &[
                $( $crate::options!(@argument $field, $type, [$($kind)?], [$($default)?], [$($doc)*]) ),+
            ];

            fn from_values(mut values: $crate::arguments::Values) -> $crate::Result<Self> {
                Ok(Self {
                    $( $field: $crate::options!(@take values, [$($kind)?], [$($default)?]), )+
                })
            }
        }

        $crate::options!(@with_defaults $Options [] [] $( $field: $type = [$($default)?] )+);

        $(
            impl $Default for $Options {
                fn default() -> Self {
                    Self::with_defaults()
                }
            }
        )?
    };
    (@argument $field:ident, $type:ty, [$($kind:ident)?], [$($default:expr)?], [$($doc:expr)*]) => {
        $crate::arguments::Argument {
            name: stringify!($field),
            kind: $crate::options!(@kind $type, $($kind)?),
            surface: $crate::surface_of!($type, [$($default)?], [$($doc)*]),
        }
    };
    (@kind $type:ty,) => { <$type as $crate::arguments::Parameter>::KIND };
    (@kind $type:ty, $kind:ident) => { $crate::arguments::Kind::$kind };
    (@take $values:ident, [Host], [$default:expr]) => {{
        $values.skip();
        $default
    }};
    (@take $values:ident, [$($kind:ident)?], []) => { $values.required()? };
    (@take $values:ident, [$($kind:ident)?], [$default:expr]) => {
        match $values.optional()? {
            Some(value) => value,
            None => $default,
        }
    };
    // Sorts the fields into those that are required and those that have a default.
    (@with_defaults $Options:ident [$($required:tt)*] [$($usual:tt)*] $field:ident: $type:ty = [] $($rest:tt)*) => {
        $crate::options!(@with_defaults $Options [$($required)* $field: $type,] [$($usual)*] $($rest)*);
    };
    (
        @with_defaults $Options:ident [$($required:tt)*] [$($usual:tt)*]
        $field:ident: $type:ty = [$default:expr] $($rest:tt)*
    ) => {
        $crate::options!(@with_defaults $Options [$($required)*] [$($usual)* $field: $default,] $($rest)*);
    };
    (@with_defaults $Options:ident [$($field:ident: $type:ty,)*] [$($usual:tt)*]) => {
        impl $Options {
            /// The options with these arguments, and the default of each other one.
            #[must_use]
            pub fn with_defaults($($field: $type),*) -> Self {
                Self { $($field,)* $($usual)* }
            }
        }
    };
}

/// The [`Surface`](crate::arguments::Surface) of an argument, which only makers of manuals pay for.
#[cfg(feature = "surface")]
#[macro_export]
#[doc(hidden)]
macro_rules! surface_of {
    ($type:ty, [$($default:expr)?], [$($doc:expr)*]) => {{
        const SHOWN: &[fn() -> String] = &[$(
            || {
                let usual: $type = $default;
                format!("{usual:?}")
            }
        )?];
        Some(&$crate::arguments::Surface {
            doc: concat!($($doc, "\n"),*),
            rust: stringify!($type),
            default: SHOWN.first().copied(),
        })
    }};
}

/// The [`Surface`](crate::arguments::Surface) of an argument, which only makers of manuals pay for.
#[cfg(not(feature = "surface"))]
#[macro_export]
#[doc(hidden)]
macro_rules! surface_of {
    ($($of:tt)*) => {
        None
    };
}
