//! Seeded traffic: realistic events for any range of time, the same on every platform.
//!
//! Time is divided into slots of five minutes, and the traffic into combinations of a write key, an event name and an
//! integration. A hash of (seed, combination, slot) determines the number of events and their outcomes, so a whole slot
//! costs one hash per combination. Each event of a slot has its own millisecond, which is used only if a window covers a
//! part of the slot. The counts of adjacent windows therefore add up exactly. Nothing is stored, and all arithmetic uses
//! integers.

use std::collections::HashSet;
use std::ops::Range;

use crate::event::Outcome;
use crate::mix::mix;
use crate::numbered::{Names, Values};
use crate::scene::{Change, Scene, Staged};
use crate::vocabulary::{ACTIONS, INTEGRATIONS, OBJECTS, PLATFORMS, REASONS, REGIONS};

const SLOT_MS: i64 = 5 * 60_000;
const SLOTS_PER_HOUR: i64 = 12;
const SLOTS_PER_DAY: i64 = 24 * SLOTS_PER_HOUR;
const COMBINATIONS: usize = 2_000;
const WRITE_KEYS: u64 = (PLATFORMS.len() * REGIONS.len()) as u64;
const EVENT_NAMES: u64 = (OBJECTS.len() * ACTIONS.len()) as u64;

/// Fractions, and the rates of errors and filters, are in 1/65536.
const ONE: u64 = 1 << 16;
/// About 580 events in a slot for the busiest combination, at level 1.
const HEAD: u64 = 3_500 * ONE;
/// The level of traffic at each full hour UTC, in 1/1000.
const HOURS: [u64; 24] = [
    420, 350, 310, 300, 330, 420, 600, 820, 1020, 1180, 1290, 1350, 1380, 1400, 1420, 1440, 1430,
    1380, 1310, 1220, 1080, 880, 690, 530,
];
/// The level of each day from Monday to Sunday, in 1/1000.
const WEEKDAYS: [u64; 7] = [1000, 1020, 1040, 1020, 980, 640, 580];
/// How often, in days, each of three integrations has an outage.
const OUTAGE_PERIODS: [u64; 3] = [3, 7, 11];
const OUTAGE_SLOTS: i64 = 8;
const OUTAGE_ERRORS: u64 = ONE / 10 * 9;

pub(crate) struct Traffic {
    combinations: Vec<Combination>,
    reasons: [u32; REASONS.len()],
    no_reason: u32,
    error_rates: [u64; INTEGRATIONS.len()],
    outages: [Outage; OUTAGE_PERIODS.len()],
    scene: Option<Staged>,
}

struct Combination {
    hash: u64,
    /// Ids of event name, write key and integration.
    values: [u32; 3],
    integration: usize,
    /// Events in a slot at level 1, in 1/65536.
    weight: u64,
    filter_rate: u64,
    reasons: [usize; 2],
}

/// An integration that fails for 40 minutes, once every few days.
#[derive(Clone, Copy)]
struct Outage {
    integration: usize,
    period_days: i64,
    first_day: i64,
    first_slot: i64,
}

/// What all combinations share during five minutes.
struct Slot {
    start_ms: i64,
    hash: u64,
    level: u64,
    error_rates: [u64; INTEGRATIONS.len()],
}

/// The events of one combination in one slot.
struct Cell {
    hash: u64,
    events: u64,
    errors: u64,
    filtered: u64,
    /// The place in `REASONS` of the reason that all filtered events of the cell have.
    reason: usize,
}

#[derive(Clone, Default)]
struct Sums {
    success: u64,
    errors: u64,
    filtered: [u64; REASONS.len()],
}

impl Traffic {
    pub(crate) fn new(seed: u64, scene: Option<Scene>, names: &mut Names) -> Self {
        let seed = mix(seed);
        let no_reason = names.id("");
        let reasons = REASONS.map(|reason| names.id(reason));
        let error_rates = std::array::from_fn(|index| 200 + draw(seed, 1, index as u64) % 1_300);
        let outages = std::array::from_fn(|index| {
            let hash = draw(seed, 2, index as u64);
            Outage {
                // The ranges don't overlap, so no integration has two outages.
                integration: index * 10 + (hash % 10) as usize,
                period_days: OUTAGE_PERIODS[index] as i64,
                first_day: (hash >> 8) as i64 % OUTAGE_PERIODS[index] as i64,
                first_slot: (hash >> 16) as i64 % (SLOTS_PER_DAY - OUTAGE_SLOTS),
            }
        });
        let combinations = combinations(seed, names);
        let busiest = combinations[0].values;
        Self {
            scene: scene.map(|scene| Staged::new(scene, busiest)),
            combinations,
            reasons,
            no_reason,
            error_rates,
            outages,
        }
    }

