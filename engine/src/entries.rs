//! Count entries, read at once: as predicted, or else key by key.
//!
//! The service writes every entry the same way, so the bytes around its values are known before
//! they come ([`Template`]). An entry that is written otherwise is walked through, and the next one
//! is expected to look like it. What is odd in any way (an escape, a number of 20 digits, a value
//! of another type, an entry that the chunk cuts, a mistake) is left to the caller.

use crate::rows::{Added, Key, MOST_COLUMNS, RowsBuilder};
use crate::template::{Slot, Template, Values, read_text};
use crate::text::is_space;

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
    template: Option<Template>,
    /// Entries in a row that the template did not fit.
    misses: u32,
}

/// After so many misses in a row, only every so-manieth entry is learned from: a service that
/// writes each entry in another way is not worth predicting.
const PATIENCE: u32 = 8;
const LEARN_EVERY: u32 = 64;

/// The most fields of an entry that nobody knows.
const MOST_UNKNOWN: usize = 4;

impl EntryReader {
    /// A reader that has seen no entry; `None` where an entry as large as it may take would be
    /// too large, so that the caller has to read everything.
    #[must_use]
    pub fn new(fields: Fields, limits: EntryLimits) -> Option<Self> {
        let has_room = limits.keys >= 4 + MOST_UNKNOWN && limits.depth >= 2;
        has_room.then_some(Self {
            fields,
            string_limit: limits.string_bytes,
            template: None,
            misses: 0,
        })
    }

    /// Takes entries from the start of `rest`, which is that of an object, for as long as there
    /// are any and the rows accept them. Nothing else has changed when it takes none.
    pub fn take(&mut self, rest: &[u8], rows: &mut RowsBuilder) -> Taken {
        let mut taken = Taken::default();
        let mut at = 0;
        while let Some((values, length)) = self.read(&rest[at..]) {
            match self.add(&values, rows) {
                None => break,
                Some(Added::Again) => taken.repeated += 1,
                Some(Added::New) => {}
            }
            at += length;
            taken.bytes = at;
            taken.elements += 1;
            // The caller sees a comma first, and then gives what comes after it.
            if rest.get(at) != Some(&b',') {
                break;
            }
            at = skip_space(rest, at + 1);
            if rest.get(at) != Some(&b'{') {
                break;
            }
        }
        taken
    }

    #[inline]
    fn read<'a>(&mut self, entry: &'a [u8]) -> Option<(Values<'a>, usize)> {
        if let Some(template) = &self.template
            && let Some(read) = template.read(entry, self.string_limit)
        {
            self.misses = 0;
            return Some(read);
        }
        self.walk(entry)
    }

    /// Reads an entry key by key, and now and then learns from it.
    fn walk<'a>(&mut self, entry: &'a [u8]) -> Option<(Values<'a>, usize)> {
        let mut walk = Walk::new(entry, &self.fields, self.string_limit);
        walk.entry()?;
        let Walk {
            at, values, places, ..
        } = walk;
        self.misses = self.misses.saturating_add(1);
        if self.misses <= PATIENCE || self.misses.is_multiple_of(LEARN_EVERY) {
            self.template = Some(Template::of(&entry[..at], places.all()));
        }
        Some((values, at))
    }

    /// Adds an entry up; `None` if it is refused, and nothing has changed but that a dictionary
    /// may have a value more.
    #[inline]
    fn add(&self, values: &Values<'_>, rows: &mut RowsBuilder) -> Option<Added> {
        let mut key = Key::default();
        for ((_, column), value) in self.fields.dimensions.iter().zip(values.dimensions) {
            if let Some(column) = column {
                key[*column] = rows.intern(*column, value)?;
            }
        }
        rows.add(key, values.counts, self.fields.may_repeat).ok()
    }
}

/// Where the values of an entry are.
#[derive(Debug)]
struct Places {
    places: [(Slot, usize, usize); Self::MOST],
    len: usize,
}

impl Places {
    const MOST: usize = 3 + MOST_COLUMNS + MOST_UNKNOWN;

    fn all(&self) -> &[(Slot, usize, usize)] {
        &self.places[..self.len]
    }
}

/// A walk through one entry.
struct Walk<'a, 'f> {
    fields: &'f Fields,
    string_limit: usize,
    entry: &'a [u8],
    at: usize,
    values: Values<'a>,
    places: Places,
    /// The counts and dimensions that have come, a bit each.
    seen: u32,
    unknown: [&'a [u8]; MOST_UNKNOWN],
    unknown_len: usize,
}

impl<'a, 'f> Walk<'a, 'f> {
    fn new(entry: &'a [u8], fields: &'f Fields, string_limit: usize) -> Self {
        Self {
            fields,
            string_limit,
            entry,
            at: 0,
            values: Values::default(),
            places: Places {
                places: [(Slot::Unknown, 0, 0); Places::MOST],
                len: 0,
            },
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
                b"success" => self.known(0, Slot::Success)?,
                b"errors" => self.known(1, Slot::Errors)?,
                b"filtered" => self.known(2, Slot::Filtered)?,
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
            self.known(4 + position, Slot::Dimension(position))?;
            if self.ends_object()? {
                self.at = skip_space(self.entry, self.at);
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
        self.value(Slot::Unknown)
    }

    /// A value in quotes, and the white space after it.
    #[inline]
    fn value(&mut self, slot: Slot) -> Option<()> {
        self.byte(b'"')?;
        let start = self.at;
        let rest = &self.entry[start..];
        self.at += self.values.read(slot, rest, self.string_limit)?;
        *self.places.places.get_mut(self.places.len)? = (slot, start, self.at);
        self.places.len += 1;
        self.literal(b'"')
    }

    /// A key with its colon.
    #[inline]
    fn key(&mut self) -> Option<&'a [u8]> {
        self.byte(b'"')?;
        let name = read_text(&self.entry[self.at..], self.string_limit)?;
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
        self.at = skip_space(self.entry, self.at);
        Some(())
    }

    #[inline]
    fn byte(&mut self, expected: u8) -> Option<()> {
        let is_there = self.entry.get(self.at) == Some(&expected);
        self.at += usize::from(is_there);
        is_there.then_some(())
    }
}

/// Where the white space ends that starts there.
#[inline]
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).copied().is_some_and(is_space) {
        at += 1;
    }
    at
}
