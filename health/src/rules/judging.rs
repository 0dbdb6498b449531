//! The types that all kinds of rules use, and the limit that controls false discoveries.

use std::ops::Range;

use super::names::Severity;
use crate::cause::explanation::Amount;
use crate::columns::groups::{Block, Grid, NO_GROUP, read};
use crate::columns::slots::Slots;
use crate::measure::Measure;
use crate::usual::calendar::{Calendar, Local};
use crate::usual::past::Known;

/// What a rule judges: a measure of some groups in some slots.
#[derive(Clone, Debug)]
pub(crate) struct Judging<'j> {
    /// The number that the rule computes from the counts.
    pub(crate) measure: Measure,
    /// The minimum number of events in a window. Most kinds of rules don't judge windows with fewer events.
    pub(crate) least: u64,
    pub(crate) slots: &'j Slots,
    /// For each slot, whether it is known and settled. Rules learn only from such slots.
    pub(crate) finals: Vec<bool>,
    /// The running totals of `finals`: how many slots rules learn from.
    pub(crate) learned: Known,
    /// The default calendar, followed by the calendars for certain groups.
    calendars: Vec<Calendar>,
    /// For each group, the position of its calendar in `calendars`. Empty if all groups have the default one.
    calendar_of: Vec<usize>,
    /// The slots that are judged.
    pub(crate) range: Range<usize>,
    /// The number of judged groups.
    pub(crate) groups: usize,
    /// Whether each group contains all events of its sources.
    pub(crate) is_of_sources: bool,
    /// Whether a rule of the kind `day_off` reports declines that look like a day off. If so, rules of the kind `volume` ignore
    /// these declines.
    pub(crate) has_day_off_rule: bool,
}

impl<'j> Judging<'j> {
    /// Prepares to judge the slots of `range` in this many groups.
    pub(crate) fn new(
        (measure, least): (Measure, u64),
        slots: &'j Slots,
        groups: usize,
        range: Range<usize>,
    ) -> Self {
        let finals = slots.final_ones();
        Self {
            measure,
            least,
            slots,
            learned: Known::new(&finals),
            calendars: vec![Calendar::new(slots, &Local::default())],
            calendar_of: Vec::new(),
            finals,
            range,
            groups,
            is_of_sources: false,
            has_day_off_rule: false,
        }
    }

    /// Adds the calendars of some groups. For each group, `calendar_of` has the position of its calendar in `locals`,
    /// counted from 1, or 0 for the default calendar.
    pub(crate) fn with_calendars<'l>(
        mut self,
        locals: impl Iterator<Item = &'l Local>,
        calendar_of: Vec<usize>,
    ) -> Self {
        let calendars = locals.map(|local| Calendar::new(self.slots, local));
        self.calendars.extend(calendars);
        self.calendar_of = calendar_of;
        self
    }

    /// Returns the calendar of a group.
    pub(crate) fn calendar(&self, group: usize) -> &Calendar {
        let place = self.calendar_of.get(group).copied().unwrap_or_default();
        &self.calendars[place]
    }

    /// Returns the slots to judge, without the slots whose counts are unknown.
    pub(crate) fn known(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.range.clone().filter(|slot| self.slots.known[*slot])
    }

    /// Returns the share of windows that may be false alarms, so that at most `false_alarms` happen in 30 days. The share
    /// is at most 0.001.
    pub(crate) fn rate_of(&self, false_alarms: f64) -> f64 {
        const MONTH: f64 = 30.0 * 86_400.0;
        (false_alarms * f64::from(self.slots.step.seconds()) / MONTH).clamp(1e-15, 0.001)
    }
}

/// Some groups of a rule that are judged in one call.
pub(crate) struct Groups<'g> {
    /// The groups of the whole table.
    pub(crate) grid: &'g Grid<'g>,
    /// The groups that are judged.
    pub(crate) range: Range<usize>,
    /// The counts of the judged groups, in their order.
    pub(crate) block: &'g Block<'g>,
    /// The counts of the other endpoint, for a rule that compares both endpoints.
    pub(crate) other: Option<&'g Other<'g>>,
}

