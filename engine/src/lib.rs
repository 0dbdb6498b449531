//! The hot loops of tallyfold, which turn the bytes of count entries into exact sums in columns.
//!
//! This crate works on bytes and small integers. It knows how an entry is written and how sums are
//! kept; it knows nothing of requests, windows, positions in a document or error messages. If it is
//! not sure how to read an entry, it leaves the entry to the core, which reads byte by byte and
//! finds any mistake.
//!
//! It is a separate crate so that it can be compiled for speed while everything else is compiled
//! for size.
#![deny(unsafe_code)]

mod cells;
mod counts;
mod dictionary;
mod digits;
mod entries;
mod group;
mod hash;
mod index;
mod interner;
mod key;
mod order;
mod packed;
mod prefix;
mod rates;
mod rows;
mod seek;
#[cfg(target_arch = "x86_64")]
mod simd;
mod sorted;
mod template;
mod text;

pub use counts::Counts;
pub use dictionary::Dictionary;
pub use digits::read_count;
pub use entries::{EntryLimits, EntryReader, Fields, Taken};
pub use hash::HashKeys;
pub use key::Key;
pub use packed::{Packed, PackedReading};
pub use rates::{Rates, quotient};
pub use rows::{Added, Refused, Rows, RowsBuilder, RowsLimits};
pub use text::{is_space, plain_text};
