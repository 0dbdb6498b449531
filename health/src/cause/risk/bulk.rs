//! How far most leaves deviate.

use super::points::Points;

/// More leaves than these don't make the estimate better.
const MOST: usize = 16_384;
/// The variance that is assumed of the deviation of large leaves, and of counts of events.
const RELATIVE: f64 = 0.01;
const COUNTING: f64 = 2.0;

/// The mean deviation of the half of the leaves whose deviations are closest together; 0 without leaves. Larger leaves
/// weigh more.
pub(crate) fn bulk(points: &Points, free: &[bool]) -> f64 {
    let leaves: Vec<usize> = (0..points.len()).filter(|leaf| free[*leaf]).collect();
    let step = leaves.len().div_ceil(MOST).max(1);
    let sampled = leaves.iter().step_by(step);
    let mut sorted: Vec<(f64, f64)> = sampled
        .map(|leaf| {
            let weight = 1.0 / (RELATIVE + COUNTING / points.sizes[*leaf]);
            (points.deviations[*leaf], weight)
        })
        .collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let half = 0.5 * sorted.iter().map(|(_, weight)| weight).sum::<f64>();
    let (mut width, mut mean) = (f64::INFINITY, 0.0);
    // The leaves from `first` on have at least half of the weight, and would not without the last one.
    let (mut first, mut weights, mut sum) = (0, 0.0, 0.0);
    for (deviation, weight) in &sorted {
        weights += weight;
        sum += weight * deviation;
        while weights - sorted[first].1 >= half {
            weights -= sorted[first].1;
            sum -= sorted[first].1 * sorted[first].0;
            first += 1;
        }
        let own = deviation - sorted[first].0;
        if weights >= half && own < width {
            (width, mean) = (own, sum / weights);
        }
    }
    mean
}
