//! Counts by window and dimension values.

use std::sync::Arc;

use tallyfold_engine::{Counts, Key, Rates, Rows};

use super::count_columns::CountColumns;
use super::count_name::RankBy;
use super::dimension::Dimensions;
use super::frame::{Column, Frame, Keys, Row, Values};
use super::html::HtmlFrame;
use super::metric::Metric;
use super::part::sum;
use super::remap::Remap;
use super::report::{SeriesReport, WindowReport};
use super::saved::{SavedFilter, SavedRow};
use super::series_window::SeriesWindow;
use super::subject::Subject;
use super::table::CountTable;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::step::TimeStep;
use crate::time::timestamp::Timestamp;
use crate::time::window::{Window, join_adjacent};
use crate::wire::json::writer::json_of;

/// A table's counts in the order of time: one row for each window and combination.
///
/// Its rows are sorted by window, then by their dimension values, and each dimension has one dictionary for all
/// windows. For a part of the time, slice the table ([`CountTable::between`]).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
/// # fn main() -> Result<()> {
/// # use tallyfold::{Frame, TimeStep};
/// # let mut host = Host::new()?;
/// let day = CountTable::merge_all(&[host.quarter(36)?, host.quarter(37)?])?;
/// let series = day.group_by(&["integration"])?.by_window(Some(TimeStep::parse("1h")?))?;
/// for row in series.rows() {
///     let integration = row.values().next();
///     println!("{:?} {integration:?} {:?}", row.window(), row.counts().rates().delivery);
/// }
/// assert_eq!(series.windows().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    pub(crate) subject: Subject,
    step: Option<TimeStep>,
    /// The time zone whose days the windows are.
    zone: Option<Arc<str>>,
    windows: Vec<SeriesWindow>,
    window_ids: Vec<u32>,
    ids: Vec<Vec<u32>>,
    counts: CountColumns,
    /// The sum of all windows: every combination, and the dictionaries.
    whole: Arc<Rows>,
}

/// The most rows of a filled series: about 1.5 GiB.
const MOST_FILLED: usize = 1 << 25;

impl CountTable {
    /// The counts by window. Without a step, each response keeps its own window. With a step, each
    /// response is added to the step of the UTC day that contains it.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use tallyfold::TimeStep;
    /// # let mut host = Host::new()?;
    /// let table = CountTable::merge_all(&[host.quarter(36)?, host.quarter(37)?])?;
    /// let by_response = table.by_window(None)?;
    /// let by_hour = table.by_window(Some(TimeStep::parse("1h")?))?;
    /// assert_eq!(by_response.windows().len(), 2);
    /// assert_eq!(by_hour.windows().len(), 1);
    /// assert_eq!(by_response.totals(), by_hour.totals());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `unaligned_window` for a window that crosses the edge of a step, because its counts
    /// can't be split, and for a window in a step that ends after the year 9999.
    pub fn by_window(&self, step: Option<TimeStep>) -> Result<Series> {
        self.by_steps(step, None)
    }

    /// The counts by day of a time zone. When its clocks change, a day has 23 or 25 hours.
    ///
    /// The core knows no time zones, so the caller passes the timestamps at which days begin there, sorted, from the
    /// first window's day to the end of the last window's day. The step must be `1d`: shorter steps need no time zone.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use tallyfold::{TimeStep, Timestamp};
    /// # let mut host = Host::new()?;
    /// let table = CountTable::merge_all(&[host.quarter(73)?, host.quarter(74)?])?;
    /// let midnights = ["2025-12-31T18:30:00Z", "2026-01-01T18:30:00Z", "2026-01-02T18:30:00Z"];
    /// let midnights: Vec<Timestamp> = midnights.iter().map(|at| Timestamp::parse(at)).collect::<Result<_>>()?;
    /// let days = table.by_window_in(Some(TimeStep::DAY), "Asia/Kolkata", &midnights)?;
    /// assert_eq!(days.windows().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `invalid_argument` for another step, and `unaligned_window` for a window that does not lie within one of the days,
    /// because its counts can't be split.
    pub fn by_window_in(
        &self,
        step: Option<TimeStep>,
        zone: &str,
        midnights: &[Timestamp],
    ) -> Result<Series> {
        self.by_steps(step, Some((zone, midnights)))
    }

