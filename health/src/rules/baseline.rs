//! Predicts the windows of a group from earlier weeks, and finds windows that deviate from the prediction.

use std::ops::Range;

use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::Fraction;

use super::judging::{Judging, Normal, Odd, Sink};
use super::kind::{Compared, Misfit};
use super::names::Side;
use super::values::{named, share};
use crate::baseline::levels::Levels;
use crate::baseline::sample::Windows;
use crate::baseline::stream::{Level, Season, Stream};
use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::detection::window::{UNREMARKABLE, is_enough, is_unremarkable, judge};

/// Seconds of a week.
pub(crate) const WEEK: u64 = 7 * 86_400;

/// How much a stream varies is learned window after window. Learning restarts after each period of this length, in
/// seconds counted from 1970, so that a check of one window and a replay of many give the same levels.
const ANEW: u64 = WEEK;

/// How much a stream varies is also learned from this many seconds before the first judged window of such a period.
const WARM_UP: u64 = 2 * 86_400;

/// The natural logarithm of 2. A test of both sides doubles the probability.
const LN_2: f64 = std::f64::consts::LN_2;

/// How windows are compared with earlier weeks.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    weeks: usize,
    neighbours: usize,
    side: Side,
    false_alarms: f64,
    /// `None` for the default of the kind of rule.
    change: Option<Fraction>,
}

/// Six weeks, with one neighbour on each side. Both more and less than usual is bad, and there is one false alarm in
/// 300 days.
impl Default for Baseline {
    fn default() -> Self {
        Self {
            weeks: 6,
            neighbours: 1,
            side: Side::Both,
            false_alarms: 0.1,
            change: None,
        }
    }
}

impl Baseline {
    /// How many weeks, from 1 to 8.
    #[must_use]
    pub fn weeks(self, weeks: usize) -> Self {
        Self { weeks, ..self }
    }

    /// How many neighbours of the same window of the week, on each side, up to 8.
    #[must_use]
    pub fn neighbours(self, neighbours: usize) -> Self {
        Self { neighbours, ..self }
    }

    /// Which deviations are bad.
    #[must_use]
    pub fn side(self, side: Side) -> Self {
        Self { side, ..self }
    }

    /// The expected number of false alarms in 30 days if nothing changes: from 0.000001 to 100.
    #[must_use]
    pub fn false_alarms(self, false_alarms: f64) -> Self {
        Self {
            false_alarms,
            ..self
        }
    }

    /// The smallest change that matters: for a count, relative to the expected count; for a share, the difference.
    #[must_use]
    pub fn change(self, change: Fraction) -> Self {
        let change = Some(change);
        Self { change, ..self }
    }

    /// Sets the smallest change, unless it is set already.
    pub(crate) fn or_change(self, usual: Fraction) -> Self {
        let change = self.change.or(Some(usual));
        Self { change, ..self }
    }

    /// Reads the keys of a baseline that a kind of rule has.
    pub(crate) fn read(table: &Table<'_>) -> Result<Self> {
        let mut baseline = Self::default();
        if let Some(entry) = table.entry("baseline") {
            let inner = entry.table("want a table such as { weeks = 6, neighbours = 1 }")?;
            inner.check_keys(&["weeks", "neighbours"])?;
            for entry in inner.entries() {
                match entry.name {
                    "weeks" => baseline.weeks = entry.within(1, 8, "a number of weeks")? as usize,
                    _ => baseline.neighbours = entry.within(0, 8, "a number of windows")? as usize,
                }
            }
        }
        if let Some(entry) = table.entry("side") {
            baseline.side = named(&entry, "side", Side::ALL, Side::as_str)?;
        }
        if let Some(entry) = table.entry("false_alarms") {
            let number = Fraction::decimal(&entry.number_text(WANT_FALSE_ALARMS)?);
            let number = number.ok_or_else(|| entry.wrong(WANT_FALSE_ALARMS))?;
            baseline.false_alarms = number.as_f64();
        }
        if let Some(entry) = table.entry("change") {
            baseline.change = Some(share(&entry)?);
        }
        Ok(baseline)
    }

