//! Compares a group's single windows, and sums of its windows, with what is usual for the group.

use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::Fraction;

use super::judging::{BadWindow, Compared, Evidence, Groups, Judging, Misfit, Normal, Sink};
use super::names::Side;
use super::values::{named, setters, share};
use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::columns::slots::Slots;
use crate::detection::window::{ALIKE, Level, OVER, judge};
use crate::usual::calendar::DAY;
pub(crate) use crate::usual::calendar::WEEK;
use crate::usual::mix::Parts;
use crate::usual::noise::{DAYS as NOISE_DAYS, Learned, Noise, Prior};
use crate::usual::past::{Compare, Look, Past};

/// The sums that are judged in addition to single windows, in seconds: of one, three, twelve and 36 hours.
const SUMS: [u64; 4] = [3_600, 3 * 3_600, 12 * 3_600, 36 * 3_600];

/// In sums of up to this many seconds, shares are also judged by how suddenly they rose.
const SUDDEN_RISE: u64 = 3 * 3_600;

/// A share is bad only if the difference between the counted and the expected events is at least this part of `least`. A usual
/// share near zero is known only roughly, so a smaller difference shows nothing.
const LEAST_PART: f64 = 0.1;

/// Events may come up to this many seconds late. Within this time, missing events aren't a decline, and their later
/// arrival isn't a rise.
const LATE: u64 = 3 * 3_600;

/// How many seconds late a daily batch may come.
const LATE_BATCH: u64 = 6 * 3_600;

/// A source does not decline if at least this share of the missing events belongs to batches that have not come yet.
const LATE_PART: f64 = 0.5;

/// The longest day off, in seconds. It is longer than a day because clocks change and because the first windows may be
/// low by chance.
const LONGEST_DAY_OFF: u64 = DAY + 4 * 3_600;

/// The bounds of the share of the usual events that must be left on a day off. The share depends on the events of weekends. If
/// fewer events are left, the decline is an outage.
const LEFT: std::ops::RangeInclusive<f64> = 0.05..=0.2;

/// On a day off, at least this share of the events of a usual weekend day must be left, within the bounds of [`LEFT`].
const WEEKEND: f64 = 0.7;

/// A count may be this many standard deviations below the fewest events of a day off.
const BY_CHANCE: f64 = 2.0;

/// The gain of a decline is how much it increases the log likelihood of the counts. A decline explains the counts nearly as well
/// as another one if its gain, multiplied by the first number, falls short of the other's gain by at most the second number.
/// Adjacent windows deviate alike, so a small difference shows nothing.
const NEARLY_AS_WELL: (f64, f64) = (1.05, 4.0);

/// The natural logarithm of 2. A two-sided test doubles the probability.
const LN_2: f64 = std::f64::consts::LN_2;

/// Compares some slots again with a more precise method. The arguments are the position after the last of these slots, and
/// their number.
pub(crate) type Confirm<'c> = dyn FnMut(usize, usize) -> Option<Look> + 'c;

/// How the counts of a group are compared.
pub(crate) struct Comparing<'c> {
    /// What is compared: counts, shares or ratios.
    pub(crate) compare: Compare,
    /// The length of an additional sum, in seconds.
    pub(crate) longer: Option<u64>,
    /// A more precise method, which must confirm that a deviation is bad; `None` to skip this step.
    pub(crate) confirm: Option<&'c mut Confirm<'c>>,
    /// The parts of the group, if the group contains all events of its sources.
    pub(crate) parts: Option<Parts<'c>>,
    /// If true, the comparison reports only declines that look like days off; if false, it reports all other deviations.
    pub(crate) is_day_off: bool,
}

impl Comparing<'_> {
    /// Returns a comparison without the optional steps.
    pub(crate) fn with(compare: Compare) -> Self {
        Self { compare, longer: None, confirm: None, parts: None, is_day_off: false }
    }
}

/// How windows are compared with earlier weeks.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    weeks: usize,
    neighbours: usize,
    side: Side,
    false_alarms: f64,
    /// The smallest change that matters; `None` for the default of the kind of rule.
    change: Option<Fraction>,
}

/// Compares with six weeks and one neighbour on each side. Both more and fewer events than usual are bad. One false alarm
/// is expected in 300 days.
impl Default for Baseline {
    fn default() -> Self {
        Self { weeks: 6, neighbours: 1, side: Side::Both, false_alarms: 0.1, change: None }
    }
}

