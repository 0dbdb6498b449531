//! Time: clocks as arguments, timestamps, windows, and the steps of a day.

pub(crate) mod now;
pub(crate) mod patience;
pub(crate) mod settling;
pub(crate) mod step;
pub(crate) mod timestamp;
pub(crate) mod window;
