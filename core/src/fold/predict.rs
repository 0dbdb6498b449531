//! Shape prediction: the service writes every entry the same way, so the bytes around its values
//! are known before they come.
//!
//! A [`Template`] holds those bytes. As long as the next entry has the very same ones, and values
//! that are plain (digits; strings without escapes), its structure is that of the entry which the
//! template was learned from, and that one went through the lexer. Anything else is left to the
//! lexer, entry by entry; so are errors, which it finds again with their place.

use crate::dimension::{Dimension, Dimensions};
use crate::json::{LOW_BITS, Taken, is_space, plain_text};
use crate::table::Counts;

/// Reads entries that look like the last one, and learns from those that do not.
#[derive(Debug)]
pub(super) struct Predictor {
    requested: Dimensions,
    string_limit: usize,
    template: Option<Template>,
    /// Entries in a row that were not predicted.
    misses: u32,
}

/// The values of one entry; dimensions in the order in which they were requested, as UTF-8.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values<'a> {
    pub(super) counts: Counts,
    pub(super) dimensions: [&'a [u8]; Dimensions::MOST],
}

/// After so many misses in a row, only every so-manieth entry is learned from: a service that
/// writes each entry in another way is not worth predicting.
const PATIENCE: u32 = 8;
const LEARN_EVERY: u32 = 64;

impl Predictor {
    pub(super) fn new(requested: Dimensions, string_limit: usize) -> Self {
        Self {
            requested,
            string_limit,
            template: None,
            misses: 0,
        }
    }

    /// Takes entries from the start of `rest` for as long as they are as predicted and `accept`
    /// takes them.
    pub(super) fn take<'a>(
        &mut self,
        rest: &'a [u8],
        mut accept: impl FnMut(&Values<'a>) -> bool,
    ) -> Taken {
        let mut taken = Taken::default();
        if let Some(template) = &self.template {
            let mut next = Some(rest);
            while let Some(entry) = next {
                let Some((values, after)) = template.read(entry, self.string_limit) else {
                    break;
                };
                if !accept(&values) {
                    break;
                }
                taken.bytes = rest.len() - after.len();
                taken.elements += 1;
                next = next_entry(after);
            }
        }
        if taken.elements > 0 {
            self.misses = 0;
            return taken;
        }
        self.misses = self.misses.saturating_add(1);
        if self.misses <= PATIENCE || self.misses.is_multiple_of(LEARN_EVERY) {
            let learned = Template::learn(rest, &self.requested);
            self.template = learned.or(self.template.take());
        }
        taken
    }
}

/// Where the next entry starts, if a comma and white space are all that is before it.
fn next_entry(after: &[u8]) -> Option<&[u8]> {
    let after = after.strip_prefix(b",")?;
    let entry = skip_space(after);
    entry.starts_with(b"{").then_some(entry)
}

/// The bytes around the values of an entry, and which value is where.
#[derive(Debug, Default)]
struct Template {
    /// The literals before each value, each with its opening quote.
    parts: Vec<(Literal, Slot)>,
    tail: Literal,
}

/// Bytes to compare with, eight at a time.
#[derive(Debug, Default)]
struct Literal {
    /// Each with the bits that count.
    words: Vec<(u64, u64)>,
    length: usize,
}

impl Literal {
    fn new(bytes: &[u8]) -> Self {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            let mut mask = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            mask[..bytes.len()].fill(0xFF);
            (u64::from_le_bytes(word), u64::from_le_bytes(mask))
        };
        Self {
            words: bytes.chunks(8).map(word).collect(),
            length: bytes.len(),
        }
    }

    /// What comes after this literal, if the bytes start with it and there are enough of them to
    /// compare whole words.
    #[inline]
    fn strip<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let mut difference = 0;
        let mut rest = bytes;
        for (word, mask) in &self.words {
            let (chunk, after) = rest.split_first_chunk()?;
            difference |= (u64::from_le_bytes(*chunk) ^ word) & mask;
            rest = after;
        }
        if difference != 0 {
            return None;
        }
        bytes.get(self.length..)
    }
}

/// A value that is read.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Success,
    Errors,
    Filtered,
    /// By its position among the requested dimensions.
    Dimension(usize),
}

impl Template {
    /// Reads one entry that has the template's bytes, and gives what comes after it.
    #[inline]
    fn read<'a>(&self, entry: &'a [u8], string_limit: usize) -> Option<(Values<'a>, &'a [u8])> {
        let mut values = Values::default();
        let mut rest = entry;
        for (literal, slot) in &self.parts {
            rest = literal.strip(rest)?;
            let count = match slot {
                Slot::Dimension(position) => {
                    let value;
                    (value, rest) = read_text(rest)?;
                    if value.len() > string_limit {
                        return None;
                    }
                    values.dimensions[*position] = value;
                    continue;
                }
                Slot::Success => &mut values.counts.success,
                Slot::Errors => &mut values.counts.errors,
                Slot::Filtered => &mut values.counts.filtered,
            };
            (*count, rest) = read_count(rest)?;
        }
        Some((values, self.tail.strip(rest)?))
    }

    /// Learns from the entry at the start of `rest`, unless it is cut, or too odd to be predicted.
    /// Whether it is a good entry is not asked: the lexer reads it too, and a bad one ends the fold.
    fn learn(rest: &[u8], requested: &Dimensions) -> Option<Self> {
        let mut learner = Learner {
            template: Self::default(),
            literal: Vec::new(),
            rest,
        };
        learner.literal(b"{")?;
        loop {
            match learner.key()? {
                b"success" => learner.value(Slot::Success)?,
                b"errors" => learner.value(Slot::Errors)?,
                b"filtered" => learner.value(Slot::Filtered)?,
                b"dimensions" => learner.dimensions(requested)?,
                _ => return None,
            }
            if learner.ends_object()? {
                break;
            }
        }
        learner.template.tail = Literal::new(&learner.literal);
        Some(learner.template)
    }
}

