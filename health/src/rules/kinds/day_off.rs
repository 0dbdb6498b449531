//! Groups whose parts all decline for a day, as on a holiday.

use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::{Fraction, grouped};

use crate::measure::Measure;
use crate::rules::baseline::Baseline;
use crate::rules::judging::{Groups, Judging, Sink};
use crate::rules::kind::{Form, Judge, Scope};
use crate::rules::names::Side;
use crate::rules::wording::{Measured, Words, rounded};

pub(super) const FORM: Form = Form {
    keys: &["measure", "least", "baseline", "false_alarms", "change"],
    scope: Scope::Sources,
    bad: 2,
    least: |_| 50,
    ..Form::COUNTS
};

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# A source declines for a day, as on a holiday. Rules of the kind volume then ignore such a decline.
[[rule]]
name = "a source has a day off"
kind = "day_off"
measure = "events"
by = ["write_key"]
baseline = { weeks = 6, neighbours = 1 }
false_alarms = 0.1
change = "20%"
least = 50
severity = "info"
"#;

/// Finds days on which all parts of a source decline alike and at once, as on a holiday. If there is a rule of this
/// kind, rules of the kind [`Volume`](super::Volume) ignore these days. The baseline's `side` has no effect.
#[derive(Clone, Debug, PartialEq)]
pub struct DayOff {
    baseline: Baseline,
}

/// Reports declines by a fifth or more.
impl Default for DayOff {
    fn default() -> Self {
        Baseline::default().into()
    }
}

impl From<Baseline> for DayOff {
    fn from(baseline: Baseline) -> Self {
        let baseline = baseline.or_change(Fraction::new(20, 100)).side(Side::Low);
        Self { baseline }
    }
}

impl DayOff {
    pub(super) fn read(table: &Table<'_>, _: Measure) -> Result<Self> {
        Ok(Baseline::read(table)?.into())
    }
}

impl Judge for DayOff {
    fn baseline(&self) -> Option<&Baseline> {
        Some(&self.baseline)
    }

    fn groups(&self, judging: &Judging<'_>, groups: &Groups<'_>, sink: &mut Sink) {
        self.baseline.counts(judging, groups, (None, true), sink);
    }

    fn words(&self, measured: &Measured) -> Words {
        let percent = measured.observed.part as f64 / measured.expected.max(1.0) * 100.0;
        Words {
            what: format!("only {percent:.0}% of the usual events{}", measured.stage),
            details: vec![
                grouped(measured.observed.part),
                format!("usually {}", grouped(rounded(measured.expected))),
                "possibly a holiday".to_owned(),
            ],
            is_usual: true,
        }
    }
}
