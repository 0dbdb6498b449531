//! Makes the findings of a rule from the states of its groups.

use tallyfold::{Dimension, Timestamp};

use super::causes::{Explained, explanation, total, within as values_within};
use super::progress::Progress;
use super::sentence::sentence;
use super::state::Live;
use crate::cause::explanation::Amount;
use crate::columns::groups::Grid;
use crate::columns::slots::Slots;
use crate::incidents::finding::{Finding, Query, Status};
use crate::incidents::incident::id_of;
use crate::rules::names::Severity;
use crate::rules::rule::Rule;
use crate::rules::set::Rules;

/// The maximum number of findings of a rule that are explained, because an explanation takes time.
const MOST_EXPLAINED: usize = 200;

/// The findings of a rule.
pub(super) struct Findings<'t> {
    rules: &'t Rules,
    rule: &'t Rule,
    grid: &'t Grid<'t>,
    slots: &'t Slots,
    /// The time that decides which silences apply.
    pub(super) at: Timestamp,
    /// The end of the last window that the rule has judged; `None` in a replay.
    pub(super) judged: Option<Timestamp>,
    explained: usize,
    /// The findings so far.
    pub(super) all: Vec<Finding>,
}

impl<'t> Findings<'t> {
    /// Starts without findings.
    pub(super) fn new(
        (rules, rule): (&'t Rules, &'t Rule),
        grid: &'t Grid<'t>,
        slots: &'t Slots,
        at: Timestamp,
    ) -> Self {
        Self {
            rules,
            rule,
            grid,
            slots,
            at,
            judged: None,
            explained: 0,
            all: Vec::new(),
        }
    }

    /// Adds a finding that was resolved, unless it fires again.
    pub(super) fn take_resolved(&mut self, group: Option<usize>, progress: &Progress) {
        let is_firing = progress
            .live
            .as_ref()
            .is_some_and(|live| live.fired.is_some());
        if let (Some(over), false) = (progress.resolved.last(), is_firing) {
            self.add(group, &over.live, Some(over.live.until), false);
        }
    }

    /// Adds a finding that is pending or firing. `later` is its state after the windows whose counts may still change; a
    /// finding from this state is marked as provisional.
    pub(super) fn take_live(
        &mut self,
        group: Option<usize>,
        live: Option<&Live>,
        later: Option<Live>,
    ) {
        let is_firing = live.is_some_and(|live| live.fired.is_some());
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
        resolved: Option<Timestamp>,
        provisional: bool,
    ) {
        let mut looked = Looked::default();
        if let (Some(group), true) = (group, self.explained < MOST_EXPLAINED) {
            self.explained += 1;
            looked.explained = explanation(self.rule, self.grid, self.slots, group, live);
            if looked
                .explained
                .as_ref()
                .is_none_or(|cause| cause.explanation.causes.is_empty())
            {
                looked.within = values_within(self.rule, self.grid, self.slots, group, live);
            }
            let end = resolved.unwrap_or(live.numbers.window.end());
            let time = (live.since, end);
            looked.total = total(self.rule.measure, self.grid, self.slots, group, time);
        }
        let context = Context {
            rules: self.rules,
            rule: self.rule,
            at: self.at,
            judged: self.judged,
            provisional,
        };
        self.all.push(finding(&context, live, resolved, looked));
    }
}

/// What the counts show about a finding, besides its numbers.
#[derive(Default)]
pub(crate) struct Looked {
    explained: Option<Explained>,
    within: Vec<(Dimension, String)>,
    total: Option<Amount>,
}

/// What a finding is made from, besides [`Live`] and [`Looked`].
#[derive(Clone, Debug)]
pub(crate) struct Context<'r> {
    /// All rules.
    pub(crate) rules: &'r Rules,
    /// The rule of the finding.
    pub(crate) rule: &'r Rule,
    /// The time that decides which silences apply.
    pub(crate) at: Timestamp,
    /// The end of the last window that the rule has judged; `None` in a replay.
    pub(crate) judged: Option<Timestamp>,
    /// Whether the finding comes from counts that may still change.
    pub(crate) provisional: bool,
}

/// For how many milliseconds a group must have had too few events until its finding is unjudged. For long windows, it is
/// at least two windows.
const UNSEEN_MS: i64 = 3_600_000;

impl Context<'_> {
    /// Returns whether there were too few events lately to judge whether a finding continues.
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
    looked: Looked,
) -> Finding {
    let (rule, rules) = (context.rule, context.rules);
    let group: Vec<(Dimension, &str)> = pairs(live);
    let silences = rules.silences.iter();
    let mut labels = rules.labels.clone();
    labels.extend(rule.labels.clone());
    let most = match context.provisional {
        true => Severity::Warning,
        false => Severity::Critical,
    };
    let (causes, unexplained, compared) = match looked.explained {
        Some(Explained {
            explanation,
            compared,
        }) => (explanation.causes, explanation.unexplained, compared),
        None => (Vec::new(), 0, Vec::new()),
    };
    let mut finding = Finding {
        id: id(rule, live),
        rule: rule.name.clone(),
        kind: rule.kind(),
        severity: live.numbers.severity.min(most),
        status: match (resolved, live.fired) {
            (Some(_), _) => Status::Resolved,
            (None, Some(_)) if context.is_unseen(live) => Status::Unjudged,
            (None, Some(_)) => Status::Firing,
            (None, None) => Status::Pending,
        },
        group: live.group.clone(),
        window: live.numbers.window,
        since: live.since,
        fired: live.fired,
        resolved,
        seen: live.seen,
        measure: rule.measure,
        observed: live.numbers.observed,
        total: looked.total,
        expected: live.numbers.expected,
        low: live.numbers.normal.0,
        high: Some(live.numbers.normal.1).filter(|high| *high < u64::MAX),
        ln_p: live.numbers.ln_p,
        causes,
        within: looked.within,
        unexplained,
        compared,
        silenced: silences
            .into_iter()
            .any(|silence| silence.covers(&rule.name, &group, context.at)),
        provisional: context.provisional,
        labels,
        note: rule.note.clone(),
        runbook: rule.runbook.clone(),
        incident: None,
        sentence: String::new(),
        query: query(rules, rule, live),
    };
    finding.sentence = sentence(&finding, rule);
    finding
}

/// Returns the values of a finding's group.
fn pairs(live: &Live) -> Vec<(Dimension, &str)> {
    let pairs = live.group.iter();
    pairs.map(|(name, value)| (*name, value.as_str())).collect()
}

fn id(rule: &Rule, live: &Live) -> String {
    let group = pairs(live)
        .into_iter()
        .flat_map(|(name, value)| [name.as_str(), value]);
    id_of(std::iter::once(rule.name.as_str()).chain(group))
}

/// Returns the query that shows a finding: the counts of its group, by the dimensions that explain findings.
fn query(rules: &Rules, rule: &Rule, live: &Live) -> Query {
    let metric = rule.metric;
    let fixed = rule
        .only
        .iter()
        .filter(|(name, _)| !rule.by.contains(name))
        .cloned();
    let own = live
        .group
        .iter()
        .map(|(name, value)| (*name, vec![value.clone()]));
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
