//! What a collect is told.

use crate::dimension::Metric;
use crate::step::TimeStep;
use crate::table::CountTable;

/// How long after its end a window's counts may still change, unless the caller knows better.
pub(in crate::client) const SETTLE_MS: u64 = 3_600_000;

/// What to collect.
///
/// ```
/// # use tallyfold::{CollectOptions, Metric, TimeStep};
/// # fn f() -> tallyfold::Result<CollectOptions> {
/// let step = TimeStep::parse("15m")?;
/// let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z");
/// Ok(CollectOptions {
///     part: Some((0, 4)),
///     ..CollectOptions::new(Metric::EventDelivery, start, end, &["integration"], step)
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CollectOptions {
    /// Which counts.
    pub metric: Metric,
    /// The start of the range, UTC ISO 8601 (service reference 4.4).
    pub start: String,
    /// The end of the range, UTC ISO 8601.
    pub end: String,
    /// The dimensions to ask for, one to four.
    pub dimensions: Vec<String>,
    /// Which of them to keep; `None` for all.
    pub group_by: Option<Vec<String>>,
    /// The step at whose edges the range is cut (service reference 8 advises 5 to 15 minutes).
    pub window: TimeStep,
    /// The step at whose edges a window is halved if its response is too large or too slow: no
    /// window is cut inside such a step. A minute if nothing else is said.
    pub finest: TimeStep,
    /// Which part of the plan to collect, and how many parts there are: see
    /// [`Plan::part`](crate::Plan::part).
    pub part: Option<(u32, u32)>,
    /// For how long after a window's end, in milliseconds, its counts may still change. A window
    /// that is read earlier counts, but a checkpoint marks it as provisional. An hour if nothing
    /// else is said.
    pub settle_ms: u64,
    /// A table that holds some of the range already: only its gaps are read. Windows of it that
    /// are outside of what is collected are left out.
    pub have: Option<CountTable>,
    /// Whether to find out first if the counts of two windows add up, with one more call: see
    /// [`Probe`](crate::Probe). They are the first two that meet, are settled by the wall clock,
    /// and of which nothing is there yet; without such a pair, there is no probe.
    pub probe: bool,
}

impl CollectOptions {
    /// The options with everything else as usual.
    #[must_use]
    pub fn new<S: AsRef<str>>(
        metric: Metric,
        start: &str,
        end: &str,
        dimensions: &[S],
        window: TimeStep,
    ) -> Self {
        let owned = |name: &S| name.as_ref().to_owned();
        Self {
            metric,
            start: start.to_owned(),
            end: end.to_owned(),
            dimensions: dimensions.iter().map(owned).collect(),
            group_by: None,
            window,
            finest: TimeStep::MINUTE,
            part: None,
            settle_ms: SETTLE_MS,
            have: None,
            probe: false,
        }
    }
}
