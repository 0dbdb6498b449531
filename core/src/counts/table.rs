//! Exact counts by combination of dimension values.

use std::sync::Arc;

use tallyfold_engine::{Counts, Rates, Rows};

use super::count_columns::count_columns;
use super::count_name::RankBy;
use super::dimension::{Dimension, Dimensions};
use super::frame::{Column, Frame, Keys, Row};
use super::html::HtmlFrame;
use super::identity::Identity;
use super::loaded::{self, Loaded, invalid_at};
use super::metric::Metric;
use super::part::{Notes, Part, PartRows, pack, sum};
use super::reconciliation::{Reconciliation, reported_sums};
use super::saved::SavedTable;
use super::subject::Subject;
use crate::error::Result;
use crate::time::window::{Window, inside, join_adjacent, spans, uncovered};
use crate::wire::json::writer::json_of;

/// Counts by dimension values, of one response or of several that were merged.
///
/// A table is immutable: its methods return new tables. Rows are sorted by their dimension values
/// (by UTF-8 bytes, in the order of the dimensions), in whatever order the service sent them. The
/// table stores which window each count belongs to, so that a window can be replaced.
///
/// ```
/// # use tallyfold::{Aggregator, AggregatorOptions, Frame};
/// let body = br#"{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z",
///     "totalDelivered": "7", "totalErrors": "1", "totalFiltered": "0",
///     "counts": [{"success": "7", "errors": "1", "filtered": "0",
///                 "dimensions": {"integration": "warehouse"}}]}"#;
/// let mut aggregator = Aggregator::new(&["integration"], AggregatorOptions::default())?;
/// aggregator.push(body)?;
/// let table = aggregator.finish()?;
/// assert_eq!(table.row(0).map(|row| row.counts().success), Some(7));
/// # Ok::<(), tallyfold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountTable {
    pub(crate) subject: Subject,
    /// The sum of all parts.
    pub(crate) rows: Arc<Rows>,
    /// At least one part; sorted and without overlaps.
    pub(crate) parts: Vec<Part>,
}

impl CountTable {
    /// The table of one response.
    pub(crate) fn of_response(subject: Subject, part: Part) -> Self {
        let rows = part.rows.get();
        Self {
            subject,
            rows: Arc::clone(&rows),
            parts: vec![Part { rows: PartRows::Own(rows), ..part }],
        }
    }

    /// The table of several parts, sorted and not overlapping.
    pub(crate) fn of_parts(subject: Subject, mut parts: Vec<Part>) -> Result<Self> {
        let width = subject.dimensions.len();
        pack(parts.iter_mut(), width)?;
        Ok(Self { rows: sum(&parts, width)?, subject, parts })
    }

    /// The table of a window without any counts.
    pub(crate) fn empty(subject: Subject, window: Window) -> Self {
        let no_values = vec![Vec::new(); subject.dimensions.len()];
        let part = Part {
            window,
            reported: Some(Counts::default()),
            notes: Notes::default(),
            // Without rows, no sum can be refused.
            rows: Rows::from_values(&no_values, &[]).unwrap_or_default().into(),
            provisional: false,
            unfinished: false,
        };
        Self::of_response(subject, part)
    }

    /// A table of some windows without any counts, so that a collect that gets it as
    /// [`have`](crate::CollectOptions::have) does not read them.
    ///
    /// # Errors
    /// The errors of [`CountTable::merge_all`].
    pub fn without_counts(
        metric: Metric,
        dimensions: &[Dimension],
        windows: &[Window],
    ) -> Result<Self> {
        let dimensions = Dimensions::parse("dimensions", dimensions)?;
        let subject = Subject::whole(dimensions, Some(metric), Identity::default());
        let tables = windows.iter();
        let tables = tables.map(|window| Self::empty(subject.clone(), *window));
        Self::merge_all(&tables.collect::<Vec<_>>())
    }

    /// The windows whose counts may still change, because they were read so soon after their end; sorted.
    ///
    /// [`Collect`](crate::Collect) and [`Follow`](crate::Follow) decide by their `settle_ms`, a single
    /// call by the default of an hour. An [`Aggregator`](crate::Aggregator) has no clock, and so its
    /// windows are never provisional.
    #[must_use]
    pub fn provisional(&self) -> Vec<Window> {
        let provisional = self.parts.iter().filter(|part| part.provisional);
        provisional.map(|part| part.window).collect()
    }

    /// The same table with other marks: `is_unfinished` returns whether a window had not ended when it was read.
    pub(crate) fn unfinished(mut self, is_unfinished: impl Fn(Window) -> bool) -> Self {
        for part in &mut self.parts {
            part.unfinished = is_unfinished(part.window);
        }
        self
    }

