//! A finding in one sentence.

use super::finding::{Finding, Status};
use super::shown::{count, instant, percent, share, since, value, window};
use crate::cause::explanation::Amount;
use crate::measure::Measure;
use crate::rules::names::RuleKind;

/// What was found, in one sentence.
pub(crate) fn sentence(finding: &Finding) -> String {
    let mut parts = vec![format!(
        "{}: {} in {}",
        subject(finding),
        counted(finding.measure, finding.observed),
        window(finding.window)
    )];
    parts.push(usual(finding));
    match (finding.status, finding.resolved) {
        (Status::Resolved, Some(end)) => parts.push(format!(
            "from {} to {}, now over",
            instant(finding.since),
            since(end, finding.window)
        )),
        _ => parts.push(format!("since {}", since(finding.since, finding.window))),
    }
    parts.extend(causes(finding));
    if finding.provisional {
        parts.push("these counts may still change".to_owned());
    }
    parts.join("; ")
}

/// Who it is about: `integration Amazon S3`.
fn subject(finding: &Finding) -> String {
    if finding.group.is_empty() {
        return finding.query.metric.as_str().replace('_', " ");
    }
    let pairs = finding.group.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, own)| format!("{} {}", name.as_str().replace('_', " "), value(own)))
        .collect();
    pairs.join(", ")
}

/// What was counted: `1,204 of 9,880 attempts failed (12.2%)`.
fn counted(measure: Measure, amount: Amount) -> String {
    let part = count(amount.part);
    let whole = amount.whole.unwrap_or_default();
    match measure {
        Measure::ErrorRate => {
            format!(
                "{part} of {} attempts failed ({})",
                count(whole),
                share(amount.part, whole)
            )
        }
        Measure::FilteredRate => {
            format!(
                "{part} of {} events were filtered ({})",
                count(whole),
                share(amount.part, whole)
            )
        }
        _ => format!("{part} {}", noun(measure, amount.part)),
    }
}

fn noun(measure: Measure, events: u64) -> String {
    let event = if events == 1 { "event" } else { "events" };
    match measure {
        Measure::Success => format!("{event} delivered"),
        Measure::Errors | Measure::ErrorRate => format!("{event} failed"),
        Measure::Filtered | Measure::FilteredRate => format!("{event} filtered"),
        Measure::Events => event.to_owned(),
    }
}

/// What would be normal.
fn usual(finding: &Finding) -> String {
    let (low, high, observed) = (finding.low, finding.high, finding.observed);
    let shown = |events: u64| match observed.whole {
        Some(whole) => share(events, whole),
        None => count(events),
    };
    let is_limit = finding.kind == RuleKind::Threshold;
    let (is, word) = match is_limit {
        true => ("is allowed", "is wanted"),
        false => ("is normal", "is normal"),
    };
    match () {
        () if observed.part > high => format!("up to {} {is}", shown(high)),
        () if observed.part < low => format!("at least {} {word}", shown(low)),
        () => {
            let expected = match observed.whole {
                Some(whole) if whole > 0 => percent(finding.expected / whole as f64),
                _ => count(finding.expected as u64),
            };
            format!("about {expected} {is}")
        }
    }
}

/// What most of it is.
fn causes(finding: &Finding) -> Option<String> {
    let causes = finding.causes.iter().take(2).map(|cause| {
        let pairs = cause.r#where.iter();
        let pairs: Vec<String> = pairs
            .map(|(name, own)| format!("{name}={}", value(own)))
            .collect();
        let events = u64::try_from(cause.events.unsigned_abs()).unwrap_or(u64::MAX);
        let events = format!(
            "{} {}",
            count(events),
            if events == 1 { "event" } else { "events" }
        );
        format!("{} ({events})", pairs.join(" "))
    });
    let causes: Vec<String> = causes.collect();
    (!causes.is_empty()).then(|| format!("most of it {}", causes.join(" and ")))
}
