//! Distinct strings, numbered.

use std::sync::Arc;

use crate::seek::seek;

/// The most text of one dictionary: half of what a WebAssembly string, or an Arrow string column,
/// can hold.
pub(crate) const MOST_BYTES: usize = 1 << 30;

/// The distinct values of one dimension, sorted by their UTF-8 bytes; ids count from 0.
///
/// The layout is Arrow's: one text with all values, and the offset at which each value starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dictionary {
    bytes: String,
    offsets: Vec<u32>,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl Dictionary {
    /// An empty dictionary with room for a number of values and their bytes.
    pub(crate) fn with_capacity(bytes: usize, values: usize) -> Self {
        let mut offsets = Vec::with_capacity(values + 1);
        offsets.push(0);
        Self { bytes: String::with_capacity(bytes), offsets }
    }

    /// How many values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// About how many bytes it takes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.offsets.len() * size_of::<u32>()
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value with that id, which must be one of this dictionary.
    #[must_use]
    pub fn value(&self, id: u32) -> &str {
        let id = id as usize;
        &self.bytes[self.offsets[id] as usize..self.offsets[id + 1] as usize]
    }

    /// The values in the order of their ids.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.offsets.windows(2).map(|edges| &self.bytes[edges[0] as usize..edges[1] as usize])
    }

    /// All values, end to end.
    #[must_use]
    pub fn bytes(&self) -> &str {
        &self.bytes
    }

    /// Where each value starts in `bytes`, and where the last one ends: one more than `len`.
    #[must_use]
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// A dictionary of the used values only, and the new id of each old id; the same dictionary if
    /// all are used.
    pub(crate) fn used_by(
        self: &Arc<Self>,
        ids: impl Iterator<Item = u32>,
    ) -> (Arc<Self>, Vec<u32>) {
        let mut new_ids = vec![u32::MAX; self.len()];
        ids.for_each(|id| new_ids[id as usize] = 0);
        let mut used = Self::default();
        for (id, new_id) in (0..).zip(&mut new_ids) {
            if *new_id == 0 {
                *new_id = used.len() as u32;
                used.push(self.value(id));
            }
        }
        let all = used.len() == self.len();
        (if all { Arc::clone(self) } else { Arc::new(used) }, new_ids)
    }

    /// A dictionary of values; `None` unless they are distinct, sorted by their UTF-8 bytes, and take at most 1 GiB.
    #[must_use]
    pub fn of_sorted<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut sorted = Self::default();
        let mut last = None;
        for value in values {
            if last.replace(value) >= Some(value) {
                return None;
            }
            sorted.push(value)?;
        }
        Some(sorted)
    }

    /// The distinct values among some values, sorted, and the id of each value; `None` if they take
    /// more than 1 GiB. `room` has the expected numbers of bytes and values, as hints for the
    /// allocation.
    pub(crate) fn of_unsorted(
        values: &[&str],
        room: (usize, usize),
    ) -> Option<(Arc<Self>, Vec<u32>)> {
        let mut ids = vec![0; values.len()];
        let mut last = None;
        let mut sorted = Self::with_capacity(room.0, room.1);
        for place in sorted_places(values) {
            let value = values[place as usize];
            if last.replace(value) != Some(value) {
                sorted.push(value)?;
            }
            ids[place as usize] = sorted.len() as u32 - 1;
        }
        Some((Arc::new(sorted), ids))
    }

    /// A dictionary with the values of all, sorted, and for each dictionary the new id of each old
    /// id; `None` if the values take more than 1 GiB.
    #[must_use]
    pub fn union(all: &[&Arc<Self>]) -> Option<(Arc<Self>, Vec<Vec<u32>>)> {
        let equals = |a: &Arc<Self>, b: &Arc<Self>| Arc::ptr_eq(a, b) || a == b;
        if let Some(first) = all.first()
            && all.iter().all(|other| equals(first, other))
        {
            let ids: Vec<u32> = (0..).take(first.len()).collect();
            return Some((Arc::clone(first), vec![ids; all.len()]));
        }
        let largest = all.iter().map(|dictionary| (dictionary.bytes.len(), dictionary.len()));
        let largest = largest.max().unwrap_or_default();
        let values = all.iter().flat_map(|dictionary| dictionary.values());
        let values: Vec<&str> = values.collect();
        let (union, ids) = Self::of_unsorted(&values, largest)?;
        let mut ids = ids.into_iter();
        let part = |dictionary: &&Arc<Self>| ids.by_ref().take(dictionary.len()).collect();
        Some((union, all.iter().map(part).collect()))
    }

    /// The id here of each value of another dictionary; for a value that is not in this one, the id of the next larger
    /// value, or the number of values. Both are sorted.
    #[must_use]
    pub fn places_of(&self, other: &Self) -> Vec<u32> {
        if other == self {
            return (0..).take(self.len()).collect();
        }
        let mut from = 0;
        other
            .values()
            .map(|value| {
                from = seek(self.len(), from, |id| self.value(id as u32) < value);
                from as u32
            })
            .collect()
    }

    /// Adds a value; `None` if it does not fit.
    pub(crate) fn push(&mut self, value: &str) -> Option<u32> {
        let end = self.bytes.len() + value.len();
        if end > MOST_BYTES {
            return None;
        }
        let end = u32::try_from(end).ok()?;
        let id = u32::try_from(self.len()).ok()?;
        self.bytes.push_str(value);
        self.offsets.push(end);
        Some(id)
    }
}

/// The positions of some values, sorted by the bytes of the values.
pub(crate) fn sorted_places(values: &[&str]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..).take(values.len()).collect();
    places.sort_unstable_by_key(|place| values[*place as usize]);
    places
}
