//! A page: the windows of a day or a week as bytes, with sums by the dimensions of rules.
//!
//! A page begins with its format, and the length and the checksum of its head. The head has the windows, the values of the
//! dimensions, and for each set of sums its groups and where its counts are: a part of the page with a checksum of its own.
//! The first set has the rows themselves. Counts are stored group by group, because rules judge one group after another.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crc::{CRC_32_ISO_HDLC, Crc, Table};
use tallyfold::{
    Code, CountTable, Counts, Dimension, Dimensions, Error, Identity, Key, Metric, Result,
    Timestamp, Window,
};

use super::groups::{Head, counts_of};

/// What a page begins with. The number grows when old readers can't read new pages.
const FORMAT: &[u8] = b"tallyfold-page/1\n";

/// What pages of every version begin with.
const ANY_FORMAT: &[u8] = b"tallyfold-page/";

/// The dimensions and the kept values of some rules: what their groups are sums of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SumsBy {
    /// The dimensions to group by, sorted.
    pub(crate) by: Vec<Dimension>,
    /// The values to keep, for each dimension that is named.
    pub(crate) only: Vec<(Dimension, Vec<String>)>,
}

/// A set of sums in a page.
#[derive(Clone, Debug)]
pub(crate) struct PageSums {
    pub(crate) of: SumsBy,
    /// The groups, by the page's values, sorted; none for the rows themselves.
    pub(crate) groups: Vec<Key>,
    /// Where its counts are, after the head.
    bytes: Range<u64>,
    checksum: u32,
}

/// What is known of a page without its counts.
#[derive(Clone, Debug)]
pub struct PageHead {
    pub(crate) metric: Metric,
    pub(crate) dimensions: Dimensions,
    pub(crate) identity: Identity,
    pub(crate) windows: Vec<Head>,
    pub(crate) totals: Vec<Counts>,
    /// For each dimension, its distinct values, sorted.
    pub(crate) values: Vec<Vec<String>>,
    /// The rows first.
    pub(crate) sums: Vec<PageSums>,
    /// The length of the head with all that comes before it.
    length: u64,
}

/// The rows of a page in memory.
#[derive(Clone, Debug)]
pub struct Page {
    metric: Metric,
    dimensions: Dimensions,
    identity: Identity,
    windows: Vec<Head>,
    /// For each dimension, its distinct values, sorted.
    values: Vec<Vec<String>>,
    /// Each with the position of its window; sorted.
    rows: Vec<(Key, u32, Counts)>,
}

impl PageHead {
    /// How many bytes of a page are needed to learn the length of its head.
    pub const FIRST: usize = FORMAT.len() + 8;

    /// The length of the head with all that comes before it, by the first bytes of a page.
    ///
    /// # Errors
    /// `invalid_checkpoint` for bytes that are no page, and for a page of a later version.
    pub fn length(first: &[u8]) -> Result<usize> {
        if !first.starts_with(FORMAT) && first.starts_with(ANY_FORMAT) {
            return Err(later());
        }
        let mut rest = Bytes::of(first.strip_prefix(FORMAT).unwrap_or_default());
        let length = rest.u32().ok_or_else(damaged)?;
        Ok(Self::FIRST.saturating_add(length as usize))
    }

    /// Whether an error is about a page that a later version has written.
    #[must_use]
    pub fn is_later(error: &Error) -> bool {
        error.message() == LATER
    }

    /// Reads a head, which ends by [`PageHead::length`].
    ///
    /// # Errors
    /// `invalid_checkpoint` for a page of a later version, and for one that was damaged.
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

    /// The windows whose counts no longer change.
    pub fn settled(&self) -> impl Iterator<Item = Window> + use<'_> {
        let settled = self.windows.iter().filter(|head| head.settled);
        settled.map(|head| head.window)
    }

    /// All windows.
    pub fn windows(&self) -> impl Iterator<Item = Window> + use<'_> {
        self.windows.iter().map(|head| head.window)
    }

    /// Whose counts they are.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether it has all of these sums.
    #[must_use]
    pub fn has(&self, wanted: &[SumsBy]) -> bool {
        let mut wanted = wanted.iter();
        wanted.all(|wanted| self.place(wanted).is_some())
    }

    /// The place of some sums.
    pub(crate) fn place(&self, wanted: &SumsBy) -> Option<usize> {
        let rows_first = self.sums.iter().enumerate().skip(1);
        let mut own = rows_first.filter(|(_, sums)| sums.of == *wanted);
        own.next().map(|(place, _)| place)
    }

    /// Where the counts of a set of sums are in the page.
    pub(crate) fn bytes_of(&self, sums: usize) -> Range<u64> {
        let Range { start, end } = self.sums[sums].bytes.clone();
        self.length.saturating_add(start)..self.length.saturating_add(end)
    }

    /// The length of the whole page.
    #[must_use]
    pub fn page_length(&self) -> u64 {
        let last = self.sums.len().checked_sub(1);
        last.map_or(self.length, |last| self.bytes_of(last).end)
    }

    /// Checks the counts of a set of sums.
    ///
    /// # Errors
    /// `invalid_checkpoint` for bytes that were damaged.
    pub(crate) fn check(&self, sums: usize, bytes: &[u8]) -> Result<()> {
        match checksum(bytes) == self.sums[sums].checksum {
            true => Ok(()),
            false => Err(damaged()),
        }
    }
}

