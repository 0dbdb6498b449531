//! The plain scan, for comparison. It repeatedly names the combination whose count deviates most.

use std::collections::BTreeMap;

use tallyfold_health::{Leaves, deviance};

use super::cases::Values;
use super::marks::Ranking;

/// How many events with the rate of the whole reference are added to the reference of each element.
const PRIOR: f64 = 10.0;
/// A coarser layer wins if it reaches this part of the best score.
const COARSER: f64 = 0.9;
/// The search stops below this part of the first cause's score.
const STOP: f64 = 0.5;
/// The maximum number of named causes.
const MOST: usize = 5;
/// How many candidates are ranked.
const RANKED: usize = 10;

/// The attributes of an element, as bits, and the position of each value.
type Element = (usize, Vec<u32>);

/// The part and the whole, before and now.
type Counts = [f64; 4];

/// The answer of the plain scan.
pub(crate) fn ranking(leaves: &Leaves) -> Result<Ranking, String> {
    let mut live: Vec<usize> = (0..leaves.len()).collect();
    let mut named: Vec<Element> = Vec::new();
    let mut ranked: Vec<Element> = Vec::new();
    let mut first = 0.0;
    while named.len() < MOST {
        let scores = scores(leaves, &live);
        let Some((best, _)) = scores.first() else {
            break;
        };
        if *best <= first * STOP {
            break;
        }
        let good = scores.iter().filter(|(score, _)| *score >= best * COARSER);
        let coarsest = good.min_by_key(|(_, element)| element.0.count_ones());
        let Some((_, choice)) = coarsest else { break };
        if named.is_empty() {
            first = *best;
            ranked = scores.iter().take(RANKED).map(|(_, element)| element.clone()).collect();
        }
        live.retain(|leaf| element(leaves, choice.0, *leaf) != *choice);
        named.push(choice.clone());
    }
    ranked.retain(|element| !named.contains(element));
    Ok(Ranking {
        named: named.len(),
        causes: named.iter().chain(&ranked).map(|element| values(leaves, element)).collect(),
    })
}

/// All elements with a score above 0, best first.
fn scores(leaves: &Leaves, live: &[usize]) -> Vec<(f64, Element)> {
    let mut all = Counts::default();
    let mut sums: BTreeMap<Element, Counts> = BTreeMap::new();
    for leaf in live {
        let (before, now) = (leaves.before()[*leaf], leaves.now()[*leaf]);
        let counts = [before.part, before.whole, now.part, now.whole].map(|count| count as f64);
        add(&mut all, counts);
        for attributes in 1..1 << leaves.attributes().len() {
            add(sums.entry(element(leaves, attributes, *leaf)).or_default(), counts);
        }
    }
    let rate = all[0] / all[1].max(1.0);
    let expected = |[part, whole, _, now]: Counts| now * (part + PRIOR * rate) / (whole + PRIOR);
    let mut scores: Vec<(f64, Element)> = Vec::new();
    for (element, own) in sums {
        let rest = [0, 1, 2, 3].map(|place| all[place] - own[place]);
        let score = deviance(own[2], expected(own)) - deviance(rest[2], expected(rest));
        if own[2] > expected(own) && score > 0.0 {
            scores.push((score, element));
        }
    }
    scores.sort_by(|one, other| other.0.total_cmp(&one.0));
    scores
}

fn add(sum: &mut Counts, counts: Counts) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

fn element(leaves: &Leaves, attributes: usize, leaf: usize) -> Element {
    let columns = leaves.attributes().iter().enumerate();
    let named = columns.filter(|(place, _)| attributes & 1 << place != 0);
    (attributes, named.map(|(_, attribute)| attribute.ids()[leaf]).collect())
}

fn values(leaves: &Leaves, element: &Element) -> Values {
    let columns = leaves.attributes().iter().enumerate();
    let named = columns.filter(|(place, _)| element.0 & 1 << place != 0);
    named
        .zip(&element.1)
        .map(|((_, attribute), id)| {
            (attribute.name().to_owned(), attribute.values().value(*id).to_owned())
        })
        .collect()
}