    /// Notes the time of a request.
    pub(crate) fn pass(&mut self, now_ms: i64) {
        if let Some(scene) = &mut self.scene {
            scene.pass(now_ms);
        }
    }

    /// Calls `visit` with the number of events for each combination, outcome and reason in a range of milliseconds. Stops
    /// when `visit` returns `None`.
    pub(crate) fn each_within(
        &self,
        range: Range<i64>,
        visit: &mut impl FnMut(Values, Outcome, u64) -> Option<()>,
    ) -> Option<()> {
        let mut sums = vec![Sums::default(); self.combinations.len()];
        if !range.is_empty() {
            let last = (range.end - 1).div_euclid(SLOT_MS);
            for slot in range.start.div_euclid(SLOT_MS)..=last {
                self.add_slot(slot, &range, &mut sums);
            }
        }
        for (combination, sums) in self.combinations.iter().zip(&sums) {
            let [event_name, write_key, integration] = combination.values;
            let mut show = |reason, outcome, count| match count {
                0 => Some(()),
                _ => visit([event_name, write_key, integration, reason], outcome, count),
            };
            // Assumption `reason_of_delivered`: only filtered events have a reason.
            show(self.no_reason, Outcome::Success, sums.success)?;
            show(self.no_reason, Outcome::Errors, sums.errors)?;
            for (reason, count) in self.reasons.iter().zip(sums.filtered) {
                show(*reason, Outcome::Filtered, count)?;
            }
        }
        Some(())
    }

    fn add_slot(&self, index: i64, range: &Range<i64>, sums: &mut [Sums]) {
        let slot = self.slot(index);
        let whole = range.start <= slot.start_ms && slot.start_ms + SLOT_MS <= range.end;
        for (combination, sums) in self.combinations.iter().zip(sums) {
            let span = slot.start_ms..slot.start_ms + SLOT_MS;
            let scene = self.scene.as_ref();
            let change = scene.and_then(|scene| scene.change(combination.values, &span));
            let cell = combination.cell(&slot, change);
            let (errors, filtered, success) =
                if whole { cell.counts() } else { cell.counts_within(slot.start_ms, range) };
            sums.success += success;
            sums.errors += errors;
            sums.filtered[cell.reason] += filtered;
        }
    }

    fn slot(&self, index: i64) -> Slot {
        let (day, of_day) = (index.div_euclid(SLOTS_PER_DAY), index.rem_euclid(SLOTS_PER_DAY));
        let (hour, step) = ((of_day / SLOTS_PER_HOUR) as usize, (of_day % SLOTS_PER_HOUR) as u64);
        let rest = SLOTS_PER_HOUR as u64 - step;
        let of_hour = (HOURS[hour] * rest + HOURS[(hour + 1) % 24] * step) / SLOTS_PER_HOUR as u64;
        // The epoch was a Thursday.
        let weekday = (day + 3).rem_euclid(7) as usize;
        let mut error_rates = self.error_rates;
        for outage in self.outages.iter().filter(|outage| outage.covers(day, of_day)) {
            error_rates[outage.integration] = OUTAGE_ERRORS;
        }
        Slot {
            start_ms: index * SLOT_MS,
            hash: mix(index as u64),
            level: of_hour * WEEKDAYS[weekday] * ONE / 1_000_000,
            error_rates,
        }
    }
}

impl Outage {
    fn covers(&self, day: i64, slot_of_day: i64) -> bool {
        (day - self.first_day).rem_euclid(self.period_days) == 0
            && (self.first_slot..self.first_slot + OUTAGE_SLOTS).contains(&slot_of_day)
    }
}

/// Draws distinct combinations, the busiest first. Each write key has only some of the event names and integrations, and
/// the smaller of two draws makes low numbers more frequent.
fn combinations(seed: u64, names: &mut Names) -> Vec<Combination> {
    let mut drawn: HashSet<[u64; 3]> = HashSet::new();
    let mut combinations = Vec::with_capacity(COMBINATIONS);
    for attempt in 0.. {
        if combinations.len() == COMBINATIONS {
            break;
        }
        let hash = draw(seed, 3, attempt);
        let skewed = |shift: u32, n: u64| ((hash >> shift) % n).min((hash >> (shift + 9)) % n);
        let write_key = skewed(0, WRITE_KEYS);
        let event_name = (write_key * 23 + skewed(18, 60)) % EVENT_NAMES;
        let integration = (write_key * 11 + skewed(36, 12)) % INTEGRATIONS.len() as u64;
        if drawn.insert([event_name, write_key, integration]) {
            let values = [
                names.id(&event_name_text(event_name)),
                names.id(&write_key_text(seed, write_key)),
                names.id(INTEGRATIONS[integration as usize]),
            ];
            let rank = combinations.len() as u64;
            combinations.push(Combination::new(mix(hash), values, integration as usize, rank));
        }
    }
    combinations
}

