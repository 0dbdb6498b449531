//! By which rule a level is learned.

use crate::baseline::basis::Basis;
use crate::baseline::prepared::Source;
use crate::baseline::sample::Sample;
use crate::baseline::season::Season;

/// The fewest seasons, days or windows that make a level by themselves.
const FEWEST: usize = 4;
/// How many days the fallback to days looks back, and how many windows that to windows.
const DAYS: usize = 14;
const RECENT: usize = 12;

/// Fills the sample by the first rule that finds enough windows, and says which.
pub(crate) fn choose(
    sample: &mut Sample,
    from: &impl Source,
    at: usize,
    season: &Season,
) -> Option<Basis> {
    let Season {
        period,
        neighbours,
        seasons,
        shorter,
    } = *season;
    let rules = [
        (Basis::Season, period, seasons, FEWEST, neighbours),
        (Basis::FewSeasons, period, seasons, 2, neighbours),
        (Basis::Days, shorter, DAYS, FEWEST, neighbours),
        (Basis::Recent, 1, RECENT, FEWEST, 0),
    ];
    rules
        .into_iter()
        .find_map(|(basis, period, most, fewest, neighbours)| {
            let fewest = fewest.min(most.max(1));
            if period == 0 || at / period < fewest {
                return None;
            }
            sample.fill(from, at, period, most, neighbours);
            (sample.rounds.len() >= fewest).then_some(basis)
        })
}
