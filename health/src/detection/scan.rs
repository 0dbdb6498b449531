//! A scan over the last windows of one stream: an incident that begins small is seen in their sum before any one of them stands out.

use crate::baseline::stream::Stream;
use crate::detection::scan_fit::Fit;
use crate::detection::scan_learn::{Sum, learn};
use crate::stats::tails::negative_binomial;

/// How a stream is scanned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanOptions {
    /// Windows in a season: 52 of a week are a year, 7 of a day are a week. 0 or 1: there is no season.
    pub period: usize,
    /// Waves of a season, the first with one cycle; at most 3. They are used from two seasons of history on.
    pub waves: usize,
    /// How many windows back to learn from. From three seasons on there is a trend.
    pub history: usize,
    /// How many of the last windows teach nothing: they may belong to the incident.
    pub guard: usize,
    /// The probability at which the sum of 1, 2 or 3 windows alarms.
    pub limits: [f64; 3],
    /// Windows of the past that are less probable than this teach the less the less probable they are.
    pub incident: f64,
    /// No alarm where fewer events came and fewer were expected.
    pub least: u64,
}

/// Which way a count is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Fewer events than expected.
    Low,
    /// More events than expected.
    High,
}

/// What a scan says of a window: the sum of the last windows that is the least probable by its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excess {
    /// Whether it is an alarm.
    pub alarm: bool,
    /// Whether more or fewer events came than expected.
    pub side: Side,
    /// How many windows are summed, this one the last of them.
    pub windows: usize,
    /// The events of these windows.
    pub observed: u64,
    /// The events that were expected of them.
    pub expected: f64,
    /// Variance of the events divided by their expectation; the error of the expectation is part of it.
    pub dispersion: f64,
    /// The logarithm of the probability of so many events, or so few.
    pub ln_p: f64,
    /// `ln_p` less the logarithm of the limit for this many windows: an alarm at 0 and below.
    pub margin: f64,
}

impl ScanOptions {
    /// Weeks of a year: the last five years teach. The sum of two weeks has the highest limit, since incidents seldom end with
    /// the week in which they begin. `make grade-detect` grades these options.
    #[must_use]
    pub const fn weeks() -> Self {
        Self {
            period: 52,
            waves: 1,
            history: 263,
            guard: 5,
            limits: [0.004, 0.013, 0.004],
            incident: 0.01,
            least: 5,
        }
    }
}

/// Scans the windows from `from` on, each with what was known when it ended. None: the window is unknown, or too few are known before it.
///
/// Events make one alarm: after an alarm no sum goes back beyond it.
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

/// Scans one window, and those before it from `spent` on.
#[must_use]
pub fn scan_window(stream: &Stream, at: usize, spent: usize, options: &ScanOptions) -> Option<Excess> {
    let this = stream.known_at(at)?;
    let fit = learn(stream, at, options)?;
    let mut sum = Sum::EMPTY;
    sum.add(&fit, at, this);
    let side = if (this.0 as f64) < sum.expected { Side::Low } else { Side::High };
    let mut worst = judge(&sum, &fit, side, 0, options);
    for back in 1..options.limits.len() {
        let known = at.checked_sub(back).filter(|before| *before >= spent);
        let Some((before, counts)) = known.and_then(|before| Some((before, stream.known_at(before)?))) else {
            break;
        };
        sum.add(&fit, before, counts);
        let excess = judge(&sum, &fit, side, back, options);
        if excess.margin < worst.margin {
            worst = excess;
        }
    }
    Some(worst)
}

/// Judges a sum on the side on which its last window is: what is over is no news.
fn judge(sum: &Sum, fit: &Fit, side: Side, back: usize, options: &ScanOptions) -> Excess {
    let dispersion = sum.dispersion(fit);
    let tails = negative_binomial(sum.events, sum.expected, dispersion);
    let ln_p = match side {
        Side::Low => tails.low,
        Side::High => tails.high,
    };
    let margin = ln_p - libm::log(options.limits[back].clamp(f64::MIN_POSITIVE, 1.0));
    let least = options.least as f64;
    Excess {
        alarm: margin <= 0.0 && (sum.events as f64 >= least || sum.expected >= least),
        side,
        windows: back + 1,
        observed: sum.events,
        expected: sum.expected,
        dispersion,
        ln_p,
        margin,
    }
}
