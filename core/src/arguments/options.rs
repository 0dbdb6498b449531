//! Declares and reads all arguments of a function.

use super::argument::{Argument, Kind, Value, Values};
use super::source::Arguments;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::spelling::Name;
use crate::text::nearest;

/// The options of a function. [`options!`](crate::options) makes them.
pub trait Options: Sized {
    /// Every argument, in the order of the declaration.
    const ARGUMENTS: &'static [Argument];

    /// The lines of the documentation; empty without the feature `surface`.
    const ABOUT: &'static [&'static str];

    /// Makes the options from these values.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument.
    fn from_values(values: Values) -> Result<Self>;

    /// Replaces these values by the values that were given.
    ///
    /// # Errors
    /// As [`Options::from_values`].
    fn over(self, values: Values) -> Result<Self>;
}

/// A value for an option of type `T`: a `T`, or the value inside it if `T` is an `Option`. A `&str` may be passed for a
/// text, a `String` for a secret, and an array for a list that may be absent.
pub trait Setting<T> {
    /// The value as a `T`.
    fn setting(self) -> T;
}

impl<T> Setting<T> for T {
    fn setting(self) -> T {
        self
    }
}

impl<T> Setting<Option<T>> for T {
    fn setting(self) -> Option<T> {
        Some(self)
    }
}

impl Setting<String> for &str {
    fn setting(self) -> String {
        self.to_owned()
    }
}

