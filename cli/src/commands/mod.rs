//! A file for each command, named as the command.

pub(crate) mod collect;
pub(crate) mod compare;
pub(crate) mod counts;
pub(crate) mod delivery;
pub(crate) mod each;
pub(crate) mod ingestion;
pub(crate) mod sandbox;
