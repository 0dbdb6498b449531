//! Errors that use up a budget too fast.

use tallyfold::arguments::toml::{Entry, Result, Table};
use tallyfold::text::Fraction;

use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::columns::slots::{Sum, Sums};
use crate::measure::Measure;
use crate::rules::judging::{BadWindow, Compared, Judging, Misfit, Normal, Sink};
use crate::rules::kind::{Form, Judge};
use crate::rules::names::Severity;
use crate::rules::values::{length, named, share};
use crate::rules::wording::{self, Measured, Words};
use crate::stats::tails::binomial;

pub(super) const FORM: Form = Form {
    keys: &["measure", "least", "budget", "burn"],
    judges: Measure::is_rate,
    measure: Measure::ErrorRate,
    least: |_| 100,
    ..Form::COUNTS
};

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# A budget of errors, used up too fast over a long and a short time.
[[rule]]
name = "the budget is used up"
kind = "budget"
measure = "error_rate"
budget = "0.5%"
burn = [{ rate = 14.4, long = "1h", short = "5m" }, { rate = 6, long = "6h", short = "30m" }, { rate = 1, long = "3d", short = "6h", severity = "warning" }]
least = 100
"#;

/// The natural logarithm of one in ten thousand. A burn rate fires only if the probability of at least as many errors, at
/// an error rate that just meets the budget, is at most one in ten thousand.
const LN_P: f64 = -9.210_340_371_976_182;

/// The burn rates of the Site Reliability Workbook, chapter 5: 2% of a month's budget in an hour, 5% in six hours, 10% in
/// three days.
const BURNS: [Burn; 3] = [
    Burn { rate: Fraction::new(144, 10), long: 3_600, short: 300, severity: None },
    Burn { rate: Fraction::new(6, 1), long: 6 * 3_600, short: 1_800, severity: None },
    Burn {
        rate: Fraction::new(1, 1),
        long: 3 * 86_400,
        short: 6 * 3_600,
        severity: Some(Severity::Warning),
    },
];

/// The share of events that may be bad, and the speeds at which this budget is used up too fast.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    share: Fraction,
    burns: Vec<Burn>,
}

/// A speed at which a budget is used up too fast.
#[derive(Clone, Debug, PartialEq)]
pub struct Burn {
    rate: Fraction,
    long: u64,
    short: u64,
    severity: Option<Severity>,
}

impl Burn {
    /// Makes a burn rate that fires at `rate` times the speed that the budget allows, over the time `long` and also over
    /// the time `short`, both in seconds. The shorter time shows that the errors continue.
    #[must_use]
    pub const fn new(rate: Fraction, long: u64, short: u64) -> Self {
        Self { rate, long, short, severity: None }
    }

    /// Sets a severity that overrides the severity of the rule.
    #[must_use]
    pub const fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    fn read(item: &Entry<'_>, wanted: &str) -> Result<Self> {
        let table = item.table(wanted)?;
        table.check_keys(&["rate", "long", "short", "severity"])?;
        let part = |key: &str| table.entry(key).ok_or_else(|| table.wrong(wanted));
        let rate = part("rate")?;
        let text = "want a multiple of the speed that the budget allows, such as 14.4";
        let burn = Self {
            rate: Fraction::decimal(&rate.number_text(text)?).ok_or_else(|| rate.wrong(text))?,
            long: length(&part("long")?)?,
            short: length(&part("short")?)?,
            severity: match table.entry("severity") {
                Some(entry) => Some(named(&entry, "severity", Severity::ALL, Severity::as_str)?),
                None => None,
            },
        };
        burn.misfit().map_or(Ok(burn), |misfit| Err(table.wrong(misfit)))
    }

    fn misfit(&self) -> Option<&'static str> {
        (self.short > self.long).then_some("want short to be no longer than long")
    }
}

impl Budget {
    /// Makes a budget with the burn rates of the Site Reliability Workbook.
    #[must_use]
    pub fn new(share: Fraction) -> Self {
        let burns = BURNS.to_vec();
        Self { share, burns }
    }

    /// Returns the share of events that may be bad.
    pub(crate) fn share(&self) -> Fraction {
        self.share
    }

    /// Sets other burn rates.
    #[must_use]
    pub fn burns(self, burns: impl IntoIterator<Item = Burn>) -> Self {
        let burns = burns.into_iter().collect();
        Self { burns, ..self }
    }

