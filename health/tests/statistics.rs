//! Properties of the statistics. For example, they return a number for every input.

use proptest::prelude::*;
use tallyfold_health::{
    Level, Tails, beta_binomial, binomial, deviance, discovery_limit, judge, ln_silence,
    negative_binomial, normal_ln_tail, poisson,
};

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        -1e3..1e9,
        0.0..1.0,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(0.0)
    ]
}

fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..5_u64, 0..100_000_u64, Just(u64::MAX)]
}

fn all_tails(x: u64, n: u64, mean: f64, dispersion: f64) -> [Tails; 4] {
    [
        poisson(x, mean),
        negative_binomial(x, mean, dispersion),
        binomial(x, n, mean),
        beta_binomial(x, n, mean, dispersion),
    ]
}

/// ln(e^a + e^b).
fn ln_sum(a: f64, b: f64) -> f64 {
    a.max(b) + libm::log1p(libm::exp(-(a - b).abs()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tails_are_finite_for_every_input(x in any_count(), n in any_count(), mean in any_float(), dispersion in any_float()) {
        for tails in all_tails(x, n, mean, dispersion) {
            prop_assert!(tails.low.is_finite() && tails.high.is_finite() && tails.low <= 0.0 && tails.high <= 0.0, "{tails:?}");
            // Both tails include x, so the sum of their probabilities is at least 1.
            prop_assert!(ln_sum(tails.low, tails.high) > -1e-6, "{tails:?}");
        }
    }

    #[test]
    fn other_statistics_are_numbers_for_every_input(a in any_float(), b in any_float(), part in any_count(), whole in any_count()) {
        prop_assert!(deviance(a, b).is_finite() && deviance(a, b) >= 0.0);
        prop_assert!(normal_ln_tail(a).is_finite() && normal_ln_tail(a) <= 0.0);
        prop_assert!(!discovery_limit(&[a, b, f64::NAN], 0, b).is_nan());
        let level = Level { expected: a, dispersion: b };
        prop_assert!(ln_silence(&level) <= 0.0 && ln_silence(&level).is_finite());
        for whole in [None, Some(whole)] {
            prop_assert!(judge(part, whole, &level).low.is_finite());
        }
    }

    /// P(X <= x) + P(X >= x + 1) = 1, and a tail that begins further out is less probable.
    #[test]
    fn tails_complete_each_other(x in 0..3_000_u64, mean in 0.01..2_000.0, dispersion in 1.0..50.0) {
        let (n, p) = (3_001, mean / 2_500.0);
        let mut pairs: Vec<[Tails; 2]> = vec![[poisson(x, mean), poisson(x + 1, mean)]];
        pairs.push([negative_binomial(x, mean, dispersion), negative_binomial(x + 1, mean, dispersion)]);
        pairs.push([binomial(x, n, p), binomial(x + 1, n, p)]);
        pairs.push([beta_binomial(x, n, p, dispersion), beta_binomial(x + 1, n, p, dispersion)]);
        for [this, next] in pairs {
            prop_assert!(ln_sum(this.low, next.high).abs() < 1e-10, "{this:?} {next:?}");
            prop_assert!(this.low <= next.low && this.high >= next.high, "{this:?} {next:?}");
        }
    }

    /// Without overdispersion, a negative binomial count is Poisson, and a beta-binomial count is binomial.
    #[test]
    fn distributions_converge_as_overdispersion_vanishes(x in 0..500_u64, mean in 0.1..300.0) {
        let near = |a: Tails, b: Tails| (a.low - b.low).abs() < 1e-5 * (1.0 - b.low) && (a.high - b.high).abs() < 1e-5 * (1.0 - b.high);
        prop_assert!(near(negative_binomial(x, mean, 1.0 + 1e-10), poisson(x, mean)));
        prop_assert!(near(beta_binomial(x, 600, mean / 600.0, 1.0 + 1e-10), binomial(x, 600, mean / 600.0)));
        prop_assert!(near(binomial(x, 1 << 52, mean / (1_u64 << 52) as f64), poisson(x, mean)));
    }

    /// Twice the events with twice the expectation have twice the deviance.
    #[test]
    fn deviance_is_proportional_to_the_counts(x in 0.0..1e9, expected in 1e-3..1e9) {
        let twice = deviance(2.0 * x, 2.0 * expected);
        prop_assert!((twice - 2.0 * deviance(x, expected)).abs() <= 1e-12 * twice.max(1e-9));
    }

    #[test]
    fn the_order_of_tests_does_not_matter(mut ln_p in prop::collection::vec(-30.0..0.0, 1..50), rate in 0.001..0.5) {
        let limit = |ln_p: &[f64]| discovery_limit(ln_p, ln_p.len() + 20, rate);
        let before = limit(&ln_p);
        ln_p.reverse();
        prop_assert_eq!(limit(&ln_p), before);
    }
}
