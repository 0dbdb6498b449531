//! All combinations of values, each with the sums over its leaves.

use super::evidence::{Cell, Evidence};
use super::points::{Column, Points, keys, numbered};

/// The maximum work of the search in steps; a step is one leaf in one cuboid. With fewer than 24,000 leaves, the
/// search stays below this maximum even with eight attributes. With a million leaves, fine combinations may be left out,
/// depending on how many of the possible combinations occur.
const WORK: usize = 50_000_000;
/// Sorting the combinations of a cuboid multiplies its number of steps by this number.
const SORTING: usize = 8;

/// All combinations of the values of some attributes, each with a cell.
pub(crate) struct Cuboid {
    /// The attributes, as bits.
    pub(crate) attributes: u8,
    index: Index,
    pub(crate) cells: Vec<Cell>,
    /// For each cell, its first leaf.
    pub(crate) firsts: Vec<u32>,
    /// The evidence that each cell is a cause; `NEG_INFINITY` if it can't be one, NaN if it is not computed yet.
    pub(crate) scores: Vec<f64>,
    /// The log of the number of cells that have leaves.
    pub(crate) log_cells: f64,
}

/// Finds the cell of a leaf.
enum Index {
    /// A cell for each possible combination. Each pair is an attribute, and the factor of its value in the position of a cell.
    Table(Vec<(usize, usize)>),
    /// A cell for each combination that occurs: for each leaf, the position of its cell.
    Listed(Vec<u32>),
    /// A cell for each leaf.
    Leaves,
}

impl Index {
    fn cell(&self, leaf: usize, points: &Points) -> usize {
        match self {
            Self::Table(strides) => strides
                .iter()
                .map(|(place, stride)| points.ids[*place][leaf] as usize * stride)
                .sum(),
            Self::Listed(cells) => cells[leaf] as usize,
            Self::Leaves => leaf,
        }
    }
}

/// Computes the cuboids, coarser ones first.
pub(crate) fn cube(points: &Points, terms: &[Cell]) -> Vec<Cuboid> {
    let all = (1_u16 << points.ids.len()) - 1;
    let mut masks: Vec<u8> = (1..=all).map(|mask| mask as u8).collect();
    masks.sort_by_key(|mask| (mask.count_ones(), *mask));
    let mut work = WORK;
    // The cuboids with more than half as many combinations as leaves, and the cuboids that take too much work. A cuboid that
    // is finer than one of them is skipped if its combinations would have to be sorted.
    let mut thin: Vec<u8> = Vec::new();
    let mut cuboids = Vec::new();
    for mask in masks {
        let is_finest = u16::from(mask) == all;
        let is_thin = thin.iter().any(|coarser| coarser & mask == *coarser);
        let Some((index, cells, cost)) = index(mask, is_finest, is_thin, points) else {
            continue;
        };
        if cost > work && !is_finest {
            thin.push(mask);
            continue;
        }
        work = work.saturating_sub(cost);
        let cuboid = Cuboid::of(mask, index, cells, points, terms);
        if cuboid.log_cells > libm::log(0.5 * points.len() as f64) {
            thin.push(mask);
        }
        cuboids.push(cuboid);
    }
    cuboids
}

/// Returns the index of a cuboid, the number of its cells, and the work in steps. Returns `None` if the cuboid is skipped.
fn index(
    mask: u8,
    is_finest: bool,
    is_thin: bool,
    points: &Points,
) -> Option<(Index, usize, usize)> {
    let named = || (0..points.ids.len()).filter(move |place| mask & 1 << place != 0);
    let most = points.len().saturating_mul(4).saturating_add(1024);
    let room = named().try_fold(1_usize, |room, place| {
        let room = room.checked_mul(usize::try_from(points.values[place]).ok()?)?;
        (room <= most).then_some(room)
    });
    match room {
        _ if is_finest => Some((Index::Leaves, points.len(), points.len())),
        Some(room) => {
            let mut stride = 1;
            let strides = named().map(|place| {
                let own = stride;
                stride *= points.values[place] as usize;
                (place, own)
            });
            Some((Index::Table(strides.collect()), room, points.len()))
        }
        None if is_thin => None,
        None => {
            let columns: Vec<Column<'_>> =
                named().map(|place| (points.ids[place].as_slice(), points.values[place])).collect();
            let (cells, count) = numbered(&keys(&columns, points.len()));
            Some((Index::Listed(cells), count, points.len() * SORTING))
        }
    }
}

impl Cuboid {
    fn of(attributes: u8, index: Index, cells: usize, points: &Points, terms: &[Cell]) -> Self {
        let mut cuboid = Self {
            attributes,
            index,
            cells: vec![Cell::default(); cells],
            firsts: vec![0; cells],
            scores: vec![f64::NAN; cells],
            log_cells: 0.0,
        };
        let mut occupied = 0_u32;
        for (leaf, term) in terms.iter().enumerate() {
            let place = cuboid.index.cell(leaf, points);
            let cell = &mut cuboid.cells[place];
            if cell.leaves == 0 {
                occupied += 1;
                cuboid.firsts[place] = leaf as u32;
            }
            cell.add(term);
        }
        cuboid.log_cells = libm::log(f64::from(occupied.max(1)));
        cuboid
    }

    /// Computes the scores of cells that have none yet, or that have lost leaves since. A cell whose leaves hardly deviate on
    /// average isn't a cause.
    pub(crate) fn judge(&mut self, evidence: &Evidence, least: f64) {
        for (score, cell) in self.scores.iter_mut().zip(&self.cells) {
            if score.is_nan() {
                *score = if libm::fabs(cell.mean()) < least {
                    f64::NEG_INFINITY
                } else {
                    evidence.of(cell)
                };
            }
        }
    }

    /// Removes leaves from their cells.
    pub(crate) fn remove(&mut self, leaves: &[u32], points: &Points, terms: &[Cell]) {
        for leaf in leaves {
            let place = self.index.cell(*leaf as usize, points);
            self.cells[place].subtract(&terms[*leaf as usize]);
            self.scores[place] = f64::NAN;
        }
    }

    /// Returns the cells with the most evidence, at most `most` of them, best first.
    pub(crate) fn best(&self, most: usize) -> Vec<usize> {
        let mut best: Vec<usize> = Vec::with_capacity(most + 1);
        for (place, score) in self.scores.iter().enumerate() {
            let is_better = |other: &usize| *score > self.scores[*other];
            if *score > f64::NEG_INFINITY
                && (best.len() < most || best.last().is_some_and(is_better))
            {
                let rank = best.iter().position(is_better).unwrap_or(best.len());
                best.insert(rank, place);
                best.truncate(most);
            }
        }
        best
    }
}
