//! Numbers, texts and counts as bytes.

use std::ops::Range;
use std::sync::LazyLock;

use crc::{CRC_32_ISO_HDLC, Crc, Table};
use tallyfold::{Code, Counts, Dimension, Error, Key};

/// Reads the counts of a group in a page, each with the position of its window. `range` has the positions of the page's windows.
/// Returns `None` for invalid bytes.
pub(crate) fn read_counts(
    bytes: &mut Bytes<'_>,
    range: &Range<usize>,
    counts: &mut Vec<(u32, Counts)>,
) -> Option<()> {
    let windows = range.len();
    counts.clear();
    let mut at = 0;
    while at < windows {
        at = at.checked_add(bytes.number()? as usize)?;
        if at >= windows {
            break;
        }
        let end = at.checked_add(bytes.number()? as usize)?;
        if end > windows || end == at {
            return None;
        }
        for window in at..end {
            let first = bytes.number()?;
            let mut one = Counts { success: first >> 3, errors: 0, filtered: 0 };
            if first & LARGE != 0 {
                one.success = bytes.number()?;
            }
            if first & ERRORS != 0 {
                one.errors = bytes.number()?;
            }
            if first & FILTERED != 0 {
                one.filtered = bytes.number()?;
            }
            counts.push(((range.start + window) as u32, one));
        }
        at = end;
    }
    Some(())
}

/// The flags in the lowest three bits of a window's first number. The higher bits contain the number of successes.
const ERRORS: u64 = 1;
const FILTERED: u64 = 2;
/// The number of successes is too large for the higher bits, so it is the next number.
const LARGE: u64 = 4;

/// Writes the counts of a group, each with the position of its window.
pub(crate) fn write_counts(out: &mut Vec<u8>, windows: usize, counts: &[(u32, Counts)]) {
    let mut at = 0;
    let mut rest = counts;
    while let Some((first, _)) = rest.first() {
        let start = *first as usize;
        let run = rest.iter().zip(start..);
        let run = run.take_while(|((window, _), at)| *window as usize == *at);
        let (same, later) = rest.split_at(run.count());
        number(out, (start - at) as u64);
        number(out, same.len() as u64);
        for (_, counts) in same {
            let is_large = counts.success > u64::MAX >> 3;
            let flags = u64::from(counts.errors > 0) * ERRORS
                + u64::from(counts.filtered > 0) * FILTERED
                + u64::from(is_large) * LARGE;
            number(out, if is_large { 0 } else { counts.success << 3 } | flags);
            if is_large {
                number(out, counts.success);
            }
            for count in [counts.errors, counts.filtered] {
                if count > 0 {
                    number(out, count);
                }
            }
        }
        at = start + same.len();
        rest = later;
    }
    if at < windows {
        number(out, (windows - at) as u64);
    }
}

/// Reads one ID per column. `lengths` has the number of values of each column.
pub(crate) fn read_key(bytes: &mut Bytes<'_>, lengths: &[usize]) -> Option<Key> {
    let mut key = Key::default();
    for (id, length) in key.iter_mut().zip(lengths) {
        let read = bytes.number()?;
        *id = u32::try_from(read).ok().filter(|id| (*id as usize) < *length)?;
    }
    Some(key)
}

/// Writes one ID per column.
pub(crate) fn write_key(out: &mut Vec<u8>, key: &Key, columns: usize) {
    for id in &key[..columns.min(key.len())] {
        number(out, u64::from(*id));
    }
}

pub(crate) fn read_dimensions(bytes: &mut Bytes<'_>) -> Option<Vec<Dimension>> {
    (0..bytes.count()?).map(|_| bytes.dimension()).collect()
}

pub(crate) fn write_dimensions(out: &mut Vec<u8>, dimensions: &[Dimension]) {
    number(out, dimensions.len() as u64);
    for dimension in dimensions {
        text(out, dimension.as_str());
    }
}

/// Writes the length of a text, then the text.
#[inline(never)]
pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// Writes a number: seven bits in each byte, the lowest first.
#[inline(never)]
pub(crate) fn number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Bytes that are still to be read.
#[derive(Clone, Debug)]
pub(crate) struct Bytes<'b> {
    pub(crate) rest: &'b [u8],
}

impl<'b> Bytes<'b> {
    /// Starts to read these bytes.
    pub(crate) fn of(rest: &'b [u8]) -> Self {
        Self { rest }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Reads a number of four bytes, the lowest byte first.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*first))
    }

    /// Reads a number: seven bits in each byte, the lowest first. Most numbers are small, so numbers of up to two bytes
    /// have a fast path.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        match self.rest {
            [first, rest @ ..] if *first < 0x80 => {
                self.rest = rest;
                Some((*first).into())
            }
            [first, second, rest @ ..] if *second < 0x80 => {
                self.rest = rest;
                Some(u64::from(*first & 0x7f) | u64::from(*second) << 7)
            }
            _ => self.long_number(),
        }
    }

    #[cold]
    fn long_number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }

    /// Reads the number of items that follow. Returns `None` if it is above the number of remaining bytes, because each
    /// item takes at least one byte.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    /// Reads a length, then as many bytes.
    pub(crate) fn part(&mut self) -> Option<Bytes<'b>> {
        let length = self.count()?;
        let (part, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(Bytes::of(part))
    }

    /// Reads a length, then a text of that many bytes.
    pub(crate) fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.part()?.rest).ok()
    }

    /// Reads the three counts.
    pub(crate) fn counts(&mut self) -> Option<Counts> {
        Some(Counts { success: self.number()?, errors: self.number()?, filtered: self.number()? })
    }

    pub(crate) fn dimension(&mut self) -> Option<Dimension> {
        Dimension::from_name(self.text()?)
    }
}

/// The CRC-32 of zip and PNG files, computed 16 bytes at a time.
static CRC: LazyLock<Box<Crc<u32, Table<16>>>> =
    LazyLock::new(|| Box::new(Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC)));

/// Returns the checksum of some bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

/// Returns the error for a damaged page.
pub(crate) fn damaged() -> Error {
    let message = "this was damaged or changed since it was written: its checksum does not match";
    Error::new(Code::InvalidCheckpoint, message)
}

/// The message of the error for a page of a later version.
pub(crate) const LATER: &str =
    "a later version has written this; use that version, or another folder";

/// Returns the error for a page of a later version.
pub(crate) fn later() -> Error {
    Error::new(Code::InvalidCheckpoint, LATER)
}

/// Returns the error for a dimension with too many bytes of values.
pub(crate) fn too_large() -> Error {
    let message = "a dimension may have at most 1 GiB of values";
    Error::new(Code::GroupLimit, message)
}
