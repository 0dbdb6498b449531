//! Shares that differ from the same windows of earlier weeks.

use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::Fraction;

use crate::columns::groups::Columns;
use crate::measure::Measure;
use crate::rules::baseline::{Baseline, Comparing};
use crate::rules::judging::{Judging, Sink};
use crate::rules::kind::{Form, Judge};
use crate::usual::past::Compare;

pub(super) const FORM: Form = Form {
    keys: &Baseline::KEYS,
    judges: Measure::is_rate,
    measure: Measure::ErrorRate,
    least: |_| 100,
    ..Form::COUNTS
};

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# A share that differs from earlier weeks. side: "high", "low" or "both".
[[rule]]
name = "error rate is unusual"
kind = "rate"
measure = "error_rate"
by = ["integration"]
baseline = { weeks = 6, neighbours = 1 }
side = "both"
false_alarms = 0.1
change = "1%"
least = 100
"#;

/// Compares a share with earlier weeks: single windows and sums of windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    baseline: Baseline,
}

/// Reports changes by one percentage point or more.
impl Default for Rate {
    fn default() -> Self {
        Baseline::default().into()
    }
}

impl From<Baseline> for Rate {
    fn from(baseline: Baseline) -> Self {
        let baseline = baseline.or_change(Fraction::new(1, 100));
        Self { baseline }
    }
}

impl Rate {
    pub(super) fn read(table: &Table<'_>, _: Measure) -> Result<Self> {
        Ok(Baseline::read(table)?.into())
    }
}

impl Judge for Rate {
    fn baseline(&self) -> Option<&Baseline> {
        Some(&self.baseline)
    }

    fn group(&self, judging: &Judging<'_>, columns: Columns<'_>, sink: &mut Sink) {
        let comparing = Comparing::with(Compare::Shares);
        self.baseline.group(judging, columns, comparing, sink);
    }
}
