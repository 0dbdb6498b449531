//! Two tables side by side, group by group.

use std::cmp::Ordering;
use std::sync::Arc;

use tallyfold_engine::{Counts, Dictionary, Key};

use super::change::{Deltas, Presence, Shares};
use super::columns::CountColumns;
use super::remap::union;
use super::selection::Selection;
use super::{Column, CountTable, view};
use crate::dimension::{Dimensions, Metric};
use crate::error::Result;
use crate::window::Window;

/// What changed from one table to another: one row for each group of either.
///
/// A comparison does not change. Its rows are sorted by their dimension values, and each
/// dimension has one dictionary for both tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    dimensions: Dimensions,
    metric: Option<Metric>,
    pub(super) selection: Selection,
    before: Side,
    after: Side,
    dictionaries: Vec<Arc<Dictionary>>,
    ids: Vec<Vec<u32>>,
    presences: Vec<Presence>,
}

/// One of the two tables, in the rows of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    coverage: Vec<Window>,
    totals: Counts,
    columns: CountColumns,
}

/// One group of either table, and how its counts changed.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonRow<'a> {
    comparison: &'a Comparison,
    index: usize,
}

/// Compares two tables, group by group.
///
/// The tables may cover any time: windows of other lengths, or the same time twice. Counts are
/// compared as they are; [`Comparison::before_coverage`] and [`Comparison::after_coverage`] say
/// which time they are of.
///
/// ```
/// # use tallyfold::{CountTable, compare};
/// # fn f(yesterday: &CountTable, today: &CountTable) -> tallyfold::Result<()> {
/// let comparison = compare(yesterday, today)?;
/// for position in comparison.top(5, "errors")? {
///     if let Some(row) = comparison.row(position) {
///         let values: Vec<&str> = row.values().collect();
///         println!("{values:?}: {:+}, {:?}", row.delta().errors, row.share().errors);
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `incompatible_tables` for other dimensions, another metric or another filter, and `group_limit`
/// if the values of a dimension take more than 1 GiB.
pub fn compare(before: &CountTable, after: &CountTable) -> Result<Comparison> {
    before.check_like(after, "after")?;
    let (dictionaries, ours, theirs) = union(&before.rows, &after.rows)?;
    let mut comparison = Comparison {
        dimensions: before.dimensions,
        metric: before.metric,
        selection: before.selection.clone(),
        before: Side::of(before),
        after: Side::of(after),
        ids: vec![Vec::new(); dictionaries.len()],
        dictionaries,
        presences: Vec::new(),
    };
    // The rows of both are sorted: each step takes the smaller one, or both if they are equal.
    let (mut ours, mut theirs) = (ours.rows().peekable(), theirs.rows().peekable());
    loop {
        let order = match (ours.peek(), theirs.peek()) {
            (Some((ours, _)), Some((theirs, _))) => ours.cmp(theirs),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let ours = ours.next_if(|_| order.is_le());
        let theirs = theirs.next_if(|_| order.is_ge());
        let nothing = Counts::default();
        match (ours, theirs) {
            (Some((key, before)), Some((_, after))) => {
                comparison.push(key, Presence::Both, before, after);
            }
            (Some((key, before)), None) => {
                comparison.push(key, Presence::Vanished, before, nothing);
            }
            (None, Some((key, after))) => comparison.push(key, Presence::New, nothing, after),
            (None, None) => return Ok(comparison),
        }
    }
}

impl Side {
    fn of(table: &CountTable) -> Self {
        Self {
            coverage: table.coverage(),
            totals: table.totals(),
            columns: CountColumns::default(),
        }
    }
}

impl Comparison {
    fn push(&mut self, key: Key, presence: Presence, before: Counts, after: Counts) {
        for (ids, id) in self.ids.iter_mut().zip(key) {
            ids.push(id);
        }
        self.presences.push(presence);
        self.before.columns.push(before);
        self.after.columns.push(after);
    }

    /// The dimensions of the rows, in sorting order.
    #[must_use]
    pub fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }

    /// The endpoint that both tables are from, if they knew it.
    #[must_use]
    pub fn metric(&self) -> Option<Metric> {
        self.metric
    }

    /// What the table before covers.
    #[must_use]
    pub fn before_coverage(&self) -> &[Window] {
        &self.before.coverage
    }

    /// What the table after covers.
    #[must_use]
    pub fn after_coverage(&self) -> &[Window] {
        &self.after.coverage
    }

    /// The totals of the table before.
    #[must_use]
    pub fn before_totals(&self) -> Counts {
        self.before.totals
    }

    /// The totals of the table after.
    #[must_use]
    pub fn after_totals(&self) -> Counts {
        self.after.totals
    }

    /// How the totals changed: the sum of the deltas of all rows.
    #[must_use]
    pub fn total_delta(&self) -> Deltas {
        Deltas::between(self.before.totals, self.after.totals)
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.presences.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a position.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<ComparisonRow<'_>> {
        (index < self.len()).then_some(ComparisonRow {
            comparison: self,
            index,
        })
    }

    /// The rows in sorted order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = ComparisonRow<'_>> {
        (0..self.len()).map(|index| ComparisonRow {
            comparison: self,
            index,
        })
    }

    /// The columns of the dimensions, in the order of [`Comparison::dimensions`].
    pub fn columns(&self) -> impl ExactSizeIterator<Item = Column<'_>> {
        view::columns(&self.dimensions, &self.dictionaries, &self.ids)
    }

    /// The counts before, 0 where the group is new.
    #[must_use]
    pub fn before_columns(&self) -> &CountColumns {
        &self.before.columns
    }

    /// The counts after, 0 where the group has vanished.
    #[must_use]
    pub fn after_columns(&self) -> &CountColumns {
        &self.after.columns
    }

    /// Per row, which of the tables has the group.
    #[must_use]
    pub fn presences(&self) -> &[Presence] {
        &self.presences
    }

    /// The positions of the rows of that presence, in order.
    pub fn positions(&self, presence: Presence) -> impl Iterator<Item = usize> {
        let presences = self.presences.iter().enumerate();
        presences
            .filter(move |(_, found)| **found == presence)
            .map(|(position, _)| position)
    }

    /// The positions of the `n` rows with the largest change of `by` (`success`, `errors` or
    /// `filtered`), up or down, largest first; equal changes in the order of their dimension values.
    ///
    /// # Errors
    /// `invalid_argument` for any other name.
    pub fn top(&self, n: usize, by: &str) -> Result<Vec<usize>> {
        let (before, after) = (&self.before.columns, &self.after.columns);
        let each = [
            (before.success(), after.success()),
            (before.errors(), after.errors()),
            (before.filtered(), after.filtered()),
        ];
        let (before, after) = view::named_count(by, each)?;
        Ok(view::largest(n, self.len(), |row| {
            before[row].abs_diff(after[row])
        }))
    }
}

