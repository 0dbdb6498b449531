//! Counts that the caller keeps as pages. A check reads only the parts of pages that it needs.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use tallyfold::{
    Code, Counts, Dictionary, Dimension, Error, Identity, Key, Metric, Reconciliation, Result,
    Window,
};

use super::bytes::{Bytes, damaged, read_counts, read_key, too_large};
use super::groups::{Counted, Head, Kept, Sums, distinct};
use super::page::translated;
use super::page_head::{PageHead, SumsBy};

/// Reads bytes of the pages that the caller keeps. The number of a page is the position of its head in [`Pages::new`].
pub trait ReadPage {
    /// Reads some bytes of a page.
    ///
    /// # Errors
    /// The reason as text if the bytes can't be read.
    fn read(&self, page: usize, bytes: Range<u64>) -> Result<Vec<u8>, String>;
}

/// The counts of one endpoint in pages. A check reads only the parts that it needs: the sums by the dimensions of its
/// rules, and the rows that explain its findings.
pub struct Pages<'h> {
    reader: &'h dyn ReadPage,
    heads: &'h [PageHead],
    identity: Identity,
    /// For each dimension, the values of all pages, sorted.
    dictionaries: Vec<Arc<Dictionary>>,
    /// For each page and each dimension, the position in `dictionaries` of each of the page's values.
    ids: Vec<Vec<Vec<u32>>>,
    /// The windows of all pages. `totals` has the sums of their rows.
    windows: Vec<Head>,
    totals: Vec<Counts>,
    /// For each page, the range of its windows in `windows`.
    ranges: Vec<Range<usize>>,
    sets: Vec<Set>,
    /// For each page and each set of sums, whether the checksum was verified.
    checked: RefCell<Vec<Vec<bool>>>,
    failed: RefCell<Option<(usize, Error)>>,
}

/// A set of sums by some dimensions, in all pages.
struct Set {
    of: SumsBy,
    /// The groups of all pages, sorted.
    groups: Vec<Key>,
    /// For each page, the position of the set in the page, and for each sum the position of its group in `groups`.
    places: Vec<(usize, Vec<u32>)>,
}

impl<'h> Pages<'h> {
    /// Combines pages, the oldest first. `sums` are the sums that the rules need.
    ///
    /// # Errors
    /// `incompatible_tables` for pages of different clusters, clients or queries; `group_limit` if the values of a dimension take
    /// more than 1 GiB; `invalid_argument` without any page, and for pages that overlap, are in another order or lack some of the
    /// sums.
    pub fn new(heads: &'h [PageHead], sums: &[SumsBy], reader: &'h dyn ReadPage) -> Result<Self> {
        let wrong =
            |message: &str| Error::argument("pages", Code::InvalidArgument, message.to_owned());
        let Some(first) = heads.first() else {
            return Err(wrong("want a page or more"));
        };
        let (metric, dimensions) = (first.metric, first.dimensions);
        let mut pages = Self {
            reader,
            identity: Identity::default(),
            dictionaries: Vec::new(),
            ids: vec![Vec::new(); heads.len()],
            windows: Vec::new(),
            totals: Vec::new(),
            ranges: Vec::new(),
            sets: Vec::new(),
            checked: RefCell::new(heads.iter().map(|head| vec![false; head.sums.len()]).collect()),
            failed: RefCell::default(),
            heads,
        };
        for head in heads {
            if (head.metric, head.dimensions) != (metric, dimensions) {
                let message = "these are counts of different queries";
                return Err(Error::new(Code::IncompatibleTables, message));
            }
            pages.identity = pages.identity.with(&head.identity, "pages")?;
            if !head.has(sums) {
                return Err(wrong("want pages with the sums of all rules"));
            }
            let start = pages.windows.len();
            pages.windows.extend(&head.windows);
            pages.totals.extend(&head.totals);
            pages.ranges.push(start..pages.windows.len());
        }
        let are_sorted = |one: &Head, other: &Head| one.window.end() <= other.window.start();
        if !pages.windows.is_sorted_by(are_sorted) {
            return Err(wrong("want pages that do not overlap, the oldest first"));
        }
        for column in 0..dimensions.iter().count() {
            let own: Vec<&Arc<Dictionary>> =
                heads.iter().map(|head| &head.values[column]).collect();
            let (dictionary, ids) = Dictionary::union(&own).ok_or_else(too_large)?;
            pages.dictionaries.push(dictionary);
            for (of_page, ids) in pages.ids.iter_mut().zip(ids) {
                of_page.push(ids);
            }
        }
        for of in sums {
            pages.sets.push(Set::new(of, heads, &pages.ids)?);
        }
        Ok(pages)
    }

    /// Returns the cluster and the client that the counts belong to.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns all windows, in chronological order.
    pub fn windows(&self) -> impl Iterator<Item = Window> + use<'_, 'h> {
        self.windows.iter().map(|head| head.window)
    }

    /// Returns the endpoint of the counts.
    #[must_use]
    pub fn metric(&self) -> Option<Metric> {
        self.heads.first().map(|head| head.metric)
    }

    /// Returns whether the reported totals are the sums of the counts.
    #[must_use]
    pub fn reconciliation(&self) -> Reconciliation {
        let mut difference = [0_i128; 3];
        for (head, counted) in self.windows.iter().zip(&self.totals) {
            let Some(reported) = head.reported else {
                return Reconciliation::Unavailable;
            };
            let both = reported.each().into_iter().zip(counted.each());
            for (sum, (reported, counted)) in difference.iter_mut().zip(both) {
                *sum += i128::from(reported) - i128::from(counted);
            }
        }
        match difference {
            [0, 0, 0] => Reconciliation::Balanced,
            [success, errors, filtered] => Reconciliation::Unbalanced { success, errors, filtered },
        }
    }

