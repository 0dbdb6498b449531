//! A quick look at whether a window is like those before it.

use std::ops::RangeInclusive;

use crate::baseline::season::Season;
use crate::baseline::stream::Stream;
use crate::rules::names::Side;

/// The seasons, days or windows that a level is learned from at least.
const FEWEST: u32 = 4;

/// The most days, and the most windows just before, that a level is learned from.
const DAYS: usize = 14;
const RECENT: usize = 12;

/// From how many standard deviations on a robust fit trusts a window less.
const OUTLYING: f64 = 2.5;

/// How many standard deviations are certainly no reason to look closer.
const NEAR: f64 = 2.2;

/// Of what spreads more than this, as a part of the mean, low counts are rarer than a normal distribution has it.
const SPREAD: f64 = 0.25;

/// A quick look at whether a window is like those before it, so that their level need not be fitted, which takes much longer.
///
/// It is if, on each side that counts, there are windows of a third of the weeks (or days, if there are not enough weeks) that are
/// as far out or farther. It is as well if there is no outlier among those before, so that a robust fit is a plain one, and the
/// window is near their mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike {
    season: Season,
    least: u64,
}

/// What the windows before have in common.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    windows: u32,
    seasons: u32,
    higher: Beyond,
    lower: Beyond,
    most: u64,
    parts: f64,
    wholes: f64,
    squares: f64,
    highest: f64,
    lowest: f64,
}

/// Windows on one side.
#[derive(Clone, Copy, Debug, Default)]
struct Beyond {
    windows: u32,
    seasons: u32,
}

impl Alike {
    /// For counts that repeat in this way. `least` are the fewest events that are judged.
    pub(crate) fn new(season: &Season, least: u64) -> Self {
        Self {
            season: *season,
            least,
        }
    }

    /// Whether the window is certainly not far from what is expected.
    pub(crate) fn is_plain(&self, stream: &Stream<'_>, at: usize, side: Side) -> bool {
        let season = &self.season;
        let mut seen = self.seen(
            stream,
            at,
            (season.period, season.seasons, season.neighbours),
        );
        if seen.seasons < FEWEST {
            seen = self.seen(stream, at, (season.shorter, DAYS, season.neighbours));
        }
        if seen.seasons < FEWEST {
            seen = self.seen(stream, at, (1, RECENT, 0));
        }
        let is_enough = stream.wholes.is_some() || seen.most.max(stream.counts[at]) >= self.least;
        let whole = stream.wholes.map_or(1.0, |wholes| wholes[at] as f64);
        seen.seasons >= FEWEST
            && is_enough
            && (seen.has_beyond(side) || seen.is_near(stream.counts[at] as f64, whole))
    }

    fn seen(
        &self,
        stream: &Stream<'_>,
        at: usize,
        (period, most, neighbours): (usize, usize, usize),
    ) -> Seen {
        let mut seen = Seen {
            lowest: f64::MAX,
            ..Seen::default()
        };
        let ratio = match stream.wholes {
            Some(wholes) => stream.counts[at] as f64 / (wholes[at] as f64).max(1.0),
            None => stream.counts[at] as f64,
        };
        for ago in 1..=most {
            let slot = period
                .checked_mul(ago)
                .and_then(|back| at.checked_sub(back));
            let Some(slot) = slot.filter(|slot| *slot < at) else {
                break;
            };
            let first = slot.saturating_sub(neighbours);
            seen.add(stream, ratio, first..=(slot + neighbours).min(at - 1));
        }
        seen
    }
}

impl Seen {
    /// Adds the windows of a season, which are compared with a ratio.
    fn add(&mut self, stream: &Stream<'_>, ratio: f64, windows: RangeInclusive<usize>) {
        let (mut known, mut higher, mut lower) = (0, 0, 0);
        for other in windows {
            let whole = stream.wholes.map_or(1.0, |wholes| wholes[other] as f64);
            if !stream.known[other] || whole == 0.0 {
                continue;
            }
            let part = stream.counts[other] as f64;
            let own = part / whole;
            known += 1;
            higher += u32::from(own >= ratio);
            lower += u32::from(own <= ratio);
            self.most = self.most.max(stream.counts[other]);
            self.parts += part;
            self.wholes += whole;
            self.squares += part * own;
            self.highest = self.highest.max(own);
            self.lowest = self.lowest.min(own);
        }
        self.windows += known;
        self.seasons += known.min(1);
        for (beyond, windows) in [(&mut self.higher, higher), (&mut self.lower, lower)] {
            beyond.windows += windows;
            beyond.seasons += windows.min(1);
        }
    }

    /// Whether windows of many seasons are as far out, on each side that counts.
    fn has_beyond(&self, side: Side) -> bool {
        let is_among = |beyond: Beyond| {
            beyond.seasons >= self.seasons.div_ceil(3) && beyond.windows * 8 >= self.windows
        };
        (side == Side::Low || is_among(self.higher)) && (side == Side::High || is_among(self.lower))
    }

    /// Whether a window is near the mean of windows none of which is an outlier.
    fn is_near(&self, part: f64, whole: f64) -> bool {
        let rate = self.parts / self.wholes.max(1.0);
        if rate <= 0.0 || self.windows < 2 * FEWEST {
            return false;
        }
        // The sum of squared residuals, each by its variance if counts were Poisson.
        let squares = self.squares / rate - self.parts;
        let dispersion = (squares / f64::from(self.windows - 1)).max(1.0);
        let usual = self.wholes / f64::from(self.windows);
        let deviation = |whole: f64| libm::sqrt(rate * whole * dispersion);
        let outlying = OUTLYING * deviation(usual) / usual;
        let expected = rate * whole;
        self.highest - rate <= outlying
            && rate - self.lowest <= outlying
            && deviation(whole) <= SPREAD * expected
            && (part - expected).abs() <= NEAR * deviation(whole)
    }
}
