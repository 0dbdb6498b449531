//! Checks and replays.

use std::ops::Range;

use tallyfold::{CountTable, Dimension, Metric, Result, Timestamp, Window};

use super::course::{Course, follow};
use super::finding::{Finding, Status};
use super::grid::Grid;
use super::judge::{Judged, judge};
use super::outcome::{Check, Observed, Replay, Unjudged};
use super::slots::Slots;
use super::state::{Live, RuleState, State};
use super::told::{Telling, told};
use crate::rules::names::Severity;
use crate::rules::rule::{FIRST_LOOK, Rule};
use crate::rules::set::Rules;

/// The findings of one check at most.
const MOST_FINDINGS: usize = 1_000;

/// The findings of a rule that are kept for the next check at most.
const MOST_LIVE: usize = 1_000;

/// What one rule has to judge.
struct Task<'a> {
    rules: &'a Rules,
    rule: &'a Rule,
    grid: Grid<'a>,
    slots: Slots,
}

impl Rules {
    /// Applies the rules to counts: judges the windows that have settled since the last check, and says what is firing,
    /// pending or just resolved. Without any state, it judges those of the last day. `now` is for silences, and no window
    /// that ends after it is judged.
    ///
    /// The same counts and state give the same findings. A check that comes twice judges nothing twice, and one that comes late
    /// judges the windows in between.
    ///
    /// # Errors
    /// `unaligned_window` for a table whose windows are longer than those of a rule, or cross the edge of one.
    pub fn check(&self, observed: &Observed<'_>, state: &State, now: Timestamp) -> Result<Check> {
        let mut check = Check {
            findings: Vec::new(),
            judged: 0,
            healthy: true,
            unjudged: Vec::new(),
            left_out: 0,
            state: State::default(),
        };
        for rule in &self.rules {
            let before = state.rule(&rule.name);
            match task(self, rule, observed)? {
                Ok(task) => task.check(before, now, &mut check),
                Err(reason) => {
                    check.unjudged.push(unjudged(rule, reason));
                    check.state.rules.extend(before.cloned());
                }
            }
        }
        check
            .state
            .rules
            .sort_by(|one, other| one.name.cmp(&other.name));
        check
            .findings
            .sort_by_key(|finding| (rank(finding.status), std::cmp::Reverse(finding.severity)));
        check.left_out += check.findings.len().saturating_sub(MOST_FINDINGS) as u64;
        check.findings.truncate(MOST_FINDINGS);
        let is_bad = |finding: &Finding| {
            finding.status == Status::Firing
                && finding.severity >= Severity::Warning
                && !finding.silenced
                && !finding.provisional
        };
        check.healthy = !check.findings.iter().any(is_bad);
        Ok(check)
    }

    /// Applies the rules to a range of the past, window after window, as checks would have done: what would have fired,
    /// when, and when it would have been resolved. Windows before the range only teach what is normal.
    ///
    /// # Errors
    /// As [`Rules::check`].
    pub fn replay(&self, observed: &Observed<'_>, range: Window) -> Result<Replay> {
        let mut replay = Replay {
            findings: Vec::new(),
            judged: 0,
            range,
            unjudged: Vec::new(),
            left_out: 0,
        };
        for rule in &self.rules {
            match task(self, rule, observed)? {
                Ok(task) => task.replay(range, &mut replay),
                Err(reason) => replay.unjudged.push(unjudged(rule, reason)),
            }
        }
        replay
            .findings
            .sort_by_key(|finding| (finding.fired, finding.since));
        replay.left_out += replay.findings.len().saturating_sub(MOST_FINDINGS * 10) as u64;
        replay.findings.truncate(MOST_FINDINGS * 10);
        Ok(replay)
    }
}

const fn rank(status: Status) -> u8 {
    match status {
        Status::Firing => 0,
        Status::Pending => 1,
        Status::Resolved => 2,
    }
}

fn unjudged(rule: &Rule, reason: String) -> Unjudged {
    Unjudged {
        rule: rule.name.clone(),
        reason,
    }
}

/// What a rule has to judge; the inner error is why it can't.
fn task<'a>(
    rules: &'a Rules,
    rule: &'a Rule,
    observed: &Observed<'a>,
) -> Result<Result<Task<'a>, String>> {
    let table: Option<&CountTable> = match rule.metric {
        Metric::EventDelivery => observed.delivery,
        Metric::EventIngestion => observed.ingestion,
    };
    let Some(table) = table else {
        return Ok(Err(format!("there are no counts of {}", rule.metric)));
    };
    let grid = match Grid::new(table, &rule.by, &rule.only) {
        Ok(grid) => grid,
        Err(missing) => {
            let reason = format!("the counts of {} are not by {missing}", rule.metric);
            return Ok(Err(reason));
        }
    };
    let windows = table.windowed().windows.into_iter();
    let slots = Slots::of(windows.map(|rows| (rows.window, rows.settled)), rule.window)?;
    Ok(match slots {
        Some(slots) => Ok(Task {
            rules,
            rule,
            grid,
            slots,
        }),
        None => Err("there are no counts at all".to_owned()),
    })
}

