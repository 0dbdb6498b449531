//! JSON read as it arrives: bytes in chunks of any size, events out, every error with its place.
//!
//! What the lexer says depends on the bytes alone, never on where a chunk ends. It holds the
//! token that it is in, the keys of the open objects and perhaps the start of an element that a
//! chunk cut, and no more.

pub(crate) mod double;
pub(crate) mod event;
pub(crate) mod lexer;
mod number;
pub(crate) mod path;
mod state;
mod text;
