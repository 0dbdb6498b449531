//! Explains findings: causes, common values and total counts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tallyfold::{Counts, Dimension, Key, Timestamp, Window};

use super::state::Live;
use crate::cause::explain::{ExplainOptions, explain_leaves};
use crate::cause::explanation::{Amount, Explanation};
use crate::cause::leaves::{Attribute, Leaves, Tally};
use crate::columns::groups::Grid;
use crate::columns::slots::Slots;
use crate::measure::{Measure, most};
use crate::rules::baseline::WEEK;
use crate::rules::judging::Compared;
use crate::rules::rule::Rule;
use crate::usual::zone::DAY;

/// If the earlier weeks are unknown, a finding is compared with at least this many seconds just before it.
const BEFORE: u64 = 3_600;

/// The slots of a finding, and the earlier slots that they are compared with.
struct Times {
    now: Range<usize>,
    /// How many slots each compared range lies before `now`.
    ago: Vec<usize>,
    /// The slots just before, which are compared if no earlier week is known.
    before: Range<usize>,
}

/// The explanation of a finding.
pub(crate) struct Explained {
    pub(crate) explanation: Explanation,
    /// The earlier time ranges that were compared.
    pub(crate) compared: Vec<Window>,
}

/// Returns the parts of a finding's group that explain the finding. Returns `None` if this kind of rule has no counts to compare
/// with, if the table has no other dimension that may explain the finding, or if the counts are missing or too large.
pub(crate) fn explanation(
    rule: &Rule,
    grid: &Grid<'_>,
    slots: &Slots,
    group: usize,
    live: &Live,
    end: Timestamp,
) -> Option<Explained> {
    let compared = rule.test.judge().compared()?;
    let free = free_dimensions(rule, grid);
    if free.is_empty() {
        return None;
    }
    let times = times(compared, slots, live, end)?;
    let leaves = leaves(grid, slots, group, rule.measure, &free, &times)?;
    let compared = match times.ago.is_empty() {
        true => vec![times.before.clone()],
        false => {
            times.ago.iter().rev().map(|ago| times.now.start - ago..times.now.end - ago).collect()
        }
    };
    let window = |range: &Range<usize>| slots.window(range.end.checked_sub(1)?, range.len());
    Some(Explained {
        explanation: explain_leaves(&leaves, rule.measure, &ExplainOptions::default()),
        compared: compared.iter().filter_map(window).collect(),
    })
}

/// The share of events that counts as nearly all: a numerator and a denominator.
const NEARLY_ALL: (u128, u128) = (9, 10);

/// Returns the values that nearly all events of a finding's group have in common. It looks at the day before the finding began
/// or, if the group had no events on that day, at the time from the beginning of the finding to its last bad window. For example,
/// if an integration gets events from only one source, it returns this source.
pub(crate) fn within(
    rule: &Rule,
    grid: &Grid<'_>,
    slots: &Slots,
    group: usize,
    live: &Live,
) -> Vec<(Dimension, String)> {
    let start = slots.from(live.since);
    let before = start.saturating_sub(slots.in_seconds(DAY).max(1))..start;
    let since = start..slots.from(live.numbers.window.end());
    let rows_of = |times: Range<usize>| {
        let mut rows: BTreeMap<Key, u128> = BTreeMap::new();
        grid.each_row(
            group,
            slots,
            |slot| slots.known[slot] && times.contains(&slot),
            |row, _, counts| *rows.entry(*row).or_default() += Measure::Events.part(counts),
        );
        rows
    };
    let mut rows = rows_of(before);
    if rows.is_empty() {
        rows = rows_of(since);
    }
    let all: u128 = rows.values().sum();
    let dictionaries = &grid.counted().dictionaries;
    let free = free_dimensions(rule, grid);
    // Reasons are left out: only filtered events have one.
    let others = free.into_iter().filter(|(_, dimension)| *dimension != Dimension::Reason);
    let common = others.filter_map(|(column, dimension)| {
        let mut sums: BTreeMap<u32, u128> = BTreeMap::new();
        for (row, events) in &rows {
            *sums.entry(row[column]).or_default() += events;
        }
        let (id, events) = sums.into_iter().max_by_key(|(_, events)| *events)?;
        let is_most = events > 0 && events * NEARLY_ALL.1 >= all * NEARLY_ALL.0;
        let value = || dictionaries[column].value(id).to_owned();
        is_most.then(|| (dimension, value()))
    });
    common.collect()
}

