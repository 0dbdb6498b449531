//! A quick look at whether a window is like those before it.

use std::ops::RangeInclusive;

use crate::baseline::season::Season;
use crate::baseline::stream::Stream;
use crate::rules::names::Side;

/// The seasons or days that a level is learned from at least.
const FEWEST: u32 = 4;

/// The most days that a level is learned from.
const DAYS: usize = 14;

/// A quick look at whether a window is like those before it: on each side that counts, there are windows of a third of the
/// weeks (or days, if there are not enough weeks) that are as far out or farther. No robust level is so far from such a window
/// that it would fire, so that the level need not be fitted, which takes much longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike {
    season: Season,
    least: u64,
}

/// What the windows before have in common with a window.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    windows: u32,
    seasons: u32,
    higher: Beyond,
    lower: Beyond,
    most: u64,
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
        let weeks = self.seen(stream, at, self.season.period, self.season.seasons);
        let seen = match weeks.seasons < FEWEST {
            true => self.seen(stream, at, self.season.shorter, DAYS),
            false => weeks,
        };
        let is_among = |beyond: Beyond| {
            beyond.seasons >= seen.seasons.div_ceil(3) && beyond.windows * 8 >= seen.windows
        };
        let is_enough = stream.wholes.is_some() || seen.most.max(stream.counts[at]) >= self.least;
        seen.seasons >= FEWEST
            && is_enough
            && (side == Side::Low || is_among(seen.higher))
            && (side == Side::High || is_among(seen.lower))
    }

    fn seen(&self, stream: &Stream<'_>, at: usize, period: usize, most: usize) -> Seen {
        let mut seen = Seen::default();
        for ago in 1..=most {
            let slot = period
                .checked_mul(ago)
                .and_then(|back| at.checked_sub(back));
            let Some(slot) = slot.filter(|slot| *slot < at) else {
                break;
            };
            let first = slot.saturating_sub(self.season.neighbours);
            seen.add(
                stream,
                at,
                first..=(slot + self.season.neighbours).min(at - 1),
            );
        }
        seen
    }
}

impl Seen {
    /// Adds the windows of a season.
    fn add(&mut self, stream: &Stream<'_>, at: usize, windows: RangeInclusive<usize>) {
        let (mut known, mut higher, mut lower) = (0, 0, 0);
        for other in windows {
            let part = stream.counts[other];
            let (left, right) = match stream.wholes {
                Some(wholes) if wholes[other] == 0 => continue,
                Some(wholes) => (
                    u128::from(part) * u128::from(wholes[at]),
                    u128::from(stream.counts[at]) * u128::from(wholes[other]),
                ),
                None => (part.into(), stream.counts[at].into()),
            };
            if stream.known[other] {
                known += 1;
                self.most = self.most.max(part);
                higher += u32::from(left >= right);
                lower += u32::from(left <= right);
            }
        }
        self.windows += known;
        self.seasons += known.min(1);
        for (beyond, windows) in [(&mut self.higher, higher), (&mut self.lower, lower)] {
            beyond.windows += windows;
            beyond.seasons += windows.min(1);
        }
    }
}
