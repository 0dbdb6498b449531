//! The search: the combination with the most evidence, then the next one among the other leaves, and so on.

use std::collections::BTreeMap;

use super::cube::{Cuboid, cube};
use super::evidence::{Cell, Evidence, Fit, Fitter};
use super::noise::Noise;
use super::points::{Points, bulk};
use crate::cause::leaves::{Element, Leaves, Suspect, Suspects};

/// How many combinations of each cuboid are examined leaf by leaf, in each round.
const CANDIDATES: usize = 2;
/// The minimum deviation of a cause. A cause must also deviate at least as much as the noise of a single large leaf.
const LEAST_DEVIATION: f64 = 0.05;
/// The mean deviation of a candidate's leaves must reach this fraction of the minimum deviation. Some leaves may not
/// follow the cause, so the mean may be lower than the minimum.
const MEAN: f64 = 0.4;
/// Before the search decides whether everything has changed, it looks for at least this many causes.
const ENOUGH: usize = 16;
/// If at least this share of all leaves has no cause and does not deviate, not everything has changed.
const REST: f64 = 0.25;
/// The largest deviation of everything: a fall or rise by a factor of a thousand.
const MOST_MOVED: f64 = 0.999;
/// The negative logarithm of the prior probability of a cause. A smaller value would find causes in noise more often.
const UNLIKELY: f64 = 3.0;

/// Finds the combinations that explain how a volume changed.
///
/// The expected count of each leaf is its count before. A change of everything is "global" and not a cause. If
/// everything has changed, causes are the combinations that changed differently.
pub(crate) fn causes_of_volume(leaves: &Leaves, most: usize, others: usize) -> Suspects {
    let points = Points::of(leaves);
    let mut suspects = if points.len() == 0 || points.ids.is_empty() {
        Suspects::default()
    } else {
        let unmoved = Search::of(&points);
        Suspects {
            probability: unmoved.noise.of_all(&points),
            ..suspects_of(&unmoved, most.max(1), others)
        }
    };
    suspects.is_global = suspects.causes.is_empty();
    suspects.causes.truncate(most);
    suspects
}

fn suspects_of(unmoved: &Search<'_>, most: usize, others: usize) -> Suspects {
    let points = unmoved.points;
    let moved = bulk(points, &vec![true; points.len()]);
    if libm::fabs(moved) < unmoved.least_bulk() {
        return unmoved.run(most, others).suspects;
    }
    // Most leaves deviate. Either causes explain that and enough other leaves don't deviate, or everything has changed.
    let mut outcome = unmoved.run(most.max(ENOUGH), others);
    if !unmoved.is_rest_unmoved(&outcome) {
        let moved = after_move(points, ratio(moved), most.max(ENOUGH), others);
        if moved.log_likelihood - UNLIKELY > outcome.log_likelihood {
            outcome = moved;
        }
    }
    outcome.suspects.causes.truncate(most);
    outcome.suspects
}

/// Searches again, with all expected counts multiplied by `ratio_of_all`. Causes have influenced this ratio, so a
/// second search takes the ratio from the leaves without a cause. Returns the better result.
fn after_move(points: &Points, ratio_of_all: f64, most: usize, others: usize) -> SearchResult {
    let first = points.expecting(ratio_of_all);
    let outcome = Search::of(&first).run(most, others);
    let rest = ratio(bulk(&first, &outcome.free));
    let second = points.expecting(ratio_of_all * rest);
    let better = Search::of(&second).run(most, others);
    if better.log_likelihood > outcome.log_likelihood { better } else { outcome }
}

/// Converts a deviation into the ratio of the current to the expected count.
fn ratio(deviation: f64) -> f64 {
    let deviation = deviation.clamp(-MOST_MOVED, MOST_MOVED);
    if deviation < 0.0 { 1.0 + deviation } else { 1.0 / (1.0 - deviation) }
}

/// A search for the causes of deviations.
struct Search<'a> {
    points: &'a Points,
    noise: Noise,
    terms: Vec<Cell>,
    /// The log density of each leaf without a cause.
    densities: Vec<f64>,
}

struct SearchResult {
    suspects: Suspects,
    /// The log likelihood of all current counts, minus the prices of the causes.
    log_likelihood: f64,
    /// For each leaf, whether it belongs to no cause so far.
    free: Vec<bool>,
}

/// A combination that could be a cause.
#[derive(Clone, Copy)]
struct Candidate {
    element: Element,
    /// The position of its cuboid.
    cuboid: usize,
    score: f64,
}

/// Fits of cells by the positions of cuboid and cell, each with the number of leaves that were fitted. Leaves are only
/// ever removed, so a cell with the same number of leaves has the same leaves.
type Fits = BTreeMap<(usize, usize), (u32, Fit)>;

impl<'a> Search<'a> {
    fn of(points: &'a Points) -> Self {
        let noise = Noise::of(points);
        let leaves = points.deviations.iter().zip(&points.sizes);
        let (terms, densities) =
            leaves.map(|(deviation, size)| Cell::of(*deviation, *size, &noise)).unzip();
        Self { points, noise, terms, densities }
    }