/// Reads the counts of a group; `take` gets the position of each window that has any. `None` for invalid bytes.
pub(crate) fn read_counts(
    bytes: &mut Bytes<'_>,
    windows: usize,
    counts: &mut Vec<(u32, Counts)>,
) -> Option<()> {
    counts.clear();
    let mut at = 0;
    while at < windows {
        at += bytes.number()? as usize;
        if at >= windows {
            break;
        }
        let end = at.checked_add(bytes.number()? as usize)?;
        if end > windows || end == at {
            return None;
        }
        for window in at..end {
            let first = bytes.number()?;
            let mut one = Counts {
                success: first >> 3,
                errors: 0,
                filtered: 0,
            };
            if first & LARGE != 0 {
                one.success = bytes.number()?;
            }
            if first & ERRORS != 0 {
                one.errors = bytes.number()?;
            }
            if first & FILTERED != 0 {
                one.filtered = bytes.number()?;
            }
            counts.push((window as u32, one));
        }
        at = end;
    }
    Some(())
}

/// What is added to the number of successes, which is shifted by three bits.
const ERRORS: u64 = 1;
const FILTERED: u64 = 2;
/// The number is too large to be shifted, and comes next.
const LARGE: u64 = 4;

/// Writes the counts of a group, which come with the positions of their windows.
fn write_counts(out: &mut Vec<u8>, windows: usize, counts: &[(u32, Counts)]) {
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

impl Page {
    /// The rows of a table of one endpoint. `of` are windows of it to leave out.
    ///
    /// # Errors
    /// `invalid_argument` for a table without an endpoint.
    pub fn of_table(table: &CountTable, but: &[Window]) -> Result<Self> {
        let windowed = table.windowed();
        let metric = windowed.metric.ok_or_else(|| {
            let message = "these counts are of no endpoint";
            Error::argument("table", Code::InvalidArgument, message)
        })?;
        let mut page = Self {
            metric,
            dimensions: windowed.dimensions,
            identity: windowed.identity,
            windows: Vec::new(),
            values: Vec::new(),
            rows: Vec::new(),
        };
        for rows in windowed.windows {
            if but.contains(&rows.window) {
                continue;
            }
            let place = page.windows.len() as u32;
            page.windows.push(Head {
                window: rows.window,
                settled: rows.settled,
                reported: rows.reported,
            });
            let rows = rows.map(|(key, counts)| (key, place, counts_of(counts)));
            page.rows.extend(rows);
        }
        let values = windowed.dictionaries.iter();
        let values = values.map(|values| values.values().map(str::to_owned).collect());
        page.values = values.collect();
        page.rows
            .sort_unstable_by_key(|(key, window, _)| (*key, *window));
        page.tidy();
        Ok(page)
    }

    /// Reads a whole page.
    ///
    /// # Errors
    /// `invalid_checkpoint` for a page of a later version, and for one that was damaged.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let head = PageHead::parse(bytes)?;
        let mut page = Self {
            metric: head.metric,
            dimensions: head.dimensions,
            identity: head.identity.clone(),
            windows: head.windows.clone(),
            values: head.values.clone(),
            rows: Vec::new(),
        };
        let range = head.bytes_of(0);
        let range = usize::try_from(range.start)
            .ok()
            .zip(usize::try_from(range.end).ok());
        let bytes = range.and_then(|(start, end)| bytes.get(start..end));
        let bytes = bytes.ok_or_else(damaged)?;
        head.check(0, bytes)?;
        let lengths: Vec<usize> = head.values.iter().map(Vec::len).collect();
        let mut bytes = Bytes::of(bytes);
        let mut counts = Vec::new();
        while !bytes.rest.is_empty() {
            let read = read_key(&mut bytes, &lengths).and_then(|key| {
                let mut own = bytes.part()?;
                read_counts(&mut own, head.windows.len(), &mut counts)?;
                Some(key)
            });
            let key = read.ok_or_else(damaged)?;
            let rows = counts
                .iter()
                .map(|(window, counts)| (key, *window, *counts));
            page.rows.extend(rows);
        }
        Ok(page)
    }

    /// Whether there is no window.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// The same windows but those that `is_kept` is false for.
    #[must_use]
    pub fn filtered(mut self, is_kept: impl Fn(Window) -> bool) -> Self {
        let mut next = 0;
        let places = self.windows.iter().map(|head| {
            is_kept(head.window).then(|| {
                next += 1;
                next - 1
            })
        });
        let places: Vec<Option<u32>> = places.collect();
        self.windows.retain(|head| is_kept(head.window));
        let rows = self.rows.into_iter();
        let rows =
            rows.filter_map(|(key, window, counts)| Some((key, places[window as usize]?, counts)));
        self.rows = rows.collect();
        self.tidy();
        self
    }

    /// These windows and later readings of some of them, and others. A later reading replaces every window that it overlaps.
    ///
    /// # Errors
    /// `incompatible_tables` for counts of another client, or by other dimensions.
    pub fn with(self, later: Self) -> Result<Self> {
        let identity = later.identity.with(&self.identity, "have")?;
        if (self.metric, self.dimensions) != (later.metric, later.dimensions) {
            let message = "these are counts of another query";
            return Err(Error::new(Code::IncompatibleTables, message));
        }
        let overlaps = |window: Window| {
            let mut later = later.windows.iter().map(|head| head.window);
            later.any(|other| window.start() < other.end() && other.start() < window.end())
        };
        let earlier = self.filtered(|window| !overlaps(window));
        let both = earlier.values.iter().zip(&later.values);
        let all: Vec<Vec<String>> = both.map(|(one, other)| union(one, other)).collect();
        let mut windows: Vec<(Head, usize, u32)> = Vec::new();
        for (side, page) in [&earlier, &later].into_iter().enumerate() {
            let heads = page.windows.iter().zip(0..);
            windows.extend(heads.map(|(head, place)| (*head, side, place)));
        }
        windows.sort_by_key(|(head, ..)| head.window.start());
        let mut places = [vec![0; earlier.windows.len()], vec![0; later.windows.len()]];
        for (place, (_, side, old)) in windows.iter().enumerate() {
            places[*side][*old as usize] = place as u32;
        }
        let mut rows = Vec::with_capacity(earlier.rows.len() + later.rows.len());
        for (side, page) in [&earlier, &later].into_iter().enumerate() {
            let ids: Vec<Vec<u32>> = page
                .values
                .iter()
                .zip(&all)
                .map(|(own, all)| ids(own, all))
                .collect();
            rows.extend(page.rows.iter().map(|(key, window, counts)| {
                let window = places[side][*window as usize];
                (translated(key, &ids), window, *counts)
            }));
        }
        // Both parts are sorted already.
        rows.sort_by_key(|(key, window, _)| (*key, *window));
        Ok(Self {
            identity,
            windows: windows.into_iter().map(|(head, ..)| head).collect(),
            values: all,
            rows,
            ..later
        })
    }

    /// The page as bytes, with these sums.
    #[must_use]
    pub fn to_bytes(&self, sums: &[SumsBy]) -> Vec<u8> {
        let mut counts = Vec::new();
        let mut sets = vec![self.write_rows(&mut counts)];
        for of in sums {
            sets.extend(self.write_sums(of, &mut counts));
        }
        let mut totals = vec![Counts::default(); self.windows.len()];
        for (_, window, counts) in &self.rows {
            let total = &mut totals[*window as usize];
            *total = added(*total, *counts);
        }
        let mut head = Vec::new();
        text(&mut head, self.metric.as_str());
        let dimensions: Vec<Dimension> = self.dimensions.iter().collect();
        write_dimensions(&mut head, &dimensions);
        text(&mut head, self.identity.as_str().map_or("", |_| "1"));
        text(&mut head, self.identity.as_str().unwrap_or_default());
        number(&mut head, self.windows.len() as u64);
        let mut last = 0_i64;
        for (window, totals) in self.windows.iter().zip(&totals) {
            let (start, end) = (
                window.window.start().unix_ms(),
                window.window.end().unix_ms(),
            );
            number(&mut head, start.wrapping_sub(last).cast_unsigned());
            number(&mut head, end.wrapping_sub(start).cast_unsigned());
            last = start;
            let has_reported = u64::from(window.reported.is_some());
            number(&mut head, u64::from(window.settled) | has_reported << 1);
            let reported = window.reported.map(Counts::each);
            for count in reported.into_iter().flatten().chain(totals.each()) {
                number(&mut head, count);
            }
        }
        for values in &self.values {
            number(&mut head, values.len() as u64);
            for value in values {
                text(&mut head, value);
            }
        }
        number(&mut head, sets.len() as u64);
        for set in &sets {
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
        out.append(&mut counts);
        out
    }

    /// Writes the rows.
    fn write_rows(&self, out: &mut Vec<u8>) -> PageSums {
        let start = out.len();
        let (mut own, mut bytes) = (Vec::new(), Vec::new());
        for rows in self.rows.chunk_by(|one, other| one.0 == other.0) {
            own.clear();
            own.extend(rows.iter().map(|(_, window, counts)| (*window, *counts)));
            bytes.clear();
            write_counts(&mut bytes, self.windows.len(), &own);
            write_key(out, &rows[0].0, self.values.len());
            number(out, bytes.len() as u64);
            out.extend(&bytes);
        }
        let of = SumsBy {
            by: self.dimensions.iter().collect(),
            only: Vec::new(),
        };
        PageSums {
            of,
            groups: Vec::new(),
            bytes: start as u64..out.len() as u64,
            checksum: checksum(&out[start..]),
        }
    }

    /// Writes the sums by some dimensions; `None` if the rows don't have one of them.
    fn write_sums(&self, of: &SumsBy, out: &mut Vec<u8>) -> Option<PageSums> {
        let start = out.len();
        let column = |dimension: &Dimension| self.dimensions.position(*dimension);
        let columns = of.by.iter().map(column).collect::<Option<Vec<usize>>>()?;
        let mut only: Vec<(usize, Vec<bool>)> = Vec::new();
        for (dimension, values) in &of.only {
            let column = column(dimension)?;
            let is_wanted = |value: &String| values.contains(value);
            only.push((column, self.values[column].iter().map(is_wanted).collect()));
        }
        let windows = self.windows.len();
        let mut places: BTreeMap<Key, usize> = BTreeMap::new();
        let mut sums: Vec<Option<Counts>> = Vec::new();
        for rows in self.rows.chunk_by(|one, other| one.0 == other.0) {
            let row = &rows[0].0;
            let mut own = only.iter();
            if !own.all(|(column, is_wanted)| is_wanted[row[*column] as usize]) {
                continue;
            }
            let mut key = Key::default();
            for (id, column) in key.iter_mut().zip(&columns) {
                *id = row[*column];
            }
            let next = places.len();
            let place = *places.entry(key).or_insert(next);
            sums.resize(places.len() * windows, None);
            for (_, window, counts) in rows {
                let sum = &mut sums[place * windows + *window as usize];
                *sum = Some(added(sum.unwrap_or_default(), *counts));
            }
        }
        let (mut own, mut bytes) = (Vec::new(), Vec::new());
        for place in places.values() {
            let sums = sums[place * windows..(place + 1) * windows].iter();
            let sums = sums.zip(0..);
            own.clear();
            own.extend(sums.filter_map(|(sum, window)| Some((window, (*sum)?))));
            bytes.clear();
            write_counts(&mut bytes, windows, &own);
            number(out, bytes.len() as u64);
            out.extend(&bytes);
        }
        Some(PageSums {
            of: of.clone(),
            groups: places.into_keys().collect(),
            bytes: start as u64..out.len() as u64,
            checksum: checksum(&out[start..]),
        })
    }

    /// Drops the values that no row has.
    fn tidy(&mut self) {
        let mut ids: Vec<Vec<u32>> = Vec::new();
        for (column, values) in self.values.iter_mut().enumerate() {
            let used: BTreeSet<u32> = self.rows.iter().map(|(key, ..)| key[column]).collect();
            let mut new = vec![0; values.len()];
            for (place, id) in used.iter().enumerate() {
                new[*id as usize] = place as u32;
            }
            let kept = used.iter().map(|id| values[*id as usize].clone());
            *values = kept.collect();
            ids.push(new);
        }
        for (key, ..) in &mut self.rows {
            *key = translated(key, &ids);
        }
    }
}

fn added(one: Counts, other: Counts) -> Counts {
    Counts {
        success: one.success.saturating_add(other.success),
        errors: one.errors.saturating_add(other.errors),
        filtered: one.filtered.saturating_add(other.filtered),
    }
}

/// A key with other IDs for each of its columns.
pub(crate) fn translated(key: &Key, ids: &[Vec<u32>]) -> Key {
    let mut new = Key::default();
    for ((new, old), ids) in new.iter_mut().zip(key).zip(ids) {
        *new = ids[*old as usize];
    }
    new
}

fn union(one: &[String], other: &[String]) -> Vec<String> {
    let both: BTreeSet<&String> = one.iter().chain(other).collect();
    both.into_iter().cloned().collect()
}

/// The ID of each of some values among all values.
fn ids(own: &[String], all: &[String]) -> Vec<u32> {
    let id = |value: &String| all.binary_search(value).unwrap_or_default() as u32;
    own.iter().map(id).collect()
}

fn read_head(bytes: &mut Bytes<'_>, length: u64) -> Option<PageHead> {
    let metric = Metric::from_name(&bytes.text()?)?;
    let dimensions = Dimensions::kept(&read_dimensions(bytes)?).ok()?;
    let is_known = !bytes.text()?.is_empty();
    let identity = bytes.text()?;
    let identity = is_known
        .then(|| Identity::new(&identity))
        .unwrap_or_default();
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
        let reported = match flags & 2 {
            0 => None,
            _ => Some(bytes.counts()?),
        };
        windows.push(Head {
            window,
            settled: flags & 1 != 0,
            reported,
        });
        totals.push(bytes.counts()?);
    }
    let are_sorted = |one: &Head, other: &Head| one.window.end() <= other.window.start();
    if !windows.is_sorted_by(are_sorted) {
        return None;
    }
    let mut values = Vec::new();
    for _ in dimensions.iter() {
        let own = (0..bytes.count()?).map(|_| bytes.text());
        let own = own.collect::<Option<Vec<String>>>()?;
        values.push(own);
    }
    let (mut sums, mut start) = (Vec::new(), 0_u64);
    for _ in 0..bytes.count()? {
        let by = read_dimensions(bytes)?;
        let mut only = Vec::new();
        for _ in 0..bytes.count()? {
            let dimension = bytes.dimension()?;
            let values = (0..bytes.count()?).map(|_| bytes.text());
            only.push((dimension, values.collect::<Option<_>>()?));
        }
        let lengths = by
            .iter()
            .map(|own| Some(values[dimensions.position(*own)?].len()));
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

/// Reads as many IDs as there are columns. Each has so many values.
pub(crate) fn read_key(bytes: &mut Bytes<'_>, lengths: &[usize]) -> Option<Key> {
    let mut key = Key::default();
    for (id, length) in key.iter_mut().zip(lengths) {
        let read = bytes.number()?;
        *id = u32::try_from(read)
            .ok()
            .filter(|id| (*id as usize) < *length)?;
    }
    Some(key)
}

fn write_key(out: &mut Vec<u8>, key: &Key, columns: usize) {
    for id in &key[..columns.min(key.len())] {
        number(out, u64::from(*id));
    }
}

fn read_dimensions(bytes: &mut Bytes<'_>) -> Option<Vec<Dimension>> {
    (0..bytes.count()?).map(|_| bytes.dimension()).collect()
}

fn write_dimensions(out: &mut Vec<u8>, dimensions: &[Dimension]) {
    number(out, dimensions.len() as u64);
    for dimension in dimensions {
        text(out, dimension.as_str());
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// Writes a number: seven bits in each byte, the lowest first.
fn number(out: &mut Vec<u8>, mut number: u64) {
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
    pub(crate) fn of(rest: &'b [u8]) -> Self {
        Self { rest }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*first))
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let (mut number, mut shift) = (u64::from(first & 0x7f), 7);
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

    /// A number of things that take a byte each, or more.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    /// Bytes that come after their number.
    pub(crate) fn part(&mut self) -> Option<Bytes<'b>> {
        let length = self.count()?;
        let (part, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(Bytes::of(part))
    }

    fn text(&mut self) -> Option<String> {
        let part = self.part()?;
        std::str::from_utf8(part.rest).ok().map(str::to_owned)
    }

    fn counts(&mut self) -> Option<Counts> {
        Some(Counts {
            success: self.number()?,
            errors: self.number()?,
            filtered: self.number()?,
        })
    }

    fn dimension(&mut self) -> Option<Dimension> {
        Dimension::from_name(&self.text()?)
    }
}

static CRC: std::sync::LazyLock<Crc<u32, Table<16>>> =
    std::sync::LazyLock::new(|| Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC));

fn checksum(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

pub(crate) fn damaged() -> Error {
    let message = "this was damaged or changed since it was written: its checksum is another";
    Error::new(Code::InvalidCheckpoint, message)
}

const LATER: &str = "a later version has written this; use that version, or another folder";

fn later() -> Error {
    Error::new(Code::InvalidCheckpoint, LATER)
}
