//! Writes the findings of `check` as sentences, JSON, NDJSON or OpenMetrics.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use tallyfold::{Timestamp, Window};
use tallyfold_export::{FamilyKind, Scrape, ScrapeFormat};
use tallyfold_health::{
    Check, Finding, Incident, IncidentHold, Severity, Status, Unjudged, label_name,
};

use super::document::{FailureDocument, MissingDocument, Pairs};
use super::documented::{missing_of, write_document};
use super::grid::write_styled;
use super::report::{Missing, Part, Report};
use super::safe::escaped;
use super::sink::{Screen, write_to};
use crate::config::settings::Pair;
use crate::failure::{Exit, Result};

/// The findings of rules in all clusters.
///
/// A replay has the same form as a check. It is always healthy, because its findings are in the past, and its state is empty.
pub(crate) type CheckReport = Report<Checked, Check>;

/// What was checked in each cluster.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The time of the check.
    pub(crate) at: Timestamp,
    /// The range of a replay.
    pub(crate) replay: Option<Window>,
    /// The file with the rules; `None` for the standard rules.
    pub(crate) rules: Option<PathBuf>,
}

/// Returns the exit code for the findings. If a receiver refuses an alert, the command exits with another code.
pub(crate) fn exit(report: &CheckReport) -> Exit {
    let mut bad = report.parts.iter().filter(|part| !part.found.healthy);
    let is_firing = |finding: &Finding| {
        finding.status == Status::Firing
            && finding.severity >= Severity::Warning
            && !finding.silenced
            && !finding.provisional
    };
    match bad.clone().next() {
        None => report.exit(),
        Some(_) if bad.any(|part| part.found.findings.iter().any(is_firing)) => Exit::Unhealthy,
        // No finding fires, but too little could be judged to report that all is well.
        Some(_) => Exit::Missing,
    }
}

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// A sentence for each incident, with its other findings below it; empty if nothing is wrong.
    Table,
    /// One document, described by a JSON Schema (tallyfold schema check).
    Json,
    /// One JSON object for each finding.
    Ndjson,
    /// OpenMetrics text, such as for the textfile collector of Prometheus' node exporter.
    Openmetrics,
}

/// What rules have found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "tallyfold check --format json")]
pub(crate) struct CheckDocument<'a> {
    /// The version of this document. The number grows when a member is removed or changes its meaning; members may be
    /// added.
    format: FindingsFormat,
    /// The time of the check; for a replay, the end of its range.
    #[schemars(with = "String")]
    at: Timestamp,
    /// The range of a replay; `null` for a check.
    replay: Option<Window>,
    /// The file with the rules; `null` for the standard rules.
    rules: Option<String>,
    /// Whether all is well. False if a warning or critical finding fires or is unjudged, unless the finding is silenced or
    /// provisional. Also false if there are no recent counts, if no rule can judge the counts, or if clusters are missing. Always
    /// true for a replay.
    healthy: bool,
    /// What was found, in the order of the configuration.
    clusters: Vec<ClusterFindings<'a>>,
    /// The clusters without any result.
    missing: Vec<MissingDocument<'a>>,
}

/// The name and the version of the document.
#[derive(Serialize, JsonSchema)]
enum FindingsFormat {
    /// The only version.
    #[serde(rename = "tallyfold-findings/1")]
    Findings1,
}

/// What was found in one cluster.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ClusterFindings<'a> {
    /// The cluster's name; `default` if it has none.
    cluster: &'a str,
    /// The labels that the configuration gives it.
    labels: Pairs<'a>,
    /// Whether all is well. False if a warning or critical finding fires or is unjudged, unless the finding is silenced or
    /// provisional. Also false if there are no recent counts, or if no rule can judge the counts.
    healthy: bool,
    /// How many windows all rules together have judged; each group counts its own windows.
    judged: u64,
    /// The findings that fire, are unjudged or pending, or were just resolved. For a replay, the findings that fired, in
    /// chronological order.
    findings: &'a [Finding],
    /// The incidents that the findings belong to.
    incidents: &'a [Incident],
    /// How many findings were left out, because there are too many.
    left_out: u64,
    /// Rules that could not judge anything, with the reason.
    unjudged: &'a [Unjudged],
    /// The time ranges that could not be read.
    gaps: &'a [Window],
    /// Why `gaps` could not be read; `null` if that is not known.
    failure: Option<FailureDocument<'a>>,
}

/// A line of NDJSON.
#[derive(Serialize)]
struct NdjsonFinding<'a> {
    cluster: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
}

