//! Two tables side by side, group by group.

use std::cmp::Ordering;
use std::sync::Arc;

use tallyfold_engine::{Counts, Dictionary, Key};

use super::change::{Deltas, Presence, Shares};
use super::count_columns::CountColumns;
use super::count_name::RankBy;
use super::dimension::Dimensions;
use super::frame::{Column, Frame, Keys, Row, Values};
use super::html::HtmlFrame;
use super::metric::Metric;
use super::remap::union;
use super::report::{ChangeReport, ComparisonReport, SideReport};
use super::saved::SavedFilter;
use super::subject::Subject;
use super::table::CountTable;
use crate::error::Result;
use crate::time::window::{Window, spans};
use crate::wire::json::writer::json_of;

/// What changed from one table to another: one row for each group that is in at least one of them.
///
/// Its rows are sorted by their dimension values, and each dimension has one dictionary for both tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub(crate) subject: Subject,
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
    counts: CountColumns,
}

/// Compares two tables, group by group.
///
/// The tables may cover any times: windows of different lengths, or both the same time. Counts are
/// not scaled; [`Comparison::before_coverage`] and [`Comparison::after_coverage`] return the time
/// that they cover.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
/// # fn main() -> Result<()> {
/// # use tallyfold::{Frame, RankBy, compare};
/// # let mut host = Host::new()?;
/// let (before, after) = (host.quarter(36)?, host.quarter(37)?);
/// let comparison = compare(&before, &after)?;
/// for position in comparison.top(5, RankBy::Errors) {
///     if let Some(row) = comparison.row(position) {
///         let values: Vec<&str> = row.values().collect();
///         println!("{values:?}: {:+}, {:?}", row.delta().errors, row.share().errors);
///     }
/// }
/// let grown = i128::from(after.totals().errors) - i128::from(before.totals().errors);
/// assert_eq!(comparison.total_delta().errors, grown);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `incompatible_tables` for other dimensions, another metric or another filter, and `group_limit`
/// if the values of a dimension take more than 1 GiB.
pub fn compare(before: &CountTable, after: &CountTable) -> Result<Comparison> {
    before.subject.check_like(&after.subject, "after")?;
    let (dictionaries, ours, theirs) = union(&before.rows, &after.rows)?;
    let mut comparison = Comparison {
        subject: before.subject.clone(),
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
        Self { coverage: table.coverage(), totals: table.totals(), counts: CountColumns::default() }
    }
}

impl Comparison {
    fn push(&mut self, key: Key, presence: Presence, before: Counts, after: Counts) {
        for (ids, id) in self.ids.iter_mut().zip(key) {
            ids.push(id);
        }
        self.presences.push(presence);
        self.before.counts.push(before);
        self.after.counts.push(after);
    }

    /// The time that the table before covers.
    #[must_use]
    pub fn before_coverage(&self) -> &[Window] {
        &self.before.coverage
    }

    /// The time that the table after covers.
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

    /// The counts before, 0 where the group is new.
    #[must_use]
    pub fn before_counts(&self) -> &CountColumns {
        &self.before.counts
    }

    /// The counts after, 0 where the group has vanished.
    #[must_use]
    pub fn after_counts(&self) -> &CountColumns {
        &self.after.counts
    }

    /// Per row, which of the tables has the group.
    #[must_use]
    pub fn presences(&self) -> &[Presence] {
        &self.presences
    }

    /// The positions of the rows with that presence, in order.
    pub fn positions(&self, presence: Presence) -> impl Iterator<Item = usize> {
        let presences = self.presences.iter().enumerate();
        presences.filter(move |(_, found)| **found == presence).map(|(position, _)| position)
    }

    pub(super) fn row_delta(&self, row: usize) -> Deltas {
        Deltas::between(self.before.counts.counts(row), self.after.counts.counts(row))
    }
}

impl Frame for Comparison {
    fn dimensions(&self) -> &Dimensions {
        &self.subject.dimensions
    }

    fn metric(&self) -> Option<Metric> {
        self.subject.metric
    }

    fn len(&self) -> usize {
        self.presences.len()
    }

