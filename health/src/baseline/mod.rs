//! Predicts a window from the windows before it.

pub(crate) mod fit;
pub(crate) mod levels;
pub(crate) mod sample;
pub(crate) mod stream;
pub(crate) mod variance;
