//! Judges whether groups are new, or have vanished.

use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::columns::slots::Sums;
use crate::rules::judging::{Judging, Normal, Odd, Sink};
use crate::rules::rule::NEW_FOR;

/// Judges whether a group that had events in each period has none in the last one.
pub(super) fn vanished(
    judging: &Judging<'_>,
    (over, history): (u64, u64),
    columns: Columns<'_>,
    sink: &mut Sink,
) {
    let over = judging.slots.in_seconds(over);
    let periods = judging.slots.in_seconds(history) / over;
    let sums = Sums::new(columns.parts, None, &judging.finals);
    for slot in judging.known().filter(|slot| judging.finals[*slot]) {
        let now = sums.before(slot + 1, over);
        if now.known * 10 < over * 9 {
            continue;
        }
        sink.judged(slot);
        if now.part > 0 {
            continue;
        }
        let before =
            (1..=periods).map(|ago| sums.before((slot + 1).saturating_sub(ago * over), over));
        let before: Vec<u64> = before
            .filter(|period| period.known * 2 >= over)
            .map(|period| period.part)
            .collect();
        let enough = before
            .iter()
            .filter(|part| **part >= judging.rule.least)
            .count();
        if before.len() < 2 || enough == 0 {
            continue;
        }
        let sum: f64 = before.iter().map(|part| *part as f64).sum();
        sink.take(Odd {
            group: 0,
            slot: slot as u32,
            slots: over as u32,
            run: over as u32,
            fires: enough == before.len(),
            at_once: false,
            severity: None,
            observed: Amount {
                part: 0,
                whole: None,
            },
            expected: sum / before.len() as f64,
            ln_p: None,
            normal: Normal::Range(judging.rule.least, u64::MAX),
        });
    }
}

/// Judges whether a group that had no events before has some now.
pub(super) fn new(judging: &Judging<'_>, history: u64, columns: Columns<'_>, sink: &mut Sink) {
    let (over, history) = (
        judging.slots.in_seconds(NEW_FOR),
        judging.slots.in_seconds(history),
    );
    let sums = Sums::new(columns.parts, None, &judging.slots.known);
    for slot in judging.known() {
        let (now, before) = (
            sums.before(slot + 1, over),
            sums.before((slot + 1).saturating_sub(over), history),
        );
        // What is new can only be told from what is known to have been before.
        if before.known * 10 < history * 9 {
            continue;
        }
        sink.judged(slot);
        if before.part > 0 || now.part < judging.rule.least {
            continue;
        }
        let start = (slot + 1).saturating_sub(over);
        let first = (start..=slot).find(|own| judging.slots.known[*own] && columns.parts[*own] > 0);
        let slots = (slot + 1 - first.unwrap_or(slot)) as u32;
        sink.take(Odd {
            group: 0,
            slot: slot as u32,
            slots,
            run: slots,
            fires: true,
            at_once: false,
            severity: None,
            observed: Amount {
                part: now.part,
                whole: None,
            },
            expected: 0.0,
            ln_p: None,
            normal: Normal::Range(0, 0),
        });
    }
}
