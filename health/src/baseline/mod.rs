//! What is expected of a window, by the windows before it.

pub(crate) mod basis;
mod choice;
pub(crate) mod expectation;
mod fit;
pub(crate) mod level;
pub(crate) mod levels;
mod noise;
pub(crate) mod prepared;
mod sample;
pub(crate) mod season;
pub(crate) mod stream;
mod sums;
mod trend;
