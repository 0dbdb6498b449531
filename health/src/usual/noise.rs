//! How far the counts of a group usually deviate from the expected counts, learned from the group's most recent weeks.

use std::collections::BTreeMap;

use super::calendar::Calendar;
use super::past::{Compare, Look, Past};

/// The noise of a group is learned from at most this many days.
pub(crate) const DAYS: usize = 28;

/// With fewer days than this, the noise is [`Prior::unknown`].
const FEWEST_DAYS: usize = 4;

/// Assumptions about how much counts vary. `least` and `unknown` are squares of relative standard deviations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prior {
    /// The minimum for each group.
    pub(crate) least: f64,
    /// The assumption for a group without enough days.
    pub(crate) unknown: f64,
    /// Three factors: for sums of up to an hour, of up to six hours, and for longer sums. A count is remarkable if its score
    /// reaches the factor times the highest score that is usual, which a few extreme days may exceed. There are more short
    /// sums, so more of them are high by chance.
    pub(crate) margins: [f64; 3],
}

impl Prior {
    /// The margins of sudden rises of shares. They are smaller than the other margins of shares, because slow drift has
    /// little effect on a sudden rise.
    pub(crate) const RISES: [f64; 3] = [1.7; 3];

    /// Returns the assumptions for a kind of comparison.
    pub(crate) const fn of(compare: Compare) -> Self {
        match compare {
            Compare::Counts => Self { least: 0.001_6, unknown: 0.04, margins: [1.9, 1.8, 1.7] },
            Compare::Shares => Self { least: 0.01, unknown: 0.09, margins: [2.6, 2.6, 2.4] },
            Compare::Ratios => Self { least: 0.000_4, unknown: 0.002_5, margins: [1.7, 1.6, 1.5] },
        }
    }
}

/// The function that compares a sum of windows with the expected sum: [`Past::look`] or [`Past::rise`].
pub(crate) type Looking<'p> = fn(&Past<'p>, usize, usize) -> Option<Look>;

/// How much a group varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Noise {
    /// The variance of a count is about `expected + phi * expected²`.
    pub(crate) phi: f64,
    /// The value of `phi` on the median day; lower than `phi` itself if incidents are common.
    pub(crate) calm: f64,
    /// A count is remarkable if the absolute value of its score reaches a limit: the first if the count is too high, the
    /// second if it is too low. On all but a few days, the scores of the group stay below these limits.
    pub(crate) limits: [f64; 2],
}

impl Noise {
    /// Returns how many standard deviations a count is above the expected count.
    pub(crate) fn score(&self, look: &Look) -> f64 {
        look.excess() / self.deviation(look.expected)
    }

    /// Returns the standard deviation of a count. The variance includes 0.5, so it is above 0 even if nothing is expected.
    pub(crate) fn deviation(&self, expected: f64) -> f64 {
        libm::sqrt(0.5 + expected + self.phi * expected * expected)
    }

    /// Returns the variance of a count, divided by the variance of a Poisson count.
    pub(crate) fn dispersion(&self, expected: f64) -> f64 {
        1.0 + self.phi * expected
    }

    /// Returns the limit for counts that are too high, or the limit for counts that are too low.
    pub(crate) fn limit(&self, is_high: bool) -> f64 {
        self.limits[usize::from(!is_high)]
    }
}

/// Learns the noise of a group, for sums of several lengths. Caches the noise and the [`Look`]s behind it, because many
/// windows share them.
#[derive(Debug)]
pub(crate) struct Learned<'n> {
    past: &'n Past<'n>,
    looking: Looking<'n>,
    prior: Prior,
    looks: BTreeMap<usize, Looks>,
    noises: BTreeMap<(usize, usize), Noise>,
}

/// For each slot from `start` on, how its count compares with the expected count ([`Look`]); `None` for a slot that was not
/// compared.
#[derive(Debug, Default)]
struct Looks {
    start: usize,
    all: Vec<Option<Look>>,
}

impl<'n> Learned<'n> {
    /// Starts with an empty cache.
    pub(crate) fn new(past: &'n Past<'n>, looking: Looking<'n>, prior: Prior) -> Self {
        Self { past, looking, prior, looks: BTreeMap::new(), noises: BTreeMap::new() }
    }

    /// Returns the least noise that a group can have.
    pub(crate) fn least(&self) -> Noise {
        Noise { phi: self.prior.least, calm: self.prior.least, limits: [0.0; 2] }
    }

