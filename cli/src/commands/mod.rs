//! A file for each command, with the command's name; `counts` is `delivery` and `ingestion`. Parts of a command are in
//! a folder with its name.

pub(crate) mod audit_logs;
pub(crate) mod check;
pub(crate) mod collect;
pub(crate) mod compare;
pub(crate) mod counts;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod follow;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod push;
pub(crate) mod sandbox;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod trust;
pub(crate) mod watch;
