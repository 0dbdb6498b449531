//! All arguments of a function together.

use super::argument::Argument;
use super::nearest::nearest;
use super::parameter::Parameter;
use super::source::Arguments;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::spelling::Name;

/// The options of a function. [`options!`](crate::options) makes them.
pub trait Options: Sized {
    /// Every argument, in the order of the declaration.
    const ARGUMENTS: &'static [Argument];

    /// The options that a host's caller gave.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument.
    fn read<A: Arguments>(from: &A) -> Result<Self, A::Error>;
}

/// Reads the options of a function, and refuses names that are neither among its arguments nor among
/// those that the host handles by itself, `others`, in the host's own spelling.
///
/// # Errors
/// `unknown_argument` with the nearest known name, `missing_argument`, and what the values are refused with.
pub fn read<T: Options, A: Arguments>(from: &A, others: &[&str]) -> Result<T, A::Error> {
    let own = T::ARGUMENTS.iter();
    let own: Vec<String> = own.map(|argument| argument.spelled(A::SPELLING)).collect();
    let known = || own.iter().map(String::as_str).chain(others.iter().copied());
    for name in from.names()? {
        if !known().any(|known| known == name) {
            return Err(unknown(&name, nearest(&name, known())).into());
        }
    }
    T::read(from)
}

fn unknown(name: &str, near: Option<&str>) -> Error {
    let message = match near {
        Some(near) => format!("there is no such argument; did you mean {near}?"),
        None => "there is no such argument".to_owned(),
    };
    Error::argument(Name::of_caller(name), Code::UnknownArgument, message)
}

/// The value of one argument, or its default.
#[doc(hidden)]
pub fn read_one<T: Parameter, A: Arguments>(
    from: &A,
    argument: &Argument,
    default: Option<fn() -> T>,
) -> Result<T, A::Error> {
    match T::take(from, argument)?.or_else(|| default.map(|default| default())) {
        Some(value) => Ok(value),
        None => Err(Error::argument(argument.name, Code::MissingArgument, "required").into()),
    }
}

/// Declares the options of a function: a struct, and beside it what every host reads of it.
///
/// Each field is an argument. Its type says how a value is read, or else a [`Kind`](crate::arguments::Kind)
/// in brackets; `[Host]` is for what the host sets by itself after reading. An argument without a default is
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

            fn read<A: $crate::arguments::Arguments>(from: &A) -> Result<Self, A::Error> {
                Ok(Self { $(
                    $field: $crate::options!(
                        @read from, $field, $type, [$($kind)?], [$($default)?], [$($doc)*]
                    ),
                )+ })
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
            #[cfg(feature = "surface")]
            surface: $crate::arguments::Surface {
                doc: concat!($($doc, "\n"),*),
                rust: stringify!($type),
                default: $crate::options!(@shown $($default)?),
            },
        }
    };
    (@kind $type:ty,) => { <$type as $crate::arguments::Parameter>::KIND };
    (@kind $type:ty, $kind:ident) => { $crate::arguments::Kind::$kind };
    (@shown) => { None };
    (@shown $default:expr) => { Some(|| format!("{:?}", $default)) };
    (@read $from:ident, $field:ident, $type:ty, [Host], [$default:expr], [$($doc:expr)*]) => { $default };
    (@read $from:ident, $field:ident, $type:ty, [$($kind:ident)?], [$($default:expr)?], [$($doc:expr)*]) => {{
        const ARGUMENT: $crate::arguments::Argument =
            $crate::options!(@argument $field, $type, [$($kind)?], [$($default)?], [$($doc)*]);
        $crate::arguments::read_one::<$type, A>($from, &ARGUMENT, $crate::options!(@default $($default)?))?
    }};
    (@default) => { None };
    (@default $default:expr) => { Some(|| $default) };
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
