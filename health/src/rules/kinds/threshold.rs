//! Counts and shares above or below a fixed limit.

use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::Fraction;

use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::measure::Measure;
use crate::rules::judging::{BadWindow, Compared, Judging, Misfit, Normal, Sink};
use crate::rules::kind::{Form, Judge};
use crate::rules::names::Severity;
use crate::rules::values::{count, setters, share};
use crate::rules::wording::{self, Measured, Words};

pub(super) const FORM: Form = Form {
    keys: &["measure", "least", "above", "clear_below", "below", "clear_above"],
    judges: |_| true,
    measure: Measure::ErrorRate,
    least: |measure| if measure.is_rate() { 100 } else { 1 },
    ..Form::COUNTS
};

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# Fixed limits. A share is a text such as "5%", a count is a number.
[[rule]]
name = "too many errors"
kind = "threshold"
measure = "error_rate"
by = ["integration"]
where = { integration = ["Webhook", "Amazon S3"] }
window = "1h"
above = "5%"
clear_below = "3%"
for = 2
clear = 3
least = 100
severity = "critical"
labels = { team = "data" }
note = "agreed with the data team"
runbook = "https://wiki.example/errors"

[[rule]]
name = "too few orders"
kind = "threshold"
measure = "success"
where = { event_name = "order" }
below = 200
clear_above = 250
"#;

/// Fixed limits, at least one of `above` and `below`. For a count, a limit is a fraction with the denominator 1, such as 100/1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Threshold {
    above: Option<Fraction>,
    clear_below: Option<Fraction>,
    below: Option<Fraction>,
    clear_above: Option<Fraction>,
}

impl Threshold {
    setters! {
        /// Sets the limit above which a window is bad.
        above: Option<Fraction>,

        /// Sets the limit above which a window stays bad while the rule fires.
        clear_below: Option<Fraction>,

        /// Sets the limit below which a window is bad.
        below: Option<Fraction>,

        /// Sets the limit below which a window stays bad while the rule fires.
        clear_above: Option<Fraction>,
    }

    pub(super) fn read(table: &Table<'_>, measure: Measure) -> Result<Self> {
        let limit = |key: &str| match table.entry(key) {
            Some(entry) if measure.is_rate() => share(&entry).map(Some),
            Some(entry) => Ok(Some(Fraction::new(count(&entry, 0)?, 1))),
            None => Ok(None),
        };
        Ok(Self {
            above: limit("above")?,
            clear_below: limit("clear_below")?,
            below: limit("below")?,
            clear_above: limit("clear_above")?,
        })
    }

    fn bad_window(&self, slot: usize, fires: bool, observed: Amount) -> BadWindow {
        let whole = observed.whole.unwrap_or(1);
        let low = self.below.map_or(0, |limit| limit.ceil_of(whole));
        let high = self.above.map_or(u64::MAX, |limit| limit.floor_of(whole));
        let nearest = observed.part.clamp(low.min(high), high);
        // A share that exceeds its limit by a single event is only reported as `info`.
        let is_slight = observed.whole.is_some()
            && high > 0
            && self.above.is_some()
            && observed.part.checked_sub(1) == Some(high);
        BadWindow {
            fires,
            severity: is_slight.then_some(Severity::Info),
            ..BadWindow::of(slot, observed, nearest as f64, Normal::Range(low, high))
        }
    }
}

impl Judge for Threshold {
    fn misfit(&self) -> Option<Misfit> {
        if self.above.is_none() && self.below.is_none() {
            return Some(Misfit::of("", "want above or below, or both"));
        }
        let is_wrong = |clear: Option<Fraction>,
                        limit: Option<Fraction>,
                        is_beyond: fn(Fraction, Fraction) -> bool| {
            clear.is_some_and(|clear| limit.is_none_or(|limit| is_beyond(clear, limit)))
        };
        if is_wrong(self.clear_below, self.above, |clear, limit| clear.exceeds(limit)) {
            let text = "want the key above, too, and at most its value";
            return Some(Misfit::of("clear_below", text));
        }
        is_wrong(self.clear_above, self.below, |clear, limit| limit.exceeds(clear))
            .then(|| Misfit::of("clear_above", "want the key below, too, and at least its value"))
    }

    fn group(&self, judging: &Judging<'_>, columns: Columns<'_>, sink: &mut Sink) {
        let (slots, least) = (judging.slots, judging.least);
        for slot in judging.known() {
            let (part, whole) = columns.at(slot);
            // A share of too few events is not judged. A count is judged even if it is small, because the limit `below`
            // is for small counts.
            if whole.is_some_and(|whole| whole < least) {
                continue;
            }
            sink.judged(slot);
            let of = whole.unwrap_or(1);
            let is_high = |limit: Option<Fraction>| {
                (whole.is_some() || part >= least)
                    && limit.is_some_and(|limit| limit.is_below(part, of))
            };
            // Late events still increase the count of a window that isn't settled, so a low count isn't evidence.
            let is_low = |limit: Option<Fraction>| {
                slots.settled[slot] && limit.is_some_and(|limit| limit.is_above(part, of))
            };
            let fires = is_high(self.above) || is_low(self.below);
            let holds = is_high(self.clear_below) || is_low(self.clear_above);
            if fires || holds {
                sink.add_bad(self.bad_window(slot, fires, Amount { part, whole }));
            }
        }
    }

    fn judges_absent(&self) -> bool {
        true
    }

    fn is_beyond(&self, total: Amount) -> bool {
        let (part, of) = (total.part, total.whole.unwrap_or(1));
        self.above.is_some_and(|limit| limit.is_below(part, of))
            || self.below.is_some_and(|limit| limit.is_above(part, of))
    }

    fn compared(&self) -> Option<Compared> {
        Some(Compared::FOUR_WEEKS)
    }

    fn words(&self, measured: &Measured) -> Words {
        // A count that is not below `low` is compared with the upper limit, if there is one.
        let high = measured.high.filter(|_| measured.observed.part >= measured.low);
        let (limit, named) = match high {
            Some(high) => (high, self.above),
            None => (measured.low, self.below),
        };
        wording::limited(measured, "limit", &wording::limit(measured, named, limit))
    }
}
