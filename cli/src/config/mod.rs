//! Which clusters are asked, and with which settings: flags over the environment over a file.

mod document;
mod find;
pub(crate) mod flags;
#[cfg(test)]
mod hostile;
mod keys;
pub(crate) mod load;
mod owner;
mod private;
mod run;
pub(crate) mod secret;
mod sections;
pub(crate) mod settings;
pub(crate) mod template;
mod value;