impl Baseline {
    /// The keys of rules that have a baseline.
    pub(crate) const KEYS: [&str; 6] =
        ["measure", "least", "baseline", "side", "false_alarms", "change"];

    setters! {
        /// Sets how many earlier weeks are compared, from 1 to 8.
        weeks: usize,

        /// Sets by how many windows events may come earlier or later than usual, up to 8.
        neighbours: usize,

        /// Sets which deviations are bad.
        side: Side,

        /// Sets the expected number of false alarms in 30 days if nothing changes, from 0.000001 to 100.
        false_alarms: f64,

        /// Sets the smallest change that matters. For a count, the change is relative to the expected count; for a share, it
        /// is the difference between the two shares.
        change: Option<Fraction>,
    }

    /// Sets the smallest change, unless it is set already.
    pub(crate) fn or_change(self, usual: Fraction) -> Self {
        let change = self.change.or(Some(usual));
        Self { change, ..self }
    }

    /// Reads the baseline's keys of a rule.
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

    /// Returns the first invalid setting.
    pub(crate) fn misfit(&self) -> Option<Misfit> {
        if !(1..=8).contains(&self.weeks) || self.neighbours > 8 {
            return Some(Misfit::of("baseline", "want 1 to 8 weeks and up to 8 neighbours"));
        }
        let is_wanted = (1e-6..=100.0).contains(&self.false_alarms);
        (!is_wanted).then(|| Misfit::of("false_alarms", WANT_FALSE_ALARMS))
    }

    /// Returns how many seconds of history a rule needs to judge a window: the weeks that the window is compared with,
    /// and the earlier days that show how much the group varies.
    pub(crate) fn history(&self, window: u64) -> u64 {
        let weeks = (self.weeks as u64).max(2) * WEEK;
        let longest = SUMS[SUMS.len() - 1].max(DAY);
        weeks
            + (NOISE_DAYS as u64 + 1) * DAY
            + longest
            + (self.neighbours as u64 + 1) * window
            + 3_600
    }

    /// Returns which earlier counts a finding is compared with.
    pub(crate) fn compared(&self) -> Compared {
        Compared { weeks: self.weeks, ..Compared::FOUR_WEEKS }
    }

    /// Returns the smallest change that matters, as a float.
    fn least_change(&self) -> f64 {
        self.change.map_or(0.0, Fraction::as_f64)
    }

    /// Returns the share of windows that may be false alarms.
    pub(crate) fn rate(&self, judging: &Judging<'_>) -> f64 {
        judging.rate_of(self.false_alarms)
    }

