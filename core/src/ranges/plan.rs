//! Cuts long ranges into windows, and windows into parts for several workers.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::step::TimeStep;
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;

crate::options! {
    /// A range, and the step by which it is cut.
    #[derive(Clone, Debug)]
    pub struct PlanOptions {
        /// The start of the range, UTC ISO 8601.
        start: Timestamp,
        /// The end of the range, which is not part of it.
        end: Timestamp,
        /// The step of the UTC day at whose edges the range is cut. The service advises windows of 5 to 15
        /// minutes (service reference 8).
        window: TimeStep,
    }
}

crate::options! {
    /// Which part of a plan.
    #[derive(Clone, Copy, Debug)]
    pub struct PartOptions {
        /// Which part, counted from 0.
        index: u32,
        /// How many parts there are.
        of: u32,
    }
}

/// A range of time cut at the edges of a [`TimeStep`], all of it or one part.
///
/// The service advises windows of 5 to 15 minutes (service reference 8). The first and the last
/// window are shorter where the range does not start or end at an edge. A plan stores no windows:
/// each is computed on demand, so a plan of a year in steps of a second takes no memory.
/// A plan need not be saved, because the same arguments make the same plan.
///
/// ```
/// # use tallyfold::{Plan, TimeStep, Window};
/// let range = Window::parse("2026-01-31T09:10:00Z", "2026-01-31T09:50:00Z")?;
/// let plan = Plan::new(range, TimeStep::parse("15m")?);
/// let starts: Vec<String> = plan.windows().map(|window| window.start().to_string()).collect();
/// assert_eq!(starts, ["2026-01-31T09:10:00Z", "2026-01-31T09:15:00Z",
///                     "2026-01-31T09:30:00Z", "2026-01-31T09:45:00Z"]);
/// assert_eq!(plan.part(1, 2)?.windows().last(), plan.windows().last());
/// # Ok::<(), tallyfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    range: Window,
    step: TimeStep,
    /// How many windows the whole range has.
    whole: u64,
    /// The windows of this plan: the one at position `first`, and every `stride`-th after it.
    first: u64,
    stride: u64,
}

impl Plan {
    /// The whole range, cut at the edges of the step.
    #[must_use]
    pub fn new(range: Window, step: TimeStep) -> Self {
        let edge = edges_before(range.start(), step);
        let last = edges_before(range.end(), step);
        // A range that ends at an edge has no window after it.
        let ends_inside = step.floor(range.end()) < range.end();
        let whole = (last - edge).unsigned_abs() + u64::from(ends_inside);
        Self { range, step, whole, first: 0, stride: 1 }
    }

    /// The plan for a caller's options.
    ///
    /// # Errors
    /// `invalid_window`, with the name of the argument.
    pub fn of(options: &PlanOptions) -> Result<Self> {
        let range = Window::new(options.start, options.end)?;
        Ok(Self::new(range, options.window))
    }

    /// One of `of` parts, counted from 0. The parts have no window in common and together make up
    /// this plan: the window at position `i` belongs to part `i mod of`. A part can be cut into
    /// parts again.
    ///
    /// # Errors
    /// `invalid_argument` for `part`, unless `index` is below `of`.
    pub fn part(&self, index: u32, of: u32) -> Result<Self> {
        if index >= of {
            let message = format!("want an index below the number of parts, not {index} of {of}");
            return Err(Error::argument("part", Code::InvalidArgument, message));
        }
        let skipped = self.stride.saturating_mul(u64::from(index));
        Ok(Self {
            first: self.first.saturating_add(skipped),
            stride: self.stride.saturating_mul(u64::from(of)),
            ..*self
        })
    }

    /// The range of the whole plan, even if this is a part of it.
    #[must_use]
    pub fn range(&self) -> Window {
        self.range
    }

    /// The step at whose edges the range is cut.
    #[must_use]
    pub fn step(&self) -> TimeStep {
        self.step
    }

