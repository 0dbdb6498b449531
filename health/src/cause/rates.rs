//! Finds the combinations that explain the change of a rate.

use super::candidates::{Candidate, Direction, Pool, Sums};
use super::chance::{Chance, NORMAL};
use super::counted::Counted;
use super::leaves::{Leaves, Suspect, Suspects, sums_of};
use super::weighing::weigh;

/// Everything else may have risen or fallen by up to this factor without being an incident of its own.
const LEVEL: f64 = 2.0;
/// If all causes together explain less than this share of the change, everything has changed. A further cause explains at
/// least this share of the number of events that the first cause explains.
const LEAST_EVENTS: f64 = 0.2;
/// The evidence for a further cause is at least this share of the evidence for the first cause.
const LEAST_SCORE: f64 = 0.1;

/// Finds the combinations that explain the change of a rate, and the other candidates.
pub(crate) fn causes_of_rate(leaves: &Leaves, most: usize, others: usize) -> Suspects {
    let mut suspects = Suspects::default();
    let mut counted = Counted::of(leaves);
    let chance = Chance::of(&counted);
    let all = Sums::of(&counted);
    let direction = Direction::of(all.observed, all.expected);
    let mut first: Option<Choice> = None;
    let (mut events, mut confirmed) = (0.0, 0);
    let mut free = vec![true; leaves.len()];
    while suspects.causes.len() < most.max(1) {
        let choice = Choice::of(&counted, direction);
        let first = first.get_or_insert_with(|| choice.clone());
        let Some(best) = choice.next_cause(first) else {
            break;
        };
        let sums = sums_of(leaves, best.element, &mut free, true);
        let probability = chance.of_element(&counted, best.element, sums, choice.level);
        // Many combinations were tried, so the probability is multiplied by the number of independent ones. Combinations overlap,
        // so this number is estimated as the square root of the number of combinations.
        if probability * libm::sqrt(choice.scanned as f64) > NORMAL {
            break;
        }
        counted = counted.without(best.element);
        suspects.causes.push(best);
        events += choice.events;
        // If there are two causes, the first cause alone may explain less than a change of everything does, although both causes
        // together explain more. So the search continues if the following check fails. `confirmed` is the number of causes after
        // which the check last succeeded.
        if best.score > choice.everything && events >= LEAST_EVENTS * first.change {
            confirmed = suspects.causes.len();
        }
    }
    suspects.is_global = confirmed == 0;
    suspects.probability = chance.of_all(leaves, &all);
    suspects.causes.truncate(confirmed.min(most));
    suspects.others = first.map_or_else(Vec::new, |first| first.ranked);
    suspects.keep_others(others);
    suspects
}

/// Candidates that were weighed, best first.
#[derive(Clone, Debug)]
struct Choice {
    ranked: Vec<Suspect>,
    /// By how many events the best candidate differs from its expectation at `level`.
    events: f64,
    /// By how many events all leaves together deviate.
    change: f64,
    /// The evidence for a change of everything.
    everything: f64,
    /// The count of everything else, as a multiple of its expected count.
    level: f64,
    /// The number of combinations from which the candidates were chosen.
    scanned: u64,
}

impl Choice {
    /// Weighs the candidates twice: first as if everything else were as expected, then with the measured level of
    /// everything else. "Everything else" means all leaves without the best candidate of the first weighing.
    fn of(counted: &Counted, direction: Direction) -> Self {
        let pool = Pool::of(counted, direction);
        let all = Sums::of(counted);
        let level = best(&pool.candidates, &weigh(counted, &pool.candidates, direction, 1.0))
            .map_or(1.0, |candidate| level(&all, &candidate.sums));
        let scores = weigh(counted, &pool.candidates, direction, level);
        let mut ranked: Vec<Suspect> = pool
            .candidates
            .iter()
            .zip(&scores)
            .filter(|(_, score)| score.is_finite())
            .map(|(candidate, score)| Suspect { element: candidate.element, score: *score })
            .collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.element.cmp(&b.element)));
        let events = best(&pool.candidates, &scores).map_or(0.0, |candidate| {
            (candidate.sums.observed - candidate.sums.expected * level).abs()
        });
        Self {
            ranked,
            events,
            change: (all.observed - all.expected).abs(),
            everything: scores.last().copied().unwrap_or(f64::NEG_INFINITY),
            level,
            scanned: pool.scanned,
        }
    }

    /// Returns the best candidate, if its evidence is high enough for the best of so many candidates, and if it is not
    /// small compared with the first cause.
    fn next_cause(&self, first: &Self) -> Option<Suspect> {
        let best = self.ranked.first()?;
        let first_score = first.ranked.first().map_or(0.0, |found| found.score);
        let is_large =
            best.score >= LEAST_SCORE * first_score && self.events >= LEAST_EVENTS * first.events;
        let enough = libm::log(self.scanned.max(1) as f64);
        (is_large && best.score > enough).then_some(*best)
    }
}

/// Returns the candidate with the most evidence.
fn best<'a>(candidates: &'a [Candidate], scores: &[f64]) -> Option<&'a Candidate> {
    let pairs = candidates.iter().zip(scores.iter().copied());
    pairs
        .filter(|(_, score)| score.is_finite())
        .max_by(|(one, a), (other, b)| a.total_cmp(b).then(other.element.cmp(&one.element)))
        .map(|(candidate, _)| candidate)
}

/// Returns the count of all events outside of a combination, as a multiple of their expected count. It is at most [`LEVEL`], and
/// at least the inverse of [`LEVEL`].
fn level(all: &Sums, own: &Sums) -> f64 {
    let expected = all.expected - own.expected;
    if expected <= 0.0 {
        return 1.0;
    }
    ((all.observed - own.observed) / expected).clamp(1.0 / LEVEL, LEVEL)
}
