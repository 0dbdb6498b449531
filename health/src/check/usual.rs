//! Judges windows by those of earlier weeks.

use super::alike::Alike;
use super::drifting::drifting;
use super::grid::Columns;
use super::judging::{Judging, Sink};
use super::odd::{Normal, Odd};
use crate::baseline::level::{Level, level};
use crate::baseline::season::Season;
use crate::baseline::stream::Stream;
use crate::cause::explanation::Amount;
use crate::detection::judge::{is_enough, judge};
use crate::rules::names::Side;
use crate::rules::rule::{Baseline, WEEK};

/// The natural logarithm of the probability up to which a window that fires goes on: one in a thousand.
const LN_HOLDS: f64 = -6.907_755_278_982_137;

/// The natural logarithm of 2: two sides.
const LN_2: f64 = std::f64::consts::LN_2;

/// Judges some windows of a group.
pub(super) fn usual(
    judging: &Judging<'_>,
    baseline: &Baseline,
    columns: Columns<'_>,
    sink: &mut Sink,
) {
    let season = season(judging, baseline);
    let stream = stream(judging, columns);
    let alike = Alike::new(&season, judging.rule.least);
    let rate = judging.rate_of(baseline.false_alarms);
    let ln_rate = libm::log(rate);
    let drifts = match baseline.slow {
        Some(over) => drifting(judging, baseline, &stream, &season, over),
        None => Vec::new(),
    };
    let mut drifts = drifts.into_iter().peekable();
    for slot in judging.known() {
        while drifts.next_if(|odd| (odd.slot as usize) < slot).is_some() {}
        let drift = drifts.next_if(|odd| odd.slot as usize == slot);
        let side = side(judging, baseline, slot, columns);
        let (part, whole) = columns.at(slot);
        if whole.is_some_and(|whole| whole < judging.rule.least) {
            continue;
        }
        let odd = if alike.is_plain(&stream, slot, side) {
            sink.judged(slot);
            None
        } else {
            level(&stream, slot, &season).and_then(|level| {
                (whole.is_some() || is_enough(part, None, &level, judging.rule.least)).then(
                    || {
                        sink.judged(slot);
                        window(baseline, side, (part, whole), &level, ln_rate)
                    },
                )?
            })
        };
        let odd = odd.map(|odd| Odd {
            slot: slot as u32,
            ..odd
        });
        let is_clear = odd.as_ref().is_some_and(|odd| odd.fires);
        if let Some(odd) = drift.filter(|_| !is_clear).or(odd) {
            sink.take(odd);
        }
    }
}

/// How counts repeat: by the week.
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

/// Which side counts in a window. Late events make counts grow, so that too few so far say nothing yet.
fn side(judging: &Judging<'_>, baseline: &Baseline, slot: usize, columns: Columns<'_>) -> Side {
    match judging.slots.settled[slot] || columns.wholes.is_some() {
        true => baseline.side,
        false => Side::High,
    }
}

/// A window against its level, if it is bad or may keep a finding from ending.
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
    (ln_p <= LN_HOLDS.max(ln_rate)).then_some(Odd {
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