    /// Returns the noise for sums over the `length` slots that end with `slot`, learned from the days before that
    /// slot's day.
    pub(crate) fn noise(&mut self, slot: usize, length: usize) -> Noise {
        let calendar = self.past.calendar();
        let days = calendar.days_before(slot, DAYS);
        let key = (length, days.end);
        if let Some(noise) = self.noises.get(&key) {
            return *noise;
        }
        let stride = (length / 4).max(1);
        let looks = self.looks.entry(length).or_default();
        let look = |slot: usize| (self.looking)(self.past, slot + 1, length);
        looks.fill(calendar, (days.start, days.end), stride, look);
        let per_day = calendar.per_day;
        let count = (days.end - days.start).div_ceil(per_day);
        let of_day = |ago: usize| {
            let end = days.end - ago * per_day;
            looks.within(end.saturating_sub(per_day).max(days.start), end)
        };
        let all: Vec<Vec<Look>> = (0..count).map(of_day).filter(|day| !day.is_empty()).collect();
        let hours = length.div_ceil(calendar.per_hour);
        let margin = match hours {
            ..=1 => self.prior.margins[0],
            2..=6 => self.prior.margins[1],
            _ => self.prior.margins[2],
        };
        let noise = noise_of(&all, self.prior, margin);
        self.noises.insert(key, noise);
        noise
    }
}

impl Looks {
    /// Adds the slots up to `end`. Computes a [`Look`] for every `stride`-th slot, counted from 1970, except on holidays. Keeps
    /// the slots that were added before. If `start` is before the first of them, adds all slots again.
    fn fill(
        &mut self,
        calendar: &Calendar,
        (start, end): (usize, usize),
        stride: usize,
        look: impl Fn(usize) -> Option<Look>,
    ) {
        if self.all.is_empty() || start < self.start {
            self.all.clear();
            self.start = start;
        }
        for slot in self.start + self.all.len()..end {
            let is_selected = (slot + calendar.offset()).is_multiple_of(stride);
            let is_usual = is_selected && !calendar.is_holiday(slot);
            self.all.push(if is_usual { look(slot) } else { None });
        }
    }

    /// Returns the looks of the slots from `start` to `end`.
    fn within(&self, start: usize, end: usize) -> Vec<Look> {
        let range = start.saturating_sub(self.start)..end.saturating_sub(self.start);
        let looks = self.all.get(range).unwrap_or_default();
        looks.iter().copied().flatten().collect()
    }
}

/// Computes the noise from the looks of some days. For `phi`, leaves out the days with the largest deviations, an eighth of
/// them, so that incidents don't count as noise. For each limit, leaves out one day fewer.
fn noise_of(days: &[Vec<Look>], prior: Prior, margin: f64) -> Noise {
    if days.len() < FEWEST_DAYS {
        return Noise { phi: prior.unknown, calm: prior.unknown, limits: [0.0; 2] };
    }
    let left_out = days.len().div_ceil(8);
    let mut spreads: Vec<(f64, f64)> = days.iter().map(|day| spread(day)).collect();
    let ratio = |(more, of): &(f64, f64)| if *of > 0.0 { more / of } else { 0.0 };
    spreads.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    let kept = &spreads[..spreads.len() - left_out];
    let sum = kept.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let noise = Noise {
        phi: ratio(&sum).max(prior.least),
        calm: ratio(&spreads[spreads.len() / 2]).max(prior.least),
        limits: [0.0; 2],
    };
    let limits = [1.0, -1.0].map(|sign| {
        let farthest = days.iter().map(|day| {
            let scores = day.iter().map(|look| sign * noise.score(look));
            scores.fold(0.0, f64::max)
        });
        let mut farthest: Vec<f64> = farthest.collect();
        farthest.sort_by(f64::total_cmp);
        margin * farthest[days.len() - left_out]
    });
    Noise { limits, ..noise }
}

/// Returns two sums over a day. Their quotient is `phi`: how much more the counts vary than Poisson counts.
fn spread(day: &[Look]) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    for look in day.iter().filter(|look| look.expected > 0.0) {
        let excess = look.excess();
        sums.0 += (excess * excess / look.expected - 1.0) / (look.expected + 1.0);
        sums.1 += look.expected / (look.expected + 1.0);
    }
    sums
}
