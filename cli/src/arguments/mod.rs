//! Flags, and their conversion to the options of the core.
//!
//! - `declared` generates flags from the core's declarations; `query` and `following` define the flags of queries.
//! - `given` holds settings by name, from any source, and reads options from them; `secret` reads secrets.

pub(crate) mod declared;
pub(crate) mod following;
pub(crate) mod given;
pub(crate) mod query;
pub(crate) mod secret;
