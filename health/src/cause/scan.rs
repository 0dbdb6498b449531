//! The plain scan: the combination whose count deviates most, by the deviance of a Poisson count, again and again.

use super::cuboid::each_cuboid;
use super::element::{Element, Finds, Found};
use super::leaves::{Leaves, Tally};

/// How many events of the whole reference are added to that of each element.
const PRIOR: f64 = 10.0;
/// A coarser layer wins if it reaches this part of the best score.
const COARSER: f64 = 0.9;
/// The search stops below this part of the first cause's score.
const STOP: f64 = 0.5;

/// Which combinations have events that the reference does not let expect.
pub(crate) fn scan(leaves: &Leaves, is_rate: bool, most: usize, others: usize) -> Finds {
    let mut finds = Finds::default();
    let mut rest = leaves.clone();
    while finds.causes.len() < most {
        let mut ranked = ranked(&rest, is_rate);
        let Some(best) = choice(&ranked) else { break };
        let first = finds.causes.first().map_or(0.0, |first| first.score);
        if best.score <= first * STOP {
            break;
        }
        if finds.causes.is_empty() {
            ranked.truncate(most + others);
            finds.others = ranked;
        }
        finds.causes.push(best);
        take_away(&mut rest, best.element);
    }
    finds.is_global = finds.causes.is_empty();
    let causes = &finds.causes;
    finds
        .others
        .retain(|other| causes.iter().all(|cause| cause.element != other.element));
    finds.others.truncate(others);
    finds
}

/// The best one of the coarsest layer that is nearly as good as any.
fn choice(ranked: &[Found]) -> Option<Found> {
    let best = ranked.first()?;
    let good = ranked
        .iter()
        .filter(|found| found.score >= best.score * COARSER);
    let coarsest = good.clone().map(|found| found.element.layer()).min()?;
    good.copied()
        .find(|found| found.element.layer() == coarsest)
}

/// All combinations with a score above 0, best first.
fn ranked(leaves: &Leaves, is_rate: bool) -> Vec<Found> {
    let [before, now] = leaves.totals();
    let expected =
        |before_own: Tally, now_own: Tally| expectation(before, before_own, now_own, is_rate);
    let rises =
        !is_rate && now.part >= before.part || is_rate && now.part as f64 >= expected(before, now);
    let mut all = Vec::new();
    each_cuboid(leaves, &mut |cuboid| {
        let sums = cuboid
            .sums(&leaves.before)
            .into_iter()
            .zip(cuboid.sums(&leaves.now));
        for (group, (before_own, now_own)) in sums.enumerate() {
            let own = expected(before_own, now_own);
            if (now_own.part as f64 > own) != rises {
                continue;
            }
            let rest = expected(less(before, before_own), less(now, now_own));
            let score = deviance(now_own.part as f64, own)
                - deviance(now.part.saturating_sub(now_own.part) as f64, rest);
            if score > 0.0 {
                let element = cuboid.element(group, leaves);
                all.push(Found { element, score });
            }
        }
    });
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.element.cmp(&b.element)));
    all
}

fn less(all: Tally, own: Tally) -> Tally {
    Tally {
        part: all.part.saturating_sub(own.part),
        whole: all.whole.saturating_sub(own.whole),
    }
}

/// How many events are expected now: at the rate before, which a few events of everything are added to.
fn expectation(before: Tally, before_own: Tally, now_own: Tally, is_rate: bool) -> f64 {
    if !is_rate {
        return before_own.part as f64 + 0.5;
    }
    let rate = (before.part as f64 + 0.5) / (before.whole as f64 + 1.0);
    now_own.whole as f64 * (before_own.part as f64 + PRIOR * rate)
        / (before_own.whole as f64 + PRIOR)
}

/// Half the deviance of a Poisson count.
fn deviance(count: f64, expected: f64) -> f64 {
    if count <= 0.0 || expected <= 0.0 {
        return expected;
    }
    count * libm::log(count / expected) - (count - expected)
}

/// Leaves out what a combination has.
fn take_away(leaves: &mut Leaves, element: Element) {
    let kept: Vec<bool> = (0..leaves.len())
        .map(|leaf| !leaves.is_in(leaf, element))
        .collect();
    leaves.keep(&kept);
}
