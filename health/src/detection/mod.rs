//! Whether a count is too far from what was expected.
