//! What is usual in each slot of a range, for a picture of the counts.

use serde::Serialize;
use tallyfold::{CountTable, Result, TimeStep, Timestamp, Window};

use super::calendar::{Calendar, Local};
use super::noise::{Learned, Prior};
use super::past::{Compare, Known, Past};
use crate::columns::groups::{Columns, counts_of};
use crate::columns::slots::Slots;
use crate::measure::Measure;

/// A value is usual if it deviates by at most this many standard deviations, or by as many as on all but a few days.
const FEWEST_DEVIATIONS: f64 = 2.0;

/// Slots are compared with so many earlier weeks, as by rules that don't say how many.
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

/// Returns what is usual for the sum of a table's rows in each slot of a range, learned from the table's settled windows
/// before the slot, as rules with a baseline learn. Slots without enough history are left out: it takes three earlier days of
/// the same kind, working days or days of a weekend. With two weeks of history, the band follows how much the counts vary.
///
/// # Errors
/// `unaligned_window` for a table with a window that crosses the edge of a slot.
pub fn usual(
    table: &CountTable,
    range: Window,
    step: TimeStep,
    measure: Measure,
) -> Result<Vec<Usual>> {
    let windowed = table.windowed();
    let heads = windowed.windows.iter();
    let heads = heads.map(|rows| (rows.window, rows.settled));
    let Some(slots) = Slots::of(heads, step)? else {
        return Ok(Vec::new());
    };
    let mut parts = vec![0_u64; slots.len()];
    let mut wholes = measure.is_rate().then(|| parts.clone());
    for (rows, place) in windowed.windows.into_iter().zip(&slots.places) {
        let Some(slot) = *place else {
            continue;
        };
        for (_, counts) in rows {
            let counts = counts_of(counts);
            add(&mut parts[slot], measure.part(counts));
            if let Some((wholes, whole)) = wholes.as_mut().zip(measure.whole(counts)) {
                add(&mut wholes[slot], whole);
            }
        }
    }
    let columns = Columns {
        parts: &parts,
        wholes: wholes.as_deref(),
    };
    let compare = match measure.is_rate() {
        true => Compare::Shares,
        false => Compare::Counts,
    };
    let finals = slots.final_ones();
    let (known, calendar) = (
        Known::new(&finals),
        Calendar::new(&slots, &Local::default()),
    );
    let past = Past::new((&calendar, &known), compare, (WEEKS, 0), columns, &finals);
    let margins = [1.0; 3];
    let mut learned = Learned::new(
        &past,
        Prior {
            margins,
            ..Prior::of(compare)
        },
    );
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
        let [above, below] = noise
            .limits
            .map(|limit| limit.max(FEWEST_DEVIATIONS) * deviation);
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

fn add(sum: &mut u64, count: u128) {
    *sum = u64::try_from(count).map_or(u64::MAX, |count| sum.saturating_add(count));
}
