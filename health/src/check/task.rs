//! Applies rules to counts: selects the slots that each rule judges, reads the counts of several rules together, and turns the
//! results into findings.

use std::ops::Range;

use tallyfold::{Dimension, Error, Metric, Result, Timestamp, Window};

use super::findings::{Context, Findings};
use super::progress::follow;
use super::result::{Check, Replay, Unjudged};
use super::state::{Live, RuleState};
use crate::columns::groups::{Block, Columns, Endpoints, Grid, NO_GROUP, read};
use crate::columns::slots::Slots;
use crate::rules::judging::{Groups, Judged, Judging, Other, Results, Sink};
use crate::rules::kind::Scope;
use crate::rules::kinds::RuleKind;
use crate::rules::rule::{FIRST_LOOK, Rule};
use crate::rules::set::{LocalDays, Rules};

/// The maximum number of findings that a rule keeps for the next check.
const MOST_LIVE: usize = 1_000;

/// A window whose counts may still change delays later windows by at most this many milliseconds.
const LATEST_SETTLED_MS: i64 = 86_400_000;

/// A rule with the groups and slots that it can judge.
pub(super) struct Task<'a> {
    rules: &'a Rules,
    rule: &'a Rule,
    grid: Grid<'a>,
    slots: Slots,
    /// The groups and slots of the other endpoint, for a rule that compares both endpoints.
    other: Option<(Grid<'a>, Slots)>,
}

/// The slots that are judged.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    pub(super) settled: Range<usize>,
    /// The slots after the settled ones, whose counts may still change.
    pub(super) provisional: Range<usize>,
}

/// Why a rule has no task.
pub(super) enum NoTask {
    /// The rule can't judge anything, for this reason.
    Reason(String),
    /// The counts can't be used.
    Error(Error),
}

impl From<Error> for NoTask {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Prepares a rule's task.
pub(super) fn task<'a>(
    rules: &'a Rules,
    rule: &'a Rule,
    endpoints: &'a Endpoints<'a>,
) -> Result<Task<'a>, NoTask> {
    let other = match rule.other() {
        Some((metric, of)) => Some(side(rule, (&of.by, &of.only), metric, endpoints)?),
        None => None,
    };
    let (grid, slots) = side(rule, (&rule.by, &rule.only), rule.metric, endpoints)?;
    Ok(Task { rules, rule, grid, slots, other })
}

/// Returns the groups and slots of an endpoint's counts.
fn side<'a>(
    rule: &Rule,
    (by, only): (&[Dimension], &[(Dimension, Vec<String>)]),
    metric: Metric,
    endpoints: &'a Endpoints<'a>,
) -> Result<(Grid<'a>, Slots), NoTask> {
    let counted = endpoints.get(metric);
    let counted =
        counted.ok_or_else(|| NoTask::Reason(format!("there are no counts of {metric}")))?;
    let grid = Grid::new(counted, by, only).map_err(|missing| {
        NoTask::Reason(format!("the counts of {metric} are not grouped by {missing}"))
    })?;
    let windows = counted.windows.iter();
    let windows = windows.map(|rows| (rows.window, rows.settled));
    let slots = Slots::of(windows, rule.window)?;
    let slots = slots.ok_or_else(|| NoTask::Reason("there are no counts at all".to_owned()))?;
    Ok((grid, slots))
}

