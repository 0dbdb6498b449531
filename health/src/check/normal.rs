//! Which counts would be normal.

use super::odd::Normal;
use crate::baseline::basis::Basis;
use crate::baseline::level::Level;
use crate::cause::explanation::Amount;
use crate::detection::judge::judge;

/// The fewest and the most events of the part that would be normal.
pub(crate) fn normal_range(normal: &Normal, observed: Amount) -> (u64, u64) {
    match normal {
        Normal::Range(low, high) => (*low, *high),
        Normal::Likely {
            expected,
            dispersion,
            ln_p,
        } => {
            let level = Level {
                expected: *expected,
                dispersion: *dispersion,
                basis: Basis::Season,
                used: 0,
            };
            likely(&level, *ln_p, observed.whole)
        }
    }
}

/// The counts that have at least this probability, on either side of what is expected.
fn likely(level: &Level, ln_p: f64, whole: Option<u64>) -> (u64, u64) {
    let most = whole.unwrap_or(u64::MAX / 2);
    let middle = whole.map_or(level.expected, |whole| level.expected * whole as f64);
    // The conversion saturates.
    let middle = (middle as u64).min(most);
    let is_low = |count: u64| judge(count, whole, level).low < ln_p;
    let is_high = |count: u64| judge(count, whole, level).high < ln_p;
    let low = first(0, middle, |count| !is_low(count));
    let mut width = 1;
    while width < most - middle && !is_high(middle + width) {
        width = width.saturating_mul(2);
    }
    let end = middle.saturating_add(width).min(most);
    let beyond = first(middle, end.saturating_add(1), |count| {
        count > end || is_high(count)
    });
    (low, beyond.saturating_sub(1).max(low))
}

/// The first number of a range for which `holds` is true, if it is true for all later ones too; the end if it never is.
fn first(mut start: u64, mut end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while start < end {
        let middle = start + (end - start) / 2;
        match holds(middle) {
            true => end = middle,
            false => start = middle + 1,
        }
    }
    start
}
