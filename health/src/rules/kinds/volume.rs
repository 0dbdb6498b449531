//! A count that differs from the same windows of earlier weeks.

use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::Fraction;

use crate::baseline::stream::{Basis, Level, Stream};
use crate::cause::explanation::Amount;
use crate::columns::groups::{Columns, Grid};
use crate::detection::cusum::{Cusum, Drift};
use crate::measure::Measure;
use crate::rules::baseline::{Baseline, Expected, stream};
use crate::rules::judging::{Judging, Normal, Odd, Sink, discover};
use crate::rules::kind::{Compared, Form, Judge, Misfit};
use crate::rules::names::Side;
use crate::rules::values::length;

pub(super) const FORM: Form = Form {
    keys: &[
        "measure",
        "least",
        "baseline",
        "side",
        "false_alarms",
        "change",
        "slow",
    ],
    bad: 2,
    least: |_| 50,
    ..Form::COUNTS
};

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# A count that differs from earlier weeks. side: "high", "low" or "both".
[[rule]]
name = "volume is unusual"
kind = "volume"
metric = "event_ingestion"
measure = "events"
by = ["write_key"]
baseline = { weeks = 6, neighbours = 1 }
side = "both"
false_alarms = 0.1
change = "20%"
slow = "1d"
least = 50
"#;

/// A count that is compared with earlier weeks, window by window and optionally over a longer time.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    baseline: Baseline,
    slow: Option<u64>,
}

/// A change by a fifth, window by window.
impl Default for Volume {
    fn default() -> Self {
        Baseline::default().into()
    }
}

impl From<Baseline> for Volume {
    fn from(baseline: Baseline) -> Self {
        Self {
            baseline: baseline.or_change(Fraction::new(20, 100)),
            slow: None,
        }
    }
}

impl Volume {
    /// Also adds up small deviations over this many seconds.
    #[must_use]
    pub fn slow(self, seconds: u64) -> Self {
        let slow = Some(seconds);
        Self { slow, ..self }
    }

    pub(super) fn read(table: &Table<'_>, _: Measure) -> Result<Self> {
        let volume = Self::from(Baseline::read(table)?);
        match table.entry("slow") {
            Some(entry) => Ok(volume.slow(length(&entry)?)),
            None => Ok(volume),
        }
    }
}

impl Judge for Volume {
    fn misfit(&self) -> Option<Misfit> {
        self.baseline.misfit()
    }

    fn history(&self, window: u64) -> u64 {
        self.baseline.history(window) + 2 * self.slow.unwrap_or_default()
    }

    fn group(&self, judging: &Judging<'_>, columns: Columns<'_>, sink: &mut Sink) {
        let (baseline, stream) = (&self.baseline, stream(judging, columns));
        let first = self.slow.map(|over| first_of(judging, over));
        let range = first.unwrap_or(judging.range.start)..judging.range.end;
        let expected = Expected::of(judging, &baseline.season(judging), &stream, range);
        let drifts = match self.slow {
            Some(over) => drifting(judging, baseline, &stream, &expected, over),
            None => Vec::new(),
        };
        baseline.group(judging, columns, &expected, drifts, sink);
    }

    fn all(&self, judging: &Judging<'_>, _: &Grid<'_>, sink: &mut Sink) {
        discover(sink, self.baseline.rate(judging));
    }

    fn compared(&self) -> Option<Compared> {
        Some(self.baseline.compared())
    }
}

