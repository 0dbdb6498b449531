//! What callers are asked for: each argument's name, kind, default and meaning stand once, in the
//! [`options!`](crate::options) of the function that takes it, and every host reads them from there.
//!
//! A host shows what its caller wrote as [`Arguments`]: a Python mapping, a JavaScript object. From it
//! [`read`] makes the options, and refuses what is missing, of no use, or of no known name.

pub(crate) mod argument;
pub(crate) mod names;
pub(crate) mod nearest;
pub(crate) mod options;
mod parameter;
pub(crate) mod source;
pub(crate) mod value;

pub use argument::{Argument, Kind, Surface};
#[doc(hidden)]
pub use names::want_one_of;
pub use options::{Options, read};
pub use source::Arguments;
pub use value::{Parameter, Value, Values};
