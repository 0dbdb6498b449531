//! Which clusters are queried, and with which settings: flags over the environment over a file.

mod document;
mod find;
#[cfg(test)]
mod hostile;
mod keys;
pub(crate) mod load;
mod sections;
pub(crate) mod settings;
pub(crate) mod template;