/// Writes the findings to stdout or a file.
///
/// # Errors
/// If the output can't be written.
pub(crate) fn write(report: &CheckReport, format: CheckFormat, path: Option<&Path>) -> Result<()> {
    write_to(path, |screen, out| match format {
        CheckFormat::Table => Ok(write_sentences(report, screen, out)?),
        CheckFormat::Json => Ok(write_document(&document(report), true, out)?),
        CheckFormat::Ndjson => Ok(write_lines(report, out)?),
        CheckFormat::Openmetrics => Ok(write_metrics(report, out)?),
    })
}

/// Creates the document of a report.
pub(crate) fn document(report: &CheckReport) -> CheckDocument<'_> {
    let clusters = report.parts.iter().map(|part| ClusterFindings {
        cluster: &part.cluster,
        labels: Pairs::of(&part.labels),
        healthy: part.found.healthy,
        judged: part.found.judged,
        findings: &part.found.findings,
        incidents: &part.found.incidents,
        left_out: part.found.left_out,
        unjudged: &part.found.unjudged,
        gaps: &part.gaps,
        failure: part.failure.as_ref().map(Into::into),
    });
    CheckDocument {
        format: FindingsFormat::Findings1,
        at: report.asked.at,
        replay: report.asked.replay,
        rules: report.asked.rules.as_ref().map(|path| path.display().to_string()),
        healthy: report.parts.iter().all(|part| part.found.healthy)
            && unjudged(report).next().is_none(),
        clusters: clusters.collect(),
        missing: report.missing.iter().map(missing_of).collect(),
    }
}

/// Returns the clusters without any result. If there are any, the check can't report that all is well. For a replay, which is
/// about the past, returns no clusters.
fn unjudged(report: &CheckReport) -> impl Iterator<Item = &Missing> {
    let missing = report.missing.iter();
    missing.filter(|_| report.asked.replay.is_none())
}

fn write_lines(report: &CheckReport, out: &mut dyn Write) -> io::Result<()> {
    for part in &report.parts {
        for finding in &part.found.findings {
            let line = NdjsonFinding { cluster: &part.cluster, finding };
            write_document(&line, false, out)?;
        }
    }
    Ok(())
}

/// Writes the incidents: the headline of each, and its other findings indented below. Then writes the findings that belong to
/// no incident.
fn write_sentences(report: &CheckReport, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    for part in &report.parts {
        let findings = || part.found.findings.iter();
        for incident in &part.found.incidents {
            let own = findings().filter(|one| one.incident.as_ref() == Some(&incident.id));
            let mut own: Vec<&Finding> = own.collect();
            // Puts the headline first. The sort is stable, so the other findings keep their order.
            own.sort_by_key(|one| one.id != incident.headline);
            for (place, finding) in own.into_iter().enumerate() {
                write_sentence(report, &part.cluster, (finding, place > 0), screen, out)?;
                if let Some(hold) = incident.hold.as_ref().filter(|_| place == 0) {
                    write_hold(hold, out)?;
                }
            }
        }
        for finding in findings().filter(|one| one.incident.is_none()) {
            write_sentence(report, &part.cluster, (finding, false), screen, out)?;
        }
        if part.found.left_out > 0 {
            writeln!(out, "and {} more", part.found.left_out)?;
        }
    }
    Ok(())
}

/// Writes that an incident is acknowledged or silenced, with the note of the user who did this.
fn write_hold(hold: &IncidentHold, out: &mut dyn Write) -> io::Result<()> {
    match &hold.until {
        None => write!(out, "  acknowledged")?,
        Some(until) => write!(out, "  silenced until {until}")?,
    }
    match &hold.note {
        Some(note) => writeln!(out, ": {}", escaped(note)),
        None => writeln!(out),
    }
}

fn write_sentence(
    report: &CheckReport,
    cluster: &str,
    (finding, is_indented): (&Finding, bool),
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let indent = if is_indented { "  " } else { "" };
    write!(out, "{indent}{}", report.place(cluster))?;
    if report.asked.replay.is_some() {
        write!(out, "{} ", span(finding))?;
    }
    let (word, color) = word_of(finding, report.asked.replay.is_some());
    write_styled(word, Style::new().fg_color(color.map(Into::into)), screen, out)?;
    let (rule, sentence) = (escaped(&finding.rule), escaped(&finding.sentence));
    write!(out, ": {rule}: {sentence}")?;
    let incident = finding.incident.as_deref();
    match incident.filter(|_| !is_indented && report.asked.replay.is_none()) {
        Some(incident) => writeln!(out, " [incident {}]", Incident::short_id(incident))?,
        None => writeln!(out)?,
    }
    for (what, text) in [("note", &finding.note), ("runbook", &finding.runbook)] {
        if let Some(text) = text {
            writeln!(out, "{indent}  {what}: {}", escaped(text))?;
        }
    }
    Ok(())
}

