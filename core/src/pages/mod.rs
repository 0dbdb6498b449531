//! A server for web apps: what a page may ask it, and what it answers.
//!
//! A page asks the server the same paths as the service, with a client that has no tokens. `asked` reads the request;
//! the host makes the call in the server's name; `answer` is what the page gets, also if the call has failed. `windows` and
//! `lines` are the question for all windows of a range, and its answer. `permission` narrows answers to the rows that a user
//! may see. `error_log` decides which failed calls are a line of the server's log.

pub(crate) mod answer;
pub(crate) mod asked;
pub(crate) mod error_log;
pub(crate) mod kept;
pub(crate) mod lines;
pub(crate) mod permission;
pub(crate) mod windows;
