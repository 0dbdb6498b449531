//! The input of an explanation: the finest groups, with their counts before and now.

use std::sync::Arc;

use tallyfold::{Code, Dictionary, Error, Result};

/// The maximum number of attributes of leaves.
pub const MOST_ATTRIBUTES: usize = 8;

/// The counts of one or more leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The events that are counted, such as errors.
    pub part: u64,
    /// The events that `part` is a share of, such as attempts. Explanations of volumes ignore this number.
    pub whole: u64,
}

impl Tally {
    /// Returns the same counts, with a whole that is at least as large as the part.
    pub(crate) fn sound(self) -> Self {
        Self { part: self.part, whole: self.whole.max(self.part) }
    }

    /// Returns the number of counted events: the part, or all other events.
    pub(crate) fn counted(self, is_other_part: bool) -> u64 {
        match is_other_part {
            true => self.whole.saturating_sub(self.part),
            false => self.part,
        }
    }

    /// Adds counts. The sums saturate.
    pub(crate) fn add(&mut self, other: Self) {
        self.part = self.part.saturating_add(other.part);
        self.whole = self.whole.saturating_add(other.whole);
    }
}

/// One attribute of all leaves, as a column.
#[derive(Clone, Debug)]
pub struct Attribute {
    pub(crate) name: String,
    pub(crate) values: Arc<Dictionary>,
    pub(crate) ids: Vec<u32>,
    pub(crate) of_part: bool,
}

impl Attribute {
    /// Makes an attribute from its distinct values and, for each leaf, the position of its value.
    #[must_use]
    pub fn new(name: impl Into<String>, values: Arc<Dictionary>, ids: Vec<u32>) -> Self {
        Self { name: name.into(), values, ids, of_part: false }
    }

    /// Makes an attribute from texts, one for each leaf.
    ///
    /// # Errors
    /// `group_limit` if the texts take more than 1 GiB.
    pub fn of_texts<S: AsRef<str>>(name: impl Into<String>, texts: &[S]) -> Result<Self> {
        let mut sorted: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let id = |text: &S| sorted.binary_search(&text.as_ref()).unwrap_or_default() as u32;
        let ids = texts.iter().map(id).collect();
        let values = Dictionary::of_sorted(sorted.iter().copied()).ok_or_else(|| {
            Error::new(Code::GroupLimit, "an attribute may have at most 1 GiB of values")
        })?;
        Ok(Self::new(name, Arc::new(values), ids))
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the distinct values.
    #[must_use]
    pub fn values(&self) -> &Dictionary {
        &self.values
    }

    /// Returns, for each leaf, the position of its value.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Marks the attribute as one that only counted events have, such as the reason why an event was filtered. The share
    /// of a value is then relative to the events with any value of this attribute.
    #[must_use]
    pub fn of_part(mut self) -> Self {
        self.of_part = true;
        self
    }
}

/// The finest groups for which there are counts, in columns: up to eight attributes, and the counts of each group
/// before and now. Several rows may have the same group.
#[derive(Clone, Debug)]
pub struct Leaves {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) before: Vec<Tally>,
    pub(crate) now: Vec<Tally>,
}

impl Leaves {
    /// Makes leaves from columns.
    ///
    /// # Errors
    /// `invalid_argument` for more than eight attributes, for columns of different lengths, for a position that is not in its
    /// dictionary, and for 2^32 leaves or more. `sum_overflow` if all leaves together have more than 2^64 - 1 events, before or
    /// now.
    pub fn new(attributes: Vec<Attribute>, before: Vec<Tally>, now: Vec<Tally>) -> Result<Self> {
        check_attributes(&attributes, now.len())?;
        if before.len() != now.len() {
            let message = format!(
                "{} counts before, {} now: want one for each leaf",
                before.len(),
                now.len()
            );
            return Err(Error::argument("before", Code::InvalidArgument, message));
        }
        if u32::try_from(now.len()).is_err() {
            let message = "want fewer than 2^32 leaves";
            return Err(Error::argument("now", Code::InvalidArgument, message));
        }
        for tallies in [&before, &now] {
            sum(tallies.iter()).ok_or_else(|| {
                Error::new(Code::SumOverflow, "all events together are more than 2^64 - 1")
            })?;
        }
        Ok(Self { attributes, before, now })
    }

    /// Returns the number of leaves.
    #[must_use]
    pub fn len(&self) -> usize {
        self.now.len()
    }

    /// Returns whether there are no leaves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    /// Returns the attributes.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Returns the counts of each leaf before.
    #[must_use]
    pub fn before(&self) -> &[Tally] {
        &self.before
    }

    /// Returns the counts of each leaf now.
    #[must_use]
    pub fn now(&self) -> &[Tally] {
        &self.now
    }

    /// Returns the sums of all leaves, before and now.
    #[must_use]
    pub fn totals(&self) -> [Tally; 2] {
        // `new` has checked that the sums fit.
        [&self.before, &self.now].map(|tallies| sum(tallies.iter()).unwrap_or_default())
    }