    fn fitter(&self) -> Fitter<'_> {
        Fitter { points: self.points, noise: &self.noise, densities: &self.densities }
    }

    fn least_deviation(&self) -> f64 {
        libm::sqrt(self.noise.relative).max(LEAST_DEVIATION)
    }

    /// Returns the minimum deviation of the bulk of the leaves if everything has changed.
    fn least_bulk(&self) -> f64 {
        0.5 * self.least_deviation()
    }

    /// Returns whether enough leaves have no cause, and most of these leaves don't deviate.
    fn is_rest_unmoved(&self, outcome: &SearchResult) -> bool {
        let rest = outcome.free.iter().filter(|free| **free).count();
        rest as f64 >= REST * self.points.len() as f64
            && libm::fabs(bulk(self.points, &outcome.free)) < self.least_bulk()
    }

    /// Finds at most `most` causes, best first.
    fn run(&self, most: usize, others: usize) -> SearchResult {
        let evidence = Evidence::new(self.points.len());
        let mut cuboids = cube(self.points, &self.terms);
        let mut named = vec![false; cuboids.len()];
        let mut fits = Fits::new();
        let mut outcome = SearchResult {
            suspects: Suspects::default(),
            log_likelihood: self.densities.iter().sum::<f64>() + self.points.log_scale(),
            free: vec![true; self.points.len()],
        };
        while outcome.suspects.causes.len() < most {
            for cuboid in &mut cuboids {
                cuboid.judge(&evidence, MEAN * self.least_deviation());
            }
            let ranked = self.ranked(&cuboids, &named, &outcome.free, &mut fits);
            if outcome.suspects.others.is_empty() {
                outcome.suspects.others = ranked.iter().map(Candidate::suspect).collect();
            }
            let Some(best) = ranked.first().filter(|best| best.score > 0.0) else { break };
            outcome.log_likelihood += best.score;
            outcome.suspects.causes.push(best.suspect());
            named[best.cuboid] = true;
            let taken = self.leaves_of(best.element, &outcome.free);
            for leaf in &taken {
                outcome.free[*leaf as usize] = false;
            }
            for cuboid in &mut cuboids {
                cuboid.remove(&taken, self.points, &self.terms);
            }
        }
        outcome.suspects.keep_others(others);
        outcome
    }

    /// Returns the candidates of all cuboids, best first.
    fn ranked(
        &self,
        cuboids: &[Cuboid],
        named: &[bool],
        free: &[bool],
        fits: &mut Fits,
    ) -> Vec<Candidate> {
        let mut ranked = Vec::new();
        for (place, cuboid) in cuboids.iter().enumerate() {
            let price = self.price(cuboid, named[place]);
            for cell in cuboid.best(CANDIDATES) {
                let element = self.element(cuboid, cell);
                let leaves = cuboid.cells[cell].leaves;
                let known = fits.get(&(place, cell)).filter(|known| known.0 == leaves);
                let fit = known.map_or_else(
                    || self.fitter().fit(&self.leaves_of(element, free)),
                    |known| known.1,
                );
                fits.insert((place, cell), (leaves, fit));
                if libm::fabs(fit.deviation) >= self.least_deviation() {
                    ranked.push(Candidate { element, cuboid: place, score: fit.gain - price });
                }
            }
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.element.cmp(&b.element)));
        ranked
    }

    /// Returns the price of naming a combination: [`UNLIKELY`] plus the log of the number of alternatives. The alternatives
    /// differ in the number of attributes, the attributes, their values, and the direction of the change. A further
    /// combination of the same attributes is cheaper.
    fn price(&self, cuboid: &Cuboid, is_named: bool) -> f64 {
        let attributes = self.points.ids.len() as u32;
        let two = libm::log(2.0);
        let which = if is_named {
            two
        } else {
            let layer = cuboid.attributes.count_ones();
            libm::log(f64::from(attributes) * combinations(attributes, layer))
        };
        UNLIKELY + which + cuboid.log_cells + two
    }

    /// Returns the combination of a cell.
    fn element(&self, cuboid: &Cuboid, cell: usize) -> Element {
        let leaf = cuboid.firsts[cell] as usize;
        Element::of_leaf(cuboid.attributes, |place| self.points.ids[place][leaf])
    }

    /// Returns the free leaves of a combination.
    fn leaves_of(&self, element: Element, free: &[bool]) -> Vec<u32> {
        let all = self.points.with(element.attributes, &element.values);
        all.filter(|leaf| free[*leaf as usize]).collect()
    }
}

impl Candidate {
    fn suspect(&self) -> Suspect {
        Suspect { element: self.element, score: self.score }
    }
}

/// Returns the number of ways to choose `some` of `all`.
fn combinations(all: u32, some: u32) -> f64 {
    (0..some).fold(1.0, |ways, chosen| ways * f64::from(all - chosen) / f64::from(chosen + 1))
}
