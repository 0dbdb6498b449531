//! A file for each command, named as the command.

pub(crate) mod counts;
pub(crate) mod delivery;
pub(crate) mod each;
pub(crate) mod exporter;
pub(crate) mod follow;
pub(crate) mod ingestion;
pub(crate) mod push;
pub(crate) mod receiver;
pub(crate) mod sandbox;
pub(crate) mod sending;
pub(crate) mod serve;
pub(crate) mod telling;