impl Task<'_> {
    /// Returns the settled slots to judge, from the slot `from` until the time `end`, and the provisional slots after them. If
    /// the rule compares both endpoints, a slot is settled only if both endpoints' counts are.
    fn ranges(&self, from: usize, end: Timestamp) -> (Range<usize>, Range<usize>) {
        let slots = &self.slots;
        let is_over = |slot: usize, end: Timestamp| {
            slots.window(slot, 1).is_some_and(|window| window.end() <= end)
        };
        let last = |range: Range<usize>, slots: &Slots| range.rev().find(|slot| slots.known[*slot]);
        let len = (from..slots.len()).find(|slot| !is_over(*slot, end)).unwrap_or(slots.len());
        let late = Timestamp::from_unix_ms(end.unix_ms().saturating_sub(LATEST_SETTLED_MS));
        let is_late = |slot: usize| late.is_some_and(|late| is_over(slot, late));
        let other = self.other.as_ref();
        let other = other.map(|(_, other)| (other, last(0..other.len(), other)));
        let is_settled = |slot: usize| {
            let is_settled_there = |(other, last): (&Slots, Option<usize>)| {
                let place = slots.place_in(other, slot);
                place.is_none_or(|place| Some(place) <= last && other.settled[place])
            };
            slots.settled[slot] && other.is_none_or(is_settled_there)
        };
        let settled = (from..len).find(|slot| !is_settled(*slot) && !is_late(*slot)).unwrap_or(len);
        let settled = last(from..settled, slots).map_or(from, |last| last + 1);
        let end = last(settled..len, slots).map_or(settled, |last| last + 1);
        (from..settled, settled..end)
    }

    /// Returns what a check judges: the slots that have settled since the last check, and the provisional slots.
    pub(super) fn since(&self, before: Option<&RuleState>, now: Timestamp) -> Ranges {
        let from = match before {
            Some(before) => self.slots.from(before.judged),
            None => self.first_look(now),
        };
        let (settled, provisional) = self.ranges(from, now);
        Ranges { settled, provisional }
    }

    /// Returns what a replay judges.
    pub(super) fn within(&self, range: Window) -> Ranges {
        let from = self.slots.from(range.start());
        let (settled, _) = self.ranges(from, range.end());
        Ranges { provisional: settled.end..settled.end, settled }
    }

    /// Returns the slots to judge, with the earlier slots that the rule compares them with. Older slots have no effect,
    /// so they are left out.
    pub(super) fn work(&self, ranges: &Ranges, before: Option<&RuleState>) -> Work<'_> {
        let (start, end) = (ranges.settled.start, ranges.provisional.end);
        let back = match self.rule.history() {
            0 => 0,
            seconds => self.slots.in_seconds(seconds),
        };
        let skipped = start.saturating_sub(back);
        let other = self.other.as_ref().map(|(grid, slots)| {
            let first = self.slots.place_in(slots, skipped);
            Other { grid, slots: slots.without(first.unwrap_or_default()) }
        });
        let live = before.iter().flat_map(|before| &before.live);
        let watched = live.filter(|live| self.is_own(live)).filter_map(|live| {
            let group = self.find(live)?;
            u32::try_from(group).ok()
        });
        let mut watched: Vec<u32> = watched.collect();
        watched.sort_unstable();
        Work {
            rule: self.rule,
            grid: &self.grid,
            other,
            calendars: &self.rules.calendars,
            has_day_off_rule: self.rules.rules.iter().any(|rule| rule.kind() == RuleKind::DayOff),
            watched,
            slots: self.slots.without(skipped),
            range: start - skipped..end - skipped,
            skipped,
        }
    }

    /// Adds the rule's findings and its new state to a check. For each finding that is over, returns the end of the window
    /// that showed that it is over.
    pub(super) fn check(
        &self,
        before: Option<&RuleState>,
        now: Timestamp,
        Ranges { settled, provisional }: Ranges,
        results: &Judged,
        check: &mut Check,
    ) -> Vec<Option<Timestamp>> {
        check.judged += results.judged;
        check.unjudged.extend(self.unjudged(settled.clone(), results));
        let judged = self.slots.instant(settled.end).unwrap_or(now);
        let mut state = RuleState {
            name: self.rule.name.clone(),
            judged: before.map_or(judged, |before| judged.max(before.judged)),
            live: Vec::new(),
        };
        let mut over = Vec::new();
        let mut findings = self.findings(now);
        findings.context.judged = Some(state.judged);
        for (group, live) in self.groups(before, results) {
            let absent = match group {
                Some(_) => Judged::default(),
                None => self.absent(settled.start..provisional.end),
            };
            let of = match group {
                Some(group) => results.of(group),
                None => Results { bad: &absent.bad, seen: &absent.seen },
            };
            let names = match &live {
                Some(live) => live.group.clone(),
                None => self.names(group),
            };
            let follow = |live, range| follow(self.rule, &names, live, of, &self.slots, range);
            let mut progress = follow(live, settled.clone());
            if before.is_some() {
                findings.add_resolved(group, &progress);
            }
            let live = progress.live.take();
            // The counts of the following windows may still change, so the state doesn't contain their results.
            let later = follow(live.clone(), provisional.clone());
            let end = progress.resolved.last().map(|end| end.at);
            over.resize(findings.all.len(), end);
            findings.add_live(group, live.as_ref(), later.live);
            over.resize(findings.all.len(), None);
            state.live.extend(live);
        }
        check.findings.append(&mut findings.all);
        check.left_out += state.live.len().saturating_sub(MOST_LIVE) as u64;
        state.live.truncate(MOST_LIVE);
        check.state.rules.push(state);
        over
    }

    /// Returns the results of a group that the table does not have. Such a group has no events, which may be below a
    /// lower limit.
    fn absent(&self, range: Range<usize>) -> Judged {
        // The group is marked as watched, so that the sink keeps what its windows show.
        let mut sink = Sink::new(&range, vec![0]);
        let none = vec![0; self.slots.len()];
        let columns =
            Columns { parts: &none, wholes: self.rule.measure.is_rate().then_some(&none) };
        let by = (self.rule.measure, self.rule.fewest());
        let judging = Judging::new(by, &self.slots, self.grid.len(), range);
        self.rule.test.judge().group(&judging, columns, &mut sink);
        Judged {
            bad: match self.rule.test.judge().judges_absent() {
                true => sink.bad,
                false => Vec::new(),
            },
            seen: sink.seen,
            judged: 0,
        }
    }

    /// Returns the slot at which the first check begins.
    fn first_look(&self, now: Timestamp) -> usize {
        let (settled, _) = self.ranges(0, now);
        let windows = (self.rule.bad + self.rule.good) as usize;
        let look = self.slots.in_seconds(FIRST_LOOK).max(windows);
        settled.end.saturating_sub(look)
    }

    /// If the rule had windows to judge but judged none, returns the reason.
    fn unjudged(&self, range: Range<usize>, results: &Judged) -> Option<Unjudged> {
        let is_none = results.judged == 0 && !range.is_empty();
        is_none.then(|| Unjudged {
            rule: self.rule.name.clone(),
            reason: match self.rule.history() {
                0 => format!("no group has at least {} events", self.rule.fewest()),
                _ => format!(
                    "there is not enough history, or no group has at least {} events",
                    self.rule.fewest()
                ),
            },
        })
    }

    /// Adds the rule's findings in a past range to a replay. For each finding that is over, returns the end of the window
    /// that showed that it is over.
    pub(super) fn replay(
        &self,
        range: Window,
        ranges: Ranges,
        results: &Judged,
        replay: &mut Replay,
    ) -> Vec<Option<Timestamp>> {
        let settled = ranges.settled;
        replay.judged += results.judged;
        replay.unjudged.extend(self.unjudged(settled.clone(), results));
        let mut over = Vec::new();
        let mut findings = self.findings(range.end());
        for (group, _) in self.groups(None, results) {
            let of = group.map_or_else(Results::default, |group| results.of(group));
            let names = self.names(group);
            let progress = follow(self.rule, &names, None, of, &self.slots, settled.clone());
            for (place, live) in progress.fired.iter().enumerate() {
                let end = progress.resolved.get(place);
                findings.context.at = live.numbers.window.end();
                findings.add(group, live, end, false);
                over.push(end.map(|end| end.at));
            }
        }
        replay.findings.append(&mut findings.all);
        over
    }

    /// Returns the groups that have a bad window or a finding from the last check, sorted, each with this finding if it has
    /// one. The position is `None` for a group that the table does not have.
    fn groups(
        &self,
        before: Option<&RuleState>,
        results: &Judged,
    ) -> Vec<(Option<usize>, Option<Live>)> {
        let mut groups: Vec<(Option<usize>, Option<Live>)> = Vec::new();
        let live = before.iter().flat_map(|before| &before.live);
        for live in live.filter(|live| self.is_own(live)) {
            groups.push((self.find(live), Some(live.clone())));
        }
        for bad in &results.bad {
            let group = Some(bad.group as usize);
            if groups.last().is_none_or(|(last, _)| *last != group) {
                groups.push((group, None));
            }
        }
        let values = |group: &(Option<usize>, Option<Live>)| match &group.1 {
            Some(live) => live.group.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(),
            None => self.names(group.0).into_iter().map(|(_, value)| value).collect(),
        };
        // The sort is stable, so an entry with a finding from the last check comes first.
        groups.sort_by_cached_key(values);
        groups.dedup_by(|later, first| later.0.is_some() && later.0 == first.0);
        groups
    }

    /// Returns whether the dimensions of a finding's group are the rule's dimensions. They may differ after the rules
    /// file was changed.
    fn is_own(&self, live: &Live) -> bool {
        let names = live.group.iter().map(|(name, _)| *name);
        names.eq(self.rule.by.iter().copied())
    }

    /// Returns the position of a finding's group in the table.
    fn find(&self, live: &Live) -> Option<usize> {
        let values: Vec<&str> = live.group.iter().map(|(_, value)| value.as_str()).collect();
        self.grid.find(&values)
    }

    fn findings(&self, at: Timestamp) -> Findings<'_> {
        let context =
            Context { rules: self.rules, rule: self.rule, at, judged: None, provisional: false };
        Findings::new(context, (&self.grid, &self.slots), self.other.as_ref())
    }

    /// Returns the dimensions and values of a group.
    fn names(&self, group: Option<usize>) -> Vec<(Dimension, String)> {
        let values = group.map_or_else(Vec::new, |group| self.grid.values(group));
        let names = self.rule.by.iter().copied();
        names.zip(values.into_iter().map(str::to_owned)).collect()
    }
}

