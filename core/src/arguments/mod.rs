//! How options are declared and read. Each argument's name, kind, default and meaning are declared
//! once, in the [`options!`](crate::options) of the function that takes it; every host uses that
//! declaration.
//!
//! A host implements [`Arguments`] for what its callers write, such as a Python mapping or a
//! JavaScript object. [`read`] makes options from it, and refuses missing arguments, invalid values
//! and unknown names.

pub(crate) mod argument;
pub(crate) mod names;
pub(crate) mod options;
mod parameter;
pub(crate) mod source;
#[cfg(feature = "toml")]
pub mod toml;

pub use argument::{Argument, Kind, Parameter, Surface, Unit, Value, Values};
#[doc(hidden)]
pub use names::want_one_of;
pub use options::{Options, Setting, read, read_over};
pub use source::Arguments;