impl Groups<'_> {
    /// Reads the other endpoint's counts of the judged groups. For each judged group, returns the number of the same group at
    /// the other endpoint, and its position in the block; `None` if the other endpoint does not have the group.
    pub(crate) fn others<'o>(
        &self,
        other: &'o Other<'o>,
        measure: Measure,
    ) -> (Vec<Option<(usize, usize)>>, Block<'o>) {
        let mut places = vec![NO_GROUP; other.grid.len()];
        let mut next = 0;
        let found = self.range.clone().map(|group| {
            let own = self.grid.find_in(other.grid, group)?;
            // Several groups of deliveries may have the same group of ingestion.
            if places[own] == NO_GROUP {
                places[own] = next;
                next += 1;
            }
            Some((own, places[own] as usize))
        });
        let found = found.collect();
        let place_of = |group: u32| places[group as usize];
        let (grid, length) = (other.grid, next as usize);
        let mut block = [Block::new(grid, &other.slots, measure, length, place_of)];
        read(grid.counted(), &mut block);
        let [block] = block;
        (found, block)
    }
}

/// The counts of the other endpoint, which a rule compares its own counts with.
pub(crate) struct Other<'d> {
    /// The groups of the other endpoint.
    pub(crate) grid: &'d Grid<'d>,
    /// The slots of the other endpoint, which have the same length.
    pub(crate) slots: Slots,
}

impl Other<'_> {
    /// Returns the position of a slot of `slots` among the other endpoint's slots, if its counts are known there.
    pub(crate) fn known_place(&self, slots: &Slots, slot: usize) -> Option<usize> {
        let place = slots.place_in(&self.slots, slot);
        place.filter(|place| self.slots.known.get(*place) == Some(&true))
    }
}

/// Collects the results of a rule's windows, group by group.
#[derive(Debug)]
pub(crate) struct Sink {
    /// The group that is judged.
    group: u32,
    /// The first slot that is judged.
    start: usize,
    /// For each slot, how many groups were judged.
    pub(crate) tests: Vec<u32>,
    /// The bad windows.
    pub(crate) bad: Vec<BadWindow>,
    /// What the judged windows showed, for groups with a finding or a bad window.
    pub(crate) seen: Vec<Seen>,
    /// The groups whose findings continue, sorted.
    watched: Vec<u32>,
    /// The lengths of `bad` and `seen` before the current group.
    begun: (usize, usize),
}

impl Sink {
    /// Returns the group that is judged.
    pub(crate) fn group(&self) -> usize {
        self.group as usize
    }

    /// Returns an empty sink for the slots of a range. `watched` has the groups whose findings continue, sorted.
    pub(crate) fn new(range: &Range<usize>, watched: Vec<u32>) -> Self {
        Self {
            group: 0,
            start: range.start,
            tests: vec![0; range.len()],
            bad: Vec::new(),
            seen: Vec::new(),
            watched,
            begun: (0, 0),
        }
    }

    /// Ends the results of the previous group, and begins the results of this group.
    pub(crate) fn begin(&mut self, group: usize) {
        self.close();
        self.group = group as u32;
    }

    /// Ends the results of the current group. Drops what its windows showed if the group has no finding and no bad
    /// window.
    pub(crate) fn close(&mut self) {
        let (bad, seen) = self.begun;
        if self.bad.len() == bad && self.watched.binary_search(&self.group).is_err() {
            self.seen.truncate(seen);
        }
        self.begun = (self.bad.len(), self.seen.len());
    }

    /// Returns whether to keep what the windows of the group show: a finding of the group continues, or one of its
    /// windows is bad.
    pub(crate) fn is_watched(&self) -> bool {
        self.bad.len() > self.begun.0 || self.watched.binary_search(&self.group).is_ok()
    }

