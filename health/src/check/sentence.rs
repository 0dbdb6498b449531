//! A finding in one sentence.

use tallyfold::Dimension;

use super::finding::{Finding, Status};
use crate::rules::rule::Rule;
use crate::rules::wording::{Seen, events};
use crate::shown::{since, value, window};

/// What was found, in one sentence.
pub(crate) fn sentence(finding: &Finding, rule: &Rule) -> String {
    let seen = Seen {
        measure: finding.measure,
        observed: finding.observed,
        expected: finding.expected,
        low: finding.low,
        high: finding.high,
    };
    let (counted, usual) = rule.test.judge().sentence(&seen);
    let about = subject(finding, rule);
    let when = window(finding.window);
    let mut parts = match finding.status {
        Status::Unjudged => vec![
            format!(
                "{about}: not judged since {} (too little traffic)",
                finding.seen.short()
            ),
            format!("last judged: {counted} in {when}"),
        ],
        _ => vec![format!("{about}: {counted} in {when}")],
    };
    parts.extend(usual);
    parts.push(lasting(finding));
    parts.extend(causes(finding));
    if finding.provisional {
        parts.push("these counts may still change".to_owned());
    }
    parts.join("; ")
}

/// What the finding is about, with the values that the rule keeps: `integration Amazon S3 (event name order)`.
fn subject(finding: &Finding, rule: &Rule) -> String {
    let words = |name: Dimension| name.as_str().replace('_', " ");
    let pairs = finding.group.iter();
    let pairs = pairs.map(|(name, own)| format!("{} {}", words(*name), value(own)));
    let about = match finding.group.is_empty() {
        true => finding.query.metric.as_str().replace('_', " "),
        false => pairs.collect::<Vec<_>>().join(", "),
    };
    let kept = rule.only.iter().filter(|(name, _)| !rule.by.contains(name));
    let kept = kept.map(|(name, values)| {
        let values: Vec<String> = values.iter().map(|own| value(own)).collect();
        format!("{} {}", words(*name), values.join(" or "))
    });
    let kept: Vec<String> = kept.collect();
    match kept.is_empty() {
        true => about,
        false => format!("{about} ({})", kept.join(", ")),
    }
}

/// When the finding began and, if it is over, when it ended.
fn lasting(finding: &Finding) -> String {
    match (finding.status, finding.resolved) {
        (Status::Resolved, Some(end)) => {
            let (from, end) = (finding.since.short(), end.short());
            let day = from.split(' ').next().unwrap_or_default();
            let end = end.strip_prefix(day).map_or(end.as_str(), str::trim_start);
            format!("over, it lasted from {from} to {end}")
        }
        _ => format!("since {}", since(finding.since, finding.window)),
    }
}

/// The two most important causes, and whether they explain most of the finding.
fn causes(finding: &Finding) -> Option<String> {
    let causes = finding.causes.iter().take(2).map(|cause| {
        let pairs = cause.r#where.iter();
        let pairs = pairs.map(|(name, own)| format!("{name}={}", value(own)));
        let pairs = pairs.collect::<Vec<_>>().join(" ");
        let number = u64::try_from(cause.events.unsigned_abs()).unwrap_or(u64::MAX);
        let sign = if cause.events < 0 { "-" } else { "" };
        format!("{pairs} ({sign}{})", events(number))
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