    /// The same table with other marks: `is_provisional` returns whether a window may still change.
    pub(crate) fn marked(mut self, is_provisional: impl Fn(Window) -> bool) -> Self {
        for part in &mut self.parts {
            part.provisional = is_provisional(part.window);
        }
        self
    }

    /// The table in its saved form, without a digest.
    fn saved(&self) -> SavedTable<'_> {
        SavedTable::of(&self.subject, self.totals(), &self.parts)
    }

    /// The sum of all rows.
    #[must_use]
    pub fn totals(&self) -> Counts {
        self.rows.totals()
    }

    /// `totalDelivered`, `totalErrors` and `totalFiltered` as the service reported them, added up
    /// over all windows; `None` for a filtered table, or if a sum is above 2^64 - 1.
    #[must_use]
    pub fn reported(&self) -> Option<Counts> {
        let sums = reported_sums(&self.parts)?;
        let [success, errors, filtered] = sums.map(|sum| u64::try_from(sum).ok());
        Some(Counts { success: success?, errors: errors?, filtered: filtered? })
    }

    /// Whether the reported totals are the sums of the counts. A difference is not an error,
    /// because the API is Beta: the caller decides.
    #[must_use]
    pub fn reconciliation(&self) -> Reconciliation {
        Reconciliation::of(&self.parts, self.totals())
    }

    /// How many deviations were tolerated, added up over all windows.
    #[must_use]
    pub fn notes(&self) -> Notes {
        self.parts.iter().fold(Notes::default(), |sum, part| sum.and(part.notes))
    }

    /// The time that the counts cover: sorted windows; adjacent windows are joined.
    #[must_use]
    pub fn coverage(&self) -> Vec<Window> {
        join_adjacent(&mut self.parts.iter().map(|part| part.window))
    }

    /// The window of each response in the table, sorted.
    #[must_use]
    pub fn windows(&self) -> Vec<Window> {
        self.parts.iter().map(|part| part.window).collect()
    }

    /// The parts of a range that the counts do not cover, sorted. By default, the range is from the
    /// first window's start to the last window's end. A window that had not ended when it was read is
    /// not covered, although the table has the counts that it had by then.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use tallyfold::Window;
    /// # let mut host = Host::new()?;
    /// let table = CountTable::merge_all(&[host.quarter(36)?, host.quarter(38)?])?;
    /// let hour = Window::parse("2026-01-01T09:00:00Z", "2026-01-01T10:00:00Z")?;
    /// let gaps: Vec<String> = table.gaps(Some(hour)).iter().map(|gap| gap.start().to_string()).collect();
    /// assert_eq!(gaps, ["2026-01-01T09:15:00Z", "2026-01-01T09:45:00Z"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn gaps(&self, range: Option<Window>) -> Vec<Window> {
        let ended = self.parts.iter().filter(|part| !part.unfinished);
        let covered = join_adjacent(&mut ended.map(|part| part.window));
        range
            .or_else(|| self.span())
            .map_or_else(Vec::new, |range| uncovered(range, &mut covered.into_iter()))
    }

    /// The time from the first window's start to the last one's end.
    fn span(&self) -> Option<Window> {
        let (first, last) = (self.parts.first()?, self.parts.last()?);
        Window::new(first.window.start(), last.window.end()).ok()
    }

    /// The counts of the windows that lie in a range.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use tallyfold::Window;
    /// # let mut host = Host::new()?;
    /// let half = CountTable::merge_all(&[host.quarter(36)?, host.quarter(37)?])?;
    /// let quarter = half.between(Window::parse("2026-01-01T09:00:00Z", "2026-01-01T09:15:00Z")?)?;
    /// assert_eq!(quarter, host.quarter(36)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `unaligned_window` for a window that is only partly in the range, because its counts can't be split, and
    /// `invalid_window` if no window lies in it.
    pub fn between(&self, range: Window) -> Result<Self> {
        let kept = inside(range, &mut self.parts.iter().map(|part| part.window))?;
        let mut parts = self.parts.clone();
        parts.truncate(kept.end);
        Self::of_parts(self.subject.clone(), parts.split_off(kept.start))
    }

    /// Per row, the events delivered.
    #[must_use]
    pub fn success(&self) -> &[u64] {
        self.rows.success()
    }

    /// Per row, the events not sent due to an error.
    #[must_use]
    pub fn errors(&self) -> &[u64] {
        self.rows.errors()
    }

    /// Per row, the events filtered.
    #[must_use]
    pub fn filtered(&self) -> &[u64] {
        self.rows.filtered()
    }

    /// Adds rows up by some of the dimensions, in the given order. Without any dimension, all rows
    /// become one row; a table without rows stays without rows.
    ///
    /// # Errors
    /// `unknown_dimension` and `repeated_dimension`.
    pub fn group_by<S: AsRef<str>>(&self, names: &[S]) -> Result<Self> {
        let kept = self.subject.dimensions.subset(names)?;
        let columns = self.subject.dimensions.positions(&kept);
        let mut parts = self.parts.clone();
        for part in &mut parts {
            part.rows = part.rows.get().regroup(&columns).into();
        }
        Self::of_parts(self.subject.grouped_by(kept), parts)
    }

    /// Keeps the rows whose value is among the wanted values, for each dimension named. The new
    /// table has no reported totals, and can be merged only with tables that were filtered by the
    /// same values.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use tallyfold::Frame;
    /// # let mut host = Host::new()?;
    /// let table = host.quarter(36)?;
    /// let integration = table.rows().next().and_then(|row| row.values().next()).unwrap_or_default();
    /// let part = table.filter(&[("integration".to_owned(), vec![integration.to_owned()])])?;
    /// assert!(part.len() < table.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `unknown_dimension` for a name that the table lacks, `repeated_dimension`.
    pub fn filter<S: AsRef<str>>(&self, wanted: &[(S, Vec<String>)]) -> Result<Self> {
        let names: Vec<&str> = wanted.iter().map(|(name, _)| name.as_ref()).collect();
        let dimensions = &self.subject.dimensions;
        let named = dimensions.subset(&names).map_err(|error| error.with_argument("filter"))?;
        if named.is_empty() {
            return Ok(self.clone());
        }
        let mut subject = self.subject.clone();
        for (dimension, (_, values)) in named.iter().zip(wanted) {
            subject.selection = subject.selection.narrowed(dimension, values);
        }
        let sorted = wanted.iter().map(|(_, values)| {
            let mut sorted: Vec<&str> = values.iter().map(String::as_str).collect();
            sorted.sort_unstable();
            sorted
        });
        let sorted: Vec<_> = sorted.collect();
        let columns = dimensions.positions(&named);
        let mut parts = self.parts.clone();
        for part in &mut parts {
            let rows = part.rows.get();
            let mut among: Vec<Option<Vec<bool>>> = vec![None; rows.width()];
            for (column, values) in columns.iter().zip(&sorted) {
                let is_among = |value: &str| values.binary_search(&value).is_ok();
                let dictionary = &rows.dictionaries()[*column];
                among[*column] = Some(dictionary.values().map(is_among).collect());
            }
            part.rows = rows.filter(&among).into();
            part.reported = None;
        }
        Self::of_parts(subject, parts)
    }

    /// Reads a table that [`Frame::to_json`] has written, and checks that it still adds up.
    ///
    /// # Errors
    /// `invalid_table`, with the JSON path or the byte offset.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let Loaded { subject, parts, totals, digest } = loaded::read(json)?;
        let table = Self::of_parts(subject, parts)
            .map_err(|error| invalid_at("$.windows", error.message()))?;
        if table.totals() != totals {
            let message = "the totals are not the sums of the rows: the table was changed";
            return Err(invalid_at("$.totals", message));
        }
        // This is checked last, so that a mistake is reported at its own place, if it has one.
        if digest.is_some_and(|digest| digest != table.saved().digest()) {
            let message = "the table is not what was saved: it was damaged or changed";
            return Err(invalid_at("$.digest", message));
        }
        Ok(table)
    }
}

