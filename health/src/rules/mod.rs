//! Rules: their kinds, how they are read from a file or made from values, and how they judge windows.

pub(crate) mod baseline;
pub(crate) mod judging;
pub(crate) mod kind;
pub mod kinds;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod rule;
pub(crate) mod set;
pub(crate) mod values;
pub(crate) mod wording;
