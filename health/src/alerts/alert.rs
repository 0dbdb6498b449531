//! Alerts: firing and ended incidents, in the form in which receivers get them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tallyfold::{Dimension, Timestamp, Window};

use super::options::NotifyOptions;
use crate::check::result::Check;
use crate::incidents::finding::{Finding, Status};
use crate::incidents::incident::{Incident, IncidentPart};
use crate::measure::Measure;
use crate::rules::names::Severity;

/// What receivers are notified of: the incidents of a check, and its findings.
#[derive(Clone, Copy, Debug)]
pub struct Found<'c> {
    /// The incidents.
    pub incidents: &'c [Incident],
    /// The findings, which have the labels and notes of their rules.
    pub findings: &'c [Finding],
    /// Whether the check left out findings. If so, an incident that isn't in `incidents` may still fire.
    pub is_cut: bool,
}

impl<'c> From<&'c Check> for Found<'c> {
    fn from(check: &'c Check) -> Self {
        Self { incidents: &check.incidents, findings: &check.findings, is_cut: check.left_out > 0 }
    }
}

/// An incident in the form in which receivers get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alert {
    /// The name of the headline's rule.
    pub(crate) rule: String,
    /// The severity of the incident.
    pub(crate) severity: Severity,
    /// The labels that identify the alert. They stay the same unless the alert becomes more severe.
    pub(crate) labels: BTreeMap<String, String>,
    /// The sentence of the incident.
    pub(crate) sentence: String,
    /// The note of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// The address of the rule's runbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runbook: Option<String>,
    /// The command that shows the counts.
    pub(crate) query: String,
    /// The timestamp at which the incident began.
    pub(crate) since: Timestamp,
    /// The finding of the headline, as JSON.
    pub(crate) finding: String,
    /// The whole incident, as JSON.
    pub(crate) incident: String,
    /// Earlier labels, under which the receiver may still know the alert, because the message with their end was not accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier: Vec<BTreeMap<String, String>>,
    /// Whether the receiver may have missed the alert, because its answer to the message was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_in_doubt: bool,
    /// When the incident ended, if the receiver has not accepted the message about its end yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Timestamp>,
    /// Whether the alert began and ended between two checks, and the receiver knows its end. The alert is kept for a day, so that
    /// the receiver is not notified again if the caller passes the same check again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_told: bool,
}

/// Alerts by the identifiers of their incidents.
pub(crate) type Alerts = BTreeMap<String, Alert>;

/// The alerts that fire now, and the incidents that are over.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    /// The alerts that fire and are not silenced.
    firing: Alerts,
    /// The alerts that fire only because of counts that may still change. A receiver is notified of such an alert only if
    /// it knows the alert already.
    held: Alerts,
    /// The ends of incidents that are resolved.
    resolved: BTreeMap<String, Resolved>,
    /// The identifiers of incidents that are not resolved and are silenced. No receiver is notified of them.
    silenced: BTreeSet<String>,
    /// Whether the check left out findings. If so, an alert that isn't in these lists may still fire.
    is_cut: bool,
    /// The time of the run.
    pub(crate) now: Timestamp,
}

/// The end of an incident.
#[derive(Clone, Debug)]
struct Resolved {
    at: Timestamp,
    alert: Alert,
    /// Whether a receiver that gets one message for each alert is notified of the end even if it doesn't know the alert.
    is_missed: bool,
}

/// An alert that a receiver was notified of and that is over.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    /// The alert with the labels that the receiver knows, and with the latest sentence.
    pub(crate) alert: Alert,
    /// When it ended.
    pub(crate) at: Timestamp,
}

/// Receivers are not notified of incidents that began and ended between two checks, if they ended longer ago than this.
/// Otherwise, after a week without checks, one run would send a message for each of them.
pub(crate) const MISSED_MS: i64 = 24 * 3_600_000;

impl Current {
    /// Makes alerts from a check's incidents.
    pub(crate) fn of(found: Found<'_>, options: &NotifyOptions, now: Timestamp) -> Self {
        let mut current = Self {
            firing: Alerts::new(),
            held: Alerts::new(),
            resolved: BTreeMap::new(),
            silenced: BTreeSet::new(),
            is_cut: found.is_cut,
            now,
        };
        for incident in found.incidents {
            let id = incident.id.clone();
            match incident.status {
                // An unjudged incident is treated as firing, because nothing shows that it is over.
                Status::Firing | Status::Unjudged | Status::Pending if incident.silenced => {
                    current.silenced.insert(id);
                }
                Status::Firing | Status::Unjudged | Status::Pending => {
                    let alert = Alert::of(incident, found.findings, options);
                    match incident.provisional {
                        true => current.held.insert(id, alert),
                        false => current.firing.insert(id, alert),
                    };
                }
                Status::Resolved => {
                    let resolved = Resolved {
                        at: incident.until,
                        alert: Alert::of(incident, found.findings, options),
                        is_missed: incident.missed
                            && !incident.silenced
                            && !incident.provisional
                            && now.unix_ms() - incident.until.unix_ms() <= MISSED_MS,
                    };
                    current.resolved.insert(id, resolved);
                }
            }
        }
        current
    }

