//! Scans the sums of the last windows of one stream. A sum can show a small incident before any single window does.

use super::scan_fit::{Fit, MOST, Point, Row, ScanOptions, Terms};
use crate::stats::tails::{Tails, negative_binomial, normal_ln_tail};

/// Counts in adjacent windows of equal length, oldest first. For a rate, `counts` has the parts, such as errors, and
/// `wholes` has the wholes, such as attempts.
///
/// If `wholes` or `known` is shorter than `counts`, the windows beyond its end are unknown.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// The events of each window.
    pub counts: &'a [u64],
    /// For a rate, the whole that each count is a part of.
    pub wholes: Option<&'a [u64]>,
    /// Whether each window's count is final. It is false for gaps and for provisional windows. The scan neither judges them
    /// nor learns from them.
    pub known: &'a [bool],
}

impl Stream<'_> {
    /// Returns the part and the whole (1 for volumes) of a known window.
    fn known_at(&self, at: usize) -> Option<(u64, u64)> {
        if !*self.known.get(at)? {
            return None;
        }
        let whole = match self.wholes {
            Some(wholes) => *wholes.get(at)?,
            None => 1,
        };
        Some((*self.counts.get(at)?, whole))
    }
}

/// In which direction a count deviates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Fewer events than expected.
    Low,
    /// More events than expected.
    High,
}

/// How far counts deviate at one window, up or down. The scan judges several sums of windows that end with this window. The
/// result describes the sum that is least probable relative to its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excess {
    /// Whether the sum is an alarm.
    pub alarm: bool,
    /// Whether more or fewer events than expected came in this window alone. The sum is judged in this direction.
    pub direction: Direction,
    /// How many windows are summed. This window is the last of them.
    pub windows: usize,
    /// The number of events in these windows.
    pub observed: u64,
    /// The number of events that were expected in these windows.
    pub expected: f64,
    /// The variance of the number of events divided by its expectation. The variance includes the error of the expectation.
    pub dispersion: f64,
    /// The natural logarithm of the probability of at least `observed` events if `direction` is high, and of at most
    /// `observed` events if it is low.
    pub ln_p: f64,
    /// `ln_p` minus the logarithm of the limit for this many windows. An alarm needs 0 or less.
    pub margin: f64,
}

/// Scans the windows from `from` on. The scan of a window uses only that window and earlier ones. A result is `None` if
/// the window is unknown, or if too few windows before it are known.
///
/// No event causes two alarms: after an alarm, no sum includes its window or earlier ones.
#[must_use]
pub fn scan(stream: &Stream, from: usize, options: &ScanOptions) -> Vec<Option<Excess>> {
    let mut spent = 0;
    let judged = (from..stream.counts.len()).map(|at| {
        let excess = scan_window(stream, at, spent, options)?;
        if excess.alarm {
            spent = at + 1;
        }
        Some(excess)
    });
    judged.collect()
}

/// Scans one window. No sum includes a window before `spent`, the first window after the last alarm.
fn scan_window(stream: &Stream, at: usize, spent: usize, options: &ScanOptions) -> Option<Excess> {
    let this = stream.known_at(at)?;
    let fit = learn(stream, at, options)?;
    let mut sum = Sum::EMPTY;
    sum.add(&fit, at, this);
    let side = if (this.0 as f64) < sum.expected { Direction::Low } else { Direction::High };
    let mut worst = excess(&sum, &fit, side, 0, options);
    for back in 1..options.limits.len() {
        let known = at.checked_sub(back).filter(|before| *before >= spent);
        let Some((before, counts)) =
            known.and_then(|before| Some((before, stream.known_at(before)?)))
        else {
            break;
        };
        sum.add(&fit, before, counts);
        let excess = excess(&sum, &fit, side, back, options);
        if excess.margin < worst.margin {
            worst = excess;
        }
    }
    Some(worst)
}

