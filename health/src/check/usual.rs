//! Judges windows by comparison with earlier weeks.

use super::drifting::{drifting, first_of};
use super::expected::Expected;
use crate::baseline::stream::{Level, Season, Stream};
use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::detection::window::{UNREMARKABLE, is_enough, is_unremarkable, judge};
use crate::rules::judging::{Judging, Normal, Odd, Sink};
use crate::rules::names::Side;
use crate::rules::rule::{Baseline, WEEK};

/// The natural logarithm of 2. A test of both sides doubles the probability.
const LN_2: f64 = std::f64::consts::LN_2;

/// Judges some windows of a group.
pub(super) fn usual(
    judging: &Judging<'_>,
    baseline: &Baseline,
    columns: Columns<'_>,
    sink: &mut Sink,
) {
    let (season, stream) = (season(judging, baseline), stream(judging, columns));
    let ln_rate = libm::log(judging.rate_of(baseline.false_alarms));
    let first = baseline.slow.map(|over| first_of(judging, over));
    let first = first.unwrap_or(judging.range.start);
    let expected = Expected::of(judging, &season, &stream, first..judging.range.end);
    let drifts = match baseline.slow {
        Some(over) => drifting(judging, baseline, &stream, &expected, over),
        None => Vec::new(),
    };
    let mut drifts = drifts.into_iter().peekable();
    for slot in judging.known() {
        while drifts.next_if(|odd| (odd.slot as usize) < slot).is_some() {}
        let drift = drifts.next_if(|odd| odd.slot as usize == slot);
        let (part, whole) = columns.at(slot);
        let least = judging.rule.least;
        let Some(level) = expected.at(slot) else {
            continue;
        };
        let is_judged = match whole {
            Some(whole) => whole >= least,
            None => is_enough(part, None, level, least),
        };
        if !is_judged {
            continue;
        }
        sink.judged(slot);
        let side = side(judging, baseline, slot, columns);
        let odd = match is_unremarkable(part, whole, level) {
            true => None,
            false => window(baseline, side, (part, whole), level, ln_rate),
        };
        let is_clear = odd.as_ref().is_some_and(|odd| odd.fires);
        if let Some(odd) = drift.filter(|_| !is_clear).or(odd) {
            sink.take(Odd {
                slot: slot as u32,
                ..odd
            });
        }
    }
}

/// The season of counts: they repeat each week.
pub(super) fn season(judging: &Judging<'_>, baseline: &Baseline) -> Season {
    let per_day = judging.slots.in_seconds(86_400);
    Season {
        period: judging.slots.in_seconds(WEEK),
        neighbours: baseline.neighbours,
        seasons: baseline.weeks,
        shorter: per_day,
    }
}

/// The counts of a group as those of a stream.
pub(super) fn stream<'a>(judging: &'a Judging<'_>, columns: Columns<'a>) -> Stream<'a> {
    Stream {
        counts: columns.parts,
        wholes: columns.wholes,
        known: &judging.finals,
    }
}

/// Which deviations are bad in a window. Late events make counts grow, so a count that is low before the window is
/// settled proves nothing.
fn side(judging: &Judging<'_>, baseline: &Baseline, slot: usize, columns: Columns<'_>) -> Side {
    match judging.slots.settled[slot] || columns.wholes.is_some() {
        true => baseline.side,
        false => Side::High,
    }
}

/// Compares a window with its level. The result is `None` unless the window is bad or may keep a finding from ending.
fn window(
    baseline: &Baseline,
    side: Side,
    (part, whole): (u64, Option<u64>),
    level: &Level,
    ln_rate: f64,
) -> Option<Odd> {
    let expected = level.expected * whole.map_or(1.0, |whole| whole as f64);
    let is_high = part as f64 > expected;
    let is_asked = match side {
        Side::Both => true,
        Side::High => is_high,
        Side::Low => !is_high,
    };
    let least_change = baseline.change.as_f64() * whole.map_or(expected, |whole| whole as f64);
    let change = (part as f64 - expected).abs();
    if !is_asked || change < least_change / 2.0 {
        return None;
    }
    let tails = judge(part, whole, level);
    let ln_p = match side {
        Side::Both => tails.low.min(tails.high) + LN_2,
        Side::High => tails.high,
        Side::Low => tails.low,
    };
    (ln_p <= UNREMARKABLE).then_some(Odd {
        group: 0,
        slot: 0,
        slots: 1,
        run: 1,
        fires: ln_p <= ln_rate && change >= least_change,
        at_once: false,
        severity: None,
        observed: Amount { part, whole },
        expected,
        ln_p: Some(ln_p),
        normal: Normal::Likely {
            expected: level.expected,
            dispersion: level.dispersion,
            ln_p: ln_rate,
        },
    })
}
