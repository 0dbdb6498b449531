//! Counts by window and dimension values.

use std::sync::Arc;

use tallyfold_engine::{Counts, Dictionary, Key, Refused};

use super::columns::CountColumns;
use super::remap::Remap;
use super::selection::Selection;
use super::{Column, CountTable, Part, refusal, view};
use crate::dimension::{Dimensions, Metric};
use crate::error::{Code, Error, Result};
use crate::step::TimeStep;
use crate::window::{Window, join_adjacent};

/// A table's counts in the order of time: one row for each window and combination.
///
/// A series does not change. Its rows are sorted by window, then by their dimension values, and
/// each dimension has one dictionary for all windows.
///
/// ```
/// # use tallyfold::{CountTable, TimeStep};
/// # fn f(table: &CountTable) -> tallyfold::Result<()> {
/// let series = table.group_by(&["integration"])?.by_window(Some(TimeStep::parse("1h")?))?;
/// for row in series.rows() {
///     let integration = row.values().next();
///     println!("{:?} {integration:?} {:?}", row.window(), row.counts().rates().delivery);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    dimensions: Dimensions,
    metric: Option<Metric>,
    pub(super) selection: Selection,
    step: Option<TimeStep>,
    windows: Vec<SeriesWindow>,
    totals: Counts,
    dictionaries: Vec<Arc<Dictionary>>,
    columns: Columns,
}

/// One window of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesWindow {
    /// The step, or without one what the response covers.
    pub window: Window,
    /// Whether the table covers all of the window. If not, its counts are of a part of it.
    pub complete: bool,
}

/// One combination of dimension values in one window, and its counts.
#[derive(Clone, Copy, Debug)]
pub struct SeriesRow<'a> {
    series: &'a Series,
    index: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Columns {
    window_ids: Vec<u32>,
    ids: Vec<Vec<u32>>,
    counts: CountColumns,
}

impl CountTable {
    /// The counts by window. Without a step, each response keeps its own window. With one, each is
    /// added to the step of the UTC day that it lies in.
    ///
    /// ```
    /// # use tallyfold::{CountTable, TimeStep};
    /// # fn f(table: &CountTable) -> tallyfold::Result<()> {
    /// let by_response = table.by_window(None)?;
    /// let by_quarter = table.by_window(Some(TimeStep::parse("15m")?))?;
    /// assert_eq!(by_response.totals(), by_quarter.totals());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `unaligned_window` for a window that reaches over the edge of a step, because counts can't
    /// be cut, and for one in a step that ends after the year 9999.
    pub fn by_window(&self, step: Option<TimeStep>) -> Result<Series> {
        let own = self.parts.iter().map(|part| part.window);
        let buckets: Vec<Window> = match step {
            None => own.collect(),
            Some(step) => own.map(|own| bucket(step, own)).collect::<Result<_>>()?,
        };
        let mut windows = Vec::new();
        let mut columns = Columns::new(self.dimensions.len(), self.len());
        let mut rest = self.parts.as_slice();
        // Parts are sorted, so that those of one step stand together.
        for (window_id, same) in (0..).zip(buckets.chunk_by(PartialEq::eq)) {
            let (parts, after) = rest.split_at(same.len());
            rest = after;
            let window = same[0];
            let covered = join_adjacent(parts.iter().map(|part| part.window));
            windows.push(SeriesWindow {
                window,
                complete: covered == [window],
            });
            columns.push_window(window_id, parts, self.rows.dictionaries())?;
        }
        Ok(Series {
            dimensions: self.dimensions,
            metric: self.metric,
            selection: self.selection.clone(),
            step,
            windows,
            totals: self.totals(),
            dictionaries: self.rows.dictionaries().to_vec(),
            columns,
        })
    }
}

/// The step that a window lies in.
fn bucket(step: TimeStep, window: Window) -> Result<Window> {
    let fail = |problem: &str| {
        let message = format!("{window:?} {problem}");
        Error::argument("step", Code::UnalignedWindow, message)
    };
    let end = step
        .after(window.start())
        .ok_or_else(|| fail("lies in a step that ends after the year 9999; want a smaller step"))?;
    let bucket = Window::new(step.floor(window.start()), end)?;
    if !bucket.contains(window) {
        let problem = format!(
            "reaches over the end of its step of {step}, {end}, and counts can't be cut; want a \
             larger step, or windows that divide it"
        );
        return Err(fail(&problem));
    }
    Ok(bucket)
}

