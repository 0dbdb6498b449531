//! Reads the settings of the clusters to query. Flags override the environment, which overrides the configuration file.
//!
//! - `find` finds the file, checks who can change it, and stores which files in working folders the user trusts.
//! - `keys` lists the keys of each section and reads their values; `sections` reads whole sections.
//! - `load` merges flags, environment and file; `settings` defines the result.
//! - `template` creates the configuration that `tallyfold init` writes.

pub(crate) mod find;
mod keys;
pub(crate) mod load;
pub(crate) mod sections;
pub(crate) mod settings;
pub(crate) mod template;
