//! A finding in one sentence: who and what, how much against what is usual, since when, and where.

use tallyfold::Dimension;
use tallyfold::text::grouped;

use crate::cause::explanation::Cause;
use crate::incidents::finding::{Finding, Status};
use crate::rules::rule::Rule;
use crate::rules::wording::Seen;
use crate::shown::{near, span, value, window};

/// What was found, in one sentence.
pub(crate) fn sentence(finding: &Finding, rule: &Rule) -> String {
    let said = rule.test.judge().said(&Seen {
        measure: finding.measure,
        observed: finding.observed,
        expected: finding.expected,
        low: finding.low,
        high: finding.high,
    });
    let about = subject(finding, rule);
    let when = window(finding.window);
    let began = near(finding.since, finding.window.start());
    let details = match said.details.is_empty() {
        true => String::new(),
        false => format!(" ({})", said.details.join("; ")),
    };
    let what = said.what;
    let change = change(finding);
    let mut parts = match (finding.status, finding.resolved) {
        (Status::Resolved, Some(end)) => vec![
            format!("{about}: {what} in {when}{details}"),
            format!("over, it lasted from {}", span(finding.since, end)),
        ],
        (Status::Unjudged, _) => vec![
            format!(
                "{about}: not judged since {} UTC (too little traffic)",
                finding.seen.short()
            ),
            format!("last judged: {what} in {when}{details}, since {began}"),
        ],
        _ if finding.since == finding.window.start() => {
            let start = finding.since.short();
            vec![format!("{about}: {what} since {start} UTC{details}")]
        }
        _ => vec![match change {
            Some(_) => format!("{about}: {what} in {when}{details}"),
            None => format!("{about}: {what} in {when}{details}, since {began}"),
        }],
    };
    let is_longer = finding.since < finding.window.start() && parts.len() == 1;
    parts.extend(change.map(|change| match is_longer {
        true => format!("since {began}, {change}"),
        false => change,
    }));
    if finding.provisional {
        parts.push("these counts may still change".to_owned());
    }
    parts.join("; ")
}

/// What the finding is about, with the values that the rule keeps: `integration Amazon S3 (event name order)`.
fn subject(finding: &Finding, rule: &Rule) -> String {
    let pairs = finding.group.iter();
    let pairs = pairs.map(|(name, own)| format!("{} {}", words(name.as_str()), value(own)));
    let about = match finding.group.is_empty() {
        true => words(finding.query.metric.as_str()),
        false => pairs.collect::<Vec<_>>().join(", "),
    };
    let kept = rule.only.iter().filter(|(name, _)| !rule.by.contains(name));
    let kept = kept.map(|(name, values)| {
        let values: Vec<String> = values.iter().map(|own| value(own)).collect();
        format!("{} {}", words(name.as_str()), values.join(" or "))
    });
    let kept: Vec<String> = kept.collect();
    match kept.is_empty() {
        true => about,
        false => format!("{about} ({})", kept.join(", ")),
    }
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// By how many events the whole time of the finding differs from the compared time, and where most of them are. The counts
/// of the causes are about that time, too.
fn change(finding: &Finding) -> Option<String> {
    let (first, last) = (finding.compared.first()?, finding.compared.last()?);
    let named = finding.causes.iter().take(2);
    let named: Vec<&Cause> = named.collect();
    let explained: i128 = named.iter().map(|cause| cause.events).sum();
    let all: i128 = finding.causes.iter().map(|cause| cause.events).sum();
    let total = finding.unexplained.saturating_add(all);
    let difference = finding.observed.part as f64 - finding.expected;
    if total == 0 || (total > 0) != (difference > 0.0) {
        return None;
    }
    let is_before = first == last && first.end() == finding.query.start.max(finding.since);
    let comparison = match (total > 0, is_before) {
        (true, false) => "more than usual",
        (true, true) => "more than just before",
        (false, false) => "fewer than usual",
        (false, true) => "fewer than just before",
    };
    let events = grouped(total.unsigned_abs());
    let change = format!("{events} {comparison}");
    let share = explained as f64 / total as f64;
    let part = match share {
        share if share >= 0.995 => "all",
        share if share >= 0.9 => "nearly all",
        share if share >= 0.5 => "most",
        share if share > 0.0 => "some",
        _ => return Some(change),
    };
    let counts = named.len() > 1;
    let places = named.into_iter().map(|cause| place(cause, counts));
    let places: Vec<String> = places.collect();
    Some(format!("{change}, {part} {}", places.join(" and ")))
}

/// The values of a cause: `from integration Amazon S3 with event name order`, `for reason consent denied`.
fn place(cause: &Cause, is_counted: bool) -> String {
    let is_reason = |name: &str| name == Dimension::Reason.as_str();
    let preposition = match cause.r#where.first() {
        Some((name, _)) if is_reason(name) => "for",
        _ => "from",
    };
    let pairs = cause.r#where.iter();
    let pairs = pairs.map(|(name, own)| format!("{} {}", words(name), value(own)));
    let pairs: Vec<String> = pairs.collect();
    let events = match is_counted {
        true => format!(" ({})", grouped(cause.events.unsigned_abs())),
        false => String::new(),
    };
    format!("{preposition} {}{events}", pairs.join(" with "))
}
