//! Makes the findings of a rule from the states of its groups.

use tallyfold::{Dimension, Timestamp};

use super::causes::{
    Explained, explanation, is_empty_since, total, usual, within as values_within,
};
use super::progress::{Progress, Resolved};
use super::sentence::{Facts, sentence};
use super::state::Live;
use crate::columns::groups::Grid;
use crate::columns::slots::Slots;
use crate::incidents::finding::{Finding, Query, Status};
use crate::incidents::incident::id_of;
use crate::measure::Measure;
use crate::rules::names::Severity;
use crate::rules::rule::Rule;
use crate::rules::set::Rules;
use crate::rules::wording::Total;

/// The maximum number of findings of a rule that are explained, because an explanation takes time.
const MOST_EXPLAINED: usize = 200;

/// Adding up the counts of a finding that is longer than this many milliseconds takes time. So its counts are added up only
/// when it is resolved, and only for [`MOST_LONG`] such findings of each rule.
const LONG_MS: i64 = 2 * 86_400_000;
const MOST_LONG: usize = 20;

/// Earlier weeks show what is usual for the whole time of a finding if, in the last bad window, their count differs from the
/// rule's expectation by at most this factor.
const MOST_DIFFERENCE: f64 = 1.5;

/// The findings of a rule.
pub(super) struct Findings<'t> {
    /// The context of the next finding.
    pub(super) context: Context<'t>,
    grid: &'t Grid<'t>,
    slots: &'t Slots,
    /// The groups and slots of the other endpoint, for a rule that compares both endpoints.
    other: Option<&'t (Grid<'t>, Slots)>,
    /// How many findings have been explained.
    explained: usize,
    /// The number of findings longer than [`LONG_MS`] whose counts were added up.
    long: usize,
    /// The findings so far.
    pub(super) all: Vec<Finding>,
}

impl<'t> Findings<'t> {
    /// Starts without findings.
    pub(super) fn new(
        context: Context<'t>,
        (grid, slots): (&'t Grid<'t>, &'t Slots),
        other: Option<&'t (Grid<'t>, Slots)>,
    ) -> Self {
        Self { context, grid, slots, other, explained: 0, long: 0, all: Vec::new() }
    }

    /// Adds a finding that was resolved, unless it fires again.
    pub(super) fn add_resolved(&mut self, group: Option<usize>, progress: &Progress) {
        let is_firing = progress.live.as_ref().is_some_and(Live::is_firing);
        if let (Some(over), false) = (progress.resolved.last(), is_firing) {
            self.add(group, &over.live, Some(over), false);
        }
    }

    /// Adds a finding that is pending or firing. `later` is its state after the windows whose counts may still change. If the
    /// finding does not fire without these windows and they change it, this adds the finding from `later`, marked as provisional.
    pub(super) fn add_live(
        &mut self,
        group: Option<usize>,
        live: Option<&Live>,
        later: Option<Live>,
    ) {
        let is_firing = live.is_some_and(Live::is_firing);
        match later.filter(|later| !is_firing && Some(later) != live) {
            Some(later) => self.add(group, &later, None, true),
            None => {
                if let Some(live) = live {
                    self.add(group, live, None, false);
                }
            }
        }
    }

    /// Adds a finding, with an explanation for the first [`MOST_EXPLAINED`] findings.
    pub(super) fn add(
        &mut self,
        group: Option<usize>,
        live: &Live,
        over: Option<&Resolved>,
        provisional: bool,
    ) {
        let resolved = over.map(|over| over.live.until);
        let mut inspection = Inspection::default();
        let facts = &mut inspection.facts;
        facts.is_better = live.good >= self.context.rule.good;
        facts.is_gone = over.is_some_and(|over| over.is_gone);
        if let (Some(group), true) = (group, self.explained < MOST_EXPLAINED) {
            self.explained += 1;
            let rule = self.context.rule;
            let end = live.numbers.window.end();
            let time = (live.since, resolved.unwrap_or(end));
            facts.total = self.total(group, live, time, resolved.is_some());
            let explain = |end| explanation(rule, self.grid, self.slots, group, live, end);
            inspection.explained = explain(end);
            // In a replay, a finding has the causes that were known when it fired, but its sentence describes its whole time.
            if facts.total.is_some() && time.1 > end {
                facts.explained = explain(time.1);
            }
            if inspection.explained.as_ref().is_none_or(|cause| cause.explanation.causes.is_empty())
            {
                inspection.within = values_within(rule, self.grid, self.slots, group, live);
            }
            facts.is_empty = facts.is_gone
                && is_empty_since(rule.measure, self.grid, self.slots, group, live.since);
        }
        self.context.provisional = provisional;
        let finding = finding(&self.context, live, resolved, inspection);
        self.all.push(finding);
    }