/// Judges a sum in the direction of its last window, so that a deviation that is over isn't reported.
fn excess(sum: &Sum, fit: &Fit, side: Direction, back: usize, options: &ScanOptions) -> Excess {
    let dispersion = sum.dispersion(fit);
    let tails = tails(sum.events, sum.expected, dispersion);
    let ln_p = match side {
        Direction::Low => tails.low,
        Direction::High => tails.high,
    };
    let margin = ln_p - ln_limit(options.limits[back]);
    let least = options.least as f64;
    Excess {
        alarm: margin <= 0.0 && (sum.events as f64 >= least || sum.expected >= least),
        direction: side,
        windows: back + 1,
        observed: sum.events,
        expected: sum.expected,
        dispersion,
        ln_p,
        margin,
    }
}

/// How many times the fit is repeated with less weight for incidents. With less weight, incidents stand out more.
const ROUNDS: usize = 2;
/// The minimum number of windows to learn from.
const FEWEST_WINDOWS: usize = 12;
/// The minimum number of events to learn a season and a trend from.
const FEWEST_EVENTS: f64 = 10.0;

/// The maximum dispersion of a prediction.
const MOST_DISPERSION: f64 = 1e12;

/// Learns from the last `history` windows before `at`, except for the last `guard` windows, which may belong to the incident.
pub(crate) fn learn(stream: &Stream, at: usize, options: &ScanOptions) -> Option<Fit> {
    let first = at.saturating_sub(options.history);
    let end = at.saturating_sub(options.guard);
    let terms = Terms::new(options, first, end);
    let mut points = points(stream, first, end, &terms);
    leave_out_gross(&mut points);
    if points.len() < FEWEST_WINDOWS {
        return None;
    }
    let mut fit = regress(terms, &mut points)?;
    for _ in 0..ROUNDS {
        if !weigh(&mut points, fit.dispersion, options.incident) {
            break;
        }
        fit = regress(terms, &mut points)?;
    }
    Some(fit)
}

/// Leaves out windows whose rate is far above the 95th percentile. Several such windows would raise the mean and the
/// dispersion of the first regression so much that none of them stands out.
fn leave_out_gross(points: &mut Vec<Point>) {
    let mut rates = points.iter().map(|point| point.count / point.whole).collect::<Vec<_>>();
    rates.sort_unstable_by(f64::total_cmp);
    if let Some(high) = rates.get(rates.len() * 19 / 20).copied() {
        points.retain(|point| point.count <= 4.0 * high * point.whole + 10.0);
    }
}

fn points(stream: &Stream, first: usize, end: usize, terms: &Terms) -> Vec<Point> {
    let known = (first..end).filter_map(|at| Some((at, stream.known_at(at)?)));
    let point = |(at, (part, whole)): (usize, (u64, u64))| Point {
        count: part as f64,
        whole: whole as f64,
        weight: 1.0,
        row: terms.row(at),
        mean: 0.0,
    };
    known.filter(|(_, (_, whole))| *whole > 0).map(point).collect()
}

/// Returns the regression on all terms, or on a constant if there are too few events or the regression does not converge.
fn regress(terms: Terms, points: &mut [Point]) -> Option<Fit> {
    let constant = Fit::constant(points)?;
    let events: f64 = points.iter().map(|point| point.weight * point.count).sum();
    if events < FEWEST_EVENTS {
        return Some(constant);
    }
    Some(constant.regressed(terms, points).unwrap_or(constant))
}

/// Reduces the weight of windows that are less probable than `limit`: the less probable a window is, the less weight it
/// gets. Returns whether a weight changed.
fn weigh(points: &mut [Point], dispersion: f64, limit: f64) -> bool {
    let ln_limit = ln_limit(limit);
    let mut is_changed = false;
    for point in points {
        let ln_p = ln_p(point, dispersion);
        // Far from the mean, ln p falls at least in proportion to the distance, so a window's weight times its distance
        // is bounded.
        let weight = if ln_p < ln_limit { ln_limit / ln_p } else { 1.0 };
        is_changed |= weight != point.weight;
        point.weight = weight;
    }
    is_changed
}

fn ln_p(point: &Point, dispersion: f64) -> f64 {
    let distance = point.count - point.mean;
    // Computing tails is slow. Most counts are near their mean and keep their weight anyway, so they need no tails.
    if distance * distance < 2.0 * dispersion * point.mean {
        return 0.0;
    }
    let tails = tails(point.count as u64, point.mean, dispersion);
    tails.low.min(tails.high)
}

