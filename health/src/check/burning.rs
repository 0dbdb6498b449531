//! Judges how fast an error budget is used up.

use tallyfold::text::Fraction;

use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::columns::slots::{Sum, Sums};
use crate::rules::judging::{Judging, Normal, Odd, Sink};
use crate::rules::rule::Burn;
use crate::stats::tails::binomial;

/// The natural logarithm of one in ten thousand. A burn rate fires only if so many errors would be less probable than
/// this where the budget is just kept.
const LN_P: f64 = -9.210_340_371_976_182;

/// Judges some windows of a group. A window is bad by the first burn rate that is reached over both its longer and its
/// shorter time.
pub(super) fn burning(
    judging: &Judging<'_>,
    budget: Fraction,
    burns: &[Burn],
    columns: Columns<'_>,
    sink: &mut Sink,
) {
    let sums = Sums::new(columns.parts, columns.wholes, &judging.slots.known);
    for slot in judging.known() {
        let attempts = |burn: &Burn| sums.before(slot + 1, judging.slots.in_seconds(burn.long));
        if burns
            .iter()
            .all(|burn| attempts(burn).whole < judging.rule.least)
        {
            continue;
        }
        sink.judged(slot);
        let burn = burns
            .iter()
            .find(|burn| is_burning(judging, budget, burn, &sums, slot));
        if let Some(burn) = burn {
            sink.take(odd(judging, budget, burn, attempts(burn), slot));
        }
    }
}

fn is_burning(
    judging: &Judging<'_>,
    budget: Fraction,
    burn: &Burn,
    sums: &Sums,
    slot: usize,
) -> bool {
    let (long, short) = (
        judging.slots.in_seconds(burn.long),
        judging.slots.in_seconds(burn.short),
    );
    let [over_long, over_short] = [long, short].map(|length| sums.before(slot + 1, length));
    let is_fast = |sum: Sum| budget.times_is_below(burn.rate, sum.part, sum.whole);
    let is_sure = |sum: Sum| binomial(sum.part, sum.whole, budget.as_f64()).high <= LN_P;
    over_long.known * 2 >= long
        && over_long.whole >= judging.rule.least
        && [over_long, over_short]
            .into_iter()
            .all(|sum| is_fast(sum) && is_sure(sum))
}

fn odd(judging: &Judging<'_>, budget: Fraction, burn: &Burn, sum: Sum, slot: usize) -> Odd {
    let (long, short) = (
        judging.slots.in_seconds(burn.long).min(slot + 1),
        judging.slots.in_seconds(burn.short).min(slot + 1),
    );
    Odd {
        group: 0,
        slot: slot as u32,
        slots: long as u32,
        run: short as u32,
        fires: true,
        at_once: true,
        severity: burn.severity,
        observed: Amount {
            part: sum.part,
            whole: Some(sum.whole),
        },
        expected: budget.as_f64() * sum.whole as f64,
        ln_p: Some(binomial(sum.part, sum.whole, budget.as_f64()).high),
        normal: Normal::Range(0, budget.floor_of(sum.whole)),
    }
}
