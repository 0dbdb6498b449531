//! Reads how a rule judges a window.

use tallyfold::text::Fraction;
use tallyfold::{Error, Result};

use super::document::{Entry, Table};
use super::names::{RuleKind, Severity, Side};
use super::rule::{Baseline, Burn, Limits, Test, WEEK};
use super::values::{length, named, share, side};
use crate::measure::Measure;

/// The fewest and the most weeks of a baseline.
const WEEKS: (u64, u64) = (1, 8);

/// Reads the keys of this kind of rule.
pub(super) fn read_test(table: &Table<'_>, kind: RuleKind, measure: Measure) -> Result<Test> {
    Ok(match kind {
        RuleKind::Threshold => Test::Limits(limits(table, measure)?),
        RuleKind::Rate => Test::Baseline(baseline(table, Fraction::new(1, 100))?),
        RuleKind::Volume => Test::Baseline(baseline(table, Fraction::new(20, 100))?),
        RuleKind::Silent => Test::Silent(Baseline {
            side: Side::Low,
            ..baseline(table, Fraction::new(1, 1))?
        }),
        RuleKind::Vanished => {
            let over = length_of(table, "over", 86_400)?;
            Test::Vanished {
                over,
                history: length_of(table, "history", 2 * WEEK)?.max(over),
            }
        }
        RuleKind::New => Test::New {
            history: length_of(table, "history", 2 * WEEK)?,
        },
        RuleKind::Budget => budget(table)?,
        RuleKind::Undelivered => Test::Undelivered,
        RuleKind::Reconciliation => Test::Reconciliation,
    })
}

fn length_of(table: &Table<'_>, key: &str, default: u64) -> Result<u64> {
    table.entry(key).map_or(Ok(default), |entry| length(&entry))
}

fn limits(table: &Table<'_>, measure: Measure) -> Result<Limits> {
    let limit = |key: &str| match table.entry(key) {
        Some(entry) if measure.is_rate() => share(&entry).map(Some),
        Some(entry) => Ok(Some(Fraction::new(
            entry.whole(0, u64::MAX, "a number of events")?,
            1,
        ))),
        None => Ok(None),
    };
    let limits = Limits {
        above: limit("above")?,
        clear_below: limit("clear_below")?,
        below: limit("below")?,
        clear_above: limit("clear_above")?,
    };
    if limits.above.is_none() && limits.below.is_none() {
        return Err(table.wrong("want above or below, or both"));
    }
    let is_wrong = |clear: Option<Fraction>,
                    limit: Option<Fraction>,
                    beyond: fn(Fraction, Fraction) -> bool| {
        clear.is_some_and(|clear| limit.is_none_or(|limit| beyond(clear, limit)))
    };
    if is_wrong(limits.clear_below, limits.above, |clear, limit| {
        clear.exceeds(limit)
    }) {
        return Err(wrong_at(
            table,
            "clear_below",
            "want above too, with no less than this",
        ));
    }
    if is_wrong(limits.clear_above, limits.below, |clear, limit| {
        limit.exceeds(clear)
    }) {
        return Err(wrong_at(
            table,
            "clear_above",
            "want below too, with no more than this",
        ));
    }
    Ok(limits)
}

/// An error about a key of a table.
fn wrong_at(table: &Table<'_>, key: &str, text: &str) -> Error {
    let entry = table.entry(key);
    entry.map_or_else(|| table.wrong(text), |entry| entry.wrong(text))
}

fn baseline(table: &Table<'_>, change: Fraction) -> Result<Baseline> {
    let mut baseline = Baseline {
        weeks: 6,
        neighbours: 1,
        side: side(table)?,
        false_alarms: 0.1,
        change,
        slow: None,
    };
    if let Some(entry) = table.entry("baseline") {
        let inner = entry.table("want a table such as { weeks = 6, neighbours = 1 }")?;
        inner.check_keys(&["weeks", "neighbours"])?;
        for entry in inner.entries() {
            match entry.name {
                "weeks" => {
                    baseline.weeks = entry.whole(WEEKS.0, WEEKS.1, "a number of weeks")? as usize
                }
                _ => baseline.neighbours = entry.whole(0, 8, "a number of windows")? as usize,
            }
        }
    }
    if let Some(entry) = table.entry("false_alarms") {
        baseline.false_alarms = false_alarms(&entry)?;
    }
    if let Some(entry) = table.entry("change") {
        baseline.change = share(&entry)?;
    }
    if let Some(entry) = table.entry("slow") {
        baseline.slow = Some(length(&entry)?);
    }
    Ok(baseline)
}

fn false_alarms(entry: &Entry<'_>) -> Result<f64> {
    let wanted = "want a number of false alarms in 30 days, from 0.000001 to 100";
    let number = Fraction::decimal(&entry.number_text(wanted)?).map(Fraction::as_f64);
    let within = number.filter(|number| (1e-6..=100.0).contains(number));
    within.ok_or_else(|| entry.wrong(wanted))
}

fn budget(table: &Table<'_>) -> Result<Test> {
    let Some(entry) = table.entry("budget") else {
        return Err(table.wrong("the key budget is missing"));
    };
    let budget = share(&entry)?;
    if budget.as_f64() <= 0.0 || budget.as_f64() >= 1.0 {
        return Err(entry.wrong("want a share between 0% and 100%"));
    }
    let burns = match table.entry("burn") {
        Some(entry) => {
            let wanted = "want a list such as [{ rate = 14.4, long = \"1h\", short = \"5m\" }]";
            let items = entry.items(wanted)?;
            if items.is_empty() || items.len() > 10 {
                return Err(entry.wrong("want one to ten of them"));
            }
            items
                .iter()
                .map(|item| burn(item, wanted))
                .collect::<Result<_>>()?
        }
        None => BURNS.to_vec(),
    };
    Ok(Test::Budget { budget, burns })
}

/// The burn rates of the Site Reliability Workbook, chapter 5: 2% of a month's budget in an hour, 5% in six hours, 10% in
/// three days.
const BURNS: [Burn; 3] = [
    Burn {
        rate: Fraction::new(144, 10),
        long: 3_600,
        short: 300,
        severity: None,
    },
    Burn {
        rate: Fraction::new(6, 1),
        long: 6 * 3_600,
        short: 1_800,
        severity: None,
    },
    Burn {
        rate: Fraction::new(1, 1),
        long: 3 * 86_400,
        short: 6 * 3_600,
        severity: Some(Severity::Warning),
    },
];

fn burn(item: &Entry<'_>, wanted: &str) -> Result<Burn> {
    let table = item.table(wanted)?;
    table.check_keys(&["rate", "long", "short", "severity"])?;
    let part = |key: &str| table.entry(key).ok_or_else(|| table.wrong(wanted));
    let rate = part("rate")?;
    let text = "want how many times as fast as the budget allows, such as 14.4";
    let burn = Burn {
        rate: Fraction::decimal(&rate.number_text(text)?).ok_or_else(|| rate.wrong(text))?,
        long: length(&part("long")?)?,
        short: length(&part("short")?)?,
        severity: match table.entry("severity") {
            Some(entry) => Some(named(&entry, "severity", Severity::ALL, Severity::as_str)?),
            None => None,
        },
    };
    match burn.short > burn.long {
        true => Err(table.wrong("want short to be no longer than long")),
        false => Ok(burn),
    }
}
