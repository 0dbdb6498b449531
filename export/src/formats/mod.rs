//! One file per format.

pub(crate) mod openmetrics;