    /// What is wrong with it.
    pub(crate) fn misfit(&self) -> Option<Misfit> {
        if !(1..=8).contains(&self.weeks) || self.neighbours > 8 {
            return Some(Misfit::of(
                "baseline",
                "want 1 to 8 weeks and up to 8 neighbours",
            ));
        }
        let is_wanted = (1e-6..=100.0).contains(&self.false_alarms);
        (!is_wanted).then(|| Misfit::of("false_alarms", WANT_FALSE_ALARMS))
    }

    /// How many seconds of history the level of a window needs. This includes the history of the earlier levels, which
    /// show how much the stream varies.
    pub(crate) fn history(&self, window: u64) -> u64 {
        let neighbours = self.neighbours as u64 * window;
        self.weeks as u64 * WEEK + neighbours + WARM_UP + ANEW
    }

    /// The earlier counts that a finding is compared with.
    pub(crate) fn compared(&self) -> Compared {
        Compared {
            weeks: self.weeks,
            ..Compared::FOUR_WEEKS
        }
    }

    /// Which deviations are bad.
    pub(crate) fn bad_side(&self) -> Side {
        self.side
    }

    /// The smallest change that matters, as a float.
    pub(crate) fn least_change(&self) -> f64 {
        self.change.map_or(0.0, Fraction::as_f64)
    }

    /// The share of windows that may be false alarms.
    pub(crate) fn rate(&self, judging: &Judging<'_>) -> f64 {
        judging.rate_of(self.false_alarms)
    }

    /// The season of counts: they repeat each week.
    pub(crate) fn season(&self, judging: &Judging<'_>) -> Season {
        Season {
            period: judging.slots.in_seconds(WEEK),
            neighbours: self.neighbours,
            seasons: self.weeks,
            shorter: judging.slots.in_seconds(86_400),
        }
    }

    /// Judges some windows of a group, one by one. `drifts` are the windows in which small deviations have added up, in
    /// chronological order.
    pub(crate) fn group(
        &self,
        judging: &Judging<'_>,
        columns: Columns<'_>,
        expected: &Expected,
        drifts: Vec<Odd>,
        sink: &mut Sink,
    ) {
        let ln_rate = libm::log(self.rate(judging));
        let least = judging.least;
        let mut drifts = drifts.into_iter().peekable();
        for slot in judging.known() {
            while drifts.next_if(|odd| (odd.slot as usize) < slot).is_some() {}
            let drift = drifts.next_if(|odd| odd.slot as usize == slot);
            let (part, whole) = columns.at(slot);
            let Some(level) = expected.at(slot) else {
                continue;
            };
            let is_judged = match whole {
                Some(whole) => whole >= least,
                None => is_enough(part, None, level, least),
            };
            if !is_judged {
                continue;
            }
            sink.judged(slot);
            // Late events make counts grow, so a count that is low before the window is settled proves nothing.
            let side = match judging.slots.settled[slot] || whole.is_some() {
                true => self.side,
                false => Side::High,
            };
            let odd = match is_unremarkable(part, whole, level) {
                true => None,
                false => self.window(slot, side, Amount { part, whole }, level, ln_rate),
            };
            let is_clear = odd.as_ref().is_some_and(|odd| odd.fires);
            if let Some(odd) = drift.filter(|_| !is_clear).or(odd) {
                sink.take(odd);
            }
        }
    }

