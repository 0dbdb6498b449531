//! What `check` has found, as OpenMetrics.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tallyfold::Window;
use tallyfold_health::{Finding, Status};

use super::found::{Found, FoundPart};

/// Writes whether all is well, and what fires or is pending.
///
/// # Errors
/// Those of the writer.
pub(crate) fn write_metrics(found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let own = |part: &FoundPart| {
        let mut labels: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &part.labels {
            labels.insert(label_name(name), value.clone());
        }
        if found.is_named {
            labels.insert("cluster".to_owned(), part.cluster.clone());
        }
        labels
    };
    family(
        out,
        "tallyfold_check_healthy",
        "1 if nothing is wrong, 0 if something is",
    )?;
    for part in &found.parts {
        let healthy = i32::from(part.is_healthy());
        writeln!(
            out,
            "tallyfold_check_healthy{} {healthy}",
            shown(&own(part))
        )?;
    }
    family(
        out,
        "tallyfold_check_judged_windows",
        "Windows of groups that were judged",
    )?;
    for part in &found.parts {
        let judged = part.judged();
        writeln!(
            out,
            "tallyfold_check_judged_windows{} {judged}",
            shown(&own(part))
        )?;
    }
    family(
        out,
        "tallyfold_check_missing_seconds",
        "Time whose counts could not be read",
    )?;
    for part in &found.parts {
        let ms = |gap: &Window| gap.end().unix_ms() - gap.start().unix_ms();
        let seconds = part.gaps.iter().map(ms).sum::<i64>() / 1_000;
        writeln!(
            out,
            "tallyfold_check_missing_seconds{} {seconds}",
            shown(&own(part))
        )?;
    }
    family(
        out,
        "tallyfold_finding_since_seconds",
        "What fires or is pending, with the instant since when",
    )?;
    for part in &found.parts {
        let lives = part.findings().iter();
        for finding in lives.filter(|finding| finding.status != Status::Resolved) {
            let labels = shown(&labels_of(own(part), finding));
            let since = finding.since.unix_ms() / 1_000;
            writeln!(out, "tallyfold_finding_since_seconds{labels} {since}")?;
        }
    }
    writeln!(out, "# EOF")
}

fn family(out: &mut dyn Write, name: &str, help: &str) -> io::Result<()> {
    writeln!(out, "# TYPE {name} gauge\n# HELP {name} {help}.")
}

fn labels_of(mut labels: BTreeMap<String, String>, finding: &Finding) -> BTreeMap<String, String> {
    for (name, value) in &finding.labels {
        labels.insert(label_name(name), value.clone());
    }
    for (dimension, value) in &finding.group {
        labels.insert(dimension.to_string(), value.clone());
    }
    let own = [
        ("rule", finding.rule.as_str()),
        ("severity", finding.severity.as_str()),
        ("status", finding.status.as_str()),
        ("silenced", if finding.silenced { "true" } else { "false" }),
        (
            "provisional",
            if finding.provisional { "true" } else { "false" },
        ),
    ];
    labels.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    labels
}

/// A name as Prometheus takes it.
pub(crate) fn label_name(name: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let name = name.chars().map(|character| match is_plain(character) {
        true => character,
        false => '_',
    });
    let name: String = name.collect();
    match name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        true => format!("_{name}"),
        false => name,
    }
}

fn shown(labels: &BTreeMap<String, String>) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let pairs = labels.iter().map(|(name, value)| {
        let value = value.replace('\\', r"\\").replace('"', r#"\""#);
        format!("{name}=\"{}\"", value.replace('\n', r"\n"))
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}
