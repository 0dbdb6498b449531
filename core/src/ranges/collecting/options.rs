//! What a collect is told.

use crate::counts::metric::Metric;
use crate::counts::table::CountTable;
use crate::ranges::settling::SETTLE_MS;
use crate::time::step::TimeStep;

crate::options! {
    /// What to collect.
    ///
    /// ```
    /// # use tallyfold::{CollectOptions, Metric, TimeStep};
    /// # fn main() -> tallyfold::Result<()> {
    /// let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z");
    /// let options = CollectOptions {
    ///     window: TimeStep::parse("5m")?,
    ///     part: Some((0, 4)),
    ///     ..CollectOptions::new(Metric::EventDelivery, start, end, &["integration"])
    /// };
    /// assert_eq!(options.concurrency, 8);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Clone, Debug)]
    pub struct CollectOptions {
        /// Which counts.
        metric: Metric,
        /// The start of the range, UTC ISO 8601 (service reference 4.4).
        start: String [Instant],
        /// The first instant after the range, UTC ISO 8601.
        end: String [Instant],
        /// The dimensions to ask for, one to four.
        dimensions: Vec<String>,
        /// Those of the dimensions to keep, in this order; none for one grand total. Without it, all.
        group_by: Option<Vec<String>> = None,
        /// The step of the UTC day at whose edges the range is cut (service reference 8 advises windows of
        /// 5 to 15 minutes).
        window: TimeStep = TimeStep::QUARTER,
        /// How many windows are read at the same time; 1 for one after the other.
        concurrency: u32 = 8,
        /// The step at whose edges a window is halved if its response is too large or too slow: no
        /// window is cut inside such a step.
        finest: TimeStep = TimeStep::MINUTE,
        /// Which part of the plan to collect, and how many parts there are, for `of` machines that share
        /// the work: see [`Plan::part`](crate::Plan::part).
        part: Option<(u32, u32)> = None,
        /// For how long after a window's end its counts may still change. A window
        /// that is read earlier counts, but a checkpoint marks it as provisional.
        settle_ms: u64 [Milliseconds] = SETTLE_MS,
        /// A table that holds some of the range already: only its gaps are read. Windows of it that
        /// are outside of what is collected are left out.
        have: Option<CountTable> [Host] = None,
        /// Whether to find out first if the counts of two windows add up, with one more call: see
        /// [`Probe`](crate::Probe). They are the first two that meet, are settled by the wall clock,
        /// and of which nothing is there yet; without such a pair, there is no probe.
        probe: bool = false,
    }
}

impl CollectOptions {
    /// The options with everything else as usual.
    #[must_use]
    pub fn new<S: AsRef<str>>(metric: Metric, start: &str, end: &str, dimensions: &[S]) -> Self {
        let dimensions = dimensions
            .iter()
            .map(|name| name.as_ref().to_owned())
            .collect();
        Self::with_defaults(metric, start.to_owned(), end.to_owned(), dimensions)
    }
}
