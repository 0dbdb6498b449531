//! What a stream's history teaches a scan. Past incidents teach little.

use crate::baseline::stream::Stream;
use crate::detection::scan_fit::{Fit, Point};
use crate::detection::scan_options::ScanOptions;
use crate::detection::scan_season::{MOST, Row, Terms};
use crate::stats::normal::normal_ln_tail;
use crate::stats::tails::{Tails, negative_binomial};

/// Fits after incidents got less weight: the less they weigh, the more of them stand out.
const ROUNDS: usize = 2;
/// Fewer windows teach nothing.
const FEWEST_WINDOWS: usize = 12;
/// Fewer events teach no season and no trend.
const FEWEST_EVENTS: f64 = 10.0;

/// No prediction is vaguer.
const MOST_DISPERSION: f64 = 1e12;

/// Learns from the windows `history` back, but for the last `guard`, which may belong to an incident that is to be found.
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

/// Leaves out windows that are far beyond the highest usual ones: they would hide each other in the first regression.
fn leave_out_gross(points: &mut Vec<Point>) {
    let mut rates = points
        .iter()
        .map(|point| point.count / point.whole)
        .collect::<Vec<_>>();
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
    known
        .filter(|(_, (_, whole))| *whole > 0)
        .map(point)
        .collect()
}

/// The regression on all terms, or on a constant where there are too few events or it does not converge.
fn regress(terms: Terms, points: &mut [Point]) -> Option<Fit> {
    let constant = Fit::constant(points)?;
    let events: f64 = points.iter().map(|point| point.weight * point.count).sum();
    if events < FEWEST_EVENTS {
        return Some(constant);
    }
    Some(constant.regressed(terms, points).unwrap_or(constant))
}

/// Gives windows that are less probable than `limit` the less weight the less probable they are. Whether a weight changed.
fn weigh(points: &mut [Point], dispersion: f64, limit: f64) -> bool {
    let ln_limit = ln_limit(limit);
    let mut is_changed = false;
    for point in points {
        let ln_p = ln_p(point, dispersion);
        // Far out, ln p falls with the square of the distance: so a window's weight times its square of the distance is bounded.
        let weight = if ln_p < ln_limit {
            ln_limit / ln_p
        } else {
            1.0
        };
        is_changed |= weight != point.weight;
        point.weight = weight;
    }
    is_changed
}

fn ln_p(point: &Point, dispersion: f64) -> f64 {
    let distance = point.count - point.mean;
    // The tails take longer than all else, and most counts are near their mean.
    if distance * distance < 2.0 * dispersion * point.mean {
        return 0.0;
    }
    let tails = tails(point.count as u64, point.mean, dispersion);
    tails.low.min(tails.high)
}

/// The logarithm of a probability; of what is none, of the nearest, NaN as 0.
pub(crate) fn ln_limit(limit: f64) -> f64 {
    let limit = if limit.is_nan() { 0.0 } else { limit };
    libm::log(limit.clamp(f64::MIN_POSITIVE, 1.0))
}

/// Exact tails; where the variance is so large that they would take long, those of a normal distribution, which is as close there.
pub(crate) fn tails(count: u64, mean: f64, dispersion: f64) -> Tails {
    const LARGE: f64 = 1e8;
    let variance = dispersion * mean;
    if variance < LARGE {
        return negative_binomial(count, mean, dispersion);
    }
    let z = (count as f64 - mean) / libm::sqrt(variance);
    Tails {
        low: normal_ln_tail(-z).clamp(-1e300, 0.0),
        high: normal_ln_tail(z).clamp(-1e300, 0.0),
    }
}

/// A sum of windows: its events, what was expected of it, and how the expectation moves with the coefficients.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    pub(crate) events: u64,
    pub(crate) expected: f64,
    gradient: Row,
}

impl Sum {
    pub(crate) const EMPTY: Self = Self {
        events: 0,
        expected: 0.0,
        gradient: [0.0; MOST],
    };

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

    /// The dispersion of a count that is predicted: that of counts, and the error of the expectation.
    pub(crate) fn dispersion(&self, fit: &Fit) -> f64 {
        let error = fit.error(&self.gradient) / self.expected.max(f64::MIN_POSITIVE);
        (fit.dispersion + error).min(MOST_DISPERSION)
    }
}