/// The maximum length of a range for which counts are added up, in seconds. A longer range would overlap the same range of the
/// week before.
const LONGEST_TOTAL: u64 = WEEK;

/// The usual count is the median of up to this many earlier weeks.
const USUAL_WEEKS: usize = 4;

/// Returns the slots of a range of time, or `None` if it is empty or too long, or does not begin and end at edges of slots.
fn exact(slots: &Slots, (start, end): (Timestamp, Timestamp)) -> Option<Range<usize>> {
    let range = slots.from(start)..slots.from(end);
    let is_exact =
        slots.instant(range.start) == Some(start) && slots.instant(range.end) == Some(end);
    let is_short = range.len() <= slots.in_seconds(LONGEST_TOTAL);
    (is_exact && is_short && !range.is_empty()).then_some(range)
}

/// Returns whether a group has had no events since a time. Returns false if the counts begin later.
pub(crate) fn is_empty_since(
    measure: Measure,
    grid: &Grid<'_>,
    slots: &Slots,
    group: usize,
    since: Timestamp,
) -> bool {
    let first = slots.from(since);
    let mut events = 0;
    grid.each_row(
        group,
        slots,
        |slot| slot >= first && slots.known[slot],
        |_, _, counts| events += measure.part(counts),
    );
    slots.instant(first) == Some(since) && events == 0
}

/// Returns the median count of a group at the same time in earlier weeks. Returns `None` if no earlier week is known, or for a
/// range of time that [`exact`] refuses.
pub(crate) fn usual(
    measure: Measure,
    grid: &Grid<'_>,
    slots: &Slots,
    group: usize,
    time: (Timestamp, Timestamp),
) -> Option<f64> {
    let range = exact(slots, time)?;
    let week = slots.in_seconds(WEEK);
    let is_known = |ago: &usize| {
        let mut slots_ago = range.clone().map(|slot| slot.checked_sub(*ago));
        slots_ago.all(|slot| slot.is_some_and(|slot| slots.known[slot]))
    };
    let ago: Vec<usize> = (1..=USUAL_WEEKS).map(|weeks| weeks * week).filter(is_known).collect();
    let place = |slot: usize| ago.iter().position(|ago| range.contains(&(slot + ago)));
    let mut sums = vec![0_u128; ago.len()];
    grid.each_row(
        group,
        slots,
        |slot| place(slot).is_some(),
        |_, slot, counts| {
            if let Some(place) = place(slot) {
                sums[place] += measure.part(counts);
            }
        },
    );
    sums.sort_unstable();
    let middle = &sums[sums.len().checked_sub(1)? / 2..=sums.len() / 2];
    Some(middle.iter().sum::<u128>() as f64 / middle.len() as f64)
}

/// Returns the counts of a group in a range of time. Returns `None` if counts are missing, or for a range that [`exact`] refuses.
pub(crate) fn total(
    measure: Measure,
    grid: &Grid<'_>,
    slots: &Slots,
    group: usize,
    time: (Timestamp, Timestamp),
) -> Option<Amount> {
    let range = exact(slots, time)?;
    if !range.clone().all(|slot| slots.known[slot]) {
        return None;
    }
    let mut sums = [0; 2];
    grid.each_row(
        group,
        slots,
        |slot| range.contains(&slot),
        |_, _, counts| add(&mut sums, counts, measure),
    );
    Some(Amount {
        part: u64::try_from(sums[0]).ok()?,
        whole: match measure.is_rate() {
            true => Some(u64::try_from(sums[1]).ok()?),
            false => None,
        },
    })
}

/// Returns the columns of the table that may explain a finding, with their dimensions: dimensions by which the rule does not
/// group. The reason is one of them only for a rule about filtered events.
fn free_dimensions(rule: &Rule, grid: &Grid<'_>) -> Vec<(usize, Dimension)> {
    let dimensions = grid.counted().dimensions.iter().enumerate();
    // We assume that only filtered events have a reason: the service's reference does not say.
    let has_reasons = matches!(rule.measure, Measure::Filtered | Measure::FilteredRate);
    let free = dimensions.filter(|(_, dimension)| {
        !rule.by.contains(dimension) && (has_reasons || *dimension != Dimension::Reason)
    });
    free.collect()
}

