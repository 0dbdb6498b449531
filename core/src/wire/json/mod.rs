//! Reads JSON as it arrives: it takes chunks of any size and emits events. Every error has its path
//! and offset.
//!
//! The result depends only on the bytes, never on where a chunk ends. The lexer holds only the
//! current token, the keys of the open objects and perhaps the start of an element that was cut by
//! the end of a chunk.

pub(crate) mod double;
pub(crate) mod event;
pub(crate) mod lexer;
mod number;
pub(crate) mod path;
mod state;
mod text;
pub(crate) mod writer;
