//! Detects counts that are too far from what was expected.

pub(crate) mod cusum;
pub(crate) mod scan;
pub(crate) mod scan_fit;
pub(crate) mod scan_slots;
pub(crate) mod window;