/// The slots at which small deviations have added up to a large one. They are added up over at most twice `over`
/// seconds.
///
/// For each period of `over` seconds, the scores start from 0 one period earlier. So they depend only on the counts,
/// not on when checks have run.
fn drifting(
    judging: &Judging<'_>,
    baseline: &Baseline,
    stream: &Stream<'_>,
    expected: &Expected,
    over: u64,
) -> Vec<Odd> {
    let slots = judging.slots;
    let length = slots.in_seconds(over);
    let drift = drift(judging, baseline);
    let mut odds = Vec::new();
    let mut start = slots.begin_of(judging.range.start, length);
    while start < judging.range.end {
        let end = slots.end_of(start, length).min(judging.range.end);
        let (mut cusum, mut runs) = (Cusum::default(), [Run::default(); 2]);
        for slot in start.saturating_sub(length)..end {
            let Some(level) = level_of(judging, expected, slot) else {
                runs.iter_mut().for_each(Run::wait);
                continue;
            };
            let counts = (
                stream.counts[slot],
                stream.wholes.map(|wholes| wholes[slot]),
            );
            cusum = cusum.step(counts.0, counts.1, level, &drift);
            for (run, score) in runs.iter_mut().zip([cusum.falling, cusum.rising]) {
                run.step(score, counts, level);
            }
            if slot >= judging.range.start && slot >= start {
                let run = worst(baseline, &runs, &drift, judging.least);
                let is_rate = stream.wholes.is_some();
                odds.extend(
                    run.map(|run| run.at(slot, is_rate, ln_rate(judging, baseline), &drift)),
                );
            }
        }
        start = end;
    }
    odds
}

/// The first slot that is looked at.
fn first_of(judging: &Judging<'_>, over: u64) -> usize {
    let length = judging.slots.in_seconds(over);
    let begin = judging.slots.begin_of(judging.range.start, length);
    begin.saturating_sub(length)
}

fn ln_rate(judging: &Judging<'_>, baseline: &Baseline) -> f64 {
    libm::log(baseline.rate(judging))
}

fn drift(judging: &Judging<'_>, baseline: &Baseline) -> Drift {
    let change = baseline.least_change().clamp(0.01, 0.9);
    Drift {
        fall: 1.0 - change,
        rise: 1.0 + change,
        run_length: judging.groups.max(1) as f64 / baseline.rate(judging),
    }
}

/// The level of a settled slot, predicted from other weeks or days. The windows just before it are not used, because
/// they would follow a slow change.
fn level_of<'e>(judging: &Judging<'_>, expected: &'e Expected, slot: usize) -> Option<&'e Level> {
    let level = expected.at(slot).filter(|_| judging.finals[slot]);
    level.filter(|level| level.basis != Basis::Recent)
}

/// The side with the higher score, of the sides that the rule judges, if the score is high enough.
fn worst(
    baseline: &Baseline,
    [falling, rising]: &[Run; 2],
    drift: &Drift,
    least: u64,
) -> Option<Run> {
    let run = match baseline.bad_side() {
        Side::Low => falling,
        Side::High => rising,
        Side::Both if falling.score >= rising.score => falling,
        Side::Both => rising,
    };
    let is_enough = run.expected >= least as f64 || run.part >= least;
    // A single window is judged by itself.
    (run.score >= drift.limit() / 2.0 && is_enough && run.slots > 1).then_some(*run)
}

/// What has accumulated since the score was 0.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    score: f64,
    slots: u32,
    part: u64,
    whole: u64,
    expected: f64,
    dispersion: f64,
    judged: u32,
}

impl Run {
    fn wait(&mut self) {
        if self.score > 0.0 {
            self.slots += 1;
        }
    }

    fn step(&mut self, score: f64, (part, whole): (u64, Option<u64>), level: &Level) {
        if score <= 0.0 {
            *self = Self::default();
            return;
        }
        *self = Self {
            score,
            slots: self.slots + 1,
            part: self.part.saturating_add(part),
            whole: self.whole.saturating_add(whole.unwrap_or_default()),
            expected: self.expected + level.expected * whole.map_or(1.0, |whole| whole as f64),
            dispersion: self.dispersion + level.dispersion,
            judged: self.judged + 1,
        };
    }

    fn at(&self, slot: usize, is_rate: bool, ln_rate: f64, drift: &Drift) -> Odd {
        let expected = match is_rate {
            true => self.expected / (self.whole as f64).max(1.0),
            false => self.expected,
        };
        let observed = Amount {
            part: self.part,
            whole: is_rate.then_some(self.whole),
        };
        let normal = Normal::Likely {
            expected,
            dispersion: self.dispersion / f64::from(self.judged.max(1)),
            ln_p: ln_rate,
        };
        Odd {
            slots: self.slots,
            run: self.slots,
            fires: self.score >= drift.limit(),
            at_once: true,
            // A likelihood ratio this high has at most this probability.
            ln_p: Some(-self.score),
            ..Odd::of(slot, observed, self.expected, normal)
        }
    }
}
