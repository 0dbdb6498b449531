//! A finding in one sentence.

use tallyfold::text::{Fraction, grouped};

use super::finding::{Finding, Status};
use crate::cause::explanation::Amount;
use crate::measure::Measure;
use crate::rules::names::RuleKind;
use crate::rules::rule::{Rule, Test};
use crate::shown::{instant, percent, share, since, value, window};

/// What was found, in one sentence.
pub(crate) fn sentence(finding: &Finding, rule: &Rule) -> String {
    let (counted, usual) = match finding.kind {
        RuleKind::Undelivered => (
            format!(
                "{} came in and none was delivered, failed or filtered",
                events(finding.expected)
            ),
            None,
        ),
        RuleKind::Reconciliation => (
            format!(
                "the reported totals of {} are not those of the rows, which have {}",
                events_of(finding.observed.part),
                grouped(finding.low)
            ),
            None,
        ),
        RuleKind::Silent | RuleKind::Vanished => (
            "no events".to_owned(),
            Some(format!(
                "about {} would be normal",
                grouped(rounded(finding.expected))
            )),
        ),
        RuleKind::New => (
            events_of(finding.observed.part),
            Some("there were none before".to_owned()),
        ),
        _ => (
            counted(finding.measure, finding.observed),
            Some(usual(finding, rule)),
        ),
    };
    let mut parts = vec![format!(
        "{}: {counted} in {}",
        subject(finding),
        window(finding.window)
    )];
    parts.extend(usual);
    parts.push(lasting(finding));
    parts.extend(causes(finding));
    if finding.provisional {
        parts.push("these counts may still change".to_owned());
    }
    parts.join("; ")
}

/// What the finding is about: `integration Amazon S3`.
fn subject(finding: &Finding) -> String {
    if finding.group.is_empty() {
        return finding.query.metric.as_str().replace('_', " ");
    }
    let pairs = finding.group.iter();
    let pairs =
        pairs.map(|(name, own)| format!("{} {}", name.as_str().replace('_', " "), value(own)));
    pairs.collect::<Vec<_>>().join(", ")
}

/// Since when, or from when to when.
fn lasting(finding: &Finding) -> String {
    match (finding.status, finding.resolved) {
        (Status::Resolved, Some(end)) => {
            let (from, end) = (instant(finding.since), instant(end));
            let day = from.split(' ').next().unwrap_or_default();
            let end = end.strip_prefix(day).map_or(end.as_str(), str::trim_start);
            format!("over, it lasted from {from} to {end}")
        }
        _ => format!("since {}", since(finding.since, finding.window)),
    }
}

/// What was counted: `1,204 of 9,880 attempts failed (12.2%)`.
fn counted(measure: Measure, amount: Amount) -> String {
    let part = grouped(amount.part);
    let whole = amount.whole.unwrap_or_default();
    let share = share(amount.part, whole);
    match measure {
        Measure::ErrorRate => format!("{part} of {} attempts failed ({share})", grouped(whole)),
        Measure::FilteredRate => {
            format!(
                "{part} of {} events were filtered ({share})",
                grouped(whole)
            )
        }
        Measure::Success => format!("{} delivered", events_of(amount.part)),
        Measure::Errors => format!("{} failed", events_of(amount.part)),
        Measure::Filtered => format!("{} filtered", events_of(amount.part)),
        Measure::Events => events_of(amount.part),
    }
}

fn events(expected: f64) -> String {
    events_of(rounded(expected))
}

fn events_of(events: u64) -> String {
    let noun = if events == 1 { "event" } else { "events" };
    format!("{} {noun}", grouped(events))
}

/// The nearest whole number. The conversion saturates.
fn rounded(number: f64) -> u64 {
    (number + 0.5) as u64
}

/// What would be normal.
fn usual(finding: &Finding, rule: &Rule) -> String {
    let (low, high, observed) = (finding.low, finding.high, finding.observed);
    // A share that the rule names is said as it is written; so many events are a little less of the whole.
    let shown = |events: u64, limit: Option<Fraction>| match (observed.whole, limit) {
        (Some(_), Some(limit)) => limit.to_string(),
        (Some(whole), None) => share(events, whole),
        (None, _) => grouped(events),
    };
    let (above, below) = match &rule.test {
        Test::Limits(limits) => (limits.above, limits.below),
        Test::Budget { budget, .. } => (Some(*budget), None),
        _ => (None, None),
    };
    let (most, least) = match finding.kind {
        RuleKind::Threshold => ("allowed", "wanted"),
        RuleKind::Budget => ("in the budget", "in the budget"),
        _ => ("normal", "normal"),
    };
    let is_held = finding.kind == RuleKind::Threshold && observed.part >= low;
    if observed.part > high || is_held && high < u64::MAX {
        return format!("up to {} is {most}", shown(high, above));
    }
    if observed.part < low || finding.kind == RuleKind::Threshold {
        return format!("at least {} is {least}", shown(low, below));
    }
    let expected = match observed.whole {
        Some(whole) if whole > 0 => percent(finding.expected / whole as f64),
        _ => grouped(rounded(finding.expected)),
    };
    format!("about {expected} is {most}")
}

/// The causes that make up most of it.
fn causes(finding: &Finding) -> Option<String> {
    let causes = finding.causes.iter().take(2).map(|cause| {
        let pairs = cause.r#where.iter();
        let pairs = pairs.map(|(name, own)| format!("{name}={}", value(own)));
        let pairs = pairs.collect::<Vec<_>>().join(" ");
        let events = u64::try_from(cause.events.unsigned_abs()).unwrap_or(u64::MAX);
        let sign = if cause.events < 0 { "-" } else { "" };
        format!("{pairs} ({sign}{})", events_of(events))
    });
    let causes: Vec<String> = causes.collect();
    let named: i128 = finding
        .causes
        .iter()
        .take(2)
        .map(|cause| cause.events)
        .sum();
    let word = match named.unsigned_abs() >= finding.unexplained.unsigned_abs() {
        true => "most of it",
        false => "some of it",
    };
    (!causes.is_empty()).then(|| format!("{word} {}", causes.join(" and ")))
}
