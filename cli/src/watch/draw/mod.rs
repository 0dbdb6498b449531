//! Draws a state into a buffer, at any size.

mod panel;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod view;
