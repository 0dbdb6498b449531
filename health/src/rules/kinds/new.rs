//! Groups that had no events before.

use tallyfold::arguments::toml::{Result, Table};

use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::columns::slots::Sums;
use crate::measure::Measure;
use crate::rules::baseline::WEEK;
use crate::rules::judging::{BadWindow, Compared, Judging, Normal, Sink};
use crate::rules::kind::{Form, Judge};
use crate::rules::values::length_of;
use crate::rules::wording::{Measured, Total, Words, events};

pub(super) const FORM: Form = Form { keys: &["measure", "least", "history"], ..Form::COUNTS };

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# A group that had no event before.
[[rule]]
name = "a reason is new"
kind = "new"
measure = "filtered"
by = ["integration", "reason"]
history = "2w"
least = 20
"#;

/// How long a group counts as new, in seconds.
const NEW_FOR: u64 = 86_400;

/// Finds groups that have events now but had none in the history.
#[derive(Clone, Debug, PartialEq)]
pub struct New {
    history: u64,
}

/// Compares with two weeks of history.
impl Default for New {
    fn default() -> Self {
        Self { history: 2 * WEEK }
    }
}

impl New {
    /// Sets the length of the history in seconds.
    #[must_use]
    pub fn history(self, history: u64) -> Self {
        Self { history }
    }

    pub(super) fn read(table: &Table<'_>, _: Measure) -> Result<Self> {
        let history = length_of(table, "history", Self::default().history)?;
        Ok(Self { history })
    }
}

impl Judge for New {
    fn history(&self, _: u64) -> u64 {
        self.history + NEW_FOR
    }

    fn group(&self, judging: &Judging<'_>, columns: Columns<'_>, sink: &mut Sink) {
        let over = judging.slots.in_seconds(NEW_FOR);
        let history = judging.slots.in_seconds(self.history);
        let sums = Sums::new(columns.parts, None, &judging.slots.known);
        for slot in judging.known() {
            let now = sums.before(slot + 1, over);
            let before = sums.before((slot + 1).saturating_sub(over), history);
            // If more than a tenth of the history is unknown, the group may have had events before.
            if before.known * 10 < history * 9 {
                continue;
            }
            sink.judged(slot);
            if before.part > 0 || now.part < judging.least {
                continue;
            }
            let has_events = |slot: &usize| judging.slots.known[*slot] && columns.parts[*slot] > 0;
            let mut recent = (slot + 1).saturating_sub(over)..=slot;
            let slots = (slot + 1 - recent.find(has_events).unwrap_or(slot)) as u32;
            let observed = Amount::count(now.part);
            sink.add_bad(BadWindow {
                slots,
                run: slots,
                ..BadWindow::of(slot, observed, 0.0, Normal::Range(0, 0))
            });
        }
    }

    fn compared(&self) -> Option<Compared> {
        // A new group has no earlier counts to compare with, so the causes show where its events come from.
        Some(Compared { weeks: 0, since_it_began: false })
    }

    fn words(&self, measured: &Measured) -> Words {
        Words {
            what: format!("first seen, with {}", events(measured.observed.part)),
            details: Vec::new(),
            is_usual: true,
        }
    }

    fn expected_in_total(&self, _: &Total) -> Option<f64> {
        Some(0.0)
    }

    fn over(&self) -> &'static str {
        "closed after a day, as it is no longer new; it may continue"
    }
}