    /// Adds up the counts of a finding's windows.
    fn total(
        &mut self,
        group: usize,
        live: &Live,
        time: (Timestamp, Timestamp),
        is_over: bool,
    ) -> Option<Total> {
        let rule = self.context.rule;
        if time.1.unix_ms() - time.0.unix_ms() > LONG_MS {
            if !is_over || self.long >= MOST_LONG {
                return None;
            }
            self.long += 1;
        }
        let own = total(rule.measure, self.grid, self.slots, group, time)?;
        let is_summed =
            is_over || live.good >= rule.good || live.since > live.numbers.window.start();
        let usual = |time| usual(rule.measure, self.grid, self.slots, group, time);
        let in_total = || {
            // Earlier incidents or a clock change may make the earlier weeks unusual.
            let numbers = &live.numbers;
            let in_window = usual((numbers.window.start(), numbers.window.end()))?;
            let times = in_window.max(1.0) / numbers.expected.max(1.0);
            let in_total = usual(time)?;
            let is_above = numbers.observed.part as f64 > numbers.expected;
            let is_alike = (1.0 / MOST_DIFFERENCE..=MOST_DIFFERENCE).contains(&times)
                && (own.part as f64 > in_total) == is_above;
            is_alike.then_some(in_total)
        };
        Some(Total {
            own,
            other: self.of_other(group, time),
            usual: (is_summed && !rule.measure.is_rate() && rule.test.judge().needs_usual())
                .then(in_total)
                .flatten(),
        })
    }

    /// Returns how many events of a group the other endpoint has counted in a range of time.
    fn of_other(&self, group: usize, time: (Timestamp, Timestamp)) -> Option<u64> {
        let (grid, slots) = self.other?;
        let group = self.grid.find_in(grid, group)?;
        total(Measure::Events, grid, slots, group, time).map(|events| events.part)
    }
}

/// What the counts of a group show about a finding, in addition to its numbers.
#[derive(Default)]
pub(crate) struct Inspection {
    explained: Option<Explained>,
    within: Vec<(Dimension, String)>,
    facts: Facts,
}

/// The context of a finding: its rule, and the time of the check.
#[derive(Clone, Debug)]
pub(crate) struct Context<'r> {
    /// All rules.
    pub(crate) rules: &'r Rules,
    /// The rule of the finding.
    pub(crate) rule: &'r Rule,
    /// The time of the check; in a replay, the time at which the finding fired. Silences apply at this time and at the end of
    /// the last bad window; for an unjudged finding, at the end of the last judged window.
    pub(crate) at: Timestamp,
    /// The end of the last window that the rule has judged, or the time of the check if the rule can't judge anything; `None`
    /// in a replay.
    pub(crate) judged: Option<Timestamp>,
    /// Whether the finding comes from counts that may still change.
    pub(crate) provisional: bool,
}

/// A finding is unjudged if its group had too few events for this many milliseconds or, if they are longer, for two windows.
const UNSEEN_MS: i64 = 3_600_000;

impl Context<'_> {
    /// Returns whether there were too few recent events to judge whether a finding continues.
    fn is_unseen(&self, live: &Live) -> bool {
        let windows = 2_000 * i64::from(self.rule.window.seconds());
        self.judged
            .is_some_and(|judged| judged.unix_ms() - live.seen.unix_ms() >= UNSEEN_MS.max(windows))
    }
}