    /// Adds up the parts of each step, or of each day of a zone.
    fn by_steps(
        &self,
        step: Option<TimeStep>,
        zone: Option<(&str, &[Timestamp])>,
    ) -> Result<Series> {
        if zone.is_some() && step != Some(TimeStep::DAY) {
            let message = "want the step 1d with a zone";
            return Err(Error::argument("zone", Code::InvalidArgument, message));
        }
        let mut steps = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            steps.push(match step {
                Some(step) => around(step, zone, part.window)?,
                None => part.window,
            });
        }
        let mut series = Series::without_rows(&self.subject, &self.rows, self.len());
        series.step = step;
        series.zone = zone.map(|(zone, _)| zone.into());
        let mut rest = self.parts.as_slice();
        // Parts are sorted, so the parts of one step are adjacent.
        for same in steps.chunk_by(PartialEq::eq) {
            let (parts, after) = rest.split_at(same.len());
            rest = after;
            let ended = parts.iter().filter(|part| !part.unfinished);
            let covered = join_adjacent(&mut ended.map(|part| part.window));
            let window = SeriesWindow {
                window: same[0],
                complete: covered == [same[0]],
                provisional: parts.iter().any(|part| part.provisional),
            };
            let window_id = series.windows.len() as u32;
            series.windows.push(window);
            let rows = sum(parts, self.rows.width())?;
            let remap = Remap::new(&rows, self.rows.dictionaries());
            for (column, ids) in series.ids.iter_mut().enumerate() {
                ids.extend(remap.column(column));
            }
            let counts = &mut series.counts;
            counts.extend(rows.success(), rows.errors(), rows.filtered());
            series.window_ids.resize(counts.rows(), window_id);
        }
        Ok(series)
    }
}

/// The step that a window lies in, or the day of a zone.
fn around(step: TimeStep, zone: Option<(&str, &[Timestamp])>, window: Window) -> Result<Window> {
    let start = window.start();
    let edges = match zone {
        None => step.after(start).map(|end| (step.floor(start), end)),
        Some((_, midnights)) => {
            let next = midnights.partition_point(|midnight| *midnight <= start);
            match midnights.get(next.wrapping_sub(1)..=next) {
                Some([start, end]) => Some((*start, *end)),
                _ => None,
            }
        }
    };
    match edges {
        Some((start, end)) if window.end() <= end => Window::new(start, end),
        _ => {
            let of = zone.map_or(String::new(), |(zone, _)| format!(" of {zone}"));
            let message = format!(
                "{window:?} reaches over the end of its step of {step}{of}, and counts can't be cut; want a larger step, or \
                 windows that divide it, such as 15m"
            );
            let argument = if zone.is_some() { "zone" } else { "step" };
            Err(Error::argument(argument, Code::UnalignedWindow, message))
        }
    }
}

impl Series {
    /// A series without windows, with room for some rows.
    fn without_rows(subject: &Subject, whole: &Arc<Rows>, rows: usize) -> Self {
        let columns = 0..whole.width();
        Self {
            subject: subject.clone(),
            step: None,
            zone: None,
            windows: Vec::new(),
            window_ids: Vec::with_capacity(rows),
            ids: columns.map(|_| Vec::with_capacity(rows)).collect(),
            whole: Arc::clone(whole),
            counts: CountColumns::with_capacity(rows),
        }
    }

    /// The series with a row for each window and each combination that any of its windows has. The rows that were
    /// missing have counts of 0. A series without dimensions gets a row for each window.
    ///
    /// No window is added, because the counts of windows that the table does not cover are unknown.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use tallyfold::Frame;
    /// # let mut host = Host::new()?;
    /// let table = CountTable::merge_all(&[host.quarter(36)?, host.quarter(37)?])?;
    /// let series = table.by_window(None)?.fill_zeros()?;
    /// assert_eq!(series.len(), 2 * table.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `group_limit` for more than 2^25 rows.
    pub fn fill_zeros(&self) -> Result<Self> {
        // Without dimensions there is one combination, even if no window has a row.
        let groups = if self.ids.is_empty() { 1 } else { self.whole.len() };
        let rows = groups.saturating_mul(self.windows.len());
        if rows > MOST_FILLED {
            let message = "a row for each window and group makes more than 33,554,432 rows; want a larger step, or \
                           fewer groups";
            return Err(Error::new(Code::GroupLimit, message));
        }
        let mut filled = Self::without_rows(&self.subject, &self.whole, rows);
        filled.step = self.step;
        filled.zone = self.zone.clone();
        filled.windows.clone_from(&self.windows);
        let mut row = 0;
        for window in 0..self.windows.len() as u32 {
            for group in 0..groups {
                let key = if self.ids.is_empty() { Key::default() } else { self.whole.key(group) };
                // Both are sorted, so the row of this window and group is the next one, if it exists.
                let is_there =
                    self.window_ids.get(row) == Some(&window) && self.keys().key(row) == key;
                filled.window_ids.push(window);
                if is_there {
                    filled.push_counts(key, self.counts.counts(row));
                    row += 1;
                } else {
                    filled.push_counts(key, Counts::default());
                }
            }
        }
        Ok(filled)
    }

