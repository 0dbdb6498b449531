//! Sums of probabilities from a count outward, for any distribution.

/// A distribution of counts as seen from one count, in one direction.
pub(crate) struct Outward<'a> {
    /// How many counts there are in this direction; may be infinite.
    pub(crate) length: f64,
    /// ln(P(`s` steps away) / P(the count itself)), also between whole steps.
    pub(crate) ln_relative: &'a dyn Fn(f64) -> f64,
    /// P(`s` + 1 steps away) / P(`s` steps away).
    pub(crate) ratio: &'a dyn Fn(f64) -> f64,
}

/// How many probabilities are added one by one at each end. Between them they are smooth enough to be integrated.
const EACH: u32 = 128;
/// What is smaller than this part of the sum does not change it.
const NEGLIGIBLE: f64 = 1e-17;

/// Larger than the ratio of any two probabilities; a few of them add up to a finite number.
const LARGE: f64 = 1e300;

/// Probabilities added one by one.
struct Run {
    sum: f64,
    /// The last six of them, the last one last.
    last: [f64; 6],
    /// Whether what follows is negligible.
    is_all: bool,
}

impl Outward<'_> {
    /// The sum of all probabilities in this direction, over that of the count itself, which is not part of it.
    pub(crate) fn sum(&self) -> f64 {
        let each = f64::from(EACH);
        if self.length <= 4.0 * each {
            return run(1.0, 0.0, self.length as u32, |s| (self.ratio)(s)).sum;
        }
        let near = run(1.0, 0.0, EACH, |s| (self.ratio)(s));
        if near.is_all {
            return near.sum;
        }
        let mut sum = near.sum + self.integral(|s| s, near.sum) + near.rest_of_integral();
        if self.length.is_finite() {
            let end = self.relative(self.length);
            let far = run(end, end, EACH, |t| {
                1.0 / (self.ratio)(self.length - t - 1.0)
            });
            sum += far.sum;
            if !far.is_all {
                sum += self.integral(|t| self.length - t, sum) + far.rest_of_integral();
            }
        }
        sum
    }

    /// The integral from where the run of an end stops to the middle, in panels that double; `place` turns the distance from
    /// that end into steps. Where the probabilities fade out before the middle, it ends there.
    fn integral(&self, place: impl Fn(f64) -> f64, sum: f64) -> f64 {
        let (mut from, mut integral) = (f64::from(EACH), 0.0);
        let middle = 0.5 * self.length;
        for _ in 0..1_000 {
            let to = (2.0 * from).min(middle);
            let panel = panel(from, to, |distance| self.relative(place(distance)));
            integral += panel;
            let is_fading = self.relative(place(to)) <= self.relative(place(from));
            if to >= middle || is_fading && panel <= NEGLIGIBLE * (sum + integral) {
                break;
            }
            from = to;
        }
        integral
    }

    fn relative(&self, s: f64) -> f64 {
        // Not so large that a sum of them is infinite.
        libm::exp((self.ln_relative)(s).min(600.0))
    }
}

/// Adds up to `most` probabilities after `first` to `sum`.
fn run(first: f64, sum: f64, most: u32, ratio: impl Fn(f64) -> f64) -> Run {
    let (mut term, mut sum, mut last) = (first, sum, [first; 6]);
    for step in 0..most {
        // Counts beyond 2^53 are not all told apart: the next one may be the same.
        let factor = Some(ratio(f64::from(step)))
            .filter(|factor| factor.is_finite())
            .unwrap_or(1.0);
        term = (term * factor).min(LARGE);
        sum += term;
        last.rotate_left(1);
        last[5] = term;
        if factor < 1.0 && term * factor <= NEGLIGIBLE * (1.0 - factor) * sum {
            return Run {
                sum,
                last,
                is_all: true,
            };
        }
    }
    Run {
        sum,
        last,
        is_all: false,
    }
}

impl Run {
    /// The difference between the sum of what follows and its integral, from the end of this run on: the formula of Gregory.
    fn rest_of_integral(&self) -> f64 {
        let mut differences = self.last;
        let mut rest = -0.5 * self.last[5];
        for (order, weight) in GREGORY.iter().enumerate() {
            for at in (order + 1..6).rev() {
                differences[at] -= differences[at - 1];
            }
            rest -= weight * differences[5];
        }
        rest
    }
}

const GREGORY: [f64; 5] = [
    1.0 / 12.0,
    1.0 / 24.0,
    19.0 / 720.0,
    3.0 / 160.0,
    863.0 / 60_480.0,
];

/// The integral by the 16 points of Gauss and Legendre.
fn panel(from: f64, to: f64, value: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    let pairs = POINTS
        .iter()
        .map(|(x, weight)| weight * (value(middle - half * x) + value(middle + half * x)));
    half * pairs.sum::<f64>()
}

/// The positive points on −1 to 1, with their weights.
const POINTS: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_58),
    (0.458_016_777_657_227_37, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_8, 0.149_595_988_816_576_74),
    (0.755_404_408_355_003, 0.124_628_971_255_533_88),
    (0.865_631_202_387_831_8, 0.095_158_511_682_492_79),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_894),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
];