    /// Returns the past counts of a group.
    pub(crate) fn past<'j>(
        &self,
        judging: &'j Judging<'_>,
        (compare, group): (Compare, usize),
        columns: Columns<'_>,
    ) -> Past<'j> {
        Past::new(
            (judging.calendar(group), &judging.learned),
            compare,
            (self.weeks, self.neighbours),
            columns,
            &judging.finals,
        )
    }

    /// Judges the counts of some groups. If the groups contain all events of their sources, it also looks at the parts
    /// of each group.
    pub(crate) fn counts(
        &self,
        judging: &Judging<'_>,
        groups: &Groups<'_>,
        (longer, is_day_off): (Option<u64>, bool),
        sink: &mut Sink,
    ) {
        for (place, group) in groups.range.clone().enumerate() {
            sink.begin(group);
            let back = judging.slots.in_seconds(2 * LONGEST_DAY_OFF);
            let parts = Parts {
                grid: groups.grid,
                group,
                slots: judging.slots,
                measure: judging.measure,
                from: judging.range.start.saturating_sub(back),
                mix: None,
            };
            let comparing = Comparing {
                longer,
                parts: judging.is_of_sources.then_some(parts),
                is_day_off,
                ..Comparing::with(Compare::Counts)
            };
            self.group(judging, groups.block.columns(place), comparing, sink);
        }
    }

    /// Judges some windows of a group, and sums of several windows that end with each of them.
    pub(crate) fn group(
        &self,
        judging: &Judging<'_>,
        columns: Columns<'_>,
        mut comparing: Comparing<'_>,
        sink: &mut Sink,
    ) {
        let compare = comparing.compare;
        let past = self.past(judging, (compare, sink.group()), columns);
        let ln_rate = libm::log(self.rate(judging));
        let prior = Prior::of(compare);
        let of_rises = Prior { margins: Prior::RISES, ..prior };
        let mut group = Group {
            baseline: self,
            judging,
            learned: Learned::new(&past, Past::look, prior),
            rises: Learned::new(&past, Past::rise, of_rises),
            past: &past,
            ln_rate,
            ln_all: ln_rate - libm::log(judging.groups.max(1) as f64),
        };
        let lengths = lengths(judging.slots, comparing.longer);
        for slot in judging.known() {
            let single = match judging.finals[slot] {
                true => past.look(slot + 1, 1),
                // Counts that may still change are judged, but rules don't learn from them.
                false => provisional(&past, slot, columns),
            };
            let Some(single) = single else {
                continue;
            };
            let mut worst: Option<BadWindow> = None;
            let mut is_judged = false;
            for &length in &lengths {
                // Longer sums change slowly, so only every `stride`-th sum is judged.
                let stride = (length / 12).max(1);
                if length > 1 && !(slot + 1 + past.calendar().offset()).is_multiple_of(stride) {
                    continue;
                }
                let look = match length {
                    1 => Some(single),
                    _ => past.look(slot + 1, length),
                };
                let Some(look) = look.filter(|look| group.is_enough(look)) else {
                    continue;
                };
                is_judged = true;
                let Some(bad) = group.bad_window(slot, length, &look, &mut comparing) else {
                    continue;
                };
                // The numbers of the shortest sum describe the present best. The longest run shows when the deviation
                // began.
                worst = Some(match worst {
                    None => bad,
                    Some(shorter) => BadWindow {
                        fires: shorter.fires || bad.fires,
                        weight: if bad.fires { bad.weight } else { shorter.weight },
                        run: shorter.run.max(bad.run),
                        ..shorter
                    },
                });
            }
            if is_judged {
                sink.tested(slot);
            }
            if sink.is_watched() || worst.is_some() {
                let level = match judging.finals[slot] {
                    true => past.level(slot + 1, 1).unwrap_or(single),
                    false => single,
                };
                let evidence = Evidence::Compared {
                    part: level.sum.part,
                    whole: level.sum.whole,
                    expected: level.expected,
                };
                sink.saw(slot, evidence);
            }
            if let Some(bad) = worst {
                sink.add_bad(bad);
            }
        }
    }
}

/// Returns the lengths of the sums in slots, shortest first. The first length is a single window.
pub(crate) fn lengths(slots: &Slots, longer: Option<u64>) -> Vec<usize> {
    let sums = SUMS.into_iter().chain(longer);
    let mut lengths: Vec<usize> = sums.map(|seconds| slots.in_seconds(seconds)).collect();
    lengths.push(1);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Looks at a window whose counts may still change. They come from `columns`, because `past` leaves them out.
fn provisional(past: &Past<'_>, slot: usize, columns: Columns<'_>) -> Option<Look> {
    let (part, whole) = columns.at(slot);
    let mut sum = past.sum(slot + 1, 1);
    (sum.part, sum.whole) = (part, whole.unwrap_or_default());
    let expected = past.expected(slot + 1, 1, sum)?;
    Some(Look { sum, expected })
}

/// Returns whether a deviation may be only a delay. A rise may be a delay if it makes up for events that were missing
/// before. A decline may be a delay if the counts would be normal at an earlier time of day.
pub(crate) fn is_late(
    past: &Past<'_>,
    (slot, length): (usize, usize),
    look: &Look,
    is_bad: impl Fn(&Look) -> bool,
) -> bool {
    if past.compare != Compare::Counts {
        return false;
    }
    let late = match past.is_batch(slot + 1) {
        true => LATE_BATCH,
        false => LATE,
    };
    let step = DAY / past.calendar().per_day as u64;
    let part = late as f64 / step as f64;
    let late = late.div_ceil(step) as usize;
    if look.excess() > 0.0 {
        let before = past.look(slot + 1, late + length);
        return before.is_some_and(|before| before.excess() < look.excess() / 2.0);
    }
    // In windows that are longer than the delay, only a part of the last window's events may still come.
    if part < 1.0 {
        let expected = look.expected * (1.0 - part / length as f64);
        let later = Look { expected, ..*look };
        return later.excess() >= 0.0 || !is_bad(&later);
    }
    // In a silence longer than `late`, the last `late` slots are left out, because their events may still come.
    let is_overdue = look.sum.part == 0 && length > late;
    let length_of = |late: usize| if is_overdue { length - late } else { length };
    [late / 2, late].into_iter().any(|late| {
        let end = (slot + 1).checked_sub(late);
        let usual = end.and_then(|end| past.expected(end, length_of(late), look.sum));
        usual.is_some_and(|expected| {
            let later = Look { expected, ..*look };
            expected < look.expected && (later.excess() >= 0.0 || !is_bad(&later))
        })
    })
}

/// How long a decline has lasted.
struct Decline {
    /// The number of slots for which a constant decline explains the counts best.
    run: usize,
    /// All numbers of slots for which a constant decline explains the counts nearly as well.
    likely: Vec<usize>,
    /// Whether the decline was sudden: a decline that grows steadily explains the counts at most slightly better.
    is_sudden: bool,
}

/// What is needed to judge one group.
struct Group<'g> {
    baseline: &'g Baseline,
    judging: &'g Judging<'g>,
    past: &'g Past<'g>,
    learned: Learned<'g>,
    /// The noise of [`Past::rise`].
    rises: Learned<'g>,
    /// The largest ln p at which a single window is bad.
    ln_rate: f64,
    /// The largest ln p at which a sum is bad. It is lower, because all groups share the false alarms.
    ln_all: f64,
}

