//! Which windows a level is learned from.

use crate::baseline::basis::Basis;
use crate::baseline::season::Season;
use crate::baseline::stream::Stream;

/// A window that a level is learned from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    /// The events.
    pub(crate) part: f64,
    /// Of a rate, what they are part of; of a volume, 1.
    pub(crate) whole: f64,
    /// How many seasons ago.
    pub(crate) ago: usize,
}

/// The fewest seasons, days or windows that make a level.
const FEWEST: usize = 4;
const DAYS: usize = 14;
const RECENT: usize = 12;

/// The windows like the one at `at`, by the first rule that finds enough of them.
pub(crate) fn references(
    stream: &Stream,
    at: usize,
    season: &Season,
) -> Option<(Basis, Vec<Observation>)> {
    let rules = [
        (
            Basis::Season,
            season.period,
            season.seasons,
            season.neighbours,
        ),
        (Basis::Days, season.shorter, DAYS, season.neighbours),
        (Basis::Recent, 1, RECENT, 0),
    ];
    rules
        .into_iter()
        .find_map(|(basis, period, most, neighbours)| {
            let found = alike(stream, at, period, most, neighbours);
            let seasons = (1..=most)
                .filter(|&ago| found.iter().any(|one| one.ago == ago))
                .count();
            (period > 0 && seasons >= FEWEST).then_some((basis, found))
        })
}

fn alike(
    stream: &Stream,
    at: usize,
    period: usize,
    most: usize,
    neighbours: usize,
) -> Vec<Observation> {
    let mut found = Vec::new();
    for ago in 1..=most {
        let Some(slot) = period
            .checked_mul(ago)
            .and_then(|back| at.checked_sub(back))
        else {
            break;
        };
        for window in slot.saturating_sub(neighbours)
            ..=slot.saturating_add(neighbours).min(at.saturating_sub(1))
        {
            if let Some((part, whole)) = stream.known_at(window)
                && whole > 0
            {
                found.push(Observation {
                    part: part as f64,
                    whole: whole as f64,
                    ago,
                });
            }
        }
    }
    found
}