/// What a rule reads and judges: the judged slots, and the earlier slots that the rule compares them with.
pub(crate) struct Work<'w> {
    pub(crate) rule: &'w Rule,
    pub(crate) grid: &'w Grid<'w>,
    /// The counts of the other endpoint, for a rule that compares both endpoints.
    pub(crate) other: Option<Other<'w>>,
    /// All calendars of the rules file.
    pub(crate) calendars: &'w [LocalDays],
    /// Whether the rules file has a rule of the kind `day_off`. If so, rules of the kind `volume` ignore declines that look like
    /// a day off.
    pub(crate) has_day_off_rule: bool,
    /// The groups whose findings continue, sorted.
    pub(crate) watched: Vec<u32>,
    /// The slots that the rule reads.
    pub(crate) slots: Slots,
    /// The range of the judged slots in `slots`.
    pub(crate) range: Range<usize>,
    /// How many slots of the table were left out before `slots`.
    pub(crate) skipped: usize,
}

/// Some groups of a rule that are judged together.
struct Piece {
    /// The position of the rule.
    rule: usize,
    groups: Range<usize>,
    /// How many numbers are in memory for these groups.
    numbers: usize,
}

/// The maximum number of counts in memory at a time: 32 MiB.
const NUMBERS: usize = 1 << 22;

