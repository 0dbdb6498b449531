//! Judges windows by fixed limits.

use tallyfold::text::Fraction;

use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::rules::judging::{Judging, Normal, Odd, Sink};
use crate::rules::rule::Limits;

/// Judges some windows of a group.
pub(super) fn limits(
    judging: &Judging<'_>,
    limits: &Limits,
    columns: Columns<'_>,
    sink: &mut Sink,
) {
    let (slots, least) = (judging.slots, judging.rule.least);
    for slot in judging.known() {
        let (part, whole) = columns.at(slot);
        // Too few events say nothing about a share. A count is judged even if it is small, because a limit may be there
        // to find too few events.
        if whole.is_some_and(|whole| whole < least) {
            continue;
        }
        sink.judged(slot);
        let of = whole.unwrap_or(1);
        let is_high = |limit: Option<Fraction>| {
            (whole.is_some() || part >= least)
                && limit.is_some_and(|limit| limit.is_below(part, of))
        };
        // Late events make counts grow, so a count that is low before the window is settled proves nothing.
        let is_low = |limit: Option<Fraction>| {
            slots.settled[slot] && limit.is_some_and(|limit| limit.is_above(part, of))
        };
        let fires = is_high(limits.above) || is_low(limits.below);
        let holds = is_high(limits.clear_below) || is_low(limits.clear_above);
        if fires || holds {
            sink.take(odd(limits, slot, fires, Amount { part, whole }));
        }
    }
}

fn odd(limits: &Limits, slot: usize, fires: bool, observed: Amount) -> Odd {
    let whole = observed.whole.unwrap_or(1);
    let low = limits.below.map_or(0, |limit| limit.ceil_of(whole));
    let high = limits.above.map_or(u64::MAX, |limit| limit.floor_of(whole));
    let nearest = observed.part.clamp(low.min(high), high);
    Odd {
        group: 0,
        slot: slot as u32,
        slots: 1,
        run: 1,
        fires,
        at_once: false,
        severity: None,
        observed,
        expected: nearest as f64,
        ln_p: None,
        normal: Normal::Range(low, high),
    }
}
