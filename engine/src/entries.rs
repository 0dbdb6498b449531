//! Count entries, read at once: as predicted, or else key by key.
//!
//! The service writes every entry the same way, so the bytes around its values are known before
//! they come ([`Template`]). An entry that is written otherwise is walked through, and the next one
//! is expected to look like it. What is odd in any way (an escape, a number of 20 digits, a value
//! of another type, an entry that the chunk cuts, a mistake) is left to the caller.

use crate::counts::Counts;
use crate::key::MOST_COLUMNS;
use crate::rows::{Added, RowsBuilder};
use crate::template::{Entry, PADDING, Slot, Template};
use crate::text::{BLOCK, is_space, string_length};

/// What entries are made of.
#[derive(Clone, Debug)]
pub struct Fields {
    /// The names of the requested dimensions, and the column of each, if it is kept.
    pub dimensions: Vec<(&'static str, Option<usize>)>,
    /// Whether a combination that is there may come again.
    pub may_repeat: bool,
}

/// How large an entry may be.
#[derive(Clone, Copy, Debug)]
pub struct EntryLimits {
    /// Bytes of one string.
    pub string_bytes: usize,
    /// Keys of one object.
    pub keys: usize,
    /// Objects inside one another.
    pub depth: usize,
}

/// What was taken of an array: so many elements in so many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes, to the end of the last element.
    pub bytes: usize,
    /// Elements.
    pub elements: u64,
    /// Those whose combination was there before.
    pub repeated: u64,
}

/// Reads entries that are written as expected.
#[derive(Debug)]
pub struct EntryReader {
    fields: Fields,
    /// The longest string that is taken.
    string_limit: usize,
    template: Template,
    /// Entries in a row that the template did not fit. It starts at one, as a template that has
    /// fitted none is given up at the first.
    misses: u32,
}

/// After so many misses in a row, only every so-manieth entry is learned from: a service that
/// writes each entry in another way is not worth predicting.
const PATIENCE: u32 = 8;
const LEARN_EVERY: u32 = 64;

/// An entry of more bytes is not worth a template, which takes three times as many.
const MOST_LEARNED: usize = 4096;

/// There is room for so many bytes around the values of an entry that is expected.
const MOST_EXPECTED: usize = 128;

/// An entry of more bytes is not predicted where the bytes end with it.
const LONGEST_LAST: usize = 512;

/// How many entries are read before they are added up. Adding an entry waits for memory where there are
/// many groups, and a processor that adds several in a row waits for all of them at once.
const BATCH: usize = 4;

/// The most fields of an entry that nobody knows.
const MOST_UNKNOWN: usize = 4;

impl EntryReader {
    /// A reader that has seen no entry; `None` where an entry as large as it may take would be
    /// too large, so that the caller has to read everything.
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

