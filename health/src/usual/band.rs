//! What is usual in each slot of a range, for a chart of the counts.

use serde::Serialize;
use tallyfold::{CountTable, Result, TimeStep, Timestamp, Window};

use super::calendar::{Calendar, Local};
use super::noise::{Learned, Prior};
use super::past::{Compare, Known, Past};
use crate::columns::groups::{Block, Counted, Grid, read};
use crate::columns::slots::Slots;
use crate::measure::Measure;

/// A value is usual if it deviates by at most this many standard deviations. The limit is higher if the counts deviated
/// more on several days.
const FEWEST_DEVIATIONS: f64 = 2.0;

/// The number of earlier weeks that slots are compared with. It is the rules' default.
const WEEKS: usize = 6;

/// What is usual in a slot of time: numbers of events for a volume, shares for a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Usual {
    /// When the slot begins.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub start: Timestamp,
    /// When it ends.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub end: Timestamp,
    /// The expected value.
    pub expected: f64,
    /// The lowest usual value.
    pub low: f64,
    /// The highest usual value.
    pub high: f64,
}

/// Returns what is usual for the sum of a table's rows, for each slot of a range. Like a rule with a baseline, it learns from the
/// table's settled windows before the slot. Slots without enough history are left out. For a rate, slots without events are left
/// out, too. For a volume, a slot needs three earlier days of the same kind, working days or days of a weekend; for a rate, any
/// three earlier days or four of the windows just before. With two weeks of history, the width of the band depends on how much
/// the counts vary.
///
/// # Errors
/// `unaligned_window` for a table with a window that crosses the edge of a slot.
pub fn usual(
    table: &CountTable,
    range: Window,
    step: TimeStep,
    measure: Measure,
) -> Result<Vec<Usual>> {
    let counted = Counted::of(table);
    let heads = counted.windows.iter();
    let heads = heads.map(|head| (head.window, head.settled));
    let Some(slots) = Slots::of(heads, step)? else {
        return Ok(Vec::new());
    };
    // `Grid::new` fails only for a dimension that the table lacks. Here, all events are one group.
    let Ok(grid) = Grid::new(&counted, &[], &[]) else {
        return Ok(Vec::new());
    };
    let mut block = [Block::new(&grid, &slots, measure, 1, |group| group)];
    read(&counted, &mut block);
    let columns = block[0].columns(0);
    let compare = match measure.is_rate() {
        true => Compare::Shares,
        false => Compare::Counts,
    };
    let finals = slots.final_ones();
    let (known, calendar) = (Known::new(&finals), Calendar::new(&slots, &Local::default()));
    let past = Past::new((&calendar, &known), compare, (WEEKS, 0), columns, &finals);
    let margins = [1.0; 3];
    let mut learned = Learned::new(&past, Past::look, Prior { margins, ..Prior::of(compare) });
    let of_slot = |slot: usize| {
        let whole = columns.at(slot).1.map(|whole| whole as f64);
        let expected = match whole {
            None => past.mean(slot + 1, 1, past.clock(slot + 1))?,
            // Without events there is no share.
            Some(0.0) => return None,
            Some(whole) => past.share(slot + 1, 1)? * whole,
        };
        let noise = learned.noise(slot, 1);
        let deviation = noise.deviation(expected);
        let [above, below] = noise.limits.map(|limit| limit.max(FEWEST_DEVIATIONS) * deviation);
        let of = |events: f64| whole.map_or(events, |whole| (events / whole).min(1.0));
        let window = slots.window(slot, 1)?;
        Some(Usual {
            start: window.start(),
            end: window.end(),
            expected: of(expected),
            low: of((expected - below).max(0.0)),
            high: of(expected + above),
        })
    };
    let range = slots.from(range.start())..slots.from(range.end());
    Ok(range.filter_map(of_slot).collect())
}