    /// The number of windows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.whole.saturating_sub(self.first).div_ceil(self.stride)
    }

    /// Whether there is no window, as in a part of a plan with fewer windows than parts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The window at a position, counted from 0 in the order of time.
    #[must_use]
    pub fn window(&self, index: u64) -> Option<Window> {
        let inside = index < self.len();
        let place = inside.then(|| self.first + index * self.stride)?;
        let edge = edges_before(self.range.start(), self.step).checked_add_unsigned(place)?;
        // Only the edge at the end of the year 9999 can't be represented, and the range ends before it.
        let start = edge_at(edge, self.step)
            .map_or(self.range.start(), |edge| edge.max(self.range.start()));
        let end = edge_at(edge + 1, self.step)
            .map_or(self.range.end(), |edge| edge.min(self.range.end()));
        Window::new(start, end).ok()
    }

    /// The plan of another range, or the same part of it.
    pub(crate) fn of_range(&self, range: Window) -> Self {
        Self { first: self.first, stride: self.stride, ..Self::new(range, self.step) }
    }

    /// The windows in the order of time.
    pub fn windows(&self) -> impl Iterator<Item = Window> + use<> {
        let plan = *self;
        (0..plan.len()).map_while(move |index| plan.window(index))
    }

    /// The time of the windows: the range, or each window of a part.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Window> + use<> {
        let plan = *self;
        let (whole, spans) = match plan.stride {
            1 => (Some(plan.range), plan.len().min(1)),
            _ => (None, plan.len()),
        };
        (0..spans).map_while(move |index| whole.or_else(|| plan.window(index)))
    }

    /// The windows of the plan that overlap a window.
    pub(crate) fn overlapping(
        &self,
        window: Window,
    ) -> impl DoubleEndedIterator<Item = Window> + use<> {
        let plan = *self;
        let edge = edges_before(plan.range.start(), plan.step);
        let place = |instant| edges_before(instant, plan.step).saturating_sub(edge);
        let before = |place: i64| {
            let places = u64::try_from(place).unwrap_or(0).saturating_sub(plan.first);
            places.div_ceil(plan.stride)
        };
        let after = before(place(window.end()).saturating_add(1)).min(plan.len());
        let indexes = before(place(window.start()))..after;
        let windows = indexes.filter_map(move |index| plan.window(index));
        windows.filter(move |own| own.overlaps(window))
    }
}

/// Cuts a window in two at the edge of `finest` that is nearest to its middle; if two are equally
/// near, at the earlier one. `None` if no such edge is inside. So no window is cut inside a step of
/// `finest`, and counts can still be shown by any multiple of `finest`.
pub(crate) fn halves(window: Window, finest: TimeStep) -> Option<[Window; 2]> {
    let (start, end) = (window.start(), window.end());
    let middle = Timestamp::from_unix_ms(start.unix_ms().midpoint(end.unix_ms()))?;
    let (below, above) = (finest.floor(middle), finest.after(middle));
    let distance = |edge: &Timestamp| edge.unix_ms().abs_diff(middle.unix_ms());
    let edge = [Some(below), above]
        .into_iter()
        .flatten()
        .filter(|edge| start < *edge && *edge < end)
        .min_by_key(distance)?;
    Some([Window::new(start, edge).ok()?, Window::new(edge, end).ok()?])
}

/// How many edges of a step there are from 1970 to a timestamp; negative before 1970.
fn edges_before(instant: Timestamp, step: TimeStep) -> i64 {
    instant.unix_ms().div_euclid(step_ms(step))
}

/// The edge of that number; `None` outside the years 0000 to 9999.
fn edge_at(number: i64, step: TimeStep) -> Option<Timestamp> {
    Timestamp::from_unix_ms(number.checked_mul(step_ms(step))?)
}

