//! Judges whether any of the ingested events were delivered, failed or filtered.

use std::ops::Range;

use crate::cause::explanation::Amount;
use crate::columns::groups::{Block, Columns, Grid, NO_GROUP, read};
use crate::columns::slots::Slots;
use crate::rules::judging::{Judging, Normal, Odd, Sink};

/// The counts of delivery, beside those of ingestion.
pub(crate) struct Delivery<'a> {
    /// The groups, by the same dimensions.
    pub(crate) grid: &'a Grid<'a>,
    /// The slots, of the same length.
    pub(crate) slots: Slots,
}

/// Judges some groups of ingestion, whose counts are given.
pub(super) fn undelivered(
    judging: &Judging<'_>,
    delivery: &Delivery<'_>,
    ingestion: &Grid<'_>,
    groups: Range<usize>,
    ingested: &Block<'_>,
    sink: &mut Sink,
) {
    let mut places = vec![NO_GROUP; delivery.grid.len()];
    let mut found: Vec<Option<usize>> = Vec::with_capacity(groups.len());
    let mut next = 0;
    for group in groups.clone() {
        let own = delivery.grid.find(&ingestion.values(group));
        found.push(own.map(|_| next as usize));
        if let Some(own) = own {
            places[own] = next;
            next += 1;
        }
    }
    let place_of = |group: u32| places[group as usize];
    let (measure, length) = (judging.rule.measure, next as usize);
    let mut block = [Block::new(
        delivery.grid,
        &delivery.slots,
        measure,
        length,
        place_of,
    )];
    read(delivery.grid.counted(), &mut block);
    let ahead = judging.slots.ahead_of(&delivery.slots);
    for (place, group) in groups.enumerate() {
        sink.group = group as u32;
        let delivered = found[place].map(|place| block[0].columns(place));
        let ingested = ingested.columns(place).parts;
        group_of(judging, delivery, ingested, delivered, ahead, sink);
    }
}

fn group_of(
    judging: &Judging<'_>,
    delivery: &Delivery<'_>,
    ingested: &[u64],
    delivered: Option<Columns<'_>>,
    ahead: i64,
    sink: &mut Sink,
) {
    for slot in judging.known().filter(|slot| judging.finals[*slot]) {
        let other = i64::try_from(slot)
            .ok()
            .and_then(|slot| usize::try_from(slot + ahead).ok());
        let is_final = |other: &usize| {
            delivery.slots.known.get(*other) == Some(&true) && delivery.slots.settled[*other]
        };
        let Some(other) = other.filter(is_final) else {
            continue;
        };
        let came = ingested[slot];
        if came < judging.rule.least {
            continue;
        }
        sink.judged(slot);
        if delivered.is_none_or(|delivered| delivered.parts[other] == 0) {
            sink.take(Odd {
                group: 0,
                slot: slot as u32,
                slots: 1,
                run: 1,
                fires: true,
                at_once: false,
                severity: None,
                observed: Amount {
                    part: 0,
                    whole: None,
                },
                expected: came as f64,
                ln_p: None,
                normal: Normal::Range(1, u64::MAX),
            });
        }
    }
}
