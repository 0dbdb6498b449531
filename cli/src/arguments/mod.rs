//! Flags, and how they become the options of the core.
//!
//! - `declared` makes flags from the core's declarations; `query` and `following` have the flags of queries.
//! - `given` holds settings by name, wherever they were written, and reads options from them; `secret` reads secrets.

pub(crate) mod declared;
pub(crate) mod following;
pub(crate) mod given;
pub(crate) mod query;
pub(crate) mod secret;