/// Returns the natural logarithm of a probability. A number outside of 0 to 1 counts as the nearest probability, and NaN
/// as 0. A probability of 0 counts as the smallest positive number.
pub(crate) fn ln_limit(limit: f64) -> f64 {
    let limit = if limit.is_nan() { 0.0 } else { limit };
    libm::log(limit.clamp(f64::MIN_POSITIVE, 1.0))
}

/// Returns the tails of a negative binomial distribution at `count`. If the variance is so large that computing them would
/// take long, returns the tails of a normal distribution, which are close enough.
pub(crate) fn tails(count: u64, mean: f64, dispersion: f64) -> Tails {
    const LARGE: f64 = 1e8;
    let variance = dispersion * mean;
    if variance < LARGE {
        return negative_binomial(count, mean, dispersion);
    }
    let z = (count as f64 - mean) / libm::sqrt(variance);
    Tails { low: normal_ln_tail(-z).clamp(-1e300, 0.0), high: normal_ln_tail(z).clamp(-1e300, 0.0) }
}

/// A sum of windows: its events, the expected number of events, and the gradient of the expected number with respect to
/// the coefficients of the fit.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    pub(crate) events: u64,
    pub(crate) expected: f64,
    gradient: Row,
}

impl Sum {
    pub(crate) const EMPTY: Self = Self { events: 0, expected: 0.0, gradient: [0.0; MOST] };

    /// Adds a window.
    pub(crate) fn add(&mut self, fit: &Fit, at: usize, (part, whole): (u64, u64)) {
        let row = fit.terms.row(at);
        let mean = whole as f64 * fit.rate(&row);
        self.events = self.events.saturating_add(part);
        self.expected += mean;
        for (sum, value) in self.gradient.iter_mut().zip(row) {
            *sum += mean * value;
        }
    }

