//! The state machine of a finding: pending, firing and resolved, window by window. A finding ends after enough good
//! windows with enough evidence.

use std::ops::Range;

use tallyfold::{Dimension, Timestamp, Window};

use super::state::{Live, Numbers};
use crate::cause::explanation::Amount;
use crate::columns::slots::Slots;
use crate::detection::window::{ALIKE, Level, OVER, judge};
use crate::rules::judging::{BadWindow, Evidence, Normal, Results};
use crate::rules::names::Severity;
use crate::rules::rule::Rule;

/// How the finding of a group changed during some slots.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The finding that is pending or firing at the end, if there is one.
    pub(crate) live: Option<Live>,
    /// The state of the finding each time it began to fire.
    pub(crate) fired: Vec<Live>,
    /// The state of the finding each time it was resolved.
    pub(crate) resolved: Vec<Resolved>,
}

/// A finding that is over.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The last state.
    pub(crate) live: Live,
    /// The end of the window that showed that the finding was over.
    pub(crate) at: Timestamp,
    /// Whether the finding ended only because its group had too few events to judge for a long time.
    pub(crate) is_gone: bool,
}

/// A finding ends if its group had too few events to judge for this many milliseconds, because the group is probably gone.
const GONE_MS: i64 = 7 * DAY_MS;
const DAY_MS: i64 = 86_400_000;

/// Follows a group through some slots, from the state `start`. `bad` has the group's bad windows, and `seen` what its
/// judged windows showed. Unknown slots are skipped. A window that was not judged is neither good nor bad, but it ends a pending
/// finding.
pub(crate) fn follow(
    rule: &Rule,
    group: &[(Dimension, String)],
    start: Option<Live>,
    Results { bad, seen }: Results<'_>,
    slots: &Slots,
    range: Range<usize>,
) -> Progress {
    let mut progress = Progress { live: start, ..Progress::default() };
    let mut last = None;
    let mut bad_windows = bad.iter().peekable();
    let mut seen = seen.iter().peekable();
    for slot in range {
        while bad_windows.next_if(|bad| (bad.slot as usize) < slot).is_some() {}
        while seen.next_if(|seen| (seen.slot as usize) < slot).is_some() {}
        if !slots.known[slot] {
            continue;
        }
        let is_firing = progress.live.as_ref().is_some_and(Live::is_firing);
        let bad = bad_windows.next_if(|bad| bad.slot as usize == slot);
        match bad.filter(|bad| bad.fires || is_firing) {
            Some(bad) => {
                last = Some(bad);
                progress.add_bad(rule, group, bad, slots);
            }
            None => {
                let seen = seen.next_if(|seen| seen.slot as usize == slot);
                let evidence = seen.map(|seen| seen.evidence);
                if let Some(end) = slots.instant(slot + 1) {
                    progress.add_other(rule, evidence, end, last);
                }
            }
        }
    }
    if let Some(live) = &mut progress.live {
        live.complete(last);
    }
    progress
}

impl Progress {
    /// Handles a bad window.
    fn add_bad(
        &mut self,
        rule: &Rule,
        group: &[(Dimension, String)],
        bad: &BadWindow,
        slots: &Slots,
    ) {
        let slots_of = |length: u32| slots.window(bad.slot as usize, length as usize);
        let (Some(window), Some(run)) = (slots_of(bad.slots), slots_of(bad.run)) else {
            return;
        };
        let mut numbers = numbers(rule, bad, window);
        if let Some(live) = self.live.as_ref().filter(|_| numbers.severity == Severity::Info) {
            // A finding that is more severe than `info` does not become `info` while it lasts.
            numbers.severity = live.numbers.severity;
        }
        let live = self.live.get_or_insert_with(|| Live {
            group: group.to_vec(),
            bad: 0,
            good: 0,
            since: run.start(),
            fired: None,
            until: window.end(),
            seen: window.end(),
            evidence: 0.0,
            phi: bad.phi,
            usual: None,
            numbers: numbers.clone(),
        });
        live.bad = live.bad.saturating_add(1).max(bad.weight).min(rule.bad);
        live.good = 0;
        live.evidence = 0.0;
        (live.until, live.seen) = (window.end(), window.end());
        live.phi = bad.phi;
        live.numbers = numbers;
        if rule.test.judge().baseline().is_some() {
            let whole = live.numbers.observed.whole.unwrap_or_default();
            live.learn(window.end(), live.numbers.expected, whole);
        }
        if live.fired.is_none() && live.bad >= rule.bad {
            live.fired = Some(window.end());
            live.complete(Some(bad));
            self.fired.push(live.clone());
        }
    }

    /// Handles a window that isn't bad. It ends a pending finding. `evidence` is `None` if the window was not judged.
    fn add_other(
        &mut self,
        rule: &Rule,
        evidence: Option<Evidence>,
        end: Timestamp,
        last: Option<&BadWindow>,
    ) {
        let Some(mut live) = self.live.take() else {
            return;
        };
        if live.fired.is_none() {
            return;
        }
        let is_over = evidence.is_some_and(|evidence| live.is_over(rule, evidence, end));
        let is_gone = !is_over && end.unix_ms() - live.seen.unix_ms() >= GONE_MS;
        if !is_over && !is_gone {
            self.live = Some(live);
            return;
        }
        live.complete(last);
        self.resolved.push(Resolved { live, at: end, is_gone });
    }
}