fn event_name_text(index: u64) -> String {
    let (object, action) = (index / ACTIONS.len() as u64, index % ACTIONS.len() as u64);
    format!("{} {}", OBJECTS[object as usize], ACTIONS[action as usize])
}

fn write_key_text(seed: u64, index: u64) -> String {
    let (platform, region) = (index / REGIONS.len() as u64, index % REGIONS.len() as u64);
    let suffix = draw(seed, 4, index) % ONE;
    format!("{}-{}-{suffix:04x}", PLATFORMS[platform as usize], REGIONS[region as usize])
}

impl Combination {
    fn new(hash: u64, values: [u32; 3], integration: usize, rank: u64) -> Self {
        let reason = |shift: u32| ((hash >> shift) % REASONS.len() as u64) as usize;
        Self {
            hash,
            values,
            integration,
            // Follows Zipf's law for the busiest combinations, and decreases faster for the others.
            weight: HEAD / (rank + 6) * 400 / (rank + 400),
            // Two of five combinations have no filter; the others lose up to an eighth of their
            // events.
            filter_rate: if hash % 5 < 2 { 0 } else { (hash >> 8) % (ONE / 8) },
            reasons: [reason(24), reason(32)],
        }
    }

    /// A quarter of the hash is the noise. The other three quarters decide how the three counts are rounded: 0.3 events
    /// become 1 event in three of ten slots.
    fn cell(&self, slot: &Slot, change: Option<Change>) -> Cell {
        let hash = mix(self.hash.wrapping_add(slot.hash));
        let noise = ONE * 3 / 4 + (hash % ONE) / 2;
        let expected = (((self.weight * slot.level) >> 16) * noise) >> 16;
        let mut events = (expected + (hash >> 16) % ONE) >> 16;
        let mut error_rate = slot.error_rates[self.integration];
        let mut filter_rate = self.filter_rate;
        let mut reason = self.reasons[usize::from(hash.is_multiple_of(8))];
        match change {
            Some(Change::Errors(rate)) => error_rate = rate,
            Some(Change::Filtered(rate, place)) => {
                // A filtered event is not attempted, so it can't fail either.
                error_rate = error_rate * (ONE - rate) / (ONE - filter_rate);
                (filter_rate, reason) = (rate, place);
            }
            Some(Change::Counted(part)) => events = (events * part) >> 16,
            None => {}
        }
        let errors = (events * error_rate + (hash >> 32) % ONE) >> 16;
        let filtered = ((events - errors) * filter_rate + (hash >> 48)) >> 16;
        Cell { hash, events, errors, filtered, reason }
    }
}

impl Cell {
    /// The numbers of errors, filtered events and delivered events.
    fn counts(&self) -> (u64, u64, u64) {
        (self.errors, self.filtered, self.events - self.errors - self.filtered)
    }

    /// Like [`Cell::counts`], for the events whose own millisecond is in the range.
    fn counts_within(&self, start_ms: i64, range: &Range<i64>) -> (u64, u64, u64) {
        let (mut errors, mut filtered, mut success) = (0, 0, 0);
        for event in 0..self.events {
            if !range.contains(&(start_ms + self.millisecond(event))) {
                continue;
            }
            let errors_before = spread(self.errors, self.events, event);
            if spread(self.errors, self.events, event + 1) > errors_before {
                errors += 1;
                continue;
            }
            let (rest, others) = (self.events - self.errors, event - errors_before);
            let passed = spread(self.filtered, rest, others);
            if spread(self.filtered, rest, others + 1) > passed {
                filtered += 1;
            } else {
                success += 1;
            }
        }
        (errors, filtered, success)
    }

    /// The millisecond of an event within its slot. The slot is divided into equal shares, one for each event, and the
    /// event is somewhere in its share.
    fn millisecond(&self, event: u64) -> i64 {
        let slot = SLOT_MS as u64;
        let share = spread(slot, self.events, event)..spread(slot, self.events, event + 1);
        let width = (share.end - share.start).max(1);
        (share.start + mix(self.hash.wrapping_add(event)) % width) as i64
    }
}

/// If `parts` things are spread evenly over `whole` places, how many of them come before `place`.
fn spread(parts: u64, whole: u64, place: u64) -> u64 {
    parts * place / whole
}

fn draw(seed: u64, stream: u64, index: u64) -> u64 {
    mix(mix(seed ^ stream) ^ index)
}