impl<'a> ComparisonRow<'a> {
    /// The values of the dimensions, in the order of [`Comparison::dimensions`].
    pub fn values(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        let Self { comparison, index } = *self;
        let columns = comparison.dictionaries.iter().zip(&comparison.ids);
        columns.map(move |(dictionary, ids)| dictionary.value(ids[index]))
    }

    /// Which of the tables has the group.
    #[must_use]
    pub fn presence(&self) -> Presence {
        self.comparison.presences[self.index]
    }

    /// The counts before; `None` if the group is new.
    #[must_use]
    pub fn before(&self) -> Option<Counts> {
        let counts = self.comparison.before.columns.counts(self.index);
        (self.presence() != Presence::New).then_some(counts)
    }

    /// The counts after; `None` if the group has vanished.
    #[must_use]
    pub fn after(&self) -> Option<Counts> {
        let counts = self.comparison.after.columns.counts(self.index);
        (self.presence() != Presence::Vanished).then_some(counts)
    }

    /// How the counts changed, where those of a group that is not there are 0.
    #[must_use]
    pub fn delta(&self) -> Deltas {
        let Comparison { before, after, .. } = self.comparison;
        let of = |side: &Side| side.columns.counts(self.index);
        Deltas::between(of(before), of(after))
    }

    /// What part of the change of the totals this group causes.
    #[must_use]
    pub fn share(&self) -> Shares {
        Shares::of(self.delta(), self.comparison.total_delta())
    }

    /// The row's position in its comparison.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}
