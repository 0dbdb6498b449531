//! Groups without any event at times when events usually come.

use tallyfold::arguments::toml::{Result, Table};

use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::detection::window::{Level, ln_silence};
use crate::measure::Measure;
use crate::rules::baseline::{Baseline, is_late, lengths};
use crate::rules::judging::{BadWindow, Evidence, Judging, Misfit, Normal, Sink};
use crate::rules::kind::{Form, Judge};
use crate::usual::noise::{Learned, Prior};
use crate::usual::past::{Compare, Look, Past};

pub(super) const FORM: Form =
    Form { keys: &["measure", "least", "baseline", "false_alarms"], ..Form::COUNTS };

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

/// The maximum length of a silence that is judged as a whole, in seconds.
const LONGEST: u64 = 86_400;

/// Finds groups without events at times of the week when events usually come. The baseline's `side` and `change` have
/// no effect.
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

    /// Judges each window without events, together with the windows without events just before it.
    fn group(&self, judging: &Judging<'_>, columns: Columns<'_>, sink: &mut Sink) {
        let longest = judging.slots.in_seconds(LONGEST);
        if is_rare(judging, columns, longest) {
            return;
        }
        let past = self.baseline.past(judging, (Compare::Counts, sink.group()), columns);
        let mut learned = Learned::new(&past, Past::look, Prior::of(Compare::Counts));
        let ln_rate = libm::log(self.baseline.rate(judging));
        let lengths = lengths(judging.slots, None);
        // Late events still increase the count of a window that isn't settled, so a count of 0 isn't evidence.
        for slot in judging.known().filter(|slot| judging.finals[*slot]) {
            sink.tested(slot);
            let part = columns.parts[slot];
            let Some(look) = past.look(slot + 1, 1) else {
                continue;
            };
            let evidence = Evidence::Compared { part, whole: 0, expected: look.expected };
            sink.saw(slot, evidence);
            if part > 0 {
                continue;
            }
            let quiet = (0..=slot).rev().take(longest);
            let quiet = quiet.take_while(|slot| judging.finals[*slot] && columns.parts[*slot] == 0);
            let quiet = quiet.count();
            let Some(look) = past.look(slot + 1, quiet) else {
                continue;
            };
            if look.expected < judging.least as f64 {
                continue;
            }
            let length = lengths.iter().rev().find(|length| **length <= quiet);
            let noise = learned.noise(slot, length.copied().unwrap_or(1));
            let ln_p = |look: &Look| {
                ln_silence(&Level {
                    expected: look.expected,
                    dispersion: noise.dispersion(look.expected),
                })
            };
            let is_bad = |look: &Look| {
                look.expected >= judging.least as f64
                    && ln_p(look) <= ln_rate
                    && -noise.score(look) >= noise.limit(false)
            };
            if is_bad(&look) && !is_late(&past, (slot, quiet), &look, is_bad) {
                let normal =
                    Normal::Range((look.expected as u64).min(judging.least).max(1), u64::MAX);
                sink.add_bad(BadWindow {
                    slots: quiet as u32,
                    run: quiet as u32,
                    ln_p: Some(ln_p(&look)),
                    phi: noise.phi,
                    ..BadWindow::of(slot, Amount::count(0), look.expected, normal)
                });
            }
        }
    }

    fn needs_usual(&self) -> bool {
        true
    }
}

/// Returns whether a group has so few events that even the longest silence would not be improbable.
fn is_rare(judging: &Judging<'_>, columns: Columns<'_>, longest: usize) -> bool {
    let finals = judging.finals[..judging.range.end].iter().zip(columns.parts);
    let known = finals.filter(|(is_final, _)| **is_final);
    let events: u128 = known.map(|(_, part)| u128::from(*part)).sum();
    // The bound is low, because a group may be new, or may have all of its events in one part of the day.
    let days = (judging.range.end / longest.max(1)).max(1) as u128;
    events * 8 < u128::from(judging.least) * days.min(8)
}
