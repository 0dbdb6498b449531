//! Exact, grouped counts from an event router's metrics API.
#![forbid(unsafe_code)]
