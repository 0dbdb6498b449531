//! The head of a page: everything except the counts of groups and rows.

use std::ops::Range;
use std::sync::Arc;

use tallyfold::{
    Counts, Dictionary, Dimension, Dimensions, Error, Identity, Key, Metric, Result, Timestamp,
    Window,
};

use super::bytes::{
    Bytes, LATER, checksum, damaged, later, number, read_dimensions, read_key, text,
    write_dimensions, write_key,
};
use super::groups::Head;

/// The first bytes of a page. The version number grows when old readers can't read new pages.
const FORMAT: &[u8] = b"tallyfold-page/1\n";

/// The first bytes of pages of every version.
const ANY_FORMAT: &[u8] = b"tallyfold-page/";

/// Defines sums that rules need: the dimensions to group by, and the values to keep.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SumsBy {
    /// The dimensions to group by, sorted.
    pub(crate) by: Vec<Dimension>,
    /// For each restricted dimension, the values to keep.
    pub(crate) only: Vec<(Dimension, Vec<String>)>,
}

/// A set of sums in a page.
#[derive(Clone, Debug)]
pub(crate) struct PageSums {
    /// The definition of the sums.
    pub(crate) of: SumsBy,
    /// The groups, as positions in the page's values, sorted. Empty for the rows themselves.
    pub(crate) groups: Vec<Key>,
    /// The byte range of the counts, counted from the end of the head.
    pub(crate) bytes: Range<u64>,
    /// The checksum of the counts.
    pub(crate) checksum: u32,
}

/// The head of a page: everything except the counts of groups and rows.
#[derive(Clone, Debug)]
pub struct PageHead {
    pub(crate) metric: Metric,
    pub(crate) dimensions: Dimensions,
    pub(crate) identity: Identity,
    pub(crate) windows: Vec<Head>,
    pub(crate) totals: Vec<Counts>,
    /// For each dimension, its distinct values, sorted.
    pub(crate) values: Vec<Arc<Dictionary>>,
    /// The sets of sums. The first set has the rows themselves.
    pub(crate) sums: Vec<PageSums>,
    /// The length of the head and of all bytes before it.
    pub(crate) length: u64,
}

impl PageHead {
    /// The number of first bytes that [`PageHead::length`] needs.
    pub const FIRST: usize = FORMAT.len() + 8;

    /// Returns the position at which a page's head ends, from the first bytes of the page.
    ///
    /// # Errors
    /// `invalid_checkpoint` for bytes that aren't a page, and for a page of a later version.
    pub fn length(first: &[u8]) -> Result<usize> {
        let is_whole = first.len() >= Self::FIRST;
        if is_whole && !first.starts_with(FORMAT) && first.starts_with(ANY_FORMAT) {
            return Err(later());
        }
        let mut rest = Bytes::of(first.strip_prefix(FORMAT).unwrap_or_default());
        let length = rest.u32().ok_or_else(damaged)?;
        Ok(Self::FIRST.saturating_add(length as usize))
    }

    /// Returns whether an error is about a page of a later version.
    #[must_use]
    pub fn is_later(error: &Error) -> bool {
        error.message() == LATER
    }