impl Group<'_> {
    /// Returns whether there are enough counted or expected events to judge.
    fn is_enough(&self, look: &Look) -> bool {
        let least = self.judging.least;
        match self.past.compare {
            Compare::Counts => look.sum.part >= least || look.expected >= least as f64,
            Compare::Shares => look.sum.whole >= least,
            Compare::Ratios => {
                look.sum.whole >= least && (look.sum.part >= least || look.expected >= least as f64)
            }
        }
    }

    /// Returns the smallest change that matters, as a number of events.
    fn least_change(&self, look: &Look) -> f64 {
        let of = match self.past.compare {
            Compare::Shares => look.sum.whole as f64,
            Compare::Counts | Compare::Ratios => look.expected,
        };
        self.baseline.least_change() * of
    }

    /// Compares a sum of windows with what is usual. Returns `None` unless the sum is bad.
    fn bad_window(
        &mut self,
        slot: usize,
        length: usize,
        look: &Look,
        comparing: &mut Comparing<'_>,
    ) -> Option<BadWindow> {
        let excess = look.excess();
        let is_high = excess > 0.0;
        // Late events still increase the count of a window that isn't settled, so a low count isn't evidence.
        let can_be_low = self.judging.slots.settled[slot] || self.past.compare == Compare::Shares;
        let is_bad_side = match self.baseline.side {
            Side::Both => is_high || can_be_low,
            Side::High => is_high,
            Side::Low => !is_high && can_be_low,
        };
        let least_change = self.least_change(look);
        if !is_bad_side || excess.abs() < least_change {
            return None;
        }
        let limit = if length > 1 { self.ln_all } else { self.ln_rate };
        let is_share = self.past.compare == Compare::Shares;
        if is_share && excess.abs() < LEAST_PART * self.judging.least as f64 {
            return None;
        }
        if !self.may_be_far(look, limit) {
            return None;
        }
        let noise = self.learned.noise(slot, length);
        let (noise, ln_p) = match self.if_far(look, &noise, limit) {
            Some(ln_p) => (noise, ln_p),
            None => self.sudden_rise(slot, length, limit)?,
        };
        let far = noise.limit(is_high);
        if length > 1 && !self.continues(slot, length, look) {
            return None;
        }
        let is_bad = |look: &Look| {
            look.excess().abs() >= self.least_change(look) && self.ln_p(look, &noise) <= limit
        };
        if is_late(self.past, (slot, length), look, is_bad) {
            return None;
        }
        let is_low_count = !is_high && self.past.compare == Compare::Counts;
        if is_low_count && let Some(parts) = &mut comparing.parts {
            let awaited = parts.mix().awaited(slot + 1, length);
            if awaited >= LATE_PART * excess.abs() {
                return None;
            }
        }
        if let Some(confirm) = &mut comparing.confirm {
            let closer = confirm(slot + 1, length)?;
            if (closer.excess() > 0.0) != is_high || !is_bad(&closer) {
                return None;
            }
        }
        let is_day_off = is_low_count && self.is_day_off(slot, comparing);
        if is_day_off != comparing.is_day_off {
            return None;
        }
        let weight = length as u32;
        let run = match length {
            1 => 1,
            _ => self.run(slot, length, is_high),
        };
        // The sum may also contain windows before the deviation, so only the windows of the deviation are described. If their
        // count is too small to be judged alone, the whole sum is described.
        let closer = match run < length {
            true => self.past.look(slot + 1, run),
            false => None,
        };
        let is_count = self.past.compare == Compare::Counts;
        let closer = closer.filter(|closer| !is_count || self.is_enough(closer));
        let (look, length) = closer.as_ref().map_or((look, length), |closer| (closer, run));
        let observed = Amount { part: look.sum.part, whole: (!is_count).then_some(look.sum.whole) };
        let least_change = self.least_change(look);
        // Single windows decide when a finding ends, and they vary more than sums.
        let phi = self.learned.noise(slot, 1).calm.max(noise.calm);
        let level = self.level(look, &noise);
        let normal = Normal::Likely {
            expected: level.expected,
            dispersion: level.dispersion,
            ln_p: limit,
            width: least_change.max(far * noise.deviation(look.expected)),
            is_share,
        };
        Some(BadWindow {
            slots: length as u32,
            run: run as u32,
            weight,
            ln_p: Some(ln_p),
            phi,
            fires: !self.is_over(slot, run, look, phi),
            ..BadWindow::of(slot, observed, look.expected, normal)
        })
    }

    /// Returns whether a sum would be improbable and far from its expectation in a group that varies as little as
    /// possible. This test is fast, so it runs first.
    fn may_be_far(&self, look: &Look, limit: f64) -> bool {
        let at_best = self.learned.least();
        at_best.score(look).abs() >= 2.0 && self.ln_p(look, &at_best) <= limit
    }

    /// Returns the probability of a sum, as a logarithm, if the sum is improbable and far from its expectation.
    fn if_far(&self, look: &Look, noise: &Noise, limit: f64) -> Option<f64> {
        let ln_p = self.ln_p(look, noise);
        let is_far = noise.score(look).abs() >= noise.limit(look.excess() > 0.0);
        (ln_p <= limit && is_far).then_some(ln_p)
    }

    /// Compares the share of a sum with the hour before, which finds sudden rises even if the share often drifts far.
    /// Returns the noise of sudden rises and the logarithm of the rise's probability, or `None` if the rise isn't bad.
    fn sudden_rise(&mut self, slot: usize, length: usize, limit: f64) -> Option<(Noise, f64)> {
        let is_short = length <= self.judging.slots.in_seconds(SUDDEN_RISE);
        if self.past.compare != Compare::Shares || !is_short {
            return None;
        }
        let rise = self.past.rise(slot + 1, length)?;
        if rise.excess() < self.least_change(&rise) || !self.may_be_far(&rise, limit) {
            return None;
        }
        let noise = self.rises.noise(slot, length);
        let ln_p = self.if_far(&rise, &noise, limit)?;
        Some((noise, ln_p))
    }

    /// Returns whether a decline looks like a day off. Enough events must still come (see [`LEFT`]). On a listed
    /// holiday, that is enough. On other days, there must also be a rule for days off, and all parts of a source must decline
    /// alike, at once, before the busy hours, and for about a day at most.
    fn is_day_off(&mut self, slot: usize, comparing: &mut Comparing<'_>) -> bool {
        let end = slot + 1;
        let calendar = self.past.calendar();
        let is_listed = calendar.is_holiday(slot);
        if !is_listed && !self.judging.has_day_off_rule {
            return false;
        }
        let hour = calendar.per_hour;
        let most = self.judging.slots.in_seconds(LONGEST_DAY_OFF);
        let phi = self.learned.noise(slot, hour).phi;
        let decline = self.decline(slot, most + 1, phi);
        let run = decline.run;
        // A decline is longer than a day off only if no shorter one explains the counts nearly as well.
        let is_longer = || {
            let longer = self.decline(slot, 2 * most, phi);
            longer.likely.first().is_some_and(|run| *run > most)
        };
        if run > most && !is_listed && is_longer() {
            return false;
        }
        let is_left = |length: usize| {
            let off = self.past.day_off(end, length);
            let Some(usual) = self.past.punctual(end, length) else {
                return true;
            };
            let weekend = off.map_or(usual.expected, |off| WEEKEND * off);
            let least = weekend.clamp(LEFT.start() * usual.expected, LEFT.end() * usual.expected);
            let noise = Noise { phi, ..self.learned.least() };
            usual.sum.part as f64 >= least - BY_CHANCE * noise.deviation(least)
        };
        if !is_left(hour) || !is_left(run.max(hour)) {
            return false;
        }
        if is_listed {
            return true;
        }
        let Some(parts) = &mut comparing.parts else {
            return false;
        };
        // The expected count per slot. It is known for future slots, too, because it doesn't depend on their counts.
        let clock = self.past.clock(end);
        let each = |end: usize, length: usize| {
            let expected = self.past.mean(end, length, clock)?;
            Some(expected / length as f64)
        };
        let Some(mean) = each(end, calendar.per_day) else {
            return false;
        };
        // A quiet hour may be a tenth above the mean: if all hours are alike, some are above it by chance.
        let is_quiet = |run: &usize| {
            let of = |hours: usize| each(end - run + hours * hour, hour);
            (1..=4).any(|hours| of(hours).is_some_and(|it| it < 1.1 * mean))
        };
        if !decline.likely.iter().any(is_quiet) {
            return false;
        }
        // In fewer than six hours, counts vary too much to tell a sudden decline from a slow one.
        let is_at_once = run / 2 < 3 * hour || decline.is_sudden;
        is_at_once && parts.mix().is_kept(end, run.max(hour))
    }

    /// Returns whether a deviation continues: the last parts of a sum and its last window still deviate in the same direction, by
    /// a large part of the whole sum's deviation. Without this check, an incident that is over could begin a finding.
    fn continues(&self, slot: usize, length: usize, look: &Look) -> bool {
        let size = |look: &Look| match self.past.compare {
            Compare::Counts => look.expected,
            Compare::Shares | Compare::Ratios => look.sum.whole as f64,
        };
        let each = look.excess() / size(look).max(f64::MIN_POSITIVE);
        let deviates = |length: usize, part: f64| {
            let recent = self.past.look(slot + 1, length);
            recent.is_some_and(|recent| {
                let wanted = part * each * size(&recent);
                // If less than one event is expected, a count of 0 shows nothing.
                let is_idle = look.excess() < 0.0 && recent.expected < 1.0 && recent.sum.part == 0;
                is_idle || recent.excess() * each > 0.0 && recent.excess().abs() >= wanted.abs()
            })
        };
        deviates((length / 4).max(1), 0.7)
            && deviates((length / 12).max(1), 0.5)
            && deviates(1, 0.25)
    }

    /// Returns whether the deviation of a share is already over: the shares of the last slots are a hundred times more probable
    /// if the deviation ended before these slots. Without this check, a single failure long after the end could begin a finding
    /// of a small group.
    fn is_over(&self, slot: usize, run: usize, look: &Look, phi: f64) -> bool {
        if self.past.compare != Compare::Shares {
            return false;
        }
        let bad = (look.sum.part as f64 + 0.5) / (look.sum.whole as f64 + 1.0);
        let looks = (slot + 2 - run..=slot + 1).filter_map(|end| self.past.look(end, 1));
        let looks = looks.filter(|own| own.sum.whole > 0);
        let evidence = looks.fold(0.0, |before: f64, own| {
            let (part, whole) = (own.sum.part as f64, own.sum.whole as f64);
            let usual = own.expected / whole;
            let ratio = part * libm::log(usual / bad)
                + (whole - part) * libm::log((1.0 - usual) / (1.0 - bad));
            (before + ratio / (1.0 + ALIKE * phi * own.expected)).max(0.0)
        });
        evidence >= OVER
    }

    /// Returns how many slots a deviation has lasted. Its windows together deviate by more than half of the smallest
    /// change that matters, and by more than a quarter of the deviation's size.
    fn run(&self, slot: usize, length: usize, is_high: bool) -> usize {
        let (run, size) = self.lasted(slot, length, is_high, 0.0);
        // A much smaller earlier deviation, or a single event where few are expected, doesn't belong to the deviation.
        self.lasted(slot, run, is_high, size / 4.0).0
    }

    /// Returns how many slots a deviation has lasted, and its size relative to the expected counts. For each slot, it subtracts
    /// from the deviation the larger of two numbers: `least` times the expected count, and half of the smallest change that
    /// matters. The deviation has lasted for the number of slots whose differences have the largest sum.
    fn lasted(&self, slot: usize, length: usize, is_high: bool, least: f64) -> (usize, f64) {
        let sign = if is_high { 1.0 } else { -1.0 };
        let (mut sum, mut excess, mut expected) = (0.0, 0.0, 0.0);
        let (mut most, mut run, mut size) = (0.0, 1, 0.0);
        for slots in 1..=length {
            let Some(look) = self.past.punctual(slot + 2 - slots, 1) else {
                break;
            };
            let own = sign * look.excess();
            sum += own - f64::max(self.least_change(&look) / 2.0, least * look.expected);
            excess += own;
            expected += look.expected;
            if sum > most {
                (most, run) = (sum, slots);
                size = if expected > 0.0 { excess / expected } else { 0.0 };
            }
        }
        (run, size)
    }

    /// Finds out when a decline to a constant share of the usual counts probably began in the last `most` slots, and whether it
    /// was sudden. `phi` is how much the group varies.
    fn decline(&self, slot: usize, most: usize, phi: f64) -> Decline {
        // `weights[n]` is the sum of weight × agoⁿ over the slots, and `deviations[n]` is the sum of weighted deviation × agoⁿ,
        // where `ago` is the number of slots from a slot to the last slot.
        let (mut weights, mut deviations) = ([0.0; 3], [0.0; 2]);
        let mut sudden = Vec::with_capacity(most);
        let mut steady = 0.0;
        for slots in 1..=most {
            let Some(look) = self.past.punctual(slot + 2 - slots, 1) else {
                break;
            };
            if look.expected > 0.0 {
                // The inverse of the variance of the count's ratio to the expected count.
                let weight = look.expected / (1.0 + phi * look.expected);
                let deviation = weight * look.excess() / look.expected;
                let ago = (slots - 1) as f64;
                weights = [
                    weights[0] + weight,
                    weights[1] + weight * ago,
                    weights[2] + weight * ago * ago,
                ];
                deviations = [deviations[0] + deviation, deviations[1] + deviation * ago];
            }
            // Twice the logarithm of how much more likely the counts are with a decline that began here.
            let gain = |sum: f64, weight: f64| {
                if sum < 0.0 && weight > 0.0 { sum * sum / weight } else { 0.0 }
            };
            sudden.push(gain(deviations[0], weights[0]));
            let length = slots as f64;
            let square = length * (length * weights[0] - 2.0 * weights[1]) + weights[2];
            steady = f64::max(steady, gain(length * deviations[0] - deviations[1], square));
        }
        let best = sudden.iter().copied().fold(0.0, f64::max);
        let (times, less) = NEARLY_AS_WELL;
        let is_near = |gain: f64, other: f64| gain * times + 2.0 * less >= other;
        let runs = sudden.iter().zip(1..);
        Decline {
            run: runs.clone().find(|(gain, _)| **gain >= best).map_or(1, |(_, run)| run),
            likely: runs.filter(|(gain, _)| is_near(**gain, best)).map(|(_, run)| run).collect(),
            is_sudden: is_near(best, steady),
        }
    }

    /// Returns the expected count, or the expected share, with its dispersion.
    fn level(&self, look: &Look, noise: &Noise) -> Level {
        let expected = match self.past.compare {
            Compare::Shares => look.expected / (look.sum.whole as f64).max(1.0),
            Compare::Counts | Compare::Ratios => look.expected,
        };
        Level { expected, dispersion: noise.dispersion(look.expected) }
    }

    /// Returns the natural logarithm of the probability of a deviation that is at least as large, in a direction that is bad.
    fn ln_p(&self, look: &Look, noise: &Noise) -> f64 {
        let whole = (self.past.compare == Compare::Shares).then_some(look.sum.whole);
        let tails = judge(look.sum.part, whole, &self.level(look, noise));
        match self.baseline.side {
            Side::Both => tails.low.min(tails.high) + LN_2,
            Side::High => tails.high,
            Side::Low => tails.low,
        }
    }
}

const WANT_FALSE_ALARMS: &str = "want a number of false alarms in 30 days, from 0.000001 to 100";
