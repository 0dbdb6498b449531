//! The counts of a window: one response, or several that were joined.

use std::sync::Arc;

use serde::Serialize;
use tallyfold_engine::{Counts, Packed, Refused, Rows};

use super::parse::refusal;
use crate::error::Result;
use crate::time::window::Window;

/// The counts of a window: one response, or several that were joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) window: Window,
    /// The totals that the response reported; `None` once the rows were filtered.
    pub(crate) reported: Option<Counts>,
    pub(crate) notes: Notes,
    /// Whether it was read so early that its counts may still change.
    pub(crate) provisional: bool,
    /// Whether it was read before it had ended, so that its counts cover at most a part of it.
    pub(crate) unfinished: bool,
    pub(crate) rows: PartRows,
}

/// The rows of a part.
#[derive(Clone, Debug)]
pub(crate) enum PartRows {
    Own(Arc<Rows>),
    /// The rows are packed. They refer to the sum of all parts that were packed together.
    Packed {
        sum: Arc<Rows>,
        rows: Arc<Packed>,
    },
}

impl PartRows {
    /// The rows by themselves.
    pub(crate) fn get(&self) -> Arc<Rows> {
        match self {
            Self::Own(rows) => Arc::clone(rows),
            Self::Packed { sum, rows } => Arc::new(sum.unpack(rows)),
        }
    }

    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Self::Packed { .. })
    }

    /// About how many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Own(rows) => rows.bytes(),
            Self::Packed { sum, rows } => rows.bytes() + sum.bytes() / PACKED_TOGETHER,
        }
    }

    /// The sum of all rows.
    pub(crate) fn totals(&self) -> Counts {
        match self {
            Self::Own(rows) => rows.totals(),
            Self::Packed { rows, .. } => rows.totals(),
        }
    }
}

impl Part {
    /// The sum of this part and another. `None` if the other part does not begin where this one ends, if one of them
    /// may still change, if only one of them has reported totals, if a sum would be above 2^64 - 1, or if the values
    /// would take more than 1 GiB. `width` is the number of columns.
    pub(crate) fn joined(&self, other: &Self, width: usize) -> Option<Self> {
        if self.provisional || other.provisional || self.window.end() != other.window.start() {
            return None;
        }
        let reported = match (self.reported, other.reported) {
            (Some(one), Some(other)) => Some(one.checked_add(other)?),
            (None, None) => None,
            _ => return None,
        };
        let rows = Rows::combine(&[&self.rows.get(), &other.rows.get()], width).ok()?;
        Some(Self {
            window: Window::new(self.window.start(), other.window.end()).ok()?,
            reported,
            notes: self.notes.and(other.notes),
            provisional: false,
            unfinished: false,
            rows: rows.into(),
        })
    }
}

impl Part {
    /// The sum of parts of several clusters, for the window that they cover together.
    ///
    /// # Errors
    /// `sum_overflow`, and `group_limit` for more than 1 GiB of values.
    pub(crate) fn sum_of(window: Window, parts: &[Self], width: usize) -> Result<Self> {
        let mut all = Self {
            window,
            reported: Some(Counts::default()),
            notes: Notes::default(),
            provisional: false,
            unfinished: false,
            rows: PartRows::Own(sum(parts, width)?),
        };
        for part in parts {
            all.notes = all.notes.and(part.notes);
            all.provisional |= part.provisional;
            all.unfinished |= part.unfinished;
            all.reported = match (all.reported, part.reported) {
                (Some(sum), Some(reported)) => sum.checked_add(reported),
                _ => None,
            };
        }
        Ok(all)
    }
}

impl From<Rows> for PartRows {
    fn from(rows: Rows) -> Self {
        Self::Own(Arc::new(rows))
    }
}

impl PartialEq for PartRows {
    fn eq(&self, other: &Self) -> bool {
        self.totals() == other.totals() && self.get() == other.get()
    }
}

impl Eq for PartRows {}

/// How many parts are packed together: few enough that their rows take little memory before they are packed, and
/// enough that the values, which are stored once for all of them, take little for each.
pub(crate) const PACKED_TOGETHER: usize = 64;

/// Packs parts that have their own rows, in groups of [`PACKED_TOGETHER`]; an incomplete last group stays as it is.
/// `width` is the number of columns.
///
/// # Errors
/// `sum_overflow`, and `group_limit` for more than 1 GiB of values.
pub(crate) fn pack<'a>(parts: impl Iterator<Item = &'a mut Part>, width: usize) -> Result<()> {
    let mut group = Vec::with_capacity(PACKED_TOGETHER);
    for part in parts {
        let PartRows::Own(rows) = &part.rows else {
            continue;
        };
        let rows = Arc::clone(rows);
        group.push((part, rows));
        if group.len() == PACKED_TOGETHER {
            let all: Vec<&Rows> = group.iter().map(|(_, rows)| &**rows).collect();
            let sum = Arc::new(Rows::combine(&all, width).map_err(refusal)?);
            for (part, rows) in group.drain(..) {
                part.rows = PartRows::Packed {
                    rows: Arc::new(Packed::new(&rows, &sum.places_of(&rows))),
                    sum: Arc::clone(&sum),
                };
            }
        }
    }
    Ok(())
}