    /// Compares a window with its level. The result is `None` unless the window is bad or may keep a finding from ending.
    fn window(
        &self,
        slot: usize,
        side: Side,
        observed: Amount,
        level: &Level,
        ln_rate: f64,
    ) -> Option<Odd> {
        let Amount { part, whole } = observed;
        let expected = level.expected * whole.map_or(1.0, |whole| whole as f64);
        let is_high = part as f64 > expected;
        let is_bad_side = match side {
            Side::Both => true,
            Side::High => is_high,
            Side::Low => !is_high,
        };
        let least_change = self.least_change() * whole.map_or(expected, |whole| whole as f64);
        let change = (part as f64 - expected).abs();
        if !is_bad_side || change < least_change / 2.0 {
            return None;
        }
        let tails = judge(part, whole, level);
        let ln_p = match side {
            Side::Both => tails.low.min(tails.high) + LN_2,
            Side::High => tails.high,
            Side::Low => tails.low,
        };
        let normal = Normal::Likely {
            expected: level.expected,
            dispersion: level.dispersion,
            ln_p: ln_rate,
        };
        (ln_p <= UNREMARKABLE).then_some(Odd {
            fires: ln_p <= ln_rate && change >= least_change,
            ln_p: Some(ln_p),
            ..Odd::of(slot, observed, expected, normal)
        })
    }
}

const WANT_FALSE_ALARMS: &str = "want a number of false alarms in 30 days, from 0.000001 to 100";

/// The counts of a group as a stream.
pub(crate) fn stream<'a>(judging: &'a Judging<'_>, columns: Columns<'a>) -> Stream<'a> {
    Stream {
        counts: columns.parts,
        wholes: columns.wholes,
        known: &judging.finals,
    }
}

/// The levels of some slots of a group.
#[derive(Debug)]
pub(crate) struct Expected {
    first: usize,
    levels: Vec<Option<Level>>,
}

impl Expected {
    /// The levels of the slots of a range, each predicted from the windows before it.
    ///
    /// How much a stream varies is learned window after window. Learning restarts each week, counted from 1970, so that
    /// a check of one window and a replay of many give the same levels.
    pub(crate) fn of(
        judging: &Judging<'_>,
        season: &Season,
        stream: &Stream<'_>,
        range: Range<usize>,
    ) -> Self {
        let slots = judging.slots;
        let (anew, warm_up) = (slots.in_seconds(ANEW), slots.in_seconds(WARM_UP));
        let looked_back = looked_back(season, warm_up);
        let first = slots.begin_of(range.start, anew);
        let first = first.saturating_sub(looked_back);
        let windows = Windows::new(&part_of(stream, first..range.end), season);
        let mut levels = Vec::with_capacity(range.len());
        let mut start = range.start;
        while start < range.end {
            let begin = slots.begin_of(start, anew);
            let end = slots.end_of(start, anew).min(range.end);
            if slots.known[start..end].contains(&true) {
                let history = looked_back.min(begin);
                let own = windows.part(begin - history - first..end - first);
                let is_rate = stream.wholes.is_some();
                let own = Levels::of(own, is_rate, season, (history, warm_up));
                levels.extend(own.skip(start - begin).take(end - start));
            }
            levels.resize(end - range.start, None);
            start = end;
        }
        Self {
            first: range.start,
            levels,
        }
    }

    /// The level of a slot, if there is enough history.
    pub(crate) fn at(&self, slot: usize) -> Option<&Level> {
        self.levels.get(slot.checked_sub(self.first)?)?.as_ref()
    }
}

/// How many slots before the first one are read: the slots that the variance is learned from, and the history that the
/// first of these needs.
fn looked_back(season: &Season, warm_up: usize) -> usize {
    season
        .seasons
        .saturating_mul(season.period)
        .saturating_add(season.neighbours)
        .saturating_add(warm_up)
}

/// Some slots of a stream.
fn part_of<'s>(stream: &Stream<'s>, range: Range<usize>) -> Stream<'s> {
    Stream {
        counts: &stream.counts[range.clone()],
        wholes: stream.wholes.map(|wholes| &wholes[range.clone()]),
        known: &stream.known[range],
    }
}