    /// Takes entries from the start of `rest`, which is that of an object, for as long as there
    /// are any and the rows accept them. An entry that it does not take may have left its values in
    /// the dictionaries: whoever reads it next finds the same ones, or an error.
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
            for (entry, end) in &batch[..len] {
                let [success, errors, filtered] = entry.counts;
                let counts = Counts {
                    success,
                    errors,
                    filtered,
                };
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

    /// Reads an entry as predicted that the end of the bytes comes too close to, with more bytes after
    /// them: zeros, which no entry goes on with.
    fn read_last(&mut self, bytes: &[u8], rows: &mut RowsBuilder) -> Option<(Entry, usize)> {
        let mut padded = [0; LONGEST_LAST + PADDING];
        if bytes.len() > LONGEST_LAST {
            return None;
        }
        padded[..bytes.len()].copy_from_slice(bytes);
        let padded = &padded[..bytes.len() + PADDING];
        let mut entry = Entry::default();
        let length = self
            .template
            .read(padded, self.string_limit, rows, &mut entry)?;
        self.misses = 0;
        Some((entry, length))
    }

    /// Reads an entry key by key, and now and then learns from it.
    fn walk(&mut self, bytes: &[u8], rows: &mut RowsBuilder) -> Option<(Entry, usize)> {
        let mut walk = Walk::new(bytes, &self.fields, self.string_limit, rows);
        walk.entry()?;
        let Walk {
            at, entry, places, ..
        } = walk;
        self.misses = self.misses.saturating_add(1);
        // The first miss may be but an entry that the end of a chunk comes close to.
        let learns =
            self.misses > 1 && (self.misses <= PATIENCE || self.misses.is_multiple_of(LEARN_EVERY));
        if learns && at <= MOST_LEARNED {
            self.template = Template::of(bytes, at, places.all());
        }
        Some((entry, at))
    }
}

/// The template of entries without white space and in the order in which the service's reference
/// shows their fields: what is expected before there was one.
fn expected(fields: &Fields) -> Template {
    let mut entry = Vec::with_capacity(MOST_EXPECTED);
    let mut places = Places::default();
    let mut value = |before: &str, name: &str, slot| {
        for text in [before, name, "\":\""] {
            entry.extend_from_slice(text.as_bytes());
        }
        places.push(slot, entry.len(), entry.len());
    };
    value("{\"", "success", Slot::Count(0));
    value("\",\"", "errors", Slot::Count(1));
    value("\",\"", "filtered", Slot::Count(2));
    let mut before = "\",\"dimensions\":{\"";
    for (name, column) in &fields.dimensions {
        value(before, name, column.map_or(Slot::Dropped, Slot::Column));
        before = "\",\"";
    }
    entry.extend_from_slice(b"\"}}");
    Template::of(&entry, entry.len(), places.all())
}

/// Where the values of an entry are.
#[derive(Debug)]
struct Places {
    places: [(Slot, usize, usize); Self::MOST],
    len: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            places: [(Slot::Dropped, 0, 0); Self::MOST],
            len: 0,
        }
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

/// A walk through one entry.
struct Walk<'a, 'b> {
    fields: &'b Fields,
    string_limit: usize,
    rows: &'b mut RowsBuilder,
    bytes: &'a [u8],
    at: usize,
    entry: Entry,
    places: Places,
    /// The counts and dimensions that have come, a bit each.
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

    /// Reads all of the entry, if it is as it should be.
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

    /// Notes that a field has come, unless it has come before.
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

    /// A field that nobody knows, whose value is a string.
    fn unknown(&mut self, name: &'a [u8]) -> Option<()> {
        if self.unknown[..self.unknown_len].contains(&name) {
            return None;
        }
        *self.unknown.get_mut(self.unknown_len)? = name;
        self.unknown_len += 1;
        self.value(Slot::Dropped)
    }

    /// A value in quotes, and the white space after it.
    #[inline]
    fn value(&mut self, slot: Slot) -> Option<()> {
        self.byte(b'"')?;
        let start = self.at;
        let rest = &self.bytes[start..];
        self.at += self.entry.read(slot, rest, self.string_limit, self.rows)?;
        self.places.push(slot, start, self.at)?;
        self.literal(b'"')
    }

    /// A key with its colon.
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

    /// Whether a brace ends the object, which may be the last of the entry; or else a comma comes.
    #[inline]
    fn ends_object(&mut self) -> Option<bool> {
        if self.byte(b'}').is_some() {
            return Some(true);
        }
        self.literal(b',')?;
        Some(false)
    }

    /// A byte that must come, and the white space after it.
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

/// Where the entry after the one that ends there starts, if a comma and white space are all that is
/// between them. If not, the caller sees what comes.
#[inline]
fn next_entry(bytes: &[u8], end: usize) -> Option<usize> {
    if bytes.get(end) != Some(&b',') {
        return None;
    }
    let start = skip_space(bytes, end + 1);
    (bytes.get(start) == Some(&b'{')).then_some(start)
}

/// Where the white space ends that starts there.
#[inline]
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).copied().is_some_and(is_space) {
        at += 1;
    }
    at
}
