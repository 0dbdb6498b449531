//! No event at all where there usually are some.

use tallyfold::arguments::toml::{Result, Table};

use crate::baseline::stream::Level;
use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::detection::window::ln_silence;
use crate::measure::Measure;
use crate::rules::baseline::{Baseline, Expected, stream};
use crate::rules::judging::{Judging, Normal, Odd, Sink};
use crate::rules::kind::{Form, Judge, Misfit};
use crate::rules::wording::{self, Seen};

pub(super) const FORM: Form = Form {
    keys: &["measure", "least", "baseline", "false_alarms"],
    ..Form::COUNTS
};

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# No events in adjacent windows where there usually are some.
[[rule]]
name = "a stream is silent"
kind = "silent"
measure = "events"
by = ["event_name"]
baseline = { weeks = 6, neighbours = 1 }
false_alarms = 0.1
least = 20
"#;

/// The maximum length of a silence that is added up, in seconds.
const LONGEST: u64 = 86_400;

/// No events although earlier weeks predict some. The side and the smallest change of the baseline have no effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Silent {
    baseline: Baseline,
}

impl From<Baseline> for Silent {
    fn from(baseline: Baseline) -> Self {
        Self { baseline }
    }
}

impl Silent {
    pub(super) fn read(table: &Table<'_>, _: Measure) -> Result<Self> {
        Ok(Baseline::read(table)?.into())
    }
}

impl Judge for Silent {
    fn misfit(&self) -> Option<Misfit> {
        self.baseline.misfit()
    }

    fn history(&self, window: u64) -> u64 {
        self.baseline.history(window) + LONGEST
    }

    /// Judges the windows without events, each together with the windows without events before it.
    fn group(&self, judging: &Judging<'_>, columns: Columns<'_>, sink: &mut Sink) {
        let longest = judging.slots.in_seconds(LONGEST);
        let least = judging.least as f64;
        if is_rare(judging, columns, longest) {
            return;
        }
        let ln_rate = libm::log(self.baseline.rate(judging));
        let (season, stream) = (self.baseline.season(judging), stream(judging, columns));
        let first = (judging.range.start + 1).saturating_sub(longest);
        let is_quiet = |slot: usize| judging.finals[slot] && columns.parts[slot] == 0;
        // Most groups have events in each window, and need no level.
        let range = match judging.known().any(is_quiet) {
            true => first..judging.range.end,
            false => first..first,
        };
        let expected = Expected::of(judging, &season, &stream, range);
        for slot in judging.known() {
            // Late events make counts grow, so a count of 0 before the window is settled proves nothing.
            if !judging.finals[slot] {
                continue;
            }
            sink.judged(slot);
            let mut quiet = Quiet::default();
            for before in ((slot + 1).saturating_sub(longest)..=slot).rev() {
                if judging.finals[before] && columns.parts[before] > 0 {
                    break;
                }
                quiet.add(expected.at(before).filter(|_| judging.finals[before]));
            }
            if quiet.slots > 0 && quiet.expected >= least && quiet.ln_p <= ln_rate {
                sink.take(quiet.at(slot, judging.least));
            }
        }
    }

    fn sentence(&self, seen: &Seen) -> (String, Option<String>) {
        wording::no_events(seen)
    }
}

/// Whether a group has so few events that even the longest silence could not be recognized.
fn is_rare(judging: &Judging<'_>, columns: Columns<'_>, longest: usize) -> bool {
    let finals = judging.finals[..judging.range.end]
        .iter()
        .zip(columns.parts);
    let known = finals.filter(|(is_final, _)| **is_final);
    let events: u128 = known.map(|(_, part)| u128::from(*part)).sum();
    // The bound is generous, because a group may have all of its events in one part of the day, or may be new.
    let days = (judging.range.end / longest.max(1)).max(1) as u128;
    events * 8 < u128::from(judging.least) * days.min(8)
}

/// Adjacent windows without events.
#[derive(Clone, Copy, Debug, Default)]
struct Quiet {
    slots: u32,
    expected: f64,
    ln_p: f64,
}

impl Quiet {
    fn add(&mut self, level: Option<&Level>) {
        self.slots += 1;
        if let Some(level) = level {
            self.expected += level.expected;
            self.ln_p += ln_silence(level);
        }
    }

    fn at(&self, slot: usize, least: u64) -> Odd {
        let normal = Normal::Range((self.expected as u64).min(least).max(1), u64::MAX);
        Odd {
            slots: self.slots,
            run: self.slots,
            ln_p: Some(self.ln_p),
            ..Odd::of(slot, Amount::NONE, self.expected, normal)
        }
    }
}
