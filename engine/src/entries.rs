//! Reads whole count entries: as predicted, or else key by key.
//!
//! The service writes every entry in the same way, so the bytes around its values can be predicted
//! ([`Template`]). An entry that is written differently is read key by key, and the next one is
//! expected to look like it. Anything unusual (an escape, a number of 20 digits, a value of another
//! type, an entry that is cut by the end of a chunk, a mistake) is left to the caller.

use crate::counts::Counts;
use crate::key::MOST_COLUMNS;
use crate::rows::{Added, RowsBuilder};
use crate::template::{Entry, PADDING, Slot, Template};
use crate::text::{BLOCK, is_space, string_length};

/// The fields of entries.
#[derive(Clone, Debug)]
pub struct Fields {
    /// The names of the requested dimensions, and for each its column if it is kept.
    pub dimensions: Vec<(&'static str, Option<usize>)>,
    /// Whether a combination may occur more than once.
    pub may_repeat: bool,
}

/// How large an entry may be.
#[derive(Clone, Copy, Debug)]
pub struct EntryLimits {
    /// Bytes of one string.
    pub string_bytes: usize,
    /// Keys of one object.
    pub keys: usize,
    /// How deeply objects are nested.
    pub depth: usize,
}

/// How many elements of an array were taken, and how many bytes they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The bytes up to the end of the last element.
    pub bytes: usize,
    /// The elements.
    pub elements: u64,
    /// The elements that repeated a combination.
    pub repeated: u64,
}

/// Reads entries that are written as expected.
#[derive(Debug)]
pub struct EntryReader {
    fields: Fields,
    /// The most bytes of a string.
    string_limit: usize,
    template: Template,
    /// How many entries in a row the template did not fit. It starts at one, so that a first
    /// template that does not fit is replaced at once.
    misses: u32,
}

/// After `PATIENCE` misses in a row, a template is made from every `LEARN_EVERY`-th entry only: if
/// each entry is written differently, making templates is not worth its cost.
const PATIENCE: u32 = 8;
const LEARN_EVERY: u32 = 64;

/// No template is made for longer entries, because a template takes three times as many bytes.
const MOST_LEARNED: usize = 4096;

/// The room for the bytes around the values of the first expected entry.
const MOST_EXPECTED: usize = 128;

/// If more bytes than this are left, they are not copied and padded to read the last entry by
/// prediction.
const LONGEST_LAST: usize = 512;

/// How many entries are read before they are added up. With many groups, adding an entry waits for
/// memory; a processor that first loads what all of them need waits for all of it at the same time.
const BATCH: usize = 8;

/// The most unknown fields in an entry.
const MOST_UNKNOWN: usize = 4;

impl EntryReader {
    /// A reader that has seen no entry yet; `None` if the limits are lower than what the reader may
    /// accept, so that the caller must read everything itself.
    #[must_use]
    pub fn new(fields: Fields, limits: EntryLimits) -> Option<Self> {
        let has_room =
            limits.keys >= 4 + MOST_UNKNOWN && limits.depth >= 2 && limits.string_bytes >= BLOCK;
        has_room.then(|| Self {
            template: expected(&fields),
            fields,
            string_limit: limits.string_bytes,
            misses: 1,
        })
    }

    /// Takes entries from the start of `rest`, which is the start of an object, as long as it can
    /// read them and the rows accept them. The values of an entry that it did not take may already
    /// be in the dictionaries. That is harmless: the code that reads the entry next adds the same values,
    /// or finds an error.
    #[inline(never)]
    pub fn take(&mut self, rest: &[u8], rows: &mut RowsBuilder) -> Taken {
        let mut taken = Taken::default();
        let mut batch = [(Entry::default(), 0); BATCH];
        let mut next = Some(0);
        while let Some(mut start) = next {
            let mut len = 0;
            for (entry, end) in &mut batch {
                let Some(length) = self.read(&rest[start..], rows, entry) else {
                    next = None;
                    break;
                };
                *end = start + length;
                len += 1;
                next = next_entry(rest, *end);
                match next {
                    Some(next) => start = next,
                    None => break,
                }
            }
            for (entry, _) in &batch[..len] {
                rows.touch(entry.key);
            }
            for (entry, end) in &batch[..len] {
                let [success, errors, filtered] = entry.counts;
                let counts = Counts { success, errors, filtered };
                match rows.add(entry.key, counts, self.fields.may_repeat) {
                    Err(_) => return taken,
                    Ok(Added::Again) => taken.repeated += 1,
                    Ok(Added::New) => {}
                }
                taken.bytes = *end;
                taken.elements += 1;
            }
        }
        taken
    }

