//! Checks and replays: applies rules to counts up to now, or to a past range.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use tallyfold::keeper::check_past;
use tallyfold::{Identity, Result, Timestamp, Window};

use super::findings::{Context, Inspection, finding};
use super::result::{Check, Replay, Unjudged};
use super::state::{RuleState, State};
use super::task::{NoTask, judge_together, task};
use crate::columns::groups::{Endpoints, Observed};
use crate::columns::pages::Pages;
use crate::incidents::finding::{Finding, Status};
use crate::incidents::follow::{Following, incidents};
use crate::rules::names::Severity;
use crate::rules::rule::Rule;
use crate::rules::set::Rules;
use crate::stats::mass::deviance;

/// The maximum number of rules that are judged together, times the number of table rows.
const MOST_PLACES: usize = 1 << 20;

/// The maximum number of findings of a check. A replay may have ten times as many.
const MOST_FINDINGS: usize = 1_000;

/// Counts are too old if they end more than this, plus two window lengths, before a check.
const STALE_MS: i64 = 6 * 3_600_000;

/// The counts that rules are applied to, with their history, in pages.
#[derive(Clone, Copy, Default)]
pub struct ObservedPages<'a> {
    /// Counts of delivery.
    pub delivery: Option<&'a Pages<'a>>,
    /// Counts of ingestion.
    pub ingestion: Option<&'a Pages<'a>>,
}

impl<'a> ObservedPages<'a> {
    fn endpoints(&self) -> Result<Endpoints<'a>> {
        let counted = |pages: Option<&'a Pages<'a>>| pages.and_then(Pages::counted);
        Endpoints::new(counted(self.delivery), counted(self.ingestion))
    }

    fn identity(&self) -> Result<Identity> {
        let of = |pages: Option<&Pages<'_>>| {
            pages.map_or_else(Identity::default, |pages| pages.identity().clone())
        };
        of(self.delivery).with(&of(self.ingestion), "ingestion")
    }

    /// Checks that all pages could be read.
    ///
    /// # Errors
    /// The error of the first page that could not be read. [`Pages::failed`] then returns the page, so that the caller
    /// can replace it.
    fn read_all(&self) -> Result<()> {
        let both = [self.delivery, self.ingestion].into_iter().flatten();
        let mut failed = both.filter_map(Pages::error);
        failed.next().map_or(Ok(()), Err)
    }
}

impl Rules {
    /// Applies the rules to counts: judges the windows that have settled since the last check, and returns what is firing,
    /// unjudged, pending or just resolved. With an empty state, it judges the windows of the last day or, for long windows, as
    /// many as a rule needs to fire and to end a finding. Windows that end after `now` are not judged. A silence applies to a
    /// finding at `now`, and at the end of the last bad window.
    ///
    /// The same counts and state give the same findings. A repeated check judges no settled window again, and a late check
    /// judges all windows that have settled since the last check.
    ///
    /// # Errors
    /// `unaligned_window` for a table whose windows are longer than a rule's windows or cross their edges; `invalid_argument` for
    /// a table that belongs to the other endpoint; `incompatible_tables` for tables or a state of different clusters or clients;
    /// `invalid_checkpoint` for a state whose checks have judged windows that end more than five minutes after `now`, for example
    /// because a clock was ahead.
    pub fn check(&self, observed: &Observed<'_>, state: &State, now: Timestamp) -> Result<Check> {
        let identity = observed.identity()?;
        self.check_endpoints((&Endpoints::of(observed)?, identity), state, now)
    }

    /// Applies the rules to counts in pages. The result is the same as with [`Rules::check`], but only the necessary parts of
    /// pages are read.
    ///
    /// # Errors
    /// The same as for [`Rules::check`], and `invalid_checkpoint` for a page that can't be read: see [`Pages::failed`].
    pub fn check_pages(
        &self,
        observed: &ObservedPages<'_>,
        state: &State,
        now: Timestamp,
    ) -> Result<Check> {
        let endpoints = observed.endpoints()?;
        let check = self.check_endpoints((&endpoints, observed.identity()?), state, now)?;
        observed.read_all().map(|()| check)
    }