    fn push_counts(&mut self, key: Key, counts: Counts) {
        for (ids, id) in self.ids.iter_mut().zip(key) {
            ids.push(id);
        }
        self.counts.push(counts);
    }

    /// Whether the table covers all of each window.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.windows.iter().all(|window| window.complete)
    }

    /// The step of the windows; `None` if they are the windows of the responses.
    #[must_use]
    pub fn step(&self) -> Option<TimeStep> {
        self.step
    }

    /// The time zone whose days the windows are; `None` if they aren't days of a zone ([`CountTable::by_window_in`]).
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// The windows, sorted, including those without rows. Windows that the table does not cover at all
    /// are left out.
    #[must_use]
    pub fn windows(&self) -> &[SeriesWindow] {
        &self.windows
    }

    /// Per row, the position of its window in [`Series::windows`].
    #[must_use]
    pub fn window_ids(&self) -> &[u32] {
        &self.window_ids
    }

    /// The sum of all rows.
    #[must_use]
    pub fn totals(&self) -> Counts {
        self.whole.totals()
    }

    /// Per row, the three counts.
    #[must_use]
    pub fn counts(&self) -> &CountColumns {
        &self.counts
    }
}

impl Frame for Series {
    fn dimensions(&self) -> &Dimensions {
        &self.subject.dimensions
    }

    fn metric(&self) -> Option<Metric> {
        self.subject.metric
    }

    fn len(&self) -> usize {
        self.counts.rows()
    }

    fn keys(&self) -> Keys<'_> {
        Keys { dictionaries: self.whole.dictionaries(), ids: &self.ids }
    }

    fn columns(&self) -> Vec<Column<'_>> {
        let window = Column {
            side: None,
            name: "window",
            values: Values::Windows { windows: &self.windows, ids: &self.window_ids },
        };
        let keys = self.keys().columns(&self.subject.dimensions);
        let counts = self.counts.columns(None);
        [vec![window], keys, counts].concat()
    }

    fn rank(&self, row: usize, by: RankBy) -> u128 {
        by.of(self.counts.counts(row))
    }

    fn fractions(&self, row: usize) -> [Option<f64>; 3] {
        self.counts.counts(row).rates().each()
    }

    fn fraction_names(&self) -> [&'static str; 3] {
        Rates::NAMES
    }

    fn to_json(&self) -> String {
        let mut start = 0;
        let windows = (0..).zip(&self.windows).map(|(id, of)| {
            let end = start + self.window_ids[start..].partition_point(|own| *own <= id);
            let rows = (start..end).filter_map(|row| self.row(row));
            start = end;
            WindowReport {
                start: of.window.start(),
                end: of.window.end(),
                complete: of.complete,
                provisional: of.provisional.then_some(true),
                rows: rows.map(|row| SavedRow::new(row.values(), row.counts())).collect(),
            }
        });
        json_of(&SeriesReport {
            format: "tallyfold-series/1",
            metric: self.subject.metric,
            dimensions: self.subject.dimensions.names(),
            filter: SavedFilter::all(&self.subject),
            step: self.step.map(|step| step.to_string()),
            zone: self.zone.as_deref(),
            totals: self.totals().into(),
            windows: windows.collect(),
        })
    }
}

impl HtmlFrame for Series {
    fn caption(&self) -> String {
        match (self.step, &self.zone) {
            (None, _) => "by window".to_owned(),
            (Some(step), None) => format!("by {step}"),
            (Some(step), Some(zone)) => format!("by {step} of {zone}"),
        }
    }

    fn shown(&self, row: usize) -> [String; 3] {
        self.counts.counts(row).each().map(|count| count.to_string())
    }

    fn shown_totals(&self) -> [String; 3] {
        self.totals().each().map(|count| count.to_string())
    }
}

impl Row<'_, Series> {
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

    /// Whether the counts of the window may still change.
    #[must_use]
    pub fn provisional(&self) -> bool {
        self.series_window().provisional
    }

    /// The counts of the combination in the window.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.frame.counts.counts(self.index)
    }

    fn series_window(&self) -> SeriesWindow {
        self.frame.windows[self.frame.window_ids[self.index] as usize]
    }
}
