//! The bytes around the values of an entry: as long as the next entry has the very same ones, its
//! structure is known.

use crate::counts::Counts;
use crate::digits::read_count;
use crate::rows::MOST_COLUMNS;
use crate::text::plain_text;

/// The values of one entry; dimensions in the order in which they were requested.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Values<'a> {
    pub(crate) counts: Counts,
    pub(crate) dimensions: [&'a [u8]; MOST_COLUMNS],
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Success,
    Errors,
    Filtered,
    /// By its position among the requested dimensions.
    Dimension(usize),
    /// The string of a field that nobody knows.
    Unknown,
}

impl<'a> Values<'a> {
    /// Reads the value after an opening quote; how many bytes it has.
    #[inline]
    pub(crate) fn read(
        &mut self,
        slot: Slot,
        bytes: &'a [u8],
        string_limit: usize,
    ) -> Option<usize> {
        let count = match slot {
            Slot::Success => &mut self.counts.success,
            Slot::Errors => &mut self.counts.errors,
            Slot::Filtered => &mut self.counts.filtered,
            Slot::Dimension(_) | Slot::Unknown => {
                let text = read_text(bytes, string_limit)?;
                if let Slot::Dimension(position) = slot {
                    self.dimensions[position] = text;
                }
                return Some(text.len());
            }
        };
        let length;
        (*count, length) = read_count(bytes)?;
        Some(length)
    }
}

/// The bytes before the next quote, if they are valid UTF-8 and none of them is a backslash or a
/// control character. Whether it is a quote that comes next is for the caller.
#[inline]
pub(crate) fn read_text(bytes: &[u8], limit: usize) -> Option<&[u8]> {
    let (length, is_ascii) = plain_text(bytes);
    let text = &bytes[..length];
    let is_plain = length <= limit && (is_ascii || str::from_utf8(text).is_ok());
    is_plain.then_some(text)
}

/// What an entry looks like.
#[derive(Debug)]
pub(crate) struct Template {
    /// The literal before each value, with the quotes around values, and what the value is.
    steps: Vec<(Literal, Slot)>,
    tail: Literal,
}

impl Template {
    /// The template of an entry whose values are there: where each starts and ends.
    pub(crate) fn of(entry: &[u8], values: &[(Slot, usize, usize)]) -> Self {
        let mut from = 0;
        let step = |(slot, start, end): &(Slot, usize, usize)| {
            let literal = Literal::new(&entry[std::mem::replace(&mut from, *end)..*start]);
            (literal, *slot)
        };
        let steps = values.iter().map(step).collect();
        Self {
            steps,
            tail: Literal::new(&entry[from..]),
        }
    }

    /// Reads the entry that the bytes start with, if it has the template's literals: its values,
    /// and how many bytes it has.
    #[inline]
    pub(crate) fn read<'a>(
        &self,
        bytes: &'a [u8],
        string_limit: usize,
    ) -> Option<(Values<'a>, usize)> {
        let mut values = Values::default();
        let mut rest = bytes;
        for (literal, slot) in &self.steps {
            rest = literal.strip(rest)?;
            let length = values.read(*slot, rest, string_limit)?;
            rest = &rest[length..];
        }
        rest = self.tail.strip(rest)?;
        Some((values, bytes.len() - rest.len()))
    }
}

/// Bytes to compare with, sixteen at a time.
#[derive(Debug)]
struct Literal {
    first: Block,
    others: Box<[Block]>,
    length: usize,
}

/// Sixteen bytes, and the bits of them that count.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    bytes: u128,
    mask: u128,
}

impl Block {
    fn new(bytes: &[u8]) -> Self {
        let mut block = [[0; 16]; 2];
        block[0][..bytes.len()].copy_from_slice(bytes);
        block[1][..bytes.len()].fill(0xFF);
        let [bytes, mask] = block.map(u128::from_le_bytes);
        Self { bytes, mask }
    }

    #[inline]
    fn differs(self, bytes: &[u8; 16]) -> bool {
        (u128::from_le_bytes(*bytes) ^ self.bytes) & self.mask != 0
    }
}

impl Literal {
    fn new(bytes: &[u8]) -> Self {
        let mut blocks = bytes.chunks(16).map(Block::new);
        Self {
            first: blocks.next().unwrap_or_default(),
            others: blocks.collect(),
            length: bytes.len(),
        }
    }

    /// What comes after this literal, if the bytes start with it and there are enough of them to
    /// compare whole blocks.
    #[inline]
    fn strip<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (block, mut rest) = bytes.split_first_chunk()?;
        if self.first.differs(block) {
            return None;
        }
        for other in &self.others {
            let block;
            (block, rest) = rest.split_first_chunk()?;
            if other.differs(block) {
                return None;
            }
        }
        bytes.get(self.length..)
    }
}
