//! What judging needs for every kind of rule.

use std::ops::Range;

use super::names::Severity;
use crate::cause::explanation::Amount;
use crate::columns::blocks::Block;
use crate::columns::groups::Grid;
use crate::columns::slots::Slots;
use crate::measure::Measure;
use crate::usual::calendar::{Calendar, Local};
use crate::usual::past::Known;

/// What is judged.
#[derive(Clone, Debug)]
pub(crate) struct Judging<'j> {
    /// The number that is made from the counts.
    pub(crate) measure: Measure,
    /// The fewest events that are judged.
    pub(crate) least: u64,
    /// The slots.
    pub(crate) slots: &'j Slots,
    /// For each slot, whether it is known and settled. Rules learn only from such slots.
    pub(crate) finals: Vec<bool>,
    /// The slots that rules learn from, added up.
    pub(crate) learned: Known,
    /// The days of the slots, for groups without a calendar of their own first.
    calendars: Vec<Calendar>,
    /// For each group, its calendar; none if all groups have the first one.
    calendar_of: Vec<usize>,
    /// The slots that are judged.
    pub(crate) range: Range<usize>,
    /// How many groups are judged.
    pub(crate) groups: usize,
    /// Whether a group is all that its sources send.
    pub(crate) is_of_sources: bool,
    /// Whether a decline may be taken for a day off, because another rule reports days off.
    pub(crate) may_be_off: bool,
}

impl<'j> Judging<'j> {
    /// Judges some slots of this many groups.
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
            may_be_off: false,
        }
    }

    /// Judges groups by their own calendars: `calendar_of` has the position of each group's calendar, from 1, and 0 for a group
    /// without one.
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

    /// The calendar of a group.
    pub(crate) fn calendar(&self, group: usize) -> &Calendar {
        let place = self.calendar_of.get(group).copied().unwrap_or_default();
        &self.calendars[place]
    }

    /// The slots that are judged and known.
    pub(crate) fn known(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.range.clone().filter(|slot| self.slots.known[*slot])
    }

    /// The share of windows that may be false alarms if there are to be at most `false_alarms` in 30 days. It is at
    /// most one in a thousand.
    pub(crate) fn rate_of(&self, false_alarms: f64) -> f64 {
        const MONTH: f64 = 30.0 * 86_400.0;
        (false_alarms * f64::from(self.slots.step.seconds()) / MONTH).clamp(1e-15, 0.001)
    }
}

/// Some groups of a rule that are judged together.
pub(crate) struct Groups<'g> {
    /// The groups of the whole table.
    pub(crate) grid: &'g Grid<'g>,
    /// The groups that are judged.
    pub(crate) range: Range<usize>,
    /// The counts of the judged groups, in their order.
    pub(crate) block: &'g Block<'g>,
    /// The counts of the other endpoint, for a rule that compares both.
    pub(crate) other: Option<&'g Other<'g>>,
}

/// The counts of the endpoint that the counts of a rule are compared with.
pub(crate) struct Other<'d> {
    /// The groups.
    pub(crate) grid: &'d Grid<'d>,
    /// The slots, of the same length.
    pub(crate) slots: Slots,
}

/// The results of a rule's windows.
#[derive(Debug)]
pub(crate) struct Sink {
    /// The group that is judged.
    group: u32,
    /// The first slot that is judged.
    start: usize,
    /// How many groups were judged, slot by slot.
    pub(crate) tests: Vec<u32>,
    /// What is bad.
    pub(crate) odds: Vec<Odd>,
    /// What was seen in judged windows of the groups that have or had a finding.
    pub(crate) seen: Vec<Seen>,
    /// The groups whose findings continue, sorted.
    watched: Vec<u32>,
    /// Where the results of the group begin: among the bad windows, and among those that were seen.
    begun: (usize, usize),
}

impl Sink {
    /// The group that is judged.
    pub(crate) fn group(&self) -> usize {
        self.group as usize
    }

    /// An empty sink for the slots of a range. `watched` are the groups whose findings continue, sorted.
    pub(crate) fn new(range: &Range<usize>, watched: Vec<u32>) -> Self {
        Self {
            group: 0,
            start: range.start,
            tests: vec![0; range.len()],
            odds: Vec::new(),
            seen: Vec::new(),
            watched,
            begun: (0, 0),
        }
    }

    /// Begins with a group.
    pub(crate) fn begin(&mut self, group: usize) {
        self.close();
        self.group = group as u32;
    }

    /// Ends with a group. What was seen of it is dropped unless it has a finding.
    pub(crate) fn close(&mut self) {
        let (odds, seen) = self.begun;
        if self.odds.len() == odds && self.watched.binary_search(&self.group).is_err() {
            self.seen.truncate(seen);
        }
        self.begun = (self.odds.len(), self.seen.len());
    }

    /// Whether the group has or had a finding, so that it matters what was seen of it. A bad window makes the rest of the
    /// group matter, too.
    pub(crate) fn is_watched(&self) -> bool {
        self.odds.len() > self.begun.0 || self.watched.binary_search(&self.group).is_ok()
    }

