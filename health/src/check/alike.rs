//! A quick look at whether a window is like those before it.

use crate::baseline::season::Season;
use crate::baseline::stream::Stream;
use crate::rules::names::Side;

/// The seasons, days or windows that a level is learned from at least.
const FEWEST: usize = 4;

/// The fewest windows that the quick look needs.
const FEWEST_WINDOWS: u32 = 8;

/// A quick look at whether a window is like those before it: among a quarter of them on each side that counts. No robust level
/// can be far from such a window, so that it need not be fitted, which takes a hundred times as long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike {
    season: Season,
}

impl Alike {
    /// For counts that repeat in this way.
    pub(crate) fn new(season: &Season) -> Self {
        Self { season: *season }
    }

    /// Whether the window is certainly not far from what is expected. `least` are the fewest events that are judged.
    pub(crate) fn is_plain(&self, stream: &Stream<'_>, at: usize, side: Side, least: u64) -> bool {
        let Season {
            period,
            neighbours,
            seasons,
            ..
        } = self.season;
        let (mut known, mut higher, mut lower, mut found) = (0_u32, 0_u32, 0_u32, 0_usize);
        let whole = stream.wholes.map(|wholes| wholes[at]);
        let part = stream.counts[at];
        let mut most = part;
        for ago in 1..=seasons {
            let Some(slot) = at.checked_sub(period * ago) else {
                break;
            };
            let before = known;
            for other in
                slot.saturating_sub(neighbours)..=(slot + neighbours).min(at.saturating_sub(1))
            {
                if !stream.known[other] || stream.wholes.is_some_and(|wholes| wholes[other] == 0) {
                    continue;
                }
                let (left, right) = match (whole, stream.wholes) {
                    (Some(whole), Some(wholes)) => (
                        u128::from(stream.counts[other]) * u128::from(whole),
                        u128::from(part) * u128::from(wholes[other]),
                    ),
                    _ => (stream.counts[other].into(), part.into()),
                };
                most = most.max(stream.counts[other]);
                known += 1;
                higher += u32::from(left >= right);
                lower += u32::from(left <= right);
            }
            found += usize::from(known > before);
        }
        let is_among = match side {
            Side::Both => higher.min(lower) * 4 >= known,
            Side::High => higher * 4 >= known,
            Side::Low => lower * 4 >= known,
        };
        found >= FEWEST && known >= FEWEST_WINDOWS && is_among && (whole.is_some() || most >= least)
    }
}
