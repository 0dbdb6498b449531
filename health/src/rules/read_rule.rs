//! Reads one rule of a file.

use std::collections::BTreeMap;

use tallyfold::{Dimension, Metric, Result, TimeStep};

use super::document::Table;
use super::names::{RuleKind, Severity};
use super::read_test::read_test;
use super::rule::Rule;
use super::values::{dimensions, labels, named, step, values};
use crate::measure::Measure;

/// The keys that every rule may have.
const COMMON: [&str; 11] = [
    "name", "kind", "metric", "by", "where", "window", "for", "clear", "severity", "labels", "note",
];

/// The maximum length of a name, in characters.
const MOST_CHARS: usize = 200;

/// The largest value of `for` and `clear`.
const MOST_WINDOWS: u64 = 1_000;

/// The keys of a rule besides the common ones.
const fn keys(kind: RuleKind) -> &'static [&'static str] {
    match kind {
        RuleKind::Threshold => &[
            "measure",
            "least",
            "above",
            "clear_below",
            "below",
            "clear_above",
        ],
        RuleKind::Rate => &[
            "measure",
            "least",
            "baseline",
            "side",
            "false_alarms",
            "change",
        ],
        RuleKind::Volume => &[
            "measure",
            "least",
            "baseline",
            "side",
            "false_alarms",
            "change",
            "slow",
        ],
        RuleKind::Silent => &["measure", "least", "baseline", "false_alarms"],
        RuleKind::Vanished => &["measure", "least", "over", "history"],
        RuleKind::New => &["measure", "least", "history"],
        RuleKind::Budget => &["measure", "least", "budget", "burn"],
        RuleKind::Undelivered | RuleKind::Reconciliation => &["least"],
    }
}

/// Reads one rule. `window` is the length of its windows if the rule does not set one.
pub(crate) fn read_rule(table: &Table<'_>, window: TimeStep) -> Result<Rule> {
    let kind = kind(table)?;
    let known: Vec<&str> = COMMON.iter().chain(keys(kind)).copied().collect();
    table.check_keys(&known)?;
    let metric = match table.entry("metric") {
        Some(entry) => named(&entry, "metric", Metric::ALL, Metric::as_str)?,
        None if kind == RuleKind::Undelivered => Metric::EventIngestion,
        None => Metric::EventDelivery,
    };
    let measure = measure(table, kind)?;
    let by = table.entry("by");
    let mut groups = by.as_ref().map_or(Ok(Vec::new()), dimensions)?;
    // In the same order however they are written, so that findings keep their ids.
    groups.sort_unstable();
    let only = table.entry("where");
    let rule = Rule {
        name: name(table)?,
        kind,
        metric,
        measure,
        by: groups,
        only: only.as_ref().map_or(Ok(Vec::new()), values)?,
        window: table
            .entry("window")
            .map_or(Ok(window), |entry| step(&entry))?,
        bad: windows(table, "for", default_for(kind))?,
        good: windows(table, "clear", 2)?,
        severity: match table.entry("severity") {
            Some(entry) => named(&entry, "severity", Severity::ALL, Severity::as_str)?,
            None => Severity::Warning,
        },
        least: match table.entry("least") {
            Some(entry) => entry.whole(1, u64::MAX, "a number of events")?,
            None => default_least(kind, measure),
        },
        labels: table
            .entry("labels")
            .map_or(Ok(BTreeMap::new()), |entry| labels(&entry))?,
        test: read_test(table, kind, measure)?,
    };
    if let Some(note) = table.entry("note") {
        note.text("want text")?;
    }
    check_dimensions(table, &rule)?;
    Ok(rule)
}

fn kind(table: &Table<'_>) -> Result<RuleKind> {
    let Some(entry) = table.entry("kind") else {
        return Err(table.wrong("the key kind is missing"));
    };
    named(&entry, "kind", RuleKind::ALL, RuleKind::as_str)
}

fn name(table: &Table<'_>) -> Result<String> {
    let Some(entry) = table.entry("name") else {
        return Err(table.wrong("the key name is missing"));
    };
    let wanted = "want a name of 1 to 200 characters, none of which is a control character";
    let name = entry.text(wanted)?;
    let is_name =
        (1..=MOST_CHARS).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    is_name
        .then(|| name.to_owned())
        .ok_or_else(|| entry.wrong(wanted))
}

fn measure(table: &Table<'_>, kind: RuleKind) -> Result<Measure> {
    let (default, is_allowed): (Measure, fn(Measure) -> bool) = match kind {
        RuleKind::Threshold => (Measure::ErrorRate, |_| true),
        RuleKind::Rate | RuleKind::Budget => (Measure::ErrorRate, Measure::is_rate),
        _ => (Measure::Events, |measure| !measure.is_rate()),
    };
    let Some(entry) = table.entry("measure") else {
        return Ok(default);
    };
    let allowed: Vec<Measure> = Measure::ALL
        .iter()
        .copied()
        .filter(|own| is_allowed(*own))
        .collect();
    named(&entry, "measure", &allowed, Measure::as_str)
}

fn windows(table: &Table<'_>, key: &str, default: u32) -> Result<u32> {
    let Some(entry) = table.entry(key) else {
        return Ok(default);
    };
    let windows = entry.whole(1, MOST_WINDOWS, "a number of windows")?;
    Ok(u32::try_from(windows).unwrap_or(default))
}

const fn default_for(kind: RuleKind) -> u32 {
    match kind {
        RuleKind::Rate | RuleKind::Volume => 2,
        _ => 1,
    }
}

const fn default_least(kind: RuleKind, measure: Measure) -> u64 {
    match kind {
        RuleKind::Threshold if !measure.is_rate() => 1,
        RuleKind::Reconciliation => 1,
        RuleKind::Threshold | RuleKind::Rate | RuleKind::Budget => 100,
        RuleKind::Volume => 50,
        _ => 20,
    }
}

fn check_dimensions(table: &Table<'_>, rule: &Rule) -> Result<()> {
    let has = |dimension: Dimension| match rule.kind {
        RuleKind::Reconciliation => false,
        RuleKind::Undelivered => Metric::ALL.iter().all(|metric| metric.has(dimension)),
        _ => rule.metric.has(dimension),
    };
    let only = rule.only.iter().map(|(dimension, _)| *dimension);
    let uses = [("by", rule.by.clone()), ("where", only.collect())];
    for (key, dimensions) in uses {
        let missing = dimensions.into_iter().find(|dimension| !has(*dimension));
        if let (Some(missing), Some(entry)) = (missing, table.entry(key)) {
            let text = match rule.kind {
                RuleKind::Reconciliation => {
                    "totals are reported for all events together".to_owned()
                }
                RuleKind::Undelivered => format!("event_ingestion does not have {missing}"),
                _ => format!("{} does not have {missing}", rule.metric),
            };
            return Err(entry.wrong(text));
        }
    }
    match (rule.kind, table.entry("metric")) {
        (RuleKind::Undelivered, Some(entry)) => {
            Err(entry.wrong("this kind of rule compares both endpoints; leave the key out"))
        }
        _ => Ok(()),
    }
}
