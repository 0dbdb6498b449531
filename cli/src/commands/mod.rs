//! A file for each command, named as the command.

pub(crate) mod audit_logs;
pub(crate) mod collect;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod counts;
pub(crate) mod delivery;
pub(crate) mod doctor;
pub(crate) mod each;
pub(crate) mod exporter;
pub(crate) mod follow;
pub(crate) mod ingestion;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod push;
pub(crate) mod receiver;
pub(crate) mod sandbox;
pub(crate) mod schema;
pub(crate) mod sending;
pub(crate) mod serve;
pub(crate) mod telling;
pub(crate) mod verdict;
pub(crate) mod watch;