impl Live {
    /// Adds the evidence of a window that isn't bad. Returns whether the finding is over.
    fn is_over(&mut self, rule: &Rule, evidence: Evidence, end: Timestamp) -> bool {
        match evidence {
            Evidence::Good => {
                self.seen = end;
                self.good = self.good.saturating_add(1);
                self.good >= rule.good
            }
            Evidence::Compared { part, whole, expected } => {
                self.learn(end, expected, whole);
                let expected = self.bounded(expected, whole);
                if part > 0 || expected >= 1.0 {
                    self.seen = end;
                }
                self.evidence = (self.evidence + self.ratio(part, expected)).max(0.0);
                if self.evidence <= 0.0 {
                    (self.good, self.until) = (0, end);
                    return false;
                }
                self.good = self.good.saturating_add(1);
                self.good >= rule.good && self.evidence >= OVER
            }
        }
    }

    /// Returns whether the finding is about too many events.
    fn is_rise(&self) -> bool {
        self.numbers.observed.part as f64 > self.numbers.expected
    }

    /// Learns what is usual from the windows of the finding's first day, while the expectation of the rules does not include
    /// the finding itself yet. If the first bad window ends later than that day, learns from this window only.
    fn learn(&mut self, end: Timestamp, expected: f64, whole: u64) {
        let is_later = end.unix_ms() - self.since.unix_ms() > DAY_MS;
        if whole == 0 || is_later && self.usual.is_some() {
            return;
        }
        let share = expected / whole as f64;
        let is_rise = self.is_rise();
        let usual = self.usual.get_or_insert(share);
        *usual = if is_rise { usual.max(share) } else { usual.min(share) };
    }

    /// Returns the expected number of events, without what rules have learned from the finding itself since its first day.
    fn bounded(&self, expected: f64, whole: u64) -> f64 {
        let usual = self.usual.map(|usual| usual * whole as f64);
        usual.map_or(expected, |usual| match self.is_rise() {
            true => expected.min(usual),
            false => expected.max(usual),
        })
    }

    /// Returns the natural logarithm of a likelihood ratio: how much more probable a count is if the problem is over
    /// than if it continues. A continuing problem may be weaker than before. It is assumed to multiply the expected count by the
    /// square root of the factor in the last bad window.
    fn ratio(&self, part: u64, expected: f64) -> f64 {
        let Numbers { observed, expected: usual, .. } = self.numbers;
        let usual = self.bounded(usual, observed.whole.unwrap_or_default());
        let observed = observed.part as f64;
        let times = libm::sqrt((observed + 0.5) / (usual + 0.5));
        let times = match observed > usual {
            true => times.max(1.05),
            false => times.min(0.95),
        };
        let ratio = expected * (times - 1.0) - part as f64 * libm::log(times);
        ratio / (1.0 + ALIKE * self.phi * expected)
    }

    /// Adds the normal range to the numbers of the last bad window. Computing the range is slow, so only reported numbers get
    /// a range. If `last` is `None`, the numbers already have their range.
    fn complete(&mut self, last: Option<&BadWindow>) {
        if let Some(bad) = last {
            self.numbers.normal = normal_range(&bad.normal, bad.observed);
        }
    }
}

fn numbers(rule: &Rule, bad: &BadWindow, window: Window) -> Numbers {
    Numbers {
        window,
        observed: bad.observed,
        expected: bad.expected,
        normal: (0, 0),
        ln_p: bad.ln_p,
        severity: bad.severity.unwrap_or(rule.severity),
    }
}

/// Returns the normal range: the fewest and the most counted events that would be normal.
pub(crate) fn normal_range(normal: &Normal, observed: Amount) -> (u64, u64) {
    match normal {
        Normal::Range(low, high) => (*low, *high),
        Normal::Likely { expected, dispersion, ln_p, width, is_share } => {
            let level = Level { expected: *expected, dispersion: *dispersion };
            let whole = observed.whole.filter(|_| *is_share);
            let (low, high) = likely(&level, *ln_p, whole);
            let middle = whole.map_or(*expected, |whole| expected * whole as f64);
            // The conversions saturate.
            let near = (libm::ceil(middle - width) as u64, (middle + width) as u64);
            (low.min(near.0), high.max(near.1.min(whole.unwrap_or(u64::MAX))))
        }
    }
}

/// Returns the smallest and the largest count whose tail probability is at least e^`ln_p`.
fn likely(level: &Level, ln_p: f64, whole: Option<u64>) -> (u64, u64) {
    let most = whole.unwrap_or(u64::MAX / 2);
    let middle = whole.map_or(level.expected, |whole| level.expected * whole as f64);
    // The conversion saturates.
    let middle = (middle as u64).min(most);
    let is_low = |count: u64| judge(count, whole, level).low < ln_p;
    let is_high = |count: u64| judge(count, whole, level).high < ln_p;
    let low = first(0, middle, |count| !is_low(count));
    let mut width = 1;
    while width < most - middle && !is_high(middle + width) {
        width = width.saturating_mul(2);
    }
    let end = middle.saturating_add(width).min(most);
    let beyond = first(middle, end.saturating_add(1), |count| count > end || is_high(count));
    (low, beyond.saturating_sub(1).max(low))
}

/// Returns the first number of a range for which `holds` returns true, or the end of the range. If `holds` returns true
/// for a number, it must return true for all larger numbers, too.
fn first(mut start: u64, mut end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while start < end {
        let middle = start + (end - start) / 2;
        match holds(middle) {
            true => end = middle,
            false => start = middle + 1,
        }
    }
    start
}
