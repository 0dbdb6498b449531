//! Applies rules to the windows of the live view. The live view has no weeks of history, so without a rules file it
//! uses two simple rules: a fixed limit, and a comparison with the preceding windows.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tallyfold::text::Fraction;
use tallyfold::{CountTable, Dimension, Metric, TimeStep, Timestamp, Window};
use tallyfold_health::kinds::{Rate, Test, Threshold};
use tallyfold_health::{
    Baseline, Check, Measure, Observed, Rule, Rules, Severity, Side, State, Status,
};

use crate::failure::Result;

/// Applies rules to the windows of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct LiveRules {
    rules: Rc<Rules>,
    metric: Metric,
    /// The newest windows, by their start in milliseconds since 1970.
    tables: RefCell<BTreeMap<i64, CountTable>>,
}

/// A finding as one line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FindingLine {
    /// What is wrong.
    pub(crate) text: String,
    /// Whether the finding is critical.
    pub(crate) is_bad: bool,
}

/// Returns the rules of a view without a rules file.
///
/// # Errors
/// `invalid_rules` for windows of less than a minute, which rules can't judge.
pub(crate) fn simple(metric: Metric, by: &[Dimension], step: TimeStep) -> Result<Rules> {
    // Skip dimensions that the metric lacks. The core later refuses a query with such a dimension.
    let by = by.iter().copied().filter(|dimension| metric.has(*dimension));
    let by: Vec<Dimension> = by.collect();
    let rule = |name: &str, test: Test| {
        let rule = Rule::new(name, test).metric(metric).window(step);
        rule.by(by.iter().copied()).measure(Measure::ErrorRate)
    };
    let above = Threshold::default().above(Fraction::new(10, 100));
    let baseline = Baseline::default().side(Side::High);
    let rate = Rate::from(baseline.change(Fraction::new(1, 100)));
    let rules = Rules::new([
        rule("more than a tenth fails", above.into()).windows(1, 1).severity(Severity::Critical),
        rule("fails more than before", rate.into()).windows(2, 1),
    ])?;
    Ok(rules.explained_by(by)?)
}

impl LiveRules {
    /// Creates rules without windows.
    pub(crate) fn new(rules: Rc<Rules>, metric: Metric) -> Self {
        Self { rules, metric, tables: RefCell::default() }
    }

    /// Stores the counts of a window, and drops windows that start before `oldest_ms`.
    pub(crate) fn take(&self, window: Window, table: CountTable, oldest_ms: i64) {
        let mut tables = self.tables.borrow_mut();
        tables.insert(window.start().unix_ms(), table);
        tables.retain(|start_ms, _| *start_ms >= oldest_ms);
    }

    /// Returns the findings that fire, the most severe first.
    pub(crate) fn findings(&self, now_ms: i64) -> Vec<FindingLine> {
        let tables = self.tables.borrow();
        match CountTable::merge_all(tables.values()) {
            Ok(table) => findings_in(&self.rules, self.metric, &table, now_ms),
            // There is no window yet, so there is no table to merge.
            Err(_) => Vec::new(),
        }
    }
}

/// Returns the findings that fire for a table, the most severe first. If the rules can't be applied, returns the reason as the
/// only finding.
pub(crate) fn findings_in(
    rules: &Rules,
    metric: Metric,
    table: &CountTable,
    now_ms: i64,
) -> Vec<FindingLine> {
    let mut observed = Observed::default();
    match metric {
        Metric::EventDelivery => observed.delivery = Some(table),
        Metric::EventIngestion => observed.ingestion = Some(table),
    }
    let Some(now) = Timestamp::from_unix_ms(now_ms) else {
        return Vec::new();
    };
    match rules.check(&observed, &State::default(), now) {
        Ok(check) => firing(&check),
        Err(error) => vec![FindingLine {
            text: format!("no rule was applied: {}", error.message()),
            is_bad: false,
        }],
    }
}

fn firing(check: &Check) -> Vec<FindingLine> {
    let findings = check.findings.iter();
    let firing = findings.filter(|one| one.status == Status::Firing && !one.silenced);
    let lines = firing.map(|finding| {
        let note = match finding.provisional {
            true => " (counts may still change)",
            false => "",
        };
        FindingLine {
            text: format!("{}: {}{note}", finding.severity, finding.sentence),
            is_bad: finding.severity == Severity::Critical,
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::{Row, each_hour};

    #[test]
    fn simple_rules_find_an_integration_that_fails() {
        let step = TimeStep::parse("1h").unwrap();
        let rules =
            Rc::new(simple(Metric::EventDelivery, &[Dimension::Integration], step).unwrap());
        assert_eq!(rules.names().len(), 2);
        let rules = LiveRules::new(Rc::clone(&rules), Metric::EventDelivery);
        assert_eq!(rules.findings(0), []);
        let good: &[Row<'_>] = &[("Warehouse", 950, 5, 0), ("Webhooks", 900, 9, 0)];
        let bad: &[Row<'_>] = &[("Warehouse", 500, 455, 0), ("Webhooks", 900, 9, 0)];
        let tables = each_hour(&[good, good, bad]);
        let end_ms = tables[2].0.end().unix_ms();
        for (window, table) in tables {
            rules.take(window, table, 0);
        }
        let found = rules.findings(end_ms + 1);
        assert!(
            found[0].is_bad
                && found[0]
                    .text
                    .starts_with("critical: integration Warehouse: 47.6% of attempts failed"),
            "{found:?}"
        );
        assert!(found.iter().all(|one| !one.text.contains("Webhooks")), "{found:?}");
        // The rules drop windows that are too old.
        let rules = rules.clone();
        let (window, table) = each_hour(&[good]).remove(0);
        rules.take(window, table, i64::MAX);
        assert_eq!(rules.findings(end_ms + 1), []);
    }

    #[test]
    fn rules_that_do_not_fit_the_windows_are_reported() {
        let rules = Rules::parse("window = \"15m\"\n[[rule]]\nname = \"x\"\nkind = \"threshold\"\nmeasure = \"error_rate\"\nabove = \"10%\"").unwrap();
        let (_, table) = each_hour(&[&[("Warehouse", 1, 1, 0)]]).remove(0);
        let found = findings_in(&rules, Metric::EventDelivery, &table, 1_800_000_000_000);
        assert!(found[0].text.starts_with("no rule was applied: "), "{found:?}");
    }
}