    /// Records that a window of the group was judged by a fixed limit: without a bad window, it is good.
    pub(crate) fn judged(&mut self, slot: usize) {
        self.tested(slot);
        self.saw(slot, Evidence::Good);
    }

    /// Records that a window of the group was compared.
    pub(crate) fn tested(&mut self, slot: usize) {
        self.tests[slot - self.start] += 1;
    }

    /// Records what was seen in a window of the group.
    pub(crate) fn saw(&mut self, slot: usize, evidence: Evidence) {
        self.seen.push(Seen {
            group: self.group,
            slot: slot as u32,
            evidence,
        });
    }

    /// Records that a window of the group is bad.
    pub(crate) fn take(&mut self, odd: Odd) {
        self.odds.push(Odd {
            group: self.group,
            ..odd
        });
    }

    /// How many groups were judged in a slot.
    pub(crate) fn tests_of(&self, slot: usize) -> usize {
        self.tests[slot - self.start] as usize
    }
}

/// What was seen in a window of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Which group.
    pub(crate) group: u32,
    /// Which slot.
    pub(crate) slot: u32,
    /// What the window says about a finding.
    pub(crate) evidence: Evidence,
}

/// What a window says about a finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Evidence {
    /// By a fixed limit, it is good.
    Good,
    /// The numbers of counted and of expected events.
    Compared {
        /// The number of counted events.
        part: u64,
        /// The number of expected events.
        expected: f64,
    },
}

/// An abnormal window of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Odd {
    /// Which group.
    pub(crate) group: u32,
    /// Which slot.
    pub(crate) slot: u32,
    /// How many slots up to this one were judged together; at least 1.
    pub(crate) slots: u32,
    /// How many slots it has lasted, this one included; at least 1.
    pub(crate) run: u32,
    /// Whether it is bad enough to begin a finding. Otherwise it only keeps one from ending.
    pub(crate) fires: bool,
    /// For how many bad windows in a row it counts.
    pub(crate) weight: u32,
    /// The severity, if it differs from the severity of the rule.
    pub(crate) severity: Option<Severity>,
    /// What was counted.
    pub(crate) observed: Amount,
    /// The expected number of counted events.
    pub(crate) expected: f64,
    /// The natural logarithm of its probability; none if the rule does not compute one.
    pub(crate) ln_p: Option<f64>,
    /// How much the group varies: the variance of a count is `expected + phi * expected²`.
    pub(crate) phi: f64,
    /// What would be normal.
    pub(crate) normal: Normal,
}

impl Odd {
    /// A single slot that is bad; the sink adds the group.
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

/// What would be normal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Normal {
    /// The fewest and the most events of the part.
    Range(u64, u64),
    /// All counts that have at least this probability (as a logarithm) at this level, and those nearby.
    Likely {
        /// The expected count; for a share, the expected share.
        expected: f64,
        /// The dispersion relative to a Poisson or binomial count.
        dispersion: f64,
        /// The limit.
        ln_p: f64,
        /// Counts that are no farther from the expected count than this are normal, too.
        width: f64,
        /// Whether the level is a share of a whole. No more events than the whole can be counted then.
        is_share: bool,
    },
}

/// The largest ln p at which a test is rejected; negative infinity if no test is rejected.
///
/// Controls the false discovery rate by Benjamini and Hochberg (1995): on average, at most the share `rate` of the
/// rejections is false. `ln_p` holds the natural logarithm of each test's p value; NaN counts as p = 1. Tests known to
/// be unremarkable may be left out of `ln_p`, but `tests`, the number of all tests, must include them.
#[must_use]
pub fn discovery_limit(ln_p: &[f64], tests: usize, rate: f64) -> f64 {
    let mut sorted: Vec<f64> = ln_p
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
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

/// Keeps a window from firing unless it is bad enough for the number of groups that were judged in the same slot.
pub(crate) fn discover(sink: &mut Sink, rate: f64) {
    let is_tested = |place: &usize| {
        let odd = &sink.odds[*place];
        odd.fires && odd.weight == 1
    };
    let mut order: Vec<usize> = (0..sink.odds.len()).filter(is_tested).collect();
    order.sort_unstable_by_key(|place| (sink.odds[*place].slot, *place));
    let mut rest = order.as_slice();
    while let Some(first) = rest.first() {
        let slot = sink.odds[*first].slot;
        let length = rest.partition_point(|place| sink.odds[*place].slot == slot);
        let (same, later) = rest.split_at(length);
        let ln_p: Vec<f64> = same
            .iter()
            .filter_map(|place| sink.odds[*place].ln_p)
            .collect();
        let limit = discovery_limit(&ln_p, sink.tests_of(slot as usize), rate);
        for place in same {
            let odd = &mut sink.odds[*place];
            odd.fires = odd.ln_p.is_some_and(|ln_p| ln_p <= limit);
        }
        rest = later;
    }
}