/// The sum of the rows of parts.
///
/// # Errors
/// `sum_overflow`, and `group_limit` for more than 1 GiB of values.
pub(crate) fn sum(parts: &[Part], width: usize) -> Result<Arc<Rows>> {
    if let [only] = parts {
        return Ok(only.rows.get());
    }
    let mut totals = parts.iter().map(|part| part.rows.totals());
    let totals = totals.try_fold(Counts::default(), Counts::checked_add);
    totals.ok_or_else(|| refusal(Refused::SumOverflow))?;
    let mut sums = Vec::new();
    let mut packed: Vec<(&Arc<Rows>, Vec<&Arc<Packed>>)> = Vec::new();
    for part in parts {
        match &part.rows {
            PartRows::Own(rows) => sums.push(Arc::clone(rows)),
            PartRows::Packed { sum, rows } => {
                let same = packed.iter_mut().rfind(|(other, _)| Arc::ptr_eq(other, sum));
                match same {
                    Some((_, all)) => all.push(rows),
                    None => packed.push((sum, vec![rows])),
                }
            }
        }
    }
    sums.extend(packed.into_iter().map(|(sum, some)| {
        // A caller may combine a table with itself, so that a part occurs twice.
        let occurs_again = |(at, rows): (usize, &&Arc<Packed>)| {
            some[..at].iter().any(|one| Arc::ptr_eq(one, rows))
        };
        if some.len() == PACKED_TOGETHER && !some.iter().enumerate().any(occurs_again) {
            // These are all parts that were packed together.
            Arc::clone(sum)
        } else {
            Arc::new(sum.sum_of(some.into_iter().map(|rows| &**rows)))
        }
    }));
    match sums.as_slice() {
        [only] => Ok(Arc::clone(only)),
        _ => {
            let all: Vec<&Rows> = sums.iter().map(|rows| &**rows).collect();
            Ok(Arc::new(Rows::combine(&all, width).map_err(refusal)?))
        }
    }
}

/// The number of deviations that were tolerated at the caller's request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Notes {
    /// Entries that repeated a combination of dimension values in the same response; they were
    /// added up.
    pub repeated_combinations: u64,
    /// Dimension values that were `null`; they were read as empty strings.
    pub null_dimensions: u64,
}

impl Notes {
    /// The sums of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            repeated_combinations: self
                .repeated_combinations
                .saturating_add(other.repeated_combinations),
            null_dimensions: self.null_dimensions.saturating_add(other.null_dimensions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::timestamp::Timestamp;

    fn part(number: usize) -> Part {
        let at = |minute: usize| {
            let text = format!("2026-01-01T{:02}:{:02}:00Z", minute / 60, minute % 60);
            Timestamp::parse(&text).unwrap()
        };
        let counts = Counts { success: number as u64, errors: 1, filtered: 0 };
        let name = format!("own-{}", number % 5);
        Part {
            window: Window::new(at(number), at(number + 1)).unwrap(),
            reported: None,
            notes: Notes::default(),
            provisional: false,
            unfinished: false,
            rows: Rows::from_values(&[vec!["all", &name]], &[counts; 2]).unwrap().into(),
        }
    }

    #[test]
    fn all_or_some_of_the_parts_that_were_packed_together_add_up() {
        let own: Vec<Part> = (0..PACKED_TOGETHER + 3).map(part).collect();
        let mut packed = own.clone();
        pack(packed.iter_mut(), 1).unwrap();
        assert!(packed[0].rows.is_packed() && !packed[PACKED_TOGETHER].rows.is_packed());
        for some in [0..own.len(), 0..PACKED_TOGETHER, 1..PACKED_TOGETHER, 7..own.len()] {
            let (own, packed) = (&own[some.clone()], &packed[some]);
            assert_eq!(sum(packed, 1).unwrap(), sum(own, 1).unwrap());
        }
        // As many parts as were packed together, but each of them twice.
        let twice = |parts: &[Part]| [&parts[..PACKED_TOGETHER / 2]; 2].concat();
        assert_eq!(sum(&twice(&packed), 1).unwrap(), sum(&twice(&own), 1).unwrap());
    }
}