    #[inline(always)]
    fn read(&mut self, bytes: &[u8], rows: &mut RowsBuilder, entry: &mut Entry) -> Option<usize> {
        if let Some(length) = self.template.read(bytes, self.string_limit, rows, entry) {
            self.misses = 0;
            return Some(length);
        }
        let length;
        (*entry, length) = self.read_other(bytes, rows)?;
        Some(length)
    }

    /// Reads an entry that the template did not fit.
    #[inline(never)]
    fn read_other(&mut self, bytes: &[u8], rows: &mut RowsBuilder) -> Option<(Entry, usize)> {
        match self.read_last(bytes, rows) {
            Some(read) => Some(read),
            None => self.walk(bytes, rows),
        }
    }

    /// Reads, as predicted, an entry near the end of the bytes. The template compares whole blocks,
    /// so the bytes are copied and padded with zeros, which are not part of any entry.
    fn read_last(&mut self, bytes: &[u8], rows: &mut RowsBuilder) -> Option<(Entry, usize)> {
        let mut padded = [0; LONGEST_LAST + PADDING];
        if bytes.len() > LONGEST_LAST {
            return None;
        }
        padded[..bytes.len()].copy_from_slice(bytes);
        let padded = &padded[..bytes.len() + PADDING];
        let mut entry = Entry::default();
        let length = self.template.read(padded, self.string_limit, rows, &mut entry)?;
        self.misses = 0;
        Some((entry, length))
    }

    /// Reads an entry key by key, and sometimes makes a template from it.
    fn walk(&mut self, bytes: &[u8], rows: &mut RowsBuilder) -> Option<(Entry, usize)> {
        let mut walk = Walk::new(bytes, &self.fields, self.string_limit, rows);
        walk.entry()?;
        let Walk { at, entry, places, .. } = walk;
        self.misses = self.misses.saturating_add(1);
        // The first miss may only mean that the entry is too close to the end of a chunk.
        let learns =
            self.misses > 1 && (self.misses <= PATIENCE || self.misses.is_multiple_of(LEARN_EVERY));
        if learns && at <= MOST_LEARNED {
            self.template = Template::of(bytes, at, places.all());
        }
        Some((entry, at))
    }
}

/// The template for the first entry: without white space, with the fields in the order of the
/// service's reference.
fn expected(fields: &Fields) -> Template {
    let mut entry = Vec::with_capacity(MOST_EXPECTED);
    let mut places = Places::default();
    let counts = Counts::NAMES.into_iter().zip([0, 1, 2].map(Slot::Count));
    let dimensions = fields.dimensions.iter();
    let dimensions =
        dimensions.map(|(name, column)| (*name, column.map_or(Slot::Dropped, Slot::Column)));
    for (number, (name, slot)) in counts.chain(dimensions).enumerate() {
        let before = match number {
            0 => "{\"",
            3 => "\",\"dimensions\":{\"",
            _ => "\",\"",
        };
        for text in [before, name, "\":\""] {
            entry.extend_from_slice(text.as_bytes());
        }
        places.push(slot, entry.len(), entry.len());
    }
    entry.extend_from_slice(b"\"}}");
    Template::of(&entry, entry.len(), places.all())
}

/// The positions of the values in an entry.
#[derive(Debug)]
struct Places {
    places: [(Slot, usize, usize); Self::MOST],
    len: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self { places: [(Slot::Dropped, 0, 0); Self::MOST], len: 0 }
    }
}

impl Places {
    const MOST: usize = 3 + MOST_COLUMNS + MOST_UNKNOWN;

    fn push(&mut self, slot: Slot, start: usize, end: usize) -> Option<()> {
        *self.places.get_mut(self.len)? = (slot, start, end);
        self.len += 1;
        Some(())
    }

    fn all(&self) -> &[(Slot, usize, usize)] {
        &self.places[..self.len]
    }
}

/// Reads one entry key by key.
struct Walk<'a, 'b> {
    fields: &'b Fields,
    string_limit: usize,
    rows: &'b mut RowsBuilder,
    bytes: &'a [u8],
    at: usize,
    entry: Entry,
    places: Places,
    /// A bit for each count and dimension that has been read.
    seen: u32,
    unknown: [&'a [u8]; MOST_UNKNOWN],
    unknown_len: usize,
}

impl<'a, 'b> Walk<'a, 'b> {
    fn new(
        bytes: &'a [u8],
        fields: &'b Fields,
        string_limit: usize,
        rows: &'b mut RowsBuilder,
    ) -> Self {
        Self {
            fields,
            string_limit,
            rows,
            bytes,
            at: 0,
            entry: Entry::default(),
            places: Places::default(),
            seen: 0,
            unknown: [&[]; MOST_UNKNOWN],
            unknown_len: 0,
        }
    }

