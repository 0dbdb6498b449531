//! Detects counts that are too far from the expected count.

pub(crate) mod scan;
pub(crate) mod scan_fit;
pub(crate) mod window;
