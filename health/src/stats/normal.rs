//! The normal distribution.

use libm::{erfc, exp, log, log1p};

use crate::stats::gamma::HALF_LN_TWO_PI;

/// ln P(Z >= z) of a standard normal Z, accurate as far out as z is finite. NaN counts as 0.
#[must_use]
pub fn normal_ln_tail(z: f64) -> f64 {
    let z = if z.is_nan() {
        0.0
    } else {
        z.clamp(-1e150, 1e150)
    };
    if z < -1.0 {
        return log1p(-0.5 * erfc(-z * std::f64::consts::FRAC_1_SQRT_2));
    }
    if z < 5.0 {
        return log(0.5 * erfc(z * std::f64::consts::FRAC_1_SQRT_2));
    }
    // Laplace's continued fraction, from the inside out; at 5 and more, fifty steps are all the digits there are.
    let fraction = (1..=50)
        .rev()
        .fold(z, |inner, step| z + f64::from(step) / inner);
    -0.5 * z * z - HALF_LN_TWO_PI - log(fraction)
}

/// The z with P(Z <= z) = `p` of a standard normal Z, by Wichura's algorithm AS 241 (about 16 digits).
///
/// Outside of 0 to 1 it answers as at the nearest end: ±38.5, the last z that a probability can be told apart from 0 at. NaN
/// counts as one half.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    let q = if p.is_nan() { 0.0 } else { p - 0.5 };
    if q.abs() <= 0.425 {
        return central(q);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return 38.5_f64.copysign(q);
    }
    let r = libm::sqrt(-log(tail));
    let z = if r <= 5.0 {
        middle(r - 1.6)
    } else {
        far(r - 5.0)
    };
    z.copysign(q)
}

fn central(q: f64) -> f64 {
    let r = 0.180_625 - q * q;
    q * ratio(
        r,
        [
            2_509.080_928_730_122_7,
            33_430.575_583_588_13,
            67_265.770_927_008_7,
            45_921.953_931_549_87,
            13_731.693_765_509_46,
            1_971.590_950_306_551_3,
            133.141_667_891_784_38,
            3.387_132_872_796_366_5,
        ],
        [
            5_226.495_278_852_854,
            28_729.085_735_721_943,
            39_307.895_800_092_71,
            21_213.794_301_586_597,
            5_394.196_021_424_751,
            687.187_007_492_057_9,
            42.313_330_701_600_91,
            1.0,
        ],
    )
}

fn middle(r: f64) -> f64 {
    ratio(
        r,
        [
            7.745_450_142_783_414e-4,
            0.022_723_844_989_269_184,
            0.241_780_725_177_450_6,
            1.270_458_252_452_368_4,
            3.647_848_324_763_204_5,
            5.769_497_221_460_691,
            4.630_337_846_156_546,
            1.423_437_110_749_683_5,
        ],
        [
            1.050_750_071_644_416_9e-9,
            5.475_938_084_995_345e-4,
            0.015_198_666_563_616_457,
            0.148_103_976_427_480_08,
            0.689_767_334_985_1,
            1.676_384_830_183_803_8,
            2.053_191_626_637_759,
            1.0,
        ],
    )
}

fn far(r: f64) -> f64 {
    ratio(
        r,
        [
            2.010_334_399_292_288_1e-7,
            2.711_555_568_743_487_6e-5,
            0.001_242_660_947_388_078_4,
            0.026_532_189_526_576_124,
            0.296_560_571_828_504_87,
            1.784_826_539_917_291_3,
            5.463_784_911_164_114,
            6.657_904_643_501_103,
        ],
        [
            2.044_263_103_389_939_8e-15,
            1.421_511_758_316_446e-7,
            1.846_318_317_510_054_8e-5,
            7.868_691_311_456_133e-4,
            0.014_875_361_290_850_615,
            0.136_929_880_922_735_8,
            0.599_832_206_555_887_9,
            1.0,
        ],
    )
}

fn ratio(r: f64, above: [f64; 8], below: [f64; 8]) -> f64 {
    let polynomial = |terms: [f64; 8]| terms.iter().fold(0.0, |sum, term| sum * r + term);
    polynomial(above) / polynomial(below)
}

/// ln(1 − e^`ln_p`) for a logarithm of a probability.
pub(crate) fn ln_complement(ln_p: f64) -> f64 {
    if ln_p > -std::f64::consts::LN_2 {
        return log(-libm::expm1(ln_p.min(0.0)));
    }
    log1p(-exp(ln_p))
}