    /// Reads the whole entry; `None` if anything in it is unusual.
    fn entry(&mut self) -> Option<()> {
        const DIMENSIONS: usize = 3;
        self.literal(b'{')?;
        loop {
            match self.key()? {
                b"success" => self.known(0, Slot::Count(0))?,
                b"errors" => self.known(1, Slot::Count(1))?,
                b"filtered" => self.known(2, Slot::Count(2))?,
                b"dimensions" => {
                    self.see(DIMENSIONS)?;
                    self.dimensions()?;
                }
                name => self.unknown(name)?,
            }
            if self.ends_object()? {
                break;
            }
        }
        let all = 1 << (DIMENSIONS + 1 + self.fields.dimensions.len());
        (self.seen == all - 1).then_some(())
    }

    fn dimensions(&mut self) -> Option<()> {
        self.literal(b'{')?;
        loop {
            let name = self.key()?;
            let mut names = self.fields.dimensions.iter();
            let position = names.position(|(known, _)| known.as_bytes() == name)?;
            let (_, column) = self.fields.dimensions[position];
            self.known(4 + position, column.map_or(Slot::Dropped, Slot::Column))?;
            if self.ends_object()? {
                self.at = skip_space(self.bytes, self.at);
                return Some(());
            }
        }
    }

    /// Records that a field was read; `None` if it was read before.
    #[inline]
    fn see(&mut self, field: usize) -> Option<()> {
        let bit = 1 << field;
        let is_new = self.seen & bit == 0;
        self.seen |= bit;
        is_new.then_some(())
    }

    #[inline]
    fn known(&mut self, field: usize, slot: Slot) -> Option<()> {
        self.see(field)?;
        self.value(slot)
    }

    /// Reads an unknown field whose value is a string.
    fn unknown(&mut self, name: &'a [u8]) -> Option<()> {
        if self.unknown[..self.unknown_len].contains(&name) {
            return None;
        }
        *self.unknown.get_mut(self.unknown_len)? = name;
        self.unknown_len += 1;
        self.value(Slot::Dropped)
    }

    /// Reads a value in quotes and the white space after it.
    #[inline]
    fn value(&mut self, slot: Slot) -> Option<()> {
        self.byte(b'"')?;
        let start = self.at;
        let rest = &self.bytes[start..];
        self.at += self.entry.read(slot, rest, self.string_limit, self.rows)?;
        self.places.push(slot, start, self.at)?;
        self.literal(b'"')
    }

    /// Reads a key and its colon.
    #[inline]
    fn key(&mut self) -> Option<&'a [u8]> {
        self.byte(b'"')?;
        let rest = &self.bytes[self.at..];
        let name = &rest[..string_length(rest)?];
        if name.len() > self.string_limit {
            return None;
        }
        self.at += name.len();
        self.literal(b'"')?;
        self.literal(b':')?;
        Some(name)
    }

    /// Reads a brace or a comma. Returns whether the object has ended. The brace may be the last
    /// byte of the entry.
    #[inline]
    fn ends_object(&mut self) -> Option<bool> {
        if self.byte(b'}').is_some() {
            return Some(true);
        }
        self.literal(b',')?;
        Some(false)
    }

    /// Reads a required byte and the white space after it.
    #[inline]
    fn literal(&mut self, expected: u8) -> Option<()> {
        self.byte(expected)?;
        self.at = skip_space(self.bytes, self.at);
        Some(())
    }

    #[inline]
    fn byte(&mut self, expected: u8) -> Option<()> {
        let is_there = self.bytes.get(self.at) == Some(&expected);
        self.at += usize::from(is_there);
        is_there.then_some(())
    }
}

/// The start of the next entry, if only a comma and white space are between it and the given end of
/// an entry. If not, the caller reads what follows.
#[inline]
fn next_entry(bytes: &[u8], end: usize) -> Option<usize> {
    if bytes.get(end) != Some(&b',') {
        return None;
    }
    let start = skip_space(bytes, end + 1);
    (bytes.get(start) == Some(&b'{')).then_some(start)
}

/// The position after the white space that starts at `at`.
#[inline]
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).copied().is_some_and(is_space) {
        at += 1;
    }
    at
}
