//! Draws a state into a buffer, at any size.

pub(crate) mod canvas;
mod columns;
mod help;
mod panel;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod view;
