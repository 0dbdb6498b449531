//! The clusters to query, and their settings. Flags override the environment, which overrides the file.
//!
//! - `find` finds the file and checks who can change it; `trust` remembers which files of working folders the user trusts;
//!   `document` decodes the text of a file and turns its errors into failures.
//! - `keys` lists the keys of each section and reads their values; `sections` reads whole sections.
//! - `load` merges flags, environment and file; `settings` defines the result.
//! - `template` is the configuration that `tallyfold init` writes.

mod document;
pub(crate) mod find;
#[cfg(test)]
mod hostile;
mod keys;
pub(crate) mod load;
pub(crate) mod sections;
pub(crate) mod settings;
pub(crate) mod template;
pub(crate) mod trust;
