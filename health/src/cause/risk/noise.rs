//! Estimates how far leaves without a cause deviate.

use std::f64::consts::TAU;

use super::points::Points;

/// The approximate number of leaves that are used on each side. More leaves don't improve the estimate.
const MOST: usize = 8192;
/// The minimum number of leaves in a class of sizes if there are several classes, and the maximum number of classes.
const CLASS: usize = 30;
const CLASSES: usize = 12;
/// The minimum variance of the deviation of large leaves: a standard deviation of one percent.
const LEAST: f64 = 1e-4;
/// If there are fewer leaves than this, some assumed leaves are added. Without them, noise would explain every change of one
/// or two leaves.
const FEW: usize = 6;
/// The number of assumed leaves, and how much they vary: their relative variance, and their variance of counts.
const ASSUMED: usize = 3;
const USUAL: [f64; 2] = [0.02, 2.0];
/// Half of a normal distribution is within this number of standard deviations.
const QUARTILE: f64 = 0.6745;
/// The variance that rounding adds to a leaf of size 1. Both counts are whole numbers, so a leaf of one event isn't evidence.
const ROUNDING: f64 = 0.25;
/// The assumed number of stray leaves if there is none. Stray leaves deviate further than the noise. The number is far below one,
/// because noise without a stray leaf probably has light tails.
const UNSEEN: f64 = 0.005;
/// Two variances are alike if their ratio is below 1 plus this number divided by the square root of the number of leaves.
/// This margin is three standard errors.
const UNLIKE: f64 = 6.0;
/// The density of stray leaves, which may deviate by any amount.
const STRAY_DENSITY: f64 = 0.5;

/// Except for a share of stray leaves, deviations are normal around 0 with a variance of `relative + counting / size`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// The variance that leaves of all sizes have.
    pub(crate) relative: f64,
    /// The variance of counts: about 2 where events arrive independently, and more where they arrive in batches.
    counting: f64,
    stray: f64,
    /// The median size of the leaves.
    size: f64,
}

/// How far a leaf deviates in either direction, and its size.
type Distance = (f64, f64);

impl Noise {
    /// Estimates the noise of leaves. Some of them have causes. Causes mostly change counts in one direction, but noise
    /// changes them in both. So if leaves deviate further to one side, the noise is estimated from the other side.
    pub(crate) fn of(points: &Points) -> Self {
        let step = points.len().div_ceil(2 * MOST).max(1);
        let mut sides = [Vec::new(), Vec::new()];
        let mut unmoved = 0_usize;
        for leaf in (0..points.len()).step_by(step) {
            let deviation = points.deviations[leaf];
            let is_above = if deviation == 0.0 {
                unmoved += 1;
                unmoved.is_multiple_of(2)
            } else {
                deviation > 0.0
            };
            sides[usize::from(is_above)].push((libm::fabs(deviation), points.sizes[leaf]));
        }
        let fewest = sides[0].len().min(sides[1].len());
        let alike = 1.0 + UNLIKE / libm::sqrt(1.0 + fewest as f64);
        let noises = sides.clone().map(Self::of_side);
        let [below, above] = [&noises[0], &noises[1]].map(Self::spread);
        let [one, other] = noises;
        let mut noise = if below * alike < above {
            one
        } else if above * alike < below {
            other
        } else {
            Self::of_side(sides.concat())
        };
        if points.len() < FEW {
            let (relative, counting) = variances_of_few(sides.concat().into_iter());
            if relative < noise.relative {
                (noise.relative, noise.counting) = (relative, counting);
            }
        }
        noise
    }

    fn of_side(mut side: Vec<Distance>) -> Self {
        side.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0)));
        let (relative, counting) = variances(&side);
        let mut noise = Self { relative, counting, stray: 0.01, size: 1.0 };
        noise.find_stray(&side);
        noise.size = side.get(side.len() / 2).map_or(1.0, |(_, size)| *size);
        noise
    }

    /// Estimates the share of stray leaves by expectation maximization.
    fn find_stray(&mut self, side: &[Distance]) {
        let regular: Vec<f64> = side
            .iter()
            .map(|(distance, size)| libm::exp(self.log_regular(*distance, *size)))
            .collect();
        // The assumed leaves count as leaves that aren't stray.
        let leaves = match side.len() < FEW {
            true => side.len() + ASSUMED,
            false => side.len(),
        };
        for _ in 0..20 {
            let stray = self.stray * STRAY_DENSITY;
            let strays: f64 =
                regular.iter().map(|regular| stray / (stray + (1.0 - self.stray) * regular)).sum();
            self.stray = (strays + UNSEEN) / (leaves as f64 + 2.0 * UNSEEN);
        }
    }

    /// Returns the approximate variance of a leaf of median size, which may be a stray one.
    fn spread(&self) -> f64 {
        self.variance(self.size) + self.stray
    }

    /// Returns the variance of the deviation of a leaf of this size.
    pub(crate) fn variance(&self, size: f64) -> f64 {
        self.relative + self.of_counting(size)
    }

    /// Returns the part of the variance that grows as leaves get smaller.
    pub(crate) fn of_counting(&self, size: f64) -> f64 {
        self.counting / size + ROUNDING / (size * size)
    }

    /// Returns the probability that the sum of all leaves deviates at least as far as it does, without a cause.
    pub(crate) fn of_all(&self, points: &Points) -> f64 {
        let leaves = points.deviations.iter().zip(&points.sizes);
        let [change, variance] = leaves.fold([0.0; 2], |[change, variance], (deviation, size)| {
            [change + deviation * size, variance + self.variance(*size) * size * size]
        });
        if variance <= 0.0 {
            return 1.0;
        }
        libm::erfc(libm::fabs(change) / libm::sqrt(2.0 * variance))
    }

    fn log_regular(&self, distance: f64, size: f64) -> f64 {
        let variance = self.variance(size);
        -0.5 * (distance * distance / variance + libm::log(TAU * variance))
    }

    /// Returns the log density of a leaf's deviation without a cause.
    pub(crate) fn log_density(&self, deviation: f64, size: f64) -> f64 {
        let regular = libm::log1p(-self.stray) + self.log_regular(deviation, size);
        let stray = libm::log(self.stray * STRAY_DENSITY);
        let [low, high] = if regular < stray { [regular, stray] } else { [stray, regular] };
        // A density that is 10^13 times smaller than the other has no effect.
        if high - low > 30.0 { high } else { high + libm::log1p(libm::exp(low - high)) }
    }
}