    fn check_endpoints(
        &self,
        (endpoints, identity): (&Endpoints<'_>, Identity),
        state: &State,
        now: Timestamp,
    ) -> Result<Check> {
        for rule in &state.rules {
            check_past(rule.judged, now.unix_ms()).map_err(|error| error.with_argument("state"))?;
        }
        let mut check = Check {
            findings: Vec::new(),
            incidents: Vec::new(),
            judged: 0,
            healthy: true,
            unjudged: Vec::new(),
            left_out: 0,
            state: State::default(),
        };
        let (mut over, mut can_judge) = (Vec::new(), false);
        check.state.identity = identity.with(&state.identity, "state")?;
        for chunk in self.chunks(endpoints) {
            let mut tasks = Vec::new();
            for rule in chunk {
                let before = state.rule(&rule.name);
                match task(self, rule, endpoints) {
                    Ok(task) => {
                        can_judge = true;
                        tasks.push((task.since(before, now), before, task));
                    }
                    Err(NoTask::Error(error)) => return Err(error),
                    Err(NoTask::Reason(reason)) => {
                        check.unjudged.push(unjudged(rule, reason));
                        self.keep(rule, before, now, &mut check);
                        over.resize(check.findings.len(), None);
                    }
                }
            }
            let works = tasks.iter().map(|(ranges, before, task)| task.work(ranges, *before));
            let judged = judge_together(&works.collect::<Vec<_>>());
            for ((ranges, before, task), results) in tasks.iter().zip(&judged) {
                over.extend(task.check(*before, now, ranges.clone(), results, &mut check));
            }
        }
        self.sort(&mut check.unjudged);
        check.state.rules.sort_by(|one, other| one.name.cmp(&other.name));
        follow_incidents(&mut check, &over, state, now);
        check.findings.sort_by(|one, other| {
            rank(one.status).cmp(&rank(other.status)).then(heavier(one, other))
        });
        check.left_out += check.findings.len().saturating_sub(MOST_FINDINGS) as u64;
        check.findings.truncate(MOST_FINDINGS);
        let is_bad = |finding: &Finding| {
            matches!(finding.status, Status::Firing | Status::Unjudged)
                && finding.severity >= Severity::Warning
                && !finding.silenced
                && !finding.provisional
        };
        let latest = endpoints.latest();
        let stale = latest.and_then(|latest| stale(latest, now));
        // Without any counts, `unjudged` already has a reason for each rule.
        let is_recent = latest.is_some() && stale.is_none();
        check.healthy = can_judge && is_recent && !check.findings.iter().any(is_bad);
        check.unjudged.extend(stale);
        Ok(check)
    }

    /// Applies the rules to a range of the past, window after window, as checks would have done: what would have fired,
    /// when, and when it would have been resolved. Windows before the range are used only to learn what is normal.
    ///
    /// # Errors
    /// `unaligned_window`, `invalid_argument` and `incompatible_tables` as for [`Rules::check`].
    pub fn replay(&self, observed: &Observed<'_>, range: Window) -> Result<Replay> {
        observed.identity()?;
        self.replay_endpoints(&Endpoints::of(observed)?, range)
    }

    /// Applies the rules to a range of the past, with counts in pages. The result is the same as with
    /// [`Rules::replay`], but only the necessary parts of pages are read.
    ///
    /// # Errors
    /// The same as for [`Rules::replay`], and `invalid_checkpoint` for a page that can't be read: see [`Pages::failed`].
    pub fn replay_pages(&self, observed: &ObservedPages<'_>, range: Window) -> Result<Replay> {
        observed.identity()?;
        let replay = self.replay_endpoints(&observed.endpoints()?, range)?;
        observed.read_all().map(|()| replay)
    }

    fn replay_endpoints(&self, endpoints: &Endpoints<'_>, range: Window) -> Result<Replay> {
        let mut replay = Replay {
            findings: Vec::new(),
            incidents: Vec::new(),
            judged: 0,
            range,
            unjudged: Vec::new(),
            left_out: 0,
        };
        let mut over = Vec::new();
        for chunk in self.chunks(endpoints) {
            let mut tasks = Vec::new();
            for rule in chunk {
                match task(self, rule, endpoints) {
                    Ok(task) => tasks.push((task.within(range), task)),
                    Err(NoTask::Error(error)) => return Err(error),
                    Err(NoTask::Reason(reason)) => replay.unjudged.push(unjudged(rule, reason)),
                }
            }
            let works = tasks.iter().map(|(ranges, task)| task.work(ranges, None));
            let judged = judge_together(&works.collect::<Vec<_>>());
            for ((ranges, task), results) in tasks.iter().zip(&judged) {
                over.extend(task.replay(range, ranges.clone(), results, &mut replay));
            }
        }
        self.sort(&mut replay.unjudged);
        replay.incidents = incidents(&mut replay.findings, &over);
        replay.findings.sort_by(|one, other| {
            let times = (one.fired, one.since).cmp(&(other.fired, other.since));
            times.then(heavier(one, other))
        });
        replay.left_out += replay.findings.len().saturating_sub(MOST_FINDINGS * 10) as u64;
        replay.findings.truncate(MOST_FINDINGS * 10);
        Ok(replay)
    }

    /// Splits the rules into chunks that fit into memory. Each rule needs some memory for each row of the tables.
    fn chunks(&self, endpoints: &Endpoints<'_>) -> impl Iterator<Item = &[Rule]> {
        let most = MOST_PLACES / endpoints.rows().max(1);
        self.rules.chunks(most.max(1))
    }

    /// Sorts by the order of the rules.
    fn sort(&self, unjudged: &mut [Unjudged]) {
        let place = |one: &Unjudged| self.rules.iter().position(|rule| rule.name == one.rule);
        unjudged.sort_by_key(place);
    }

    /// Keeps the findings and the state of a rule that can't judge anything, so that its findings are neither resolved nor lost.
    fn keep(&self, rule: &Rule, before: Option<&RuleState>, now: Timestamp, check: &mut Check) {
        let live = before.iter().flat_map(|before| &before.live);
        let context = Context { rules: self, rule, at: now, judged: Some(now), provisional: false };
        let findings = live.map(|live| finding(&context, live, None, Inspection::default()));
        check.findings.extend(findings);
        check.state.rules.extend(before.cloned());
    }
}

/// Continues the incidents of the last check with the findings of this check. Provisional findings change the shown
/// incidents, but not the state. For each finding that is over, `over` has the end of the window that showed that it is over.
fn follow_incidents(check: &mut Check, over: &[Option<Timestamp>], before: &State, now: Timestamp) {
    let mut incidents = before.incidents.clone();
    // A silence stays until all windows in it are judged, and while the last bad window lies in it.
    let from = before.judged().map_or(now, |judged| judged.min(now));
    for incident in &mut incidents {
        if !incident.is_held(from) && !incident.is_silenced_to_its_end() {
            incident.hold = None;
        }
    }
    let mut following = Following::of(incidents);
    let has_fired = |finding: &Finding| finding.status != Status::Pending;
    following.follow(&mut check.findings, over, |one| has_fired(one) && !one.provisional);
    if check.left_out == 0 {
        following.end_others(&check.findings);
    }
    // Counts are judged only after they have settled, so a later check may report a finding that began before `now`.
    let judged = check.state.judged().map_or(now, |judged| judged.min(now));
    check.state.incidents = following.kept(judged);
    // Without a previous check, no incident was missed.
    if before.judged().is_some() {
        following.mark_missed();
    }
    following.follow(&mut check.findings, over, |one| has_fired(one) && one.provisional);
    check.incidents = following.shown();
    let mut held = BTreeSet::new();
    for incident in &mut check.incidents {
        if incident.is_held(now) || incident.is_silenced_to_its_end() {
            incident.silenced = true;
            held.insert(incident.id.as_str());
        } else {
            incident.hold = None;
        }
    }
    for finding in &mut check.findings {
        let incident = finding.incident.as_deref();
        finding.silenced |= incident.is_some_and(|incident| held.contains(incident));
    }
    check.incidents.sort_by(|one, other| {
        let order = rank(one.status).cmp(&rank(other.status));
        let order = order.then(other.severity.cmp(&one.severity));
        order.then_with(|| (one.fired, &one.id).cmp(&(other.fired, &other.id)))
    });
}

/// Returns a reason if the counts are too old to show whether all is well now.
fn stale(latest: Window, now: Timestamp) -> Option<Unjudged> {
    let (end, length) = (latest.end(), latest.end().unix_ms() - latest.start().unix_ms());
    let age_ms = now.unix_ms() - end.unix_ms();
    (age_ms > STALE_MS + 2 * length).then(|| {
        let hours = age_ms / 3_600_000;
        let reason =
            format!("the counts end at {} UTC, {hours} hours before the check", end.short());
        Unjudged { rule: "recent counts".to_owned(), reason }
    })
}

/// Orders findings by severity, then by evidence. For example, a silent source comes before one of its silent events.
fn heavier(one: &Finding, other: &Finding) -> Ordering {
    let weight = |finding: &Finding| deviance(finding.observed.part as f64, finding.expected);
    let severity = other.severity.cmp(&one.severity);
    severity.then_with(|| weight(other).total_cmp(&weight(one)))
}

const fn rank(status: Status) -> u8 {
    match status {
        Status::Firing => 0,
        Status::Unjudged => 1,
        Status::Pending => 2,
        Status::Resolved => 3,
    }
}

fn unjudged(rule: &Rule, reason: String) -> Unjudged {
    Unjudged { rule: rule.name.clone(), reason }
}
