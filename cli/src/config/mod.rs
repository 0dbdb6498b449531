//! Which clusters are asked, and with which settings: flags over the environment over a file.

pub(crate) mod flags;
pub(crate) mod load;
pub(crate) mod settings;
