//! Counts that differ from the same windows of earlier weeks.

use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::Fraction;

use crate::columns::groups::Columns;
use crate::measure::Measure;
use crate::rules::baseline::{Baseline, Comparing};
use crate::rules::judging::{Groups, Judging, Sink};
use crate::rules::kind::{Form, Judge};
use crate::rules::values::{length, setters};
use crate::usual::past::Compare;

pub(super) const FORM: Form = Form {
    keys: &["measure", "least", "baseline", "side", "false_alarms", "change", "slow"],
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

/// Compares a count with earlier weeks: single windows, sums of windows and, optionally, an additional sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    baseline: Baseline,
    slow: Option<u64>,
}

/// Reports changes by a fifth or more, without an additional sum.
impl Default for Volume {
    fn default() -> Self {
        Baseline::default().into()
    }
}

impl From<Baseline> for Volume {
    fn from(baseline: Baseline) -> Self {
        Self { baseline: baseline.or_change(Fraction::new(20, 100)), slow: None }
    }
}

impl Volume {
    setters! {
        /// Also compares sums over this many seconds, which can show small deviations that last long.
        slow: Option<u64>,
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
    fn baseline(&self) -> Option<&Baseline> {
        Some(&self.baseline)
    }

    fn history(&self, window: u64) -> u64 {
        self.baseline.history(window) + self.slow.unwrap_or_default()
    }

    fn group(&self, judging: &Judging<'_>, columns: Columns<'_>, sink: &mut Sink) {
        let comparing = Comparing { longer: self.slow, ..Comparing::with(Compare::Counts) };
        self.baseline.group(judging, columns, comparing, sink);
    }

    fn groups(&self, judging: &Judging<'_>, groups: &Groups<'_>, sink: &mut Sink) {
        self.baseline.counts(judging, groups, (self.slow, false), sink);
    }
}