impl Columns {
    fn new(width: usize, rows: usize) -> Self {
        Self {
            window_ids: Vec::with_capacity(rows),
            ids: (0..width).map(|_| Vec::with_capacity(rows)).collect(),
            counts: CountColumns::with_capacity(rows),
        }
    }

    /// Adds the rows of one window, which are those of its parts added up.
    fn push_window(
        &mut self,
        window_id: u32,
        parts: &[Part],
        dictionaries: &[Arc<Dictionary>],
    ) -> Result<()> {
        if let [part] = parts {
            let remap = Remap::new(&part.rows, dictionaries);
            for (column, ids) in self.ids.iter_mut().enumerate() {
                ids.extend(remap.column(column));
            }
            let rows = &part.rows;
            self.counts
                .extend(rows.success(), rows.errors(), rows.filtered());
        } else {
            let mut rows: Vec<(Key, Counts)> = Vec::new();
            for part in parts {
                rows.extend(Remap::new(&part.rows, dictionaries).rows());
            }
            // A stable sort merges what is sorted already: the rows of each part.
            rows.sort_by_key(|(key, _)| *key);
            for same in rows.chunk_by(|(one, _), (other, _)| one == other) {
                self.push(same)?;
            }
        }
        self.window_ids.resize(self.counts.rows(), window_id);
        Ok(())
    }

    /// Adds one row: the sum of those of one combination.
    fn push(&mut self, same: &[(Key, Counts)]) -> Result<()> {
        let (key, _) = same[0];
        let counts = same
            .iter()
            .try_fold(Counts::default(), |sum, (_, counts)| {
                sum.checked_add(*counts)
            })
            .ok_or_else(|| refusal(Refused::SumOverflow))?;
        for (ids, id) in self.ids.iter_mut().zip(key) {
            ids.push(id);
        }
        self.counts.push(counts);
        Ok(())
    }
}

impl Series {
    /// The dimensions of the rows, in sorting order after the window.
    #[must_use]
    pub fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }

    /// The endpoint that the counts are from, if the table knew it.
    #[must_use]
    pub fn metric(&self) -> Option<Metric> {
        self.metric
    }

    /// The step that the windows are of; `None` where they are those of the responses.
    #[must_use]
    pub fn step(&self) -> Option<TimeStep> {
        self.step
    }

    /// The windows, sorted, also those without rows. Windows of which nothing is covered are not
    /// among them.
    #[must_use]
    pub fn windows(&self) -> &[SeriesWindow] {
        &self.windows
    }

    /// The sum of all rows.
    #[must_use]
    pub fn totals(&self) -> Counts {
        self.totals
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.counts.rows()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a position.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<SeriesRow<'_>> {
        (index < self.len()).then_some(SeriesRow {
            series: self,
            index,
        })
    }

    /// The rows in sorted order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = SeriesRow<'_>> {
        (0..self.len()).map(|index| SeriesRow {
            series: self,
            index,
        })
    }

    /// Per row, the position of its window in [`Series::windows`].
    #[must_use]
    pub fn window_ids(&self) -> &[u32] {
        &self.columns.window_ids
    }

    /// The columns of the dimensions, in the order of [`Series::dimensions`].
    pub fn columns(&self) -> impl ExactSizeIterator<Item = Column<'_>> {
        view::columns(&self.dimensions, &self.dictionaries, &self.columns.ids)
    }

    /// Per row, the events delivered.
    #[must_use]
    pub fn success(&self) -> &[u64] {
        self.columns.counts.success()
    }

    /// Per row, the events not sent due to an error.
    #[must_use]
    pub fn errors(&self) -> &[u64] {
        self.columns.counts.errors()
    }

    /// Per row, the events filtered.
    #[must_use]
    pub fn filtered(&self) -> &[u64] {
        self.columns.counts.filtered()
    }
}

impl<'a> SeriesRow<'a> {
    /// The window.
    #[must_use]
    pub fn window(&self) -> Window {
        self.series_window().window
    }

    /// Whether the table covers all of the window.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.series_window().complete
    }

    /// The values of the dimensions, in the order of [`Series::dimensions`].
    pub fn values(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        let Self { series, index } = *self;
        let columns = series.dictionaries.iter().zip(&series.columns.ids);
        columns.map(move |(dictionary, ids)| dictionary.value(ids[index]))
    }

    /// The counts of the combination in the window.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.series.columns.counts.counts(self.index)
    }

    /// The row's position in its series.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    fn series_window(&self) -> SeriesWindow {
        self.series.windows[self.series.columns.window_ids[self.index] as usize]
    }
}