/// The maximum number of counts in memory at a time if the table is kept outside of memory: 8 MiB.
const KEPT_NUMBERS: usize = 1 << 20;

/// Judges several rules. It reads the counts of as many rules at a time as fit into memory.
pub(crate) fn judge_together(works: &[Work<'_>]) -> Vec<Judged> {
    let judgings: Vec<Judging<'_>> = works.iter().map(Work::judging).collect();
    let mut sinks: Vec<Sink> = works.iter().map(Work::sink).collect();
    let pieces = works.iter().enumerate().flat_map(|(at, work)| work.pieces(at));
    let mut pieces: Vec<Piece> = pieces.collect();
    // Rules about the same table are judged together.
    pieces.sort_by_key(|piece| works[piece.rule].rule.metric);
    let mut rest = pieces.as_slice();
    while let Some(first) = rest.first() {
        let mut numbers = 0;
        let metric = works[first.rule].rule.metric;
        let fits = rest.iter().take_while(|piece| {
            numbers += piece.numbers;
            let work = &works[piece.rule];
            work.rule.metric == metric && numbers <= work.numbers()
        });
        let (together, later) = rest.split_at(fits.count().max(1));
        let blocks = together.iter().map(|piece| works[piece.rule].block(piece));
        let mut blocks: Vec<Block<'_>> = blocks.collect();
        read(works[first.rule].grid.counted(), &mut blocks);
        for (piece, block) in together.iter().zip(&blocks) {
            let work = &works[piece.rule];
            work.groups(&judgings[piece.rule], piece.groups.clone(), block, &mut sinks[piece.rule]);
        }
        rest = later;
    }
    let all = works.iter().zip(&judgings).zip(sinks);
    all.map(|((work, judging), sink)| work.judged(judging, sink)).collect()
}

impl Work<'_> {
    fn sink(&self) -> Sink {
        Sink::new(&self.range, self.watched.clone())
    }

    fn judging(&self) -> Judging<'_> {
        let by = (self.rule.measure, self.rule.fewest());
        let mut judging = Judging::new(by, &self.slots, self.grid.len(), self.range.clone());
        let mut dimensions = self.rule.dimensions();
        judging.is_of_sources = dimensions.all(|own| own == Dimension::WriteKey);
        judging.has_day_off_rule = self.has_day_off_rule;
        let calendars = self.calendars.iter().filter(|own| own.is_of(self.rule));
        let calendars: Vec<&LocalDays> = calendars.collect();
        if calendars.is_empty() {
            return judging;
        }
        let of_group = |group: usize| {
            let names = self.rule.by.iter().copied();
            let values: Vec<(Dimension, &str)> = names.zip(self.grid.values(group)).collect();
            let own = calendars.iter().position(|one| one.covers(self.rule, &values));
            own.map_or(0, |place| place + 1)
        };
        let calendar_of = (0..self.grid.len()).map(of_group).collect();
        judging.with_calendars(calendars.iter().map(|own| &own.local), calendar_of)
    }

    /// Returns the maximum number of counts in memory at a time.
    fn numbers(&self) -> usize {
        match self.grid.counted().is_kept() {
            true => KEPT_NUMBERS,
            false => NUMBERS,
        }
    }

    /// Returns the groups in pieces whose counts fit into memory.
    fn pieces(&self, rule: usize) -> impl Iterator<Item = Piece> + use<> {
        let is_read = !self.range.is_empty() && self.rule.form().scope != Scope::Totals;
        let groups = if is_read { self.grid.len() } else { 0 };
        let each = self.slots.len().max(1) * if self.rule.measure.is_rate() { 2 } else { 1 };
        let most = (self.numbers() / each).max(1);
        (0..groups).step_by(most).map(move |start| {
            let groups = start..groups.min(start + most);
            let numbers = groups.len().saturating_mul(each);
            Piece { rule, groups, numbers }
        })
    }

    fn block(&self, piece: &Piece) -> Block<'_> {
        let (start, length) = (piece.groups.start as u32, piece.groups.len() as u32);
        let place_of = |group: u32| match group.checked_sub(start) {
            Some(place) if place < length => place,
            _ => NO_GROUP,
        };
        let measure = self.rule.measure;
        Block::new(self.grid, &self.slots, measure, length as usize, place_of)
    }

    /// Judges some groups.
    fn groups(
        &self,
        judging: &Judging<'_>,
        range: Range<usize>,
        block: &Block<'_>,
        sink: &mut Sink,
    ) {
        let groups = Groups { grid: self.grid, range, block, other: self.other.as_ref() };
        self.rule.test.judge().groups(judging, &groups, sink);
    }

    /// Returns the results, with slots numbered as in the whole table.
    fn judged(&self, judging: &Judging<'_>, mut sink: Sink) -> Judged {
        self.rule.test.judge().all(judging, self.grid, &mut sink);
        sink.close();
        for bad in &mut sink.bad {
            bad.slot += self.skipped as u32;
        }
        for seen in &mut sink.seen {
            seen.slot += self.skipped as u32;
        }
        Judged {
            judged: sink.tests.iter().map(|tests| u64::from(*tests)).sum(),
            bad: sink.bad,
            seen: sink.seen,
        }
    }
}
