//! The options of a collect.

use super::keep::Keep;
use crate::counts::dimension::Dimension;
use crate::counts::metric::Metric;
use crate::counts::table::CountTable;
use crate::time::patience::Patience;
use crate::time::settling::SETTLE_MS;
use crate::time::step::TimeStep;
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;

crate::options! {
    /// What to collect.
    ///
    /// ```
    /// # use tallyfold::{CollectOptions, Dimension, Metric, TimeStep, Window};
    /// # fn main() -> tallyfold::Result<()> {
    /// let range = Window::parse("2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z")?;
    /// let options = CollectOptions::new(Metric::EventDelivery, range, &[Dimension::Integration])
    ///     .window(TimeStep::parse("5m")?)
    ///     .part((0, 4));
    /// assert_eq!(options.concurrency, 8);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Clone, Debug)]
    pub struct CollectOptions {
        /// Which counts.
        metric: Metric,
        /// The start of the range, UTC ISO 8601.
        start: Timestamp,
        /// The end of the range, which is not part of it, UTC ISO 8601.
        end: Timestamp,
        /// The dimensions to request, one to four.
        dimensions: Vec<Dimension>,
        /// The dimensions to keep, in this order; an empty list gives one grand total.
        ///
        /// By default, all are kept.
        group_by: Option<Vec<Dimension>> = None,
        /// The length of the windows that are read; they start at multiples of it, counted from midnight UTC.
        ///
        /// The service's documentation recommends 5 to 15 minutes.
        window: TimeStep = TimeStep::QUARTER,
        /// How many windows are read at the same time.
        concurrency: u32 = 8,
        /// The shortest windows to read: a window whose response is too large or too slow is halved down to this
        /// length.
        ///
        /// A window is halved at a multiple of this length, counted from midnight UTC.
        finest: TimeStep = TimeStep::MINUTE,
        /// Which part of the windows this machine collects, and how many parts there are, when several machines share the work.
        ///
        /// The first part is 0.
        part: Option<(u32, u32)> = None,
        /// For how long after a window's end its counts may still change.
        ///
        /// If a window is read earlier, its counts are used, but the window is marked as provisional.
        settle_ms: u64 [Milliseconds] = SETTLE_MS,
        /// What is kept of the windows that were read: `windows`, a step such as `1h` or `1d`, or `total`.
        ///
        /// `windows` keeps each by itself; a step, which is a multiple of `window`, keeps the sums of its windows;
        /// `total` keeps their sum. With a step or `total`, windows are added up as they settle, so memory grows with the
        /// number of groups and steps, not of windows.
        keep: Keep = Keep::Windows,
        /// About how many bytes the counts may take: the stored counts, and the counts of the responses being read.
        ///
        /// The bytes that the stored counts do not take are divided equally among the windows that are read at the same
        /// time. A window that needs more than its share is read alone. If that is not enough, or if the stored counts
        /// alone take more, reading ends with an error.
        memory_limit: u64 = 1024 * 1024 * 1024,
        /// Removes the counts of a checkpoint that lie entirely before the range.
        ///
        /// By default they stay, so that a later run over an earlier range can use them.
        drop_old: bool = false,
        /// A table that already covers a part of the range.
        ///
        /// The collect reads only its gaps, and the windows that are provisional in it. Windows of the table that do
        /// not lie entirely in windows of this collect are ignored.
        have: Option<CountTable> [Host] = None,
        /// First tests, with one more call, that the counts of two adjacent windows add up to the counts of both together.
        ///
        /// The test uses the first two adjacent windows that are settled and have not been read yet. Without such a
        /// pair, nothing is tested.
        probe: bool = false,
        /// How long to wait for a service that is down; after that, reading ends.
        ///
        /// While the service is down, the workers pause, and one call at a time is tried again, with increasing waits
        /// of up to a minute. When the service responds again, all workers resume. With 0, a window fails once its own
        /// retries are used up.
        patience_ms: Patience = Patience::Milliseconds(900_000),
        /// How long reading may take in all, including waits, counted from its start.
        ///
        /// After that, reading ends with `deadline_exceeded`, and the windows that were not read are missing.
        deadline_ms: Patience = Patience::Endless,
    }
}

impl CollectOptions {
    /// Options with the defaults for everything else.
    #[must_use]
    pub fn new(metric: Metric, range: Window, dimensions: &[Dimension]) -> Self {
        Self::with_defaults(metric, range.start(), range.end(), dimensions.to_owned())
    }
}