    fn keys(&self) -> Keys<'_> {
        Keys { dictionaries: &self.dictionaries, ids: &self.ids }
    }

    fn columns(&self) -> Vec<Column<'_>> {
        let presence =
            Column { side: None, name: "presence", values: Values::Presences(&self.presences) };
        let keys = self.keys().columns(&self.subject.dimensions);
        let before = self.before.counts.columns(Some("before"));
        let after = self.after.counts.columns(Some("after"));
        [keys, vec![presence], before, after].concat()
    }

    /// How much the count changed, up or down.
    fn rank(&self, row: usize, by: RankBy) -> u128 {
        let of = |side: &Side| by.of(side.counts.counts(row));
        of(&self.before).abs_diff(of(&self.after))
    }

    fn fractions(&self, row: usize) -> [Option<f64>; 3] {
        let Shares { success, errors, filtered } =
            Shares::of(self.row_delta(row), self.total_delta());
        [success, errors, filtered]
    }

    fn fraction_names(&self) -> [&'static str; 3] {
        Counts::NAMES
    }

    fn delta(&self, row: usize) -> Option<Deltas> {
        Some(self.row_delta(row))
    }

    fn to_json(&self) -> String {
        let side = |side: &Side| SideReport {
            coverage: side.coverage.clone(),
            totals: side.totals.into(),
        };
        json_of(&ComparisonReport {
            format: "tallyfold-comparison/1",
            metric: self.subject.metric,
            dimensions: self.subject.dimensions.names(),
            filter: SavedFilter::all(&self.subject),
            before: side(&self.before),
            after: side(&self.after),
            delta: self.total_delta().into(),
            rows: self.rows().map(ChangeReport::from).collect(),
        })
    }
}

impl HtmlFrame for Comparison {
    fn caption(&self) -> String {
        format!("{} → {}", spans(&self.before.coverage), spans(&self.after.coverage))
    }

    fn shown(&self, row: usize) -> [String; 3] {
        let presence = self.presences[row];
        let before = self.before.counts.counts(row);
        let after = self.after.counts.counts(row);
        changes(
            (presence != Presence::New).then_some(before),
            (presence != Presence::Vanished).then_some(after),
            self.row_delta(row),
        )
    }

    fn shown_totals(&self) -> [String; 3] {
        changes(Some(self.before.totals), Some(self.after.totals), self.total_delta())
    }
}

impl<'a> From<Row<'a, Comparison>> for ChangeReport<'a> {
    fn from(row: Row<'a, Comparison>) -> Self {
        Self {
            values: row.values().collect(),
            presence: row.presence(),
            before: row.before().map(Into::into),
            after: row.after().map(Into::into),
            delta: row.delta().into(),
        }
    }
}

/// Each count before and after, and the change in brackets.
fn changes(before: Option<Counts>, after: Option<Counts>, delta: Deltas) -> [String; 3] {
    let shown = |side: Option<Counts>| {
        side.map_or([(); 3].map(|()| "none".to_owned()), |side| {
            side.each().map(|count| count.to_string())
        })
    };
    let ([a, b, c], [x, y, z]) = (shown(before), shown(after));
    [
        format!("{a} → {x} ({:+})", delta.success),
        format!("{b} → {y} ({:+})", delta.errors),
        format!("{c} → {z} ({:+})", delta.filtered),
    ]
}

impl Row<'_, Comparison> {
    /// Which of the tables has the group.
    #[must_use]
    pub fn presence(&self) -> Presence {
        self.frame.presences[self.index]
    }

    /// The counts before; `None` if the group is new.
    #[must_use]
    pub fn before(&self) -> Option<Counts> {
        let counts = self.frame.before.counts.counts(self.index);
        (self.presence() != Presence::New).then_some(counts)
    }

    /// The counts after; `None` if the group has vanished.
    #[must_use]
    pub fn after(&self) -> Option<Counts> {
        let counts = self.frame.after.counts.counts(self.index);
        (self.presence() != Presence::Vanished).then_some(counts)
    }

    /// How the counts changed. If a table lacks the group, its counts are 0 here.
    #[must_use]
    pub fn delta(&self) -> Deltas {
        self.frame.row_delta(self.index)
    }

    /// The part of the change of the totals that this group causes.
    #[must_use]
    pub fn share(&self) -> Shares {
        Shares::of(self.delta(), self.frame.total_delta())
    }
}
