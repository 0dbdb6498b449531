//! The bytes around the values of an entry. If the next entry has exactly the same bytes there, its
//! structure is known.

use crate::digits::read_count;
use crate::key::Key;
use crate::rows::RowsBuilder;
use crate::text::{BLOCK, first_bytes, long_string_length, short_string_length, string_length};

/// The values of one entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) counts: [u64; 3],
}

/// The meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A count, by its position among the names of counts.
    Count(usize),
    /// A dimension that is kept in this column.
    Column(usize),
    /// A string that is not kept.
    Dropped,
}

impl Entry {
    /// Reads the value after an opening quote. Returns how many bytes it has.
    pub(crate) fn read(
        &mut self,
        slot: Slot,
        bytes: &[u8],
        string_limit: usize,
        rows: &mut RowsBuilder,
    ) -> Option<usize> {
        if let Slot::Count(count) = slot {
            return self.read_count(count, bytes);
        }
        let length = string_length(bytes).filter(|length| *length <= string_limit)?;
        self.keep(slot, bytes, length, rows)?;
        Some(length)
    }

    #[inline(always)]
    fn read_count(&mut self, count: usize, bytes: &[u8]) -> Option<usize> {
        let length;
        (self.counts[count], length) = read_count(bytes)?;
        Some(length)
    }

    /// Keeps the string at the start of the bytes, if its dimension is kept.
    ///
    /// It gets its id at once. If the rest of the entry is wrong, that is harmless: the code that reads
    /// the entry next finds the same string in the same place, or an error.
    #[inline(always)]
    fn keep(
        &mut self,
        slot: Slot,
        bytes: &[u8],
        length: usize,
        rows: &mut RowsBuilder,
    ) -> Option<()> {
        if let Slot::Column(column) = slot {
            self.key[column] = rows.intern_in(column, bytes, length)?;
        }
        Some(())
    }
}

/// The form of an entry.
#[derive(Debug)]
pub(crate) struct Template(Vec<Step>);

/// Up to 32 bytes that are required, and the value after them.
#[derive(Clone, Copy, Debug)]
struct Step {
    bytes: [u128; 2],
    /// A mask for the bytes that are compared.
    mask: [u128; 2],
    length: usize,
    value: Option<Slot>,
    /// Whether any value here has been at least as long as a block.
    is_long: bool,
}

impl Step {
    /// A step over the first `length` of the bytes, at most [`LITERAL`] of them.
    fn new(bytes: &[u8], length: usize, value: Option<Slot>) -> Self {
        let block = bytes.first_chunk().copied().unwrap_or_else(|| {
            let mut block = [0; LITERAL];
            block[..bytes.len()].copy_from_slice(bytes);
            block
        });
        Self {
            bytes: halves(&block),
            mask: halves(&first_bytes(length)),
            length,
            value,
            is_long: false,
        }
    }

    /// The length of the string value, up to a limit that is at least a block.
    #[inline(always)]
    fn string_length(&mut self, bytes: &[u8], limit: usize) -> Option<usize> {
        if self.is_long {
            return long_string_length(bytes).filter(|length| *length <= limit);
        }
        match short_string_length(bytes) {
            Some(length) => Some(length),
            None => self.other_string_length(bytes, limit),
        }
    }

    /// The same for a string that is longer than the previous ones or not ASCII.
    #[cold]
    fn other_string_length(&mut self, bytes: &[u8], limit: usize) -> Option<usize> {
        let length = string_length(bytes).filter(|length| *length <= limit)?;
        self.is_long |= length >= BLOCK;
        Some(length)
    }
}

impl Template {
    /// Makes a template from the entry at the start of the bytes, by its length and the position of
    /// each value.
    pub(crate) fn of(bytes: &[u8], length: usize, values: &[(Slot, usize, usize)]) -> Self {
        let mut steps = Vec::with_capacity(values.len() + 2);
        let mut from = 0;
        let tail = (None, length, length);
        let values = values.iter().map(|(slot, start, end)| (Some(*slot), *start, *end));
        for (value, start, end) in values.chain([tail]) {
            // A literal is never empty: it has the quote before its value, or the brace at the end.
            while from < start {
                let length = (start - from).min(LITERAL);
                let value = value.filter(|_| from + length == start);
                steps.push(Step::new(&bytes[from..], length, value));
                from += length;
            }
            from = end;
        }
        Self(steps)
    }

    /// Reads the entry at the start of the bytes, if it has the template's literals. Returns how
    /// many bytes it has. A few more bytes must follow, because whole blocks are compared.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        string_limit: usize,
        rows: &mut RowsBuilder,
        entry: &mut Entry,
    ) -> Option<usize> {
        let mut at = 0;
        for step in &mut self.0 {
            let block = bytes.get(at..)?.first_chunk()?;
            let [low, high] = halves(block);
            let low = (low ^ step.bytes[0]) & step.mask[0];
            let high = (high ^ step.bytes[1]) & step.mask[1];
            if low | high != 0 {
                return None;
            }
            at += step.length;
            if let Some(slot) = step.value {
                let rest = bytes.get(at..)?;
                at += match slot {
                    Slot::Count(count) => entry.read_count(count, rest)?,
                    Slot::Column(_) | Slot::Dropped => {
                        let length = step.string_length(rest, string_limit)?;
                        entry.keep(slot, rest, length, rows)?;
                        length
                    }
                };
            }
        }
        Some(at)
    }
}

/// How many bytes are compared in one go.
const LITERAL: usize = BLOCK;

/// An entry can be read if this many bytes follow it.
pub(crate) const PADDING: usize = LITERAL;

#[inline]
fn halves(block: &[u8; LITERAL]) -> [u128; 2] {
    let (halves, _) = block.as_chunks();
    [halves[0], halves[1]].map(u128::from_le_bytes)
}