/// Estimates the relative variance of few leaves. It is the median over these leaves and the assumed leaves. Few leaves don't
/// show their variance of counts, so the variance of independent events is assumed.
fn variances_of_few(side: impl Iterator<Item = Distance>) -> (f64, f64) {
    let of_leaf = |(distance, size): Distance| {
        let deviation = distance / QUARTILE;
        (deviation * deviation - USUAL[1] / size).max(LEAST)
    };
    let mut all: Vec<f64> = side.map(of_leaf).collect();
    all.extend([USUAL[0]; ASSUMED]);
    all.sort_unstable_by(f64::total_cmp);
    (all[all.len() / 2], USUAL[1])
}

/// Estimates the two parts of the variance by weighted least squares over classes of sizes. `side` is sorted by size.
fn variances(side: &[Distance]) -> (f64, f64) {
    if side.is_empty() {
        return (LEAST, 2.0);
    }
    let classes = (side.len() / CLASS).clamp(1, CLASSES);
    let class = |number: usize| {
        let bounds = [number, number + 1].map(|bound| bound * side.len() / classes);
        Class::of(&side[bounds[0]..bounds[1]])
    };
    let classes: Vec<Class> = (0..classes).map(class).collect();
    let all: f64 = classes.iter().map(|class| class.leaves).sum();
    let mean = classes.iter().map(|class| class.variance * class.leaves).sum::<f64>();
    let (mut relative, mut counting) = (mean / all, 0.0);
    for _ in 0..8 {
        (relative, counting) = line(&classes, relative, counting);
    }
    (relative.max(LEAST), counting)
}

/// Leaves of about one size.
struct Class {
    leaves: f64,
    /// The mean of 1 / size.
    inverse: f64,
    /// The variance of their deviation, from quantiles.
    variance: f64,
}

impl Class {
    fn of(part: &[Distance]) -> Self {
        let leaves = part.len() as f64;
        let mut distances: Vec<f64> = part.iter().map(|(distance, _)| *distance).collect();
        distances.sort_unstable_by(f64::total_cmp);
        let quantile = |share: f64| {
            let place = (leaves * share) as usize;
            distances.get(place).or(distances.last()).copied()
        };
        // A share of 0.6827 of a normal distribution is within one standard deviation.
        let half = quantile(0.5).unwrap_or_default() / QUARTILE;
        let deviation = half.max(quantile(0.6827).unwrap_or_default());
        Self {
            leaves,
            inverse: part.iter().map(|(_, size)| 1.0 / size).sum::<f64>() / leaves,
            variance: deviation * deviation,
        }
    }
}

/// Does one step of the fit of `variance = relative + counting * inverse`, where neither term is negative. The error of a
/// variance is proportional to the variance, so each class has a weight of one over the square of its fitted value.
fn line(classes: &[Class], relative: f64, counting: f64) -> (f64, f64) {
    let mut sums = [0.0; 5];
    for class in classes {
        let fit = (relative + counting * class.inverse).max(1e-8);
        let weight = class.leaves / (fit * fit);
        let (x, y) = (class.inverse, class.variance);
        for (sum, term) in sums.iter_mut().zip([1.0, x, y, x * x, x * y]) {
            *sum += weight * term;
        }
    }
    let [one, x, y, xx, xy] = sums;
    let determinant = one * xx - x * x;
    if determinant <= 1e-9 * one * xx {
        return (y / one, 0.0);
    }
    let counting = (one * xy - x * y) / determinant;
    let relative = (y * xx - x * xy) / determinant;
    if counting < 0.0 {
        (y / one, 0.0)
    } else if relative < 0.0 {
        (0.0, xy / xx)
    } else {
        (relative, counting)
    }
}