impl Task<'_> {
    /// The settled slots that are judged from one on, none of which ends after an instant, and the provisional ones after them.
    fn ranges(&self, from: usize, end: Timestamp) -> (Range<usize>, Range<usize>) {
        let slots = &self.slots;
        let is_over = |slot: usize| {
            slots
                .window(slot, 1)
                .is_some_and(|window| window.end() <= end)
        };
        let last = |range: Range<usize>| range.rev().find(|slot| slots.known[*slot]);
        let len = (from..slots.len())
            .find(|slot| !is_over(*slot))
            .unwrap_or(slots.len());
        let settled = (from..len)
            .find(|slot| !slots.settled[*slot])
            .unwrap_or(len);
        let settled = last(from..settled).map_or(from, |last| last + 1);
        let end = last(settled..len).map_or(settled, |last| last + 1);
        (from..settled, settled..end)
    }

    fn check(&self, before: Option<&RuleState>, now: Timestamp, check: &mut Check) {
        let from = match before {
            Some(before) => self.slots.from(before.judged),
            None => {
                let (settled, _) = self.ranges(0, now);
                let windows = (self.rule.bad + self.rule.good) as usize;
                settled
                    .end
                    .saturating_sub(self.slots.in_seconds(FIRST_LOOK).max(windows))
            }
        };
        let (settled, provisional) = self.ranges(from, now);
        let odds = judge(
            self.rule,
            &self.grid,
            &self.slots,
            settled.start..provisional.end,
        );
        check.judged += odds.judged;
        let judged = self.slots.instant(settled.end).unwrap_or(now);
        let mut state = RuleState {
            name: self.rule.name.clone(),
            judged: before.map_or(judged, |before| judged.max(before.judged)),
            live: Vec::new(),
        };
        for (group, live) in self.groups(before, &odds) {
            let of = group.map_or(&[][..], |group| odds.of(group));
            let names = live
                .as_ref()
                .map_or_else(|| self.names(group), |live| live.group.clone());
            let course = follow(self.rule, &names, live, of, &self.slots, settled.clone());
            self.tell(&course, before.is_some(), now, check);
            // On from here, for what may still change.
            let later = follow(
                self.rule,
                &names,
                course.live.clone(),
                of,
                &self.slots,
                provisional.clone(),
            );
            if course.live.as_ref().is_none_or(|live| live.fired.is_none())
                && let Some(live) = later
                    .live
                    .filter(|later| Some(later) != course.live.as_ref())
            {
                check.findings.push(self.told(&live, None, now, true));
            } else if let Some(live) = &course.live {
                check.findings.push(self.told(live, None, now, false));
            }
            state.live.extend(course.live);
        }
        check.left_out += state.live.len().saturating_sub(MOST_LIVE) as u64;
        state.live.truncate(MOST_LIVE);
        check.state.rules.push(state);
    }

    /// Tells what was resolved, unless it came again or nobody has been told that it was firing.
    fn tell(&self, course: &Course, has_state: bool, now: Timestamp, check: &mut Check) {
        let is_firing = course
            .live
            .as_ref()
            .is_some_and(|live| live.fired.is_some());
        if let (Some((live, end)), true, false) = (course.resolved.last(), has_state, is_firing) {
            check.findings.push(self.told(live, Some(*end), now, false));
        }
    }

    fn replay(&self, range: Window, replay: &mut Replay) {
        let from = self.slots.from(range.start());
        let (settled, _) = self.ranges(from, range.end());
        let odds = judge(self.rule, &self.grid, &self.slots, settled.clone());
        replay.judged += odds.judged;
        for (group, _) in self.groups(None, &odds) {
            let of = group.map_or(&[][..], |group| odds.of(group));
            let names = self.names(group);
            let course = follow(self.rule, &names, None, of, &self.slots, settled.clone());
            for (place, live) in course.fired.iter().enumerate() {
                let end = course.resolved.get(place).map(|(_, end)| *end);
                let at = live.numbers.window.end();
                replay.findings.push(self.told(live, end, at, false));
            }
        }
    }

    /// The groups that have something bad or have had so, sorted, each with what is known of it.
    fn groups(
        &self,
        before: Option<&RuleState>,
        odds: &Judged,
    ) -> Vec<(Option<usize>, Option<Live>)> {
        let mut groups: Vec<(Option<usize>, Option<Live>)> = Vec::new();
        let is_own = |live: &&Live| {
            live.group
                .iter()
                .map(|(name, _)| *name)
                .eq(self.rule.by.iter().copied())
        };
        for live in before.iter().flat_map(|before| &before.live).filter(is_own) {
            let values: Vec<&str> = live.group.iter().map(|(_, value)| value.as_str()).collect();
            groups.push((self.grid.find(&values), Some(live.clone())));
        }
        for odd in &odds.odds {
            let group = Some(odd.group as usize);
            if groups.last().is_none_or(|(last, _)| *last != group) {
                groups.push((group, None));
            }
        }
        let values = |group: &(Option<usize>, Option<Live>)| match &group.1 {
            Some(live) => live
                .group
                .iter()
                .map(|(_, value)| value.clone())
                .collect::<Vec<_>>(),
            None => self
                .names(group.0)
                .into_iter()
                .map(|(_, value)| value)
                .collect(),
        };
        // Stable, so that what is known of a group stands first.
        groups.sort_by_cached_key(values);
        groups.dedup_by(|later, first| later.0.is_some() && later.0 == first.0);
        groups
    }

    fn names(&self, group: Option<usize>) -> Vec<(Dimension, String)> {
        let values = group.map_or_else(Vec::new, |group| self.grid.values(group));
        let names = self.rule.by.iter().copied();
        names.zip(values.into_iter().map(str::to_owned)).collect()
    }

    fn told(
        &self,
        live: &Live,
        resolved: Option<Timestamp>,
        at: Timestamp,
        provisional: bool,
    ) -> Finding {
        let telling = Telling {
            rules: self.rules,
            rule: self.rule,
            at,
            provisional,
        };
        told(&telling, live, resolved, None)
    }
}