    /// Returns the first page that could not be read since the last call, and the error.
    #[must_use]
    pub fn failed(&self) -> Option<(usize, Error)> {
        self.failed.borrow_mut().take()
    }

    /// Returns the error of the first page that could not be read.
    pub(crate) fn error(&self) -> Option<Error> {
        let failed = self.failed.borrow();
        failed.as_ref().map(|(_, error)| error.clone())
    }

    /// Returns the counts in the form that rules read.
    pub(crate) fn counted(&self) -> Option<Counted<'_>> {
        let first = self.heads.first()?;
        let of = (first.metric, first.dimensions);
        let windows = self.windows.clone();
        Some(Counted::kept(of, self.dictionaries.clone(), windows, self))
    }

    /// Reads the counts of a set of sums in a page. Returns `None` if they can't be read.
    fn counts(&self, page: usize, sums: usize) -> Option<Vec<u8>> {
        if self.failed.borrow().is_some() {
            return None;
        }
        let head = &self.heads[page];
        let read = self.reader.read(page, head.bytes_of(sums));
        let read = read.map_err(|why| Error::new(Code::InvalidCheckpoint, why));
        let checked = read.and_then(|bytes| {
            let is_checked = &mut self.checked.borrow_mut()[page][sums];
            if !*is_checked {
                head.check(sums, &bytes)?;
                *is_checked = true;
            }
            Ok(bytes)
        });
        checked.map_err(|error| self.fail(page, error)).ok()
    }

    fn fail(&self, page: usize, error: Error) {
        self.failed.borrow_mut().get_or_insert((page, error));
    }
}

impl Set {
    fn new(of: &SumsBy, heads: &[PageHead], ids: &[Vec<Vec<u32>>]) -> Result<Self> {
        let mut set = Self { of: of.clone(), groups: Vec::new(), places: Vec::new() };
        let mut all: Vec<Vec<Key>> = Vec::new();
        for (head, ids) in heads.iter().zip(ids) {
            let place = head.place(of).ok_or_else(damaged)?;
            let columns = of.by.iter().filter_map(|own| head.dimensions.position(*own));
            let ids: Vec<&Vec<u32>> = columns.map(|column| &ids[column]).collect();
            let groups = head.sums[place].groups.iter();
            all.push(groups.map(|group| translated(group, &ids)).collect());
            set.places.push((place, Vec::new()));
        }
        let groups = distinct(all.concat());
        for (own, (_, places)) in all.iter().zip(&mut set.places) {
            let mut next = 0;
            for key in own {
                next += groups[next..].partition_point(|group| group < key);
                places.push(next as u32);
            }
        }
        set.groups = groups;
        Ok(set)
    }
}

impl Kept for Pages<'_> {
    fn set(
        &self,
        by: &[Dimension],
        only: &[(Dimension, Vec<String>)],
    ) -> Option<(usize, Vec<Key>)> {
        let mut sets = self.sets.iter().enumerate();
        let (place, set) = sets.find(|(_, set)| set.of.by == by && set.of.only == only)?;
        Some((place, set.groups.clone()))
    }

    fn sums(
        &self,
        set: usize,
        wanted: &[bool],
        is_needed: &dyn Fn(Range<usize>) -> bool,
        take: &mut dyn FnMut(usize, Sums<'_>),
    ) {
        let Some(set) = self.sets.get(set) else {
            return;
        };
        let mut counts = Vec::new();
        for (page, range) in self.ranges.iter().enumerate() {
            if !is_needed(range.clone()) {
                continue;
            }
            let (place, groups) = &set.places[page];
            let Some(bytes) = self.counts(page, *place) else {
                return;
            };
            let mut bytes = Bytes::of(&bytes);
            for group in groups {
                let own = bytes.part();
                if own.is_some() && wanted.get(*group as usize) != Some(&true) {
                    continue;
                }
                let read = own.and_then(|mut own| read_counts(&mut own, range, &mut counts));
                if read.is_none() {
                    return self.fail(page, damaged());
                }
                take(*group as usize, &counts);
            }
        }
    }

    fn rows(
        &self,
        values: &[(usize, Vec<u32>)],
        is_wanted: &dyn Fn(Range<usize>) -> bool,
        take: &mut dyn FnMut(&Key, Sums<'_>),
    ) {
        let mut counts = Vec::new();
        for (page, range) in self.ranges.iter().enumerate() {
            let ids = &self.ids[page];
            let own = values.iter().map(|(column, wanted)| {
                let own = wanted.iter().filter_map(|id| ids[*column].binary_search(id).ok());
                (*column, own.map(|id| id as u32).collect::<Vec<u32>>())
            });
            let own: Vec<(usize, Vec<u32>)> = own.collect();
            if own.iter().any(|(_, own)| own.is_empty()) || !is_wanted(range.clone()) {
                continue;
            }
            let Some(bytes) = self.counts(page, 0) else {
                return;
            };
            let lengths: Vec<usize> = ids.iter().map(Vec::len).collect();
            let mut bytes = Bytes::of(&bytes);
            while !bytes.rest.is_empty() {
                let row = read_key(&mut bytes, &lengths).zip(bytes.part());
                let Some((key, mut row)) = row else {
                    return self.fail(page, damaged());
                };
                let mut columns = own.iter();
                if !columns.all(|(column, ids)| ids.contains(&key[*column])) {
                    continue;
                }
                if read_counts(&mut row, range, &mut counts).is_none() {
                    return self.fail(page, damaged());
                }
                take(&translated(&key, ids), &counts);
            }
        }
    }

    fn totals(&self, window: usize) -> Counts {
        self.totals[window]
    }
}