    pub(super) fn read(table: &Table<'_>, _: Measure) -> Result<Self> {
        let Some(entry) = table.entry("budget") else {
            return Err(table.wrong("the key budget is missing"));
        };
        let budget = Self::new(share(&entry)?);
        let Some(entry) = table.entry("burn") else {
            return Ok(budget);
        };
        let wanted = "want a list such as [{ rate = 14.4, long = \"1h\", short = \"5m\" }]";
        let burns = entry.items(wanted)?;
        let burns = burns.iter().map(|item| Burn::read(item, wanted));
        Ok(budget.burns(burns.collect::<Result<Vec<_>>>()?))
    }

    fn is_burning(&self, judging: &Judging<'_>, burn: &Burn, sums: &Sums, slot: usize) -> bool {
        let long = judging.slots.in_seconds(burn.long);
        let short = judging.slots.in_seconds(burn.short);
        let [over_long, over_short] = [long, short].map(|length| sums.before(slot + 1, length));
        let is_fast = |sum: Sum| self.share.times_is_below(burn.rate, sum.part, sum.whole);
        let is_sure = |sum: Sum| binomial(sum.part, sum.whole, self.share.as_f64()).high <= LN_P;
        over_long.known * 2 >= long
            && over_long.whole >= judging.least
            && [over_long, over_short].into_iter().all(|sum| is_fast(sum) && is_sure(sum))
    }

    fn bad_window(&self, judging: &Judging<'_>, burn: &Burn, sum: Sum, slot: usize) -> BadWindow {
        let observed = Amount { part: sum.part, whole: Some(sum.whole) };
        let expected = self.share.as_f64() * sum.whole as f64;
        let normal = Normal::Range(0, self.share.floor_of(sum.whole));
        BadWindow {
            slots: judging.slots.in_seconds(burn.long).min(slot + 1) as u32,
            run: judging.slots.in_seconds(burn.short).min(slot + 1) as u32,
            weight: u32::MAX,
            severity: burn.severity,
            ln_p: Some(binomial(sum.part, sum.whole, self.share.as_f64()).high),
            ..BadWindow::of(slot, observed, expected, normal)
        }
    }
}

impl Judge for Budget {
    fn misfit(&self) -> Option<Misfit> {
        let share = self.share.as_f64();
        if share <= 0.0 || share >= 1.0 {
            return Some(Misfit::of("budget", "want a share between 0% and 100%"));
        }
        if self.burns.is_empty() || self.burns.len() > 10 {
            return Some(Misfit::of("burn", "want one to ten burn rates"));
        }
        let misfit = self.burns.iter().find_map(Burn::misfit);
        misfit.map(|text| Misfit::of("burn", text))
    }

    fn history(&self, _: u64) -> u64 {
        // The time `short` is never longer than `long`.
        self.burns.iter().map(|burn| burn.long).max().unwrap_or_default()
    }

    /// Judges each window by the first burn rate that is exceeded over both its long and its short time.
    fn group(&self, judging: &Judging<'_>, columns: Columns<'_>, sink: &mut Sink) {
        let sums = Sums::new(columns.parts, columns.wholes, &judging.slots.known);
        for slot in judging.known() {
            let attempts = |burn: &Burn| sums.before(slot + 1, judging.slots.in_seconds(burn.long));
            let is_rare = |burn: &Burn| attempts(burn).whole < judging.least;
            if self.burns.iter().all(is_rare) {
                continue;
            }
            let mut burns = self.burns.iter();
            let burn = burns.find(|burn| self.is_burning(judging, burn, &sums, slot));
            match burn {
                // Without attempts in the window itself, nothing shows that attempts succeed again.
                None if sums.before(slot + 1, 1).whole == 0 => sink.tested(slot),
                _ => sink.judged(slot),
            }
            if let Some(burn) = burn {
                sink.add_bad(self.bad_window(judging, burn, attempts(burn), slot));
            }
        }
    }

    fn compared(&self) -> Option<Compared> {
        Some(Compared { since_it_began: true, ..Compared::FOUR_WEEKS })
    }

    fn words(&self, measured: &Measured) -> Words {
        wording::limited(measured, "budget", &self.share.to_string())
    }
}