    /// Records that a fixed limit judged a window of the group. The window is good unless [`Sink::add_bad`] records it as bad.
    pub(crate) fn judged(&mut self, slot: usize) {
        self.tested(slot);
        self.saw(slot, Evidence::Good);
    }

    /// Records that a window of the group was tested.
    pub(crate) fn tested(&mut self, slot: usize) {
        self.tests[slot - self.start] += 1;
    }

    /// Records what a window of the group showed.
    pub(crate) fn saw(&mut self, slot: usize, evidence: Evidence) {
        self.seen.push(Seen { group: self.group, slot: slot as u32, evidence });
    }

    /// Records a bad window of the group.
    pub(crate) fn add_bad(&mut self, bad: BadWindow) {
        self.bad.push(BadWindow { group: self.group, ..bad });
    }

    /// Returns how many groups were judged in a slot.
    pub(crate) fn tests_of(&self, slot: usize) -> usize {
        self.tests[slot - self.start] as usize
    }
}

/// What a window of a group showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) group: u32,
    pub(crate) slot: u32,
    /// Whether the window suggests that a finding is over.
    pub(crate) evidence: Evidence,
}

/// What a window shows about whether a finding is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Evidence {
    /// The window was judged by a fixed limit, and it is good unless it was recorded as bad.
    Good,
    /// The window was compared with an expected count.
    Compared {
        /// The number of counted events.
        part: u64,
        /// The number of events that the part is compared with; 0 for a count.
        whole: u64,
        /// The number of expected events.
        expected: f64,
    },
}

/// A bad window of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BadWindow {
    pub(crate) group: u32,
    pub(crate) slot: u32,
    /// How many slots up to this one were judged together; at least 1.
    pub(crate) slots: u32,
    /// How many slots the deviation has lasted, including this one; at least 1.
    pub(crate) run: u32,
    /// Whether the window can begin a finding. If not, it only keeps a finding from ending.
    pub(crate) fires: bool,
    /// How many bad windows in a row this window counts as.
    pub(crate) weight: u32,
    /// The severity, if it differs from the severity of the rule.
    pub(crate) severity: Option<Severity>,
    /// What was counted.
    pub(crate) observed: Amount,
    /// The expected number of counted events.
    pub(crate) expected: f64,
    /// The natural logarithm of the window's probability; `None` if the rule computes no probability.
    pub(crate) ln_p: Option<f64>,
    /// How much the group varies: the variance of a count is `expected + phi * expected²`.
    pub(crate) phi: f64,
    /// The counts that would be normal.
    pub(crate) normal: Normal,
}

impl BadWindow {
    /// Makes a bad window of one slot. The sink sets the group.
    pub(crate) fn of(slot: usize, observed: Amount, expected: f64, normal: Normal) -> Self {
        Self {
            group: 0,
            slot: slot as u32,
            slots: 1,
            run: 1,
            fires: true,
            weight: 1,
            severity: None,
            observed,
            expected,
            ln_p: None,
            phi: 0.0,
            normal,
        }
    }
}

/// What a rule has found in some windows.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// The bad windows of all groups, sorted by group, then by slot.
    pub(crate) bad: Vec<BadWindow>,
    /// What the judged windows showed, for groups with a finding or a bad window, sorted by group, then by slot.
    pub(crate) seen: Vec<Seen>,
    /// How many windows were judged. A window counts once for each group.
    pub(crate) judged: u64,
}

impl Judged {
    /// Returns the results of a group.
    pub(crate) fn of(&self, group: usize) -> Results<'_> {
        Results {
            bad: part_of(&self.bad, |bad| bad.group as usize, group),
            seen: part_of(&self.seen, |seen| seen.group as usize, group),
        }
    }
}

/// The results of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Results<'r> {
    /// The bad windows, in chronological order.
    pub(crate) bad: &'r [BadWindow],
    /// What the judged windows showed, in chronological order.
    pub(crate) seen: &'r [Seen],
}

