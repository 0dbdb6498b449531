//! Defines flags, and converts them to options of the core.
//!
//! - `declared` generates flags from the core's declarations; `query` and `following` define the flags of queries.
//! - `given` contains settings by name, from any source, and converts them to options; `secret` reads secrets.

pub(crate) mod declared;
pub(crate) mod following;
pub(crate) mod given;
pub(crate) mod query;
pub(crate) mod secret;