    /// Reads a head from the first bytes of a page, at least [`PageHead::length`] of them.
    ///
    /// # Errors
    /// `invalid_checkpoint` for a page of a later version, and for a damaged page.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let length = Self::length(bytes)?;
        let head = bytes.get(Self::FIRST..length).ok_or_else(damaged)?;
        let mut sum = Bytes::of(&bytes[Self::FIRST - 4..Self::FIRST]);
        if sum.u32() != Some(checksum(head)) {
            return Err(damaged());
        }
        let mut bytes = Bytes::of(head);
        let head = read_head(&mut bytes, length as u64);
        head.filter(|_| bytes.rest.is_empty()).ok_or_else(damaged)
    }

    /// Returns the windows whose counts no longer change.
    pub fn settled(&self) -> impl Iterator<Item = Window> + use<'_> {
        let settled = self.windows.iter().filter(|head| head.settled);
        settled.map(|head| head.window)
    }

    /// Returns all windows.
    pub fn windows(&self) -> impl Iterator<Item = Window> + use<'_> {
        self.windows.iter().map(|head| head.window)
    }

    /// Returns the cluster and the client that the counts belong to.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns whether the page has all of these sums.
    #[must_use]
    pub fn has(&self, wanted: &[SumsBy]) -> bool {
        let mut wanted = wanted.iter();
        wanted.all(|wanted| self.place(wanted).is_some())
    }

    /// Returns the position of the set with these sums.
    pub(crate) fn place(&self, wanted: &SumsBy) -> Option<usize> {
        // The first set has the rows themselves.
        let place = self.sums.iter().skip(1).position(|sums| sums.of == *wanted);
        place.map(|place| place + 1)
    }

    /// Returns the byte range of a set's counts in the page.
    pub(crate) fn bytes_of(&self, sums: usize) -> Range<u64> {
        let Range { start, end } = self.sums[sums].bytes.clone();
        self.length.saturating_add(start)..self.length.saturating_add(end)
    }

    /// Returns the length of the whole page in bytes.
    #[must_use]
    pub fn page_length(&self) -> u64 {
        let last = self.sums.len().checked_sub(1);
        last.map_or(self.length, |last| self.bytes_of(last).end)
    }

    /// Compares the counts of a set of sums with their checksum.
    ///
    /// # Errors
    /// `invalid_checkpoint` for damaged bytes.
    pub(crate) fn check(&self, sums: usize, bytes: &[u8]) -> Result<()> {
        match checksum(bytes) == self.sums[sums].checksum {
            true => Ok(()),
            false => Err(damaged()),
        }
    }

    /// Returns the bytes of a page before its counts: the format, and the head with its length and checksum.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut head = Vec::new();
        text(&mut head, self.metric.as_str());
        let dimensions: Vec<Dimension> = self.dimensions.iter().collect();
        write_dimensions(&mut head, &dimensions);
        text(&mut head, self.identity.as_str().map_or("", |_| "1"));
        text(&mut head, self.identity.as_str().unwrap_or_default());
        number(&mut head, self.windows.len() as u64);
        let mut last = 0_i64;
        for (Head { window, settled, reported }, totals) in self.windows.iter().zip(&self.totals) {
            let (start, end) = (window.start().unix_ms(), window.end().unix_ms());
            number(&mut head, start.wrapping_sub(last).cast_unsigned());
            number(&mut head, end.wrapping_sub(start).cast_unsigned());
            last = start;
            let flags = u64::from(*settled) * SETTLED + u64::from(reported.is_some()) * REPORTED;
            number(&mut head, flags);
            let reported = reported.map(Counts::each);
            for count in reported.into_iter().flatten().chain(totals.each()) {
                number(&mut head, count);
            }
        }
        for values in &self.values {
            number(&mut head, values.len() as u64);
            for value in values.values() {
                text(&mut head, value);
            }
        }
        number(&mut head, self.sums.len() as u64);
        for set in &self.sums {
            write_dimensions(&mut head, &set.of.by);
            number(&mut head, set.of.only.len() as u64);
            for (dimension, values) in &set.of.only {
                text(&mut head, dimension.as_str());
                number(&mut head, values.len() as u64);
                for value in values {
                    text(&mut head, value);
                }
            }
            number(&mut head, set.groups.len() as u64);
            for group in &set.groups {
                write_key(&mut head, group, set.of.by.len());
            }
            number(&mut head, set.bytes.end - set.bytes.start);
            head.extend(set.checksum.to_le_bytes());
        }
        let mut out = FORMAT.to_vec();
        out.extend((head.len() as u32).to_le_bytes());
        out.extend(checksum(&head).to_le_bytes());
        out.append(&mut head);
        out
    }
}

/// The flags of a window: its counts are settled; the service reported its totals.
const SETTLED: u64 = 1;
const REPORTED: u64 = 2;

fn read_head(bytes: &mut Bytes<'_>, length: u64) -> Option<PageHead> {
    let metric = Metric::from_name(bytes.text()?)?;
    let dimensions = Dimensions::kept(&read_dimensions(bytes)?).ok()?;
    let is_known = !bytes.text()?.is_empty();
    let identity = bytes.text()?;
    let identity = match is_known {
        true => Identity::new(identity),
        false => Identity::default(),
    };
    let count = bytes.count()?;
    let (mut windows, mut totals) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut last = 0_i64;
    for _ in 0..count {
        let start = last.wrapping_add(bytes.number()?.cast_signed());
        let end = start.wrapping_add(bytes.number()?.cast_signed());
        last = start;
        let at = Timestamp::from_unix_ms;
        let window = Window::new(at(start)?, at(end)?).ok()?;
        let flags = bytes.number()?;
        let reported = match flags & REPORTED {
            0 => None,
            _ => Some(bytes.counts()?),
        };
        windows.push(Head { window, settled: flags & SETTLED != 0, reported });
        totals.push(bytes.counts()?);
    }
    let are_sorted = |one: &Head, other: &Head| one.window.end() <= other.window.start();
    if !windows.is_sorted_by(are_sorted) {
        return None;
    }
    let mut values = Vec::new();
    for _ in dimensions.iter() {
        let own = (0..bytes.count()?).map(|_| bytes.text());
        let own = own.collect::<Option<Vec<&str>>>()?;
        values.push(Arc::new(Dictionary::of_sorted(own.into_iter())?));
    }
    let (mut sums, mut start) = (Vec::new(), 0_u64);
    for _ in 0..bytes.count()? {
        let by = read_dimensions(bytes)?;
        let mut only = Vec::new();
        for _ in 0..bytes.count()? {
            let dimension = bytes.dimension()?;
            let values = (0..bytes.count()?).map(|_| bytes.text().map(str::to_owned));
            only.push((dimension, values.collect::<Option<_>>()?));
        }
        let lengths = by.iter().map(|own| Some(values[dimensions.position(*own)?].len()));
        let lengths = lengths.collect::<Option<Vec<usize>>>()?;
        let groups = (0..bytes.count()?).map(|_| read_key(bytes, &lengths));
        let groups = groups.collect::<Option<Vec<Key>>>()?;
        let end = start.checked_add(bytes.number()?)?;
        sums.push(PageSums {
            of: SumsBy { by, only },
            groups,
            bytes: start..end,
            checksum: bytes.u32()?,
        });
        start = end;
    }
    Some(PageHead {
        metric,
        dimensions,
        identity,
        windows,
        totals,
        values,
        sums: Some(sums).filter(|sums| !sums.is_empty())?,
        length,
    })
}