/// Makes a finding.
pub(crate) fn finding(
    context: &Context<'_>,
    live: &Live,
    resolved: Option<Timestamp>,
    inspection: Inspection,
) -> Finding {
    let (rule, rules) = (context.rule, context.rules);
    let group: Vec<(Dimension, &str)> = pairs(live);
    let status = match (resolved, live.fired) {
        (Some(_), _) => Status::Resolved,
        (None, Some(_)) if context.is_unseen(live) => Status::Unjudged,
        (None, Some(_)) => Status::Firing,
        (None, None) => Status::Pending,
    };
    // A bad window in a silence is judged only after its counts have settled, when the silence may be over. Without events
    // to judge, no window follows the last bad one, so the last window that the rule has judged counts.
    let end = match (status, context.judged) {
        (Status::Unjudged, Some(judged)) => judged,
        _ => live.numbers.window.end(),
    };
    let in_window = Timestamp::from_unix_ms(end.unix_ms() - 1).unwrap_or(end);
    let is_silent_at = |at: Timestamp| {
        let mut silences = rules.silences.iter();
        silences.any(|silence| silence.covers(&rule.name, &group, at))
    };
    let mut labels = rules.labels.clone();
    labels.extend(rule.labels.clone());
    let most = match context.provisional {
        true => Severity::Warning,
        false => Severity::Critical,
    };
    let (causes, unexplained, compared) = match inspection.explained {
        Some(Explained { explanation, compared }) => {
            (explanation.causes, explanation.unexplained, compared)
        }
        None => (Vec::new(), 0, Vec::new()),
    };
    let mut finding = Finding {
        id: id(rule, live),
        rule: rule.name.clone(),
        kind: rule.kind(),
        severity: live.numbers.severity.min(most),
        status,
        group: live.group.clone(),
        window: live.numbers.window,
        since: live.since,
        fired: live.fired,
        resolved,
        seen: live.seen,
        measure: rule.measure,
        observed: live.numbers.observed,
        total: inspection.facts.total.and_then(|total| rule.test.judge().total(&total)),
        expected: live.numbers.expected,
        low: live.numbers.normal.0,
        high: Some(live.numbers.normal.1).filter(|high| *high < u64::MAX),
        ln_p: live.numbers.ln_p,
        causes,
        within: inspection.within,
        unexplained,
        compared,
        silenced: is_silent_at(context.at) || is_silent_at(in_window),
        provisional: context.provisional,
        labels,
        note: rule.note.clone(),
        runbook: rule.runbook.clone(),
        incident: None,
        sentence: String::new(),
        query: query(rules, rule, live),
    };
    finding.sentence = sentence(&finding, rule, &inspection.facts);
    finding
}

/// Returns the values of a finding's group.
fn pairs(live: &Live) -> Vec<(Dimension, &str)> {
    let pairs = live.group.iter();
    pairs.map(|(name, value)| (*name, value.as_str())).collect()
}

fn id(rule: &Rule, live: &Live) -> String {
    let group = pairs(live).into_iter().flat_map(|(name, value)| [name.as_str(), value]);
    id_of(std::iter::once(rule.name.as_str()).chain(group))
}

/// Returns the query that shows a finding: the counts of its group, by the dimensions that explain findings.
fn query(rules: &Rules, rule: &Rule, live: &Live) -> Query {
    let metric = rule.metric;
    let fixed = rule.only.iter().filter(|(name, _)| !rule.by.contains(name)).cloned();
    let own = live.group.iter().map(|(name, value)| (*name, vec![value.clone()]));
    let mut wanted: Vec<(Dimension, Vec<String>)> = own.chain(fixed).collect();
    wanted.sort();
    let dimensions = Dimension::ALL.iter().copied().filter(|name| {
        metric.has(*name)
            && (rules.dimensions.contains(name) || wanted.iter().any(|(own, _)| own == name))
    });
    Query {
        metric,
        start: live.since.min(live.numbers.window.start()),
        end: live.numbers.window.end(),
        dimensions: dimensions.collect(),
        r#where: wanted,
    }
}
