//! Detects counts that are too far from what was expected.

pub(crate) mod scan;
pub(crate) mod scan_fit;
pub(crate) mod window;
