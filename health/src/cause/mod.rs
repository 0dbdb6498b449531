//! Which combinations of values explain a change.
