//! Rules that users write, as a TOML file.

pub(crate) mod document;
pub(crate) mod judging;
pub(crate) mod names;
pub(crate) mod need;
pub(crate) mod read;
pub(crate) mod read_rule;
pub(crate) mod read_test;
pub(crate) mod rule;
pub(crate) mod set;
pub(crate) mod silence;
pub(crate) mod standard;
pub(crate) mod values;