    /// Returns whether a leaf belongs to a combination.
    pub(crate) fn is_in(&self, leaf: usize, element: Element) -> bool {
        element.is_of(|place| self.attributes[place].ids[leaf])
    }
}

/// Returns the sum of tallies, or `None` if it is above 2^64 - 1.
fn sum<'a>(mut tallies: impl Iterator<Item = &'a Tally>) -> Option<Tally> {
    tallies.try_fold(Tally::default(), |sum, tally| {
        Some(Tally {
            part: sum.part.checked_add(tally.part)?,
            whole: sum.whole.checked_add(tally.whole)?,
        })
    })
}

fn check_attributes(attributes: &[Attribute], leaves: usize) -> Result<()> {
    let invalid = |message: String| Error::argument("attributes", Code::InvalidArgument, message);
    if attributes.len() > MOST_ATTRIBUTES {
        let message =
            format!("want at most {MOST_ATTRIBUTES} attributes, got {}", attributes.len());
        return Err(invalid(message));
    }
    for attribute in attributes {
        let Attribute { name, values, ids, .. } = attribute;
        if ids.len() != leaves {
            return Err(invalid(format!("{} values of {name} for {leaves} leaves", ids.len())));
        }
        if ids.iter().any(|id| *id as usize >= values.len()) {
            return Err(invalid(format!(
                "a position of {name} is not among its {} values",
                values.len()
            )));
        }
    }
    Ok(())
}

/// A combination of attribute values: a bit for each attribute that it names, and the position of each value. The
/// positions of other attributes are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element {
    pub(crate) attributes: u8,
    pub(crate) values: [u32; 8],
}

impl Element {
    /// Returns the combination of these attributes with a leaf's values.
    pub(crate) fn of_leaf(attributes: u8, id: impl Fn(usize) -> u32) -> Self {
        let mut element = Self { attributes, values: [0; 8] };
        for (place, value) in element.values.iter_mut().enumerate() {
            if attributes & 1 << place != 0 {
                *value = id(place);
            }
        }
        element
    }

    /// Returns whether the combination names an attribute.
    pub(crate) fn names(self, attribute: usize) -> bool {
        self.attributes & 1 << attribute != 0
    }

    /// Returns the same combination without an attribute, so that the attribute may have any value.
    pub(crate) fn without(mut self, attribute: usize) -> Self {
        self.attributes &= !(1 << attribute);
        self.values[attribute] = 0;
        self
    }

    /// Returns whether a leaf has all values of the combination.
    pub(crate) fn is_of(self, id: impl Fn(usize) -> u32) -> bool {
        let mut values = self.values.iter().enumerate();
        values.all(|(place, value)| !self.names(place) || id(place) == *value)
    }

    /// Returns how many attributes the combination names.
    pub(crate) fn layer(self) -> u32 {
        self.attributes.count_ones()
    }
}

/// A combination that may be a cause, and how well it explains the change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect {
    pub(crate) element: Element,
    pub(crate) score: f64,
}

/// The result of a search: causes in the order in which they were found, and the other candidates of the first round,
/// best first.
#[derive(Clone, Debug)]
pub(crate) struct Suspects {
    pub(crate) causes: Vec<Suspect>,
    pub(crate) others: Vec<Suspect>,
    /// Whether no combination is a cause, because everything changed or nothing did.
    pub(crate) is_global: bool,
    /// The probability that all events together vary at least this much without any change.
    pub(crate) probability: f64,
}

impl Suspects {
    /// Removes the causes from the other candidates, and keeps at most `most` of the rest.
    pub(crate) fn keep_others(&mut self, most: usize) {
        let causes = &self.causes;
        self.others.retain(|other| causes.iter().all(|cause| cause.element != other.element));
        self.others.truncate(most);
    }
}

impl Default for Suspects {
    fn default() -> Self {
        Self { causes: Vec::new(), others: Vec::new(), is_global: false, probability: 1.0 }
    }
}

/// Returns the counts of the free leaves of a combination, before and now. If `take` is true, these leaves are no longer
/// free afterwards.
pub(crate) fn sums_of(
    leaves: &Leaves,
    element: Element,
    free: &mut [bool],
    take: bool,
) -> [Tally; 2] {
    let mut sums = [Tally::default(); 2];
    for (leaf, free) in free.iter_mut().enumerate() {
        if *free && leaves.is_in(leaf, element) {
            *free = !take;
            sums[0].add(leaves.before[leaf]);
            sums[1].add(leaves.now[leaf]);
        }
    }
    // If the combination names an attribute that only counted events have, the whole is the number of events with any value
    // of this attribute, even if their leaves aren't free.
    let attributes = leaves.attributes.iter().enumerate();
    let of_part = attributes.filter(|(_, attribute)| attribute.of_part);
    let others = of_part.fold(element, |element, (place, _)| element.without(place));
    if others != element {
        let all = sums_of(leaves, others, &mut vec![true; leaves.len()], false);
        sums[0].whole = all[0].whole;
        sums[1].whole = all[1].whole;
    }
    sums
}