/// Walks through one entry and copies what is no value.
struct Learner<'a> {
    template: Template,
    /// What was copied since the last value.
    literal: Vec<u8>,
    rest: &'a [u8],
}

impl<'a> Learner<'a> {
    /// Copies so many bytes.
    fn copy(&mut self, length: usize) -> Option<()> {
        let (literal, rest) = self.rest.split_at_checked(length)?;
        self.literal.extend_from_slice(literal);
        self.rest = rest;
        Some(())
    }

    fn space(&mut self) -> Option<()> {
        self.copy(self.rest.len() - skip_space(self.rest).len())
    }

    /// Copies a byte that must come, and the white space around it.
    fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.space()?;
        self.rest.starts_with(expected).then_some(())?;
        self.copy(expected.len())?;
        self.space()
    }

    /// Copies a key and its colon.
    fn key(&mut self) -> Option<&'a [u8]> {
        let (name, _) = read_text(self.rest.strip_prefix(b"\"")?)?;
        self.copy(name.len() + 2)?;
        self.literal(b":")?;
        Some(name)
    }

    /// Copies the quotes around a value.
    fn value(&mut self, slot: Slot) -> Option<()> {
        self.rest.starts_with(b"\"").then_some(())?;
        self.copy(1)?;
        self.template
            .parts
            .push((Literal::new(&self.literal), slot));
        self.literal.clear();
        self.rest = read_text(self.rest)?.1;
        self.copy(1)
    }

    fn dimensions(&mut self, requested: &Dimensions) -> Option<()> {
        self.literal(b"{")?;
        loop {
            let name = str::from_utf8(self.key()?).ok()?;
            let position = requested.position(Dimension::from_name(name)?)?;
            self.value(Slot::Dimension(position))?;
            if self.ends_object()? {
                return Some(());
            }
        }
    }

    /// Copies a closing brace, or a comma and what is before the next key.
    fn ends_object(&mut self) -> Option<bool> {
        self.space()?;
        if self.rest.starts_with(b"}") {
            self.copy(1)?;
            return Some(true);
        }
        self.literal(b",")?;
        Some(false)
    }
}

fn skip_space(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .position(|byte| !is_space(*byte))
        .unwrap_or(bytes.len());
    &bytes[start..]
}

/// Up to 19 digits, which any `u64` can hold; whether a quote follows is for the next literal.
#[inline]
fn read_count(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let length = leading_digits(word);
    if length == 0 {
        return None;
    }
    if length < 8 {
        // Leading zeros take the place of what follows.
        let digits = word << (64 - 8 * length) | ZEROS >> (8 * length);
        return Some((parse_eight(digits), &bytes[length as usize..]));
    }
    let (head, rest) = (parse_eight(word), &bytes[8..]);
    let digits = rest
        .iter()
        .take(12)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let tail = |count: u64, byte: &u8| count * 10 + u64::from(byte - b'0');
    (digits < 12).then(|| (rest[..digits].iter().fold(head, tail), &rest[digits..]))
}

/// Eight times the digit 0.
const ZEROS: u64 = LOW_BITS * b'0' as u64;

/// How many of the first bytes are ASCII digits.
#[inline]
fn leading_digits(word: u64) -> u32 {
    let from_zero = word ^ ZEROS;
    // The high half of a byte is set unless the byte is a digit: 0 to 9 stay below 16 with 6 added.
    let others = (from_zero | from_zero.wrapping_add(LOW_BITS * 6)) & (LOW_BITS * 0xF0);
    others.trailing_zeros() / 8
}

/// The number that eight digits are, the first one in the lowest byte.
#[inline]
fn parse_eight(word: u64) -> u64 {
    let digits = word & (LOW_BITS * 0x0F);
    let pairs = (digits.wrapping_mul(10).wrapping_add(digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xFFFF_FFFF
}

/// The bytes before the next quote, if they are valid UTF-8 and none of them is a backslash or a
/// control character.
#[inline]
fn read_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, is_ascii) = plain_text(bytes);
    let (text, rest) = bytes.split_at_checked(length)?;
    let plain = rest.starts_with(b"\"") && (is_ascii || str::from_utf8(text).is_ok());
    plain.then_some((text, rest))
}