/// Returns the entries of a group. `all` is sorted by group.
fn part_of<T>(all: &[T], group_of: impl Fn(&T) -> usize, group: usize) -> &[T] {
    let start = all.partition_point(|one| group_of(one) < group);
    let end = all.partition_point(|one| group_of(one) <= group);
    &all[start..end]
}

/// The counts that would be normal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Normal {
    /// The fewest and the most counted events.
    Range(u64, u64),
    /// All counts with a probability of at least exp(`ln_p`), and all counts within `width` of the expected count.
    Likely {
        /// The expected count; for a share, the expected share.
        expected: f64,
        /// The dispersion relative to a Poisson or binomial count.
        dispersion: f64,
        /// The natural logarithm of the smallest probability that is normal.
        ln_p: f64,
        /// The largest distance from the expected count that is always normal.
        width: f64,
        /// Whether `expected` is a share of a whole. If so, the count can't exceed the whole.
        is_share: bool,
    },
}

/// The earlier counts that explain a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    /// How many weeks before the finding are compared with it.
    pub(crate) weeks: usize,
    /// Whether to explain only the time since the finding began. It is true if the numbers of a finding cover a longer
    /// window that may be mostly good.
    pub(crate) since_it_began: bool,
}

impl Compared {
    /// The comparison for kinds without a baseline.
    pub(crate) const FOUR_WEEKS: Self = Self { weeks: 4, since_it_began: false };
}

/// An invalid setting, with what a valid setting would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The key of the setting; empty for the rule as a whole.
    pub(crate) key: &'static str,
    /// What a valid setting would be.
    pub(crate) text: String,
}

impl Misfit {
    /// Describes an invalid setting of a key.
    pub(crate) fn of(key: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { key, text }
    }
}

/// Returns the largest ln p at which a test is rejected, or negative infinity if no test is rejected.
///
/// This limit controls the false discovery rate by Benjamini and Hochberg (1995): on average, at most the share `rate` of
/// the rejections is false. `ln_p` holds the natural logarithm of each test's p value; NaN counts as p = 1. `ln_p` may
/// leave out tests with a high p value, but `tests` must be the number of all tests.
#[must_use]
pub fn discovery_limit(ln_p: &[f64], tests: usize, rate: f64) -> f64 {
    let mut sorted: Vec<f64> = ln_p.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let step = libm::log(rate.clamp(0.0, 1.0)) - libm::log(tests.max(ln_p.len()).max(1) as f64);
    let mut limit = f64::NEG_INFINITY;
    for (rank, &value) in sorted.iter().enumerate() {
        if value <= step + libm::log((rank + 1) as f64) {
            limit = value;
        }
    }
    limit
}

/// Lets a bad window fire only if its probability is low enough for the number of groups that were judged in its slot.
/// A window that counts as several bad windows is not changed.
pub(crate) fn discover(sink: &mut Sink, rate: f64) {
    let is_tested = |place: &usize| {
        let bad = &sink.bad[*place];
        bad.fires && bad.weight == 1
    };
    let mut order: Vec<usize> = (0..sink.bad.len()).filter(is_tested).collect();
    order.sort_unstable_by_key(|place| (sink.bad[*place].slot, *place));
    let mut rest = order.as_slice();
    while let Some(first) = rest.first() {
        let slot = sink.bad[*first].slot;
        let length = rest.partition_point(|place| sink.bad[*place].slot == slot);
        let (same, later) = rest.split_at(length);
        let ln_p: Vec<f64> = same.iter().filter_map(|place| sink.bad[*place].ln_p).collect();
        let limit = discovery_limit(&ln_p, sink.tests_of(slot as usize), rate);
        for place in same {
            let bad = &mut sink.bad[*place];
            bad.fires = bad.ln_p.is_some_and(|ln_p| ln_p <= limit);
        }
        rest = later;
    }
}
