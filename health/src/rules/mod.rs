//! Rules: the kinds that there are, what is read from a rules file or given as values, and how windows are judged.

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
