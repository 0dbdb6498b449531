//! Which clusters are queried, and with which settings: flags over the environment over a file.
//!
//! - `find` looks for the file and checks who can change it; `document` parses it and knows the position of each key.
//! - `keys` lists the keys of each section and reads their values; `sections` reads whole sections.
//! - `load` puts flags, environment and file together; the result is in `settings`.
//! - `template` is the configuration that `tallyfold init` writes.

mod document;
mod find;
#[cfg(test)]
mod hostile;
mod keys;
pub(crate) mod load;
mod sections;
pub(crate) mod settings;
pub(crate) mod template;