impl Frame for CountTable {
    fn dimensions(&self) -> &Dimensions {
        &self.subject.dimensions
    }

    fn metric(&self) -> Option<Metric> {
        self.subject.metric
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn keys(&self) -> Keys<'_> {
        Keys { dictionaries: self.rows.dictionaries(), ids: self.rows.ids() }
    }

    fn columns(&self) -> Vec<Column<'_>> {
        let keys = self.keys().columns(&self.subject.dimensions);
        let counts = count_columns(None, [self.success(), self.errors(), self.filtered()]);
        [keys, counts].concat()
    }

    fn rank(&self, row: usize, by: RankBy) -> u128 {
        by.of(self.rows.counts(row))
    }

    fn fractions(&self, row: usize) -> [Option<f64>; 3] {
        self.rows.counts(row).rates().each()
    }

    fn fraction_names(&self) -> [&'static str; 3] {
        Rates::NAMES
    }

    fn to_json(&self) -> String {
        json_of(&self.saved().with_digest())
    }
}

impl HtmlFrame for CountTable {
    fn caption(&self) -> String {
        spans(&self.coverage())
    }

    fn shown(&self, row: usize) -> [String; 3] {
        self.rows.counts(row).each().map(|count| count.to_string())
    }

    fn shown_totals(&self) -> [String; 3] {
        self.totals().each().map(|count| count.to_string())
    }
}

impl Row<'_, CountTable> {
    /// The counts of the combination.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.frame.rows.counts(self.index)
    }
}