    /// Returns the dispersion of a predicted count: the dispersion of counts, plus the error of the expectation.
    pub(crate) fn dispersion(&self, fit: &Fit) -> f64 {
        let error = fit.error(&self.gradient) / self.expected.max(f64::MIN_POSITIVE);
        (fit.dispersion + error).min(MOST_DISPERSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// Makes weekly counts of six years, with a season, a trend and some noise. `more` has events to add to some weeks.
    fn weeks(scale: f64, more: &[(usize, u64)]) -> Vec<u64> {
        let count = |week: usize| {
            let angle = week as f64 * std::f64::consts::PI / 26.0;
            let mean = scale * libm::exp(0.5 * libm::sin(angle) + 0.002 * week as f64);
            let noise = libm::sin(week as f64 * 12.9898) + libm::sin(week as f64 * 78.233);
            (mean + noise * libm::sqrt(mean)).max(0.0) as u64
        };
        let mut counts = (0..312).map(count).collect::<Vec<_>>();
        for &(week, cases) in more {
            counts[week] += cases;
        }
        counts
    }

    fn scanned(counts: &[u64], known: &[bool]) -> Vec<Option<Excess>> {
        let stream = Stream { counts, wholes: None, known };
        scan(&stream, 263, &ScanOptions::weeks())
    }

    fn alarms(counts: &[u64]) -> Vec<(usize, usize)> {
        let all = vec![true; counts.len()];
        let found = scanned(counts, &all).into_iter().enumerate();
        let found = found.filter_map(|(at, excess)| Some((at + 263, excess?)));
        found.filter(|(_, excess)| excess.alarm).map(|(at, excess)| (at, excess.windows)).collect()
    }

    #[test]
    fn a_season_and_a_trend_cause_no_alarm() {
        assert_eq!(alarms(&weeks(20.0, &[])), []);
        assert_eq!(alarms(&weeks(1.0, &[])), []);
    }

    #[test]
    fn one_large_week_or_the_sum_of_two_weeks_causes_an_alarm() {
        assert_eq!(alarms(&weeks(20.0, &[(300, 60)])), [(300, 1)]);
        let even = |cases| {
            let mut counts =
                (0..312).map(|week| [16, 24, 20, 17, 23][week % 5]).collect::<Vec<u64>>();
            counts[302] += cases;
            counts[303] += cases;
            alarms(&counts)
        };
        let first = (1..20).map(even).find(|found| !found.is_empty());
        assert_eq!(first, Some(vec![(303, 2)]));
    }

    #[test]
    fn an_event_causes_at_most_one_alarm() {
        let found = alarms(&weeks(20.0, &[(300, 200)]));
        assert_eq!(found, [(300, 1)], "later weeks are usual, and no sum includes week 300 again");
    }

    #[test]
    fn a_drop_causes_a_low_alarm() {
        let mut counts = weeks(60.0, &[]);
        counts[300] = 5;
        let found = scanned(&counts, &[true; 312])[300 - 263].unwrap();
        assert!(found.alarm && found.direction == Direction::Low, "{found:?}");
    }

    #[test]
    fn past_incidents_have_little_effect_on_the_expectation() {
        let incidents = [(100, 300), (101, 300), (180, 300), (181, 200)];
        let clean = scanned(&weeks(20.0, &[]), &[true; 312])[40].unwrap();
        let learned = scanned(&weeks(20.0, &incidents), &[true; 312])[40].unwrap();
        assert!((learned.expected / clean.expected - 1.0).abs() < 0.1, "{learned:?} {clean:?}");
        assert!(learned.dispersion < 3.0 * clean.dispersion, "{learned:?} {clean:?}");
    }

    #[test]
    fn gaps_are_neither_judged_nor_learned_from() {
        let mut counts = weeks(20.0, &[(300, 60)]);
        let mut known = vec![true; 312];
        for gap in [40, 41, 150, 299, 305] {
            known[gap] = false;
            counts[gap] = u64::MAX;
        }
        let found = scanned(&counts, &known);
        assert!(found[299 - 263].is_none() && found[305 - 263].is_none());
        assert!(found[300 - 263].is_some_and(|excess| excess.alarm && excess.windows == 1));
        assert!(found[301 - 263].is_some_and(|excess| !excess.alarm));
    }

    #[test]
    fn fewer_events_than_the_minimum_cause_no_alarm() {
        let mut counts = vec![0; 312];
        counts[300] = 4;
        assert_eq!(alarms(&counts), []);
        counts[300] = 5;
        assert_eq!(alarms(&counts), [(300, 1)]);
    }

    #[test]
    fn twice_the_traffic_has_twice_the_expectation() {
        let counts = weeks(50.0, &[]);
        let double = counts.iter().map(|count| count * 2).collect::<Vec<_>>();
        let [one, two] =
            [&counts, &double].map(|counts| scanned(counts, &[true; 312])[40].unwrap());
        assert!((two.expected / one.expected - 2.0).abs() < 0.02, "{one:?} {two:?}");
    }

    #[test]
    fn a_rate_is_judged_relative_to_its_whole() {
        let wholes =
            (0..312).map(|week| if week == 300 { 4_000 } else { 1_000 }).collect::<Vec<u64>>();
        let mut counts = wholes.iter().map(|whole| whole / 50).collect::<Vec<_>>();
        let judged = |counts: &[u64]| {
            let stream = Stream { counts, wholes: Some(&wholes), known: &[true; 312] };
            scan(&stream, 300, &ScanOptions::weeks())[0].unwrap()
        };
        assert!(!judged(&counts).alarm, "four times the events of four times the whole");
        counts[300] = 160;
        assert!(judged(&counts).alarm);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_counts_and_options_have_finite_results(
            counts in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..9, Just(0)], 0..90),
            period in 0usize..30, waves in 0usize..9, guard in 0usize..40, limit in prop::num::f64::ANY, gap in 0usize..9,
        ) {
            let known = (0..counts.len()).map(|at| at % 9 != gap).collect::<Vec<_>>();
            let stream = Stream { counts: &counts, wholes: None, known: &known };
            let options = ScanOptions { period, waves, guard, history: 60, limits: [limit; 3], incident: limit, least: 0 };
            for excess in scan(&stream, 0, &options).into_iter().flatten() {
                prop_assert!(excess.expected.is_finite() && excess.dispersion >= 1.0, "{:?}", excess);
                prop_assert!(excess.ln_p <= 0.0 && excess.ln_p.is_finite() && excess.margin.is_finite(), "{:?}", excess);
            }
        }
    }
}