impl Setting<Option<String>> for &str {
    fn setting(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl Setting<Secret> for String {
    fn setting(self) -> Secret {
        Secret::from(self)
    }
}

impl Setting<Option<Secret>> for String {
    fn setting(self) -> Option<Secret> {
        Some(Secret::from(self))
    }
}

impl<T, const N: usize> Setting<Option<Vec<T>>> for [T; N] {
    fn setting(self) -> Option<Vec<T>> {
        Some(self.into())
    }
}

/// Reads the options of a function. It refuses names that are neither arguments of the function nor
/// in `others`: the names that the host handles itself, in the host's spelling.
///
/// # Errors
/// `unknown_argument` with the nearest known name, `missing_argument`, and the errors of
/// invalid values.
pub fn read<T: Options, A: Arguments>(from: &A, others: &[&str]) -> Result<T, A::Error> {
    Ok(T::from_values(read_values(from, T::ARGUMENTS, others)?)?)
}

/// Reads options over those that the program has set: the values that the caller wrote replace them. No argument is
/// required.
///
/// # Errors
/// As [`read`].
pub fn read_over<T: Options, A: Arguments>(
    options: T,
    from: &A,
    others: &[&str],
) -> Result<T, A::Error> {
    Ok(options.over(read_values(from, T::ARGUMENTS, others)?)?)
}

/// Reads the values of all arguments. This function is compiled once for each host, not once for
/// each kind of options.
fn read_values<A: Arguments>(
    from: &A,
    arguments: &'static [Argument],
    others: &[&str],
) -> Result<Values, A::Error> {
    let own = arguments.iter();
    let own = own.filter(|argument| !matches!(argument.kind, Kind::Host));
    let own: Vec<String> = own.map(|argument| argument.spelled(A::SPELLING)).collect();
    let known: Vec<&str> = own.iter().map(String::as_str).chain(others.iter().copied()).collect();
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

/// Declares the options of a function: a struct, and a description of its arguments, with which every host reads them.
///
/// Each field is an argument. The first paragraph of its doc comment is the summary that a manual shows first. A text in
/// backticks is a value, or the name of another argument. Write no links there, because not every manual resolves them.
/// The type of the field, or a [`Kind`](crate::arguments::Kind) in brackets, determines how a value is read. `[Host]` is
/// for fields that the host sets itself after reading; they are not read by name. Arguments without a default are
/// required, and must be declared before all others. Names of times end in `_ms` or `_s`, which each host spells in its
/// own way.
///
/// The struct has a function `with_defaults`, which takes the required arguments, and a method for each argument that
/// replaces its value. Other crates build it with these, because it is `#[non_exhaustive]`, so that a new argument with a
/// default breaks no program. Write `struct X: Default` if no argument is required.
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
/// let options = WaitOptions::with_defaults("me".to_owned()).also(vec!["the door".to_owned()]);
/// assert_eq!(options.patience_ms, 900_000);
/// assert_eq!(options.patience_ms(5).patience_ms, 5);
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[$($meta:tt)*])*
        $vis:vis struct $Options:ident $(: $Default:ident)? {
            $(
                $(#[doc = $doc:expr])*
                $field:ident : $type:ty $([$kind:ident])? $(= $default:expr)?
            ),+ $(,)?
        }
    ) => {
        $(#[$($meta)*])*
        #[non_exhaustive]
        $vis struct $Options {
            $( $(#[doc = $doc])* pub $field: $type, )+
        }

        #[allow(dead_code, reason = "a program sets some of the options")]
        impl $Options { $(
            $(#[doc = $doc])*
            #[must_use]
            pub fn $field(mut self, $field: impl $crate::arguments::Setting<$type>) -> Self {
                self.$field = $field.setting();
                self
            }
        )+ }

        impl $crate::arguments::Options for $Options {
            const ARGUMENTS: &'static [$crate::arguments::Argument] = &[
                $( $crate::options!(@argument $field, $type, [$($kind)?], [$($default)?], [$($doc)*]) ),+
            ];

            const ABOUT: &'static [&'static str] = $crate::about_of!($([$($meta)*])*);

            fn from_values(values: $crate::arguments::Values) -> $crate::Result<Self> {
                Self::of_values(values)
            }

            fn over(mut self, mut values: $crate::arguments::Values) -> $crate::Result<Self> {
                $( $crate::options!(@set values, self.$field, [$($kind)?]); )+
                values.check()?;
                Ok(self)
            }
        }

        $crate::options!(@sorted $Options [] [] $( $field: $type [$($kind)?] = [$($default)?] )+);

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
            surface: $crate::surface_of!([$($kind)?], $type, [$($default)?], [$($doc)*]),
        }
    };
    (@kind $type:ty,) => { <$type as $crate::arguments::Parameter>::KIND };
    (@kind $type:ty, $kind:ident) => { $crate::arguments::Kind::$kind };
    (@set $values:ident, $place:expr, [Host]) => { $values.skip() };
    (@set $values:ident, $place:expr, [$($kind:ident)?]) => { $values.set(&mut $place) };
    // Sorts the fields into those that are required, which come first, and those that have a default.
    (
        @sorted $Options:ident [$($required:tt)*] []
        $field:ident: $type:ty [$($kind:ident)?] = [] $($rest:tt)*
    ) => {
        $crate::options!(@sorted $Options [$($required)* $field: $type,] [] $($rest)*);
    };
    (
        @sorted $Options:ident [$($required:tt)*] [$($usual:tt)*]
        $field:ident: $type:ty [$($kind:ident)?] = [$default:expr] $($rest:tt)*
    ) => {
        $crate::options!(@sorted $Options [$($required)*] [$($usual)* $field [$($kind)?] = $default,] $($rest)*);
    };
    (
        @sorted $Options:ident [$($field:ident: $type:ty,)*]
        [$($usual:ident [$($kind:ident)?] = $default:expr,)*]
    ) => {
        impl $Options {
            /// Options with these arguments and the defaults of all others.
            #[must_use]
            pub fn with_defaults($($field: $type),*) -> Self {
                Self { $($field,)* $($usual: $default,)* }
            }

            #[allow(unused_mut, reason = "some options have no defaults")]
            fn of_values(mut values: $crate::arguments::Values) -> $crate::Result<Self> {
                let mut options = Self::with_defaults($(values.required::<$type>()?),*);
                $( $crate::options!(@set values, options.$usual, [$($kind)?]); )*
                values.check()?;
                Ok(options)
            }
        }
    };
}

/// The [`Surface`](crate::arguments::Surface) of an argument, which only programs with the feature `surface` contain.
#[cfg(feature = "surface")]
#[macro_export]
#[doc(hidden)]
macro_rules! surface_of {
    ([Host], $($of:tt)*) => {
        None
    };
    ([$($kind:ident)?], $type:ty, [$($default:expr)?], [$($doc:expr)*]) => {{
        const DEFAULT: &[fn() -> Option<$crate::arguments::Value>] = &[$(
            || <$type as $crate::arguments::Parameter>::to_value(&$default)
        )?];
        Some(&$crate::arguments::Surface {
            lines: &[$($doc),*],
            rust: stringify!($type),
            choices: <$type as $crate::arguments::Parameter>::choices,
            default: DEFAULT.first().copied(),
        })
    }};
}

/// The lines of documentation among these attributes.
#[cfg(feature = "surface")]
#[macro_export]
#[doc(hidden)]
macro_rules! about_of {
    (@line [doc = $line:expr]) => { $line };
    (@line $other:tt) => { "" };
    ($($attribute:tt)*) => { &[$( $crate::about_of!(@line $attribute) ),*] };
}

/// The lines of documentation among these attributes.
#[cfg(not(feature = "surface"))]
#[macro_export]
#[doc(hidden)]
macro_rules! about_of {
    ($($of:tt)*) => {
        &[]
    };
}

/// The [`Surface`](crate::arguments::Surface) of an argument, which only programs with the feature `surface` contain.
#[cfg(not(feature = "surface"))]
#[macro_export]
#[doc(hidden)]
macro_rules! surface_of {
    ($($of:tt)*) => {
        None
    };
}