/// Returns the slots to compare, or `None` if there are none.
fn times(compared: Compared, slots: &Slots, live: &Live, end: Timestamp) -> Option<Times> {
    let start = match compared.since_it_began {
        true => live.since,
        false => live.since.min(live.numbers.window.start()),
    };
    let now = slots.from(start)..slots.from(end);
    let week = slots.in_seconds(WEEK);
    let is_known =
        |ago: &usize| now.start >= *ago && now.clone().all(|slot| slots.known[slot - *ago]);
    let ago = (1..=compared.weeks).map(|weeks| weeks * week).filter(is_known);
    let before = now.start.saturating_sub(slots.in_seconds(BEFORE).max(now.len()))..now.start;
    let times = Times { ago: ago.collect(), before, now };
    let is_any = !times.ago.is_empty() || times.before.clone().any(|slot| slots.known[slot]);
    (is_any && !times.now.is_empty()).then_some(times)
}

impl Times {
    /// Returns the ratio of earlier slots to current slots as two numbers.
    fn compared(&self, slots: &Slots) -> (u64, u64) {
        let known =
            |range: &Range<usize>| range.clone().filter(|slot| slots.known[*slot]).count() as u64;
        match self.ago.len() as u64 {
            0 => (known(&self.before), known(&self.now)),
            weeks => (weeks, 1),
        }
    }

    /// Returns whether a slot is one of the earlier slots.
    fn is_before(&self, slot: usize) -> bool {
        match self.ago.is_empty() {
            true => self.before.contains(&slot),
            false => self.ago.iter().any(|ago| self.now.contains(&(slot + ago))),
        }
    }
}

/// Turns the rows of a group into leaves, with their counts before and now.
fn leaves(
    grid: &Grid<'_>,
    slots: &Slots,
    group: usize,
    measure: Measure,
    free: &[(usize, Dimension)],
    times: &Times,
) -> Option<Leaves> {
    let mut rows: BTreeMap<Key, [[u128; 2]; 2]> = BTreeMap::new();
    let is_wanted =
        |slot: usize| slots.known[slot] && (times.now.contains(&slot) || times.is_before(slot));
    grid.each_row(group, slots, is_wanted, |row, slot, counts| {
        let [before, now] = rows.entry(*row).or_default();
        if times.now.contains(&slot) {
            add(now, counts, measure);
        }
        if times.is_before(slot) {
            add(before, counts, measure);
        }
    });
    let mut before: Vec<[u128; 2]> = rows.values().map(|[before, _]| *before).collect();
    let now: Vec<[u128; 2]> = rows.values().map(|[_, now]| *now).collect();
    let (of, to) = times.compared(slots);
    if !measure.is_rate() {
        // For a volume, the earlier counts are scaled to the same length of time.
        for sum in before.iter_mut().flatten() {
            *sum = (*sum * u128::from(to) + u128::from(of) / 2) / u128::from(of.max(1));
        }
    }
    let attributes = free.iter().map(|(column, dimension)| {
        let ids = rows.keys().map(|row| row[*column]).collect();
        let values = Arc::clone(&grid.counted().dictionaries[*column]);
        let attribute = Attribute::new(dimension.as_str(), values, ids);
        // We assume that only filtered events have a reason: the service's reference does not say.
        match *dimension == Dimension::Reason && measure.is_rate() {
            true => attribute.of_part(),
            false => attribute,
        }
    });
    Leaves::new(attributes.collect(), tallies(&before), tallies(&now)).ok()
}

fn add(sums: &mut [u128; 2], counts: Counts, measure: Measure) {
    sums[0] += measure.part(counts);
    sums[1] += measure.whole(counts).unwrap_or_default();
}

fn tallies(sums: &[[u128; 2]]) -> Vec<Tally> {
    let tallies = sums.iter().map(|[part, whole]| Tally { part: most(*part), whole: most(*whole) });
    tallies.collect()
}