    /// Restores the labels and the severity that a receiver knows, so that it recognizes alerts that continue. An alert that
    /// became more severe keeps its new labels.
    pub(crate) fn relabel(&mut self, notified: &Alerts) {
        for (id, alert) in self.firing.iter_mut().chain(&mut self.held) {
            if let Some(known) = notified.get(id).filter(|known| !alert.is_worse(known)) {
                alert.labels.clone_from(&known.labels);
                alert.severity = known.severity;
            }
        }
    }

    /// Returns the firing alerts for a receiver, given what it was notified of.
    pub(crate) fn firing(&self, notified: &Alerts) -> Alerts {
        let held = self.held.iter();
        let held = held.filter(|(id, _)| notified.contains_key(*id));
        let held = held.map(|(id, alert)| (id.clone(), alert.clone()));
        self.firing.clone().into_iter().chain(held).collect()
    }

    /// Returns the alerts that a receiver was notified of and that continue without a message: silenced alerts, and
    /// alerts that the check may have left out.
    pub(crate) fn kept(&self, notified: &Alerts) -> Alerts {
        let kept = notified.iter().filter(|(id, _)| self.is_kept(id));
        kept.map(|(id, alert)| (id.clone(), alert.labeled(&alert.labels))).collect()
    }

    /// Records the ends of the alerts that a receiver was notified of. Only this check has the resolved incidents, and a later
    /// run may have to send the messages about their ends.
    pub(crate) fn record_ends(&self, notified: &mut Alerts) {
        for (id, alert) in notified {
            if let Some(end) = self.resolved.get(id) {
                alert.sentence.clone_from(&end.alert.sentence);
                alert.finding.clone_from(&end.alert.finding);
                alert.incident.clone_from(&end.alert.incident);
                alert.ended = Some(end.at);
            } else if self.is_firing(id) || self.silenced.contains(id) {
                alert.ended = None;
            }
        }
    }

    /// Returns the alerts that began and ended between two checks, in chronological order, without the alerts that a receiver was
    /// notified of, and without `told`, the alerts whose end it knows.
    pub(crate) fn missed(&self, notified: &Alerts, told: &Alerts) -> Vec<(String, Over)> {
        let missed = self.resolved.iter().filter(|(id, end)| {
            let is_told = told.get(*id).is_some_and(|told| told.ended == Some(end.at));
            end.is_missed && !is_told && !notified.contains_key(*id)
        });
        let missed = missed.map(|(id, end)| {
            let (alert, at) = (end.alert.clone(), end.at);
            (id.clone(), Over { alert, at })
        });
        let mut missed: Vec<(String, Over)> = missed.collect();
        missed.sort_by_key(|(_, over)| over.at);
        missed
    }

    /// Returns the alerts that a receiver was notified of and that are over. An alert may end without a resolved
    /// incident, for example because the state of checks was removed.
    pub(crate) fn over(&self, notified: &Alerts) -> Vec<(String, Over)> {
        let gone = notified.iter().filter(|(id, _)| !self.is_firing(id) && !self.is_kept(id));
        let over = gone.map(|(id, alert)| {
            let (alert, at) = (alert.clone(), alert.ended.unwrap_or(self.now));
            (id.clone(), Over { alert, at })
        });
        over.collect()
    }

    fn is_firing(&self, id: &str) -> bool {
        self.firing.contains_key(id) || self.held.contains_key(id)
    }

    fn is_kept(&self, id: &str) -> bool {
        let is_over = self.resolved.contains_key(id);
        self.silenced.contains(id) || self.is_cut && !self.is_firing(id) && !is_over
    }
}

