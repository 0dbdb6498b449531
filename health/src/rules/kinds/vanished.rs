//! Groups that always had events and have none now.

use tallyfold::arguments::toml::{Result, Table};

use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::columns::slots::Sums;
use crate::measure::Measure;
use crate::rules::baseline::WEEK;
use crate::rules::judging::{BadWindow, Judging, Normal, Sink};
use crate::rules::kind::{Form, Judge};
use crate::rules::values::{length_of, setters};

pub(super) const FORM: Form =
    Form { keys: &["measure", "least", "over", "history"], ..Form::COUNTS };

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# No events for much longer than a window.
[[rule]]
name = "an event has vanished"
kind = "vanished"
measure = "events"
by = ["event_name", "integration"]
over = "1d"
history = "2w"
least = 20
"#;

/// Finds groups without events in the last period, but with events in each earlier period of the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct Vanished {
    over: u64,
    history: u64,
}

/// Compares the last day with the two weeks before.
impl Default for Vanished {
    fn default() -> Self {
        Self { over: 86_400, history: 2 * WEEK }
    }
}

impl Vanished {
    setters! {
        /// Sets the length of a period in seconds.
        over: u64,

        /// Sets the length of the history in seconds. With less than two periods of history, the rule finds nothing.
        history: u64,
    }

    pub(super) fn read(table: &Table<'_>, _: Measure) -> Result<Self> {
        let usual = Self::default();
        Ok(Self {
            over: length_of(table, "over", usual.over)?,
            history: length_of(table, "history", usual.history)?,
        })
    }
}

impl Judge for Vanished {
    fn history(&self, _: u64) -> u64 {
        self.over + self.history.max(self.over)
    }

    fn group(&self, judging: &Judging<'_>, columns: Columns<'_>, sink: &mut Sink) {
        let over = judging.slots.in_seconds(self.over);
        let periods = judging.slots.in_seconds(self.history.max(self.over)) / over;
        let sums = Sums::new(columns.parts, None, &judging.finals);
        for slot in judging.known().filter(|slot| judging.finals[*slot]) {
            let now = sums.before(slot + 1, over);
            if now.known * 10 < over * 9 {
                continue;
            }
            if now.part > 0 {
                sink.judged(slot);
                continue;
            }
            let before =
                (1..=periods).map(|ago| sums.before((slot + 1).saturating_sub(ago * over), over));
            let before: Vec<u64> = before
                .filter(|period| period.known * 2 >= over)
                .map(|period| period.part)
                .collect();
            let enough = before.iter().filter(|part| **part >= judging.least).count();
            // A group without events in the whole history is not judged: it shows neither a problem nor a recovery.
            if before.len() < 2 || before.iter().all(|part| *part == 0) {
                continue;
            }
            sink.judged(slot);
            if enough == 0 {
                continue;
            }
            let sum: f64 = before.iter().map(|part| *part as f64).sum();
            let expected = sum / before.len() as f64;
            let normal = Normal::Range(judging.least, u64::MAX);
            sink.add_bad(BadWindow {
                slots: over as u32,
                run: over as u32,
                fires: enough == before.len(),
                ..BadWindow::of(slot, Amount::count(0), expected, normal)
            });
        }
    }

    fn needs_usual(&self) -> bool {
        true
    }
}