/// Formats the time range of a finding in a replay.
fn span(finding: &Finding) -> String {
    match finding.resolved {
        Some(end) => format!("{} to {end}", finding.since),
        None => format!("{} to the end", finding.since),
    }
}

fn word_of(finding: &Finding, is_replay: bool) -> (&'static str, Option<AnsiColor>) {
    match finding.status {
        _ if finding.silenced => ("silenced", None),
        Status::Pending => ("pending", None),
        Status::Unjudged => ("unjudged", Some(AnsiColor::Yellow)),
        Status::Resolved if !is_replay => ("resolved", Some(AnsiColor::Green)),
        Status::Firing | Status::Resolved => match finding.severity {
            Severity::Critical => ("critical", Some(AnsiColor::Red)),
            Severity::Warning => ("warning", Some(AnsiColor::Yellow)),
            Severity::Info => ("info", None),
        },
    }
}

/// Writes as OpenMetrics: whether each cluster is healthy, how many windows were judged, how much time is missing, and the
/// findings that are not resolved. A missing cluster is not healthy.
///
/// # Errors
/// The errors of the writer.
fn write_metrics(report: &CheckReport, out: &mut dyn Write) -> io::Result<()> {
    let labels_in = |cluster: &str, written: &[Pair]| {
        let labels = written.iter().map(|(name, value)| (label_name(name), value.clone()));
        let mut labels: BTreeMap<String, String> = labels.collect();
        if report.is_named {
            labels.insert("cluster".to_owned(), cluster.to_owned());
        }
        labels
    };
    let own = |part: &Part<Check>| labels_in(&part.cluster, &part.labels);
    let mut scrape = Scrape::default();
    let healthy = scrape.family(
        "tallyfold_check_healthy",
        FamilyKind::Gauge,
        "",
        "1 if nothing is wrong, 0 if something is or nothing could be judged.",
    );
    for part in &report.parts {
        healthy.sample(texts(&own(part)), u8::from(part.found.healthy));
    }
    for missing in unjudged(report) {
        healthy.sample(texts(&labels_in(&missing.cluster, &missing.labels)), 0);
    }
    let judged = scrape.family(
        "tallyfold_check_judged_windows",
        FamilyKind::Gauge,
        "",
        "Windows that were judged; each group counts its own.",
    );
    for part in &report.parts {
        judged.sample(texts(&own(part)), part.found.judged);
    }
    let missing = scrape.family(
        "tallyfold_check_missing_seconds",
        FamilyKind::Gauge,
        "",
        "Time whose counts could not be read.",
    );
    for part in &report.parts {
        let ms = |gap: &Window| gap.end().unix_ms() - gap.start().unix_ms();
        let seconds = part.gaps.iter().map(ms).sum::<i64>() / 1_000;
        missing.sample(texts(&own(part)), seconds);
    }
    let since = scrape.family(
        "tallyfold_finding_since_seconds",
        FamilyKind::Gauge,
        "",
        "What fires, is unjudged or pending, with the timestamp at which it began.",
    );
    for part in &report.parts {
        let findings = part.found.findings.iter();
        for finding in findings.filter(|finding| finding.status != Status::Resolved) {
            let labels = labels_of(own(part), finding);
            since.sample(texts(&labels), finding.since.unix_ms() / 1_000);
        }
    }
    out.write_all(scrape.text(ScrapeFormat::OpenMetrics).as_bytes())
}

fn texts(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    labels.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

fn labels_of(mut labels: BTreeMap<String, String>, finding: &Finding) -> BTreeMap<String, String> {
    labels.extend(finding.labels.iter().map(|(name, value)| (label_name(name), value.clone())));
    labels.extend(finding.group.iter().map(|(name, value)| (name.to_string(), value.clone())));
    let own = [
        ("rule", finding.rule.as_str()),
        ("severity", finding.severity.as_str()),
        ("status", finding.status.as_str()),
        ("silenced", if finding.silenced { "true" } else { "false" }),
        ("provisional", if finding.provisional { "true" } else { "false" }),
    ];
    labels.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    labels
}
