//! A server for web apps: which requests it accepts, and how it responds.
//!
//! A web app requests the paths of the service from the server, with a client that has no tokens. `asked` reads the request,
//! and the host makes the call on behalf of the server. `answer` is the response, even if the call has failed. `windows` and
//! `lines` are the request for all windows of a range, and its response. `permission` limits responses to the rows that a
//! user may see. `kept` is the form in which a store keeps responses. `error_log` decides which failed calls get a line in
//! the server's log.

pub(crate) mod answer;
pub(crate) mod asked;
pub(crate) mod error_log;
pub(crate) mod kept;
pub(crate) mod lines;
pub(crate) mod permission;
pub(crate) mod windows;
