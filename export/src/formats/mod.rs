//! One file per format. The list of all of them is in [`format`](crate::format).

pub(crate) mod openmetrics;