impl Alert {
    fn of(incident: &Incident, findings: &[Finding], options: &NotifyOptions) -> Self {
        let part = incident.parts.iter().find(|part| part.id == incident.headline);
        // After a finding was resolved, a pending finding may have the same identifier.
        let finding = findings
            .iter()
            .find(|finding| finding.id == incident.headline && finding.status != Status::Pending);
        let rule = part.map_or_else(String::new, |part| part.rule.clone());
        Self {
            severity: incident.severity,
            labels: labels(incident, (&rule, part, finding), options),
            sentence: incident.sentence.clone(),
            note: finding.and_then(|finding| finding.note.clone()),
            runbook: finding.and_then(|finding| finding.runbook.clone()),
            query: finding
                .map_or_else(String::new, |finding| command(finding, options.cluster.as_deref())),
            since: incident.since,
            finding: finding.map_or_else(|| "null".to_owned(), json_of),
            incident: json_of(incident),
            earlier: Vec::new(),
            is_in_doubt: false,
            ended: None,
            is_told: false,
            rule,
        }
    }

    /// Returns the alert with only these labels.
    pub(crate) fn labeled(&self, labels: &BTreeMap<String, String>) -> Self {
        Self { labels: labels.clone(), earlier: Vec::new(), ..self.clone() }
    }

    /// Returns whether the alert is more severe than `known`, the alert that a receiver was notified of.
    pub(crate) fn is_worse(&self, known: &Self) -> bool {
        self.severity > known.severity
    }
}

/// Returns the labels of an incident: configured labels, the labels and the group of its headline, the cluster, the rule,
/// the severity and the identifier.
fn labels(
    incident: &Incident,
    (rule, part, finding): (&str, Option<&IncidentPart>, Option<&Finding>),
    options: &NotifyOptions,
) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let mut set = |name: &str, value: &str| {
        // In Prometheus, a label with an empty value is the same as no label.
        if !value.is_empty() {
            labels.insert(label_name(name), value.to_owned());
        }
    };
    for (name, value) in &options.labels.0 {
        set(name, value);
    }
    for (name, value) in finding.iter().flat_map(|finding| &finding.labels) {
        set(name, value);
    }
    for (dimension, value) in part.iter().flat_map(|part| &part.group) {
        set(dimension.as_str(), value);
    }
    if let Some(cluster) = &options.cluster {
        set("cluster", cluster);
    }
    set("alertname", rule);
    set("severity", incident.severity.as_str());
    set("incident", &incident.id);
    labels
}

/// Returns a label name that Prometheus accepts: characters other than ASCII letters, digits and `_` become `_`, and a name that
/// is empty or begins with a digit gets a `_` in front.
#[must_use]
pub fn label_name(name: &str) -> String {
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

/// Returns a value as JSON.
pub(crate) fn json_of<T: Serialize>(value: &T) -> String {
    // Writing texts, numbers, and lists and maps of them as JSON can't fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the command that shows the counts of a finding.
fn command(finding: &Finding, cluster: Option<&str>) -> String {
    let query = &finding.query;
    let name = match query.metric {
        tallyfold::Metric::EventDelivery => "delivery",
        tallyfold::Metric::EventIngestion => "ingestion",
    };
    let mut words = vec!["tallyfold".to_owned(), name.to_owned()];
    if let Ok(range) = Window::new(query.start, query.end) {
        words.extend(["--from".to_owned(), range.start().to_string()]);
        words.extend(["--to".to_owned(), range.end().to_string()]);
    }
    words.extend(["--by".to_owned(), shown(finding).join(",")]);
    for (dimension, values) in &query.r#where {
        for value in values {
            words.push("--where".to_owned());
            words.push(quoted(&format!("{dimension}={value}")));
        }
    }
    if let Some(cluster) = cluster {
        words.extend(["--cluster".to_owned(), quoted(cluster)]);
    }
    words.join(" ")
}

/// Returns the query's dimensions that the finding names: the dimensions with values to keep, the dimensions of the causes, the
/// dimensions in which nearly all events had the same value and, for filtered events, the reason. Other dimensions would only
/// split the counts into many small rows. Returns all dimensions of the query if the finding names none.
fn shown(finding: &Finding) -> Vec<&'static str> {
    let filtered = matches!(finding.measure, Measure::Filtered | Measure::FilteredRate);
    let is_named = |one: &Dimension| {
        let mut causes = finding.causes.iter().flat_map(|cause| &cause.r#where);
        finding.query.r#where.iter().any(|(name, _)| name == one)
            || causes.any(|(name, _)| name == one.as_str())
            || finding.within.iter().any(|(name, _)| name == one)
            || filtered && *one == Dimension::Reason
    };
    let all = &finding.query.dimensions;
    let mut named: Vec<Dimension> = all.iter().copied().filter(is_named).collect();
    if named.is_empty() {
        named.clone_from(all);
    }
    named.iter().map(|one| one.as_str()).collect()
}

/// Returns a word of a shell command, in quotation marks if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./:,".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