fn step_ms(step: TimeStep) -> i64 {
    i64::from(step.seconds()) * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(start: &str, end: &str) -> Window {
        Window::parse(start, end).unwrap()
    }

    fn step(text: &str) -> TimeStep {
        TimeStep::parse(text).unwrap()
    }

    fn edges(plan: &Plan) -> Vec<String> {
        let starts = plan.windows().map(|window| window.start());
        let end = plan.windows().last().map(Window::end);
        starts.chain(end).map(|edge| edge.to_string()).collect()
    }

    #[test]
    fn a_range_is_cut_at_the_edges_inside_it() {
        let cases: [(&str, &str, &str, &[&str]); 7] = [
            ("09:00:00", "09:30:00", "15m", &["09:00:00", "09:15:00", "09:30:00"]),
            ("09:01:00", "09:31:00", "15m", &["09:01:00", "09:15:00", "09:30:00", "09:31:00"]),
            ("09:14:59.999999999", "09:15:00", "15m", &["09:14:59.999999999", "09:15:00"]),
            ("09:15:00", "09:15:00.000000001", "15m", &["09:15:00", "09:15:00.000000001"]),
            ("09:01:00", "09:14:00", "15m", &["09:01:00", "09:14:00"]),
            ("00:00:00", "23:59:59", "1d", &["00:00:00", "23:59:59"]),
            ("09:00:00.5", "09:00:02", "1s", &["09:00:00.500", "09:00:01", "09:00:02"]),
        ];
        for (start, end, size, expected) in cases {
            let instant = |clock: &str| format!("2026-01-31T{clock}Z");
            let plan = Plan::new(window(&instant(start), &instant(end)), step(size));
            let expected: Vec<String> = expected.iter().map(|clock| instant(clock)).collect();
            assert_eq!(edges(&plan), expected, "{start} to {end} by {size}");
            assert_eq!(plan.len(), expected.len() as u64 - 1);
            assert_eq!(plan.window(plan.len()), None);
        }
    }

    /// Neither a new year, a leap day, a clock change nor the year 1970 moves an edge, and the last
    /// window ends in the year 9999.
    #[test]
    fn days_have_the_same_windows_all_years_round() {
        for (start, end, days) in [
            ("2025-12-31T12:00:00Z", "2026-01-01T12:00:00Z", 2),
            ("2024-02-28T00:00:00Z", "2024-03-01T00:00:00Z", 2),
            ("2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z", 1),
            ("1969-12-31T23:00:00Z", "1970-01-01T01:00:00Z", 2),
            ("9999-12-30T00:00:00Z", "9999-12-31T23:59:59.999Z", 2),
            ("0000-01-01T00:00:00Z", "0000-01-03T00:00:00Z", 2),
        ] {
            let range = window(start, end);
            let daily = Plan::new(range, step("1d"));
            assert_eq!(daily.len(), days, "{range:?}");
            let quarters = Plan::new(range, step("15m"));
            let minutes = (range.end().unix_ms() - range.start().unix_ms() + 59_999) / 60_000;
            assert_eq!(quarters.len(), minutes as u64 / 15, "{range:?}");
            assert_eq!(quarters.windows().count() as u64, quarters.len());
        }
    }

    #[test]
    fn a_part_that_there_is_not_is_refused() {
        let range = window("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
        let plan = Plan::new(range, step("30m"));
        for (index, of) in [(0, 0), (2, 2), (u32::MAX, 3)] {
            let error = plan.part(index, of).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert_eq!(error.argument_name(), Some("part"));
        }
        let empty = plan.part(2, u32::MAX).unwrap();
        assert!(empty.is_empty() && empty.windows().next().is_none());
        let last = plan.part(1, u32::MAX).unwrap();
        assert_eq!(last.windows().collect::<Vec<_>>(), [plan.window(1).unwrap()]);
    }

    #[test]
    fn halves_meet_at_an_edge_of_the_finest_step() {
        let cases = [
            ("00:00:00", "00:15:00", "1m", Some("00:07:00")),
            ("00:00:00", "00:02:00", "1m", Some("00:01:00")),
            ("00:00:00", "00:03:00", "1m", Some("00:01:00")),
            ("00:00:00", "00:01:00", "1m", None),
            ("00:00:30", "00:01:10", "1m", Some("00:01:00")),
            ("00:00:01", "00:00:59", "1m", None),
            ("00:00:00.5", "00:00:02", "1s", Some("00:00:01")),
            ("00:00:00.5", "00:00:01", "1s", None),
            ("00:00:59", "00:09:00", "5m", Some("00:05:00")),
        ];
        for (start, end, finest, middle) in cases {
            let instant = |clock: &str| format!("2026-01-01T{clock}Z");
            let whole = window(&instant(start), &instant(end));
            let expected = middle.map(|middle| {
                [window(&instant(start), &instant(middle)), window(&instant(middle), &instant(end))]
            });
            assert_eq!(halves(whole, step(finest)), expected, "{whole:?} by {finest}");
        }
    }

    proptest! {
        #[test]
        fn windows_meet_and_parts_are_disjoint_and_complete(
            start_ms in -100_000_000_000_i64..2_000_000_000_000,
            length_ms in 1..100_000_000_i64,
            size in prop::sample::select(vec!["5m", "15m", "90m", "1d"]),
            of in 1..9_u32,
            again in 1..4_u32,
        ) {
            let instant = |ms| Timestamp::from_unix_ms(ms).unwrap();
            let range = Window::new(instant(start_ms), instant(start_ms + length_ms)).unwrap();
            let plan = Plan::new(range, step(size));
            let windows: Vec<Window> = plan.windows().collect();
            prop_assert_eq!(windows.len() as u64, plan.len());
            prop_assert_eq!(windows.first().map(|window| window.start()), Some(range.start()));
            prop_assert_eq!(windows.last().map(|window| window.end()), Some(range.end()));
            for pair in windows.windows(2) {
                prop_assert_eq!(pair[0].end(), pair[1].start());
                prop_assert_eq!(step(size).floor(pair[1].start()), pair[1].start());
            }
            let around = Window::new(instant(start_ms - 1), instant(start_ms + length_ms + 1)).unwrap();
            let mut together = Vec::new();
            for index in 0..of {
                let part = plan.part(index, of).unwrap();
                for inner in 0..again {
                    let part = part.part(inner, again).unwrap();
                    prop_assert_eq!(part.windows().count() as u64, part.len());
                    // At most ten windows, because checking all of them takes long.
                    for window in windows.iter().step_by(windows.len().div_ceil(10)) {
                        let own = part.windows().filter(|own| own == window);
                        prop_assert!(part.overlapping(*window).eq(own));
                    }
                    prop_assert!(part.overlapping(around).eq(part.windows()));
                    together.extend(part.windows());
                }
            }
            together.sort_unstable();
            prop_assert_eq!(together, windows);
        }
    }
}
