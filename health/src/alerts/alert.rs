//! Alerts: findings as receivers get them, both firing and ended.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tallyfold::{Timestamp, Window};

use super::options::NotifyOptions;
use crate::check::finding::{Finding, Status};

/// A finding as receivers get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alert {
    /// The name of the rule.
    pub(crate) rule: String,
    /// How bad it is.
    pub(crate) severity: String,
    /// The labels that identify the alert. They are the same from its first message to its last.
    pub(crate) labels: BTreeMap<String, String>,
    /// The sentence that says what is wrong.
    pub(crate) sentence: String,
    /// The note of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// The address of the rule's runbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runbook: Option<String>,
    /// The command that shows the counts.
    pub(crate) query: String,
    /// The timestamp at which the finding began.
    pub(crate) since: String,
    /// The whole finding, as JSON.
    pub(crate) finding: String,
}

/// Alerts by the identifiers of their findings.
pub(crate) type Alerts = BTreeMap<String, Alert>;

/// The alerts that fire now, and the findings that are over.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    /// What fires and is not silenced.
    firing: Alerts,
    /// What fires from counts that may still change. Only receivers that were notified of it before are notified again.
    held: Alerts,
    /// The ends of findings that fired in the last run and are over.
    resolved: BTreeMap<String, Resolved>,
    /// What fires and is silenced. No receiver is notified of it, nor of its end.
    silenced: BTreeSet<String>,
    /// Whether findings were left out, because there are too many: an alert that isn't among them may still fire.
    is_cut: bool,
    /// Now.
    pub(crate) now: Timestamp,
}

/// The end of a finding.
#[derive(Clone, Debug)]
struct Resolved {
    at: Timestamp,
    sentence: String,
    /// The whole finding, as JSON.
    finding: String,
}

/// An alert that a receiver was notified of and that is over.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    /// The alert as the receiver knows it, with the last sentence.
    pub(crate) alert: Alert,
    /// When it ended.
    pub(crate) at: Timestamp,
}

impl Current {
    /// The alerts of a check. `is_cut` means that the check left out findings.
    pub(crate) fn of(
        findings: &[Finding],
        is_cut: bool,
        options: &NotifyOptions,
        now: Timestamp,
    ) -> Self {
        let mut current = Self {
            firing: Alerts::new(),
            held: Alerts::new(),
            resolved: BTreeMap::new(),
            silenced: BTreeSet::new(),
            is_cut,
            now,
        };
        for finding in findings {
            let id = finding.id.clone();
            match finding.status {
                // Nothing shows that an unjudged finding is over.
                Status::Firing | Status::Unjudged if finding.silenced => {
                    current.silenced.insert(id);
                }
                Status::Firing | Status::Unjudged if finding.provisional => {
                    current.held.insert(id, Alert::of(finding, options));
                }
                Status::Firing | Status::Unjudged => {
                    current.firing.insert(id, Alert::of(finding, options));
                }
                Status::Resolved => {
                    let resolved = Resolved {
                        at: finding.resolved.unwrap_or(now),
                        sentence: finding.sentence.clone(),
                        finding: json_of(finding),
                    };
                    current.resolved.insert(id, resolved);
                }
                Status::Pending => {}
            }
        }
        current
    }

    /// The firing alerts that a receiver gets, given what it was notified of.
    pub(crate) fn firing(&self, notified: &Alerts) -> Alerts {
        let held = self.held.iter();
        let held = held.filter(|(id, _)| notified.contains_key(*id));
        let held = held.map(|(id, alert)| (id.clone(), alert.clone()));
        self.firing.clone().into_iter().chain(held).collect()
    }

    /// The alerts that a receiver was notified of and that continue without a message: silenced alerts, and alerts that
    /// may have been left out.
    pub(crate) fn kept(&self, notified: &Alerts) -> Alerts {
        let kept = notified.iter().filter(|(id, _)| self.is_kept(id));
        kept.map(|(id, alert)| (id.clone(), alert.clone()))
            .collect()
    }

    /// The alerts that a receiver was notified of and that are over. An alert may end without a resolved finding, for
    /// example because its rule was removed.
    pub(crate) fn over(&self, notified: &Alerts) -> Vec<(String, Over)> {
        let gone = notified
            .iter()
            .filter(|(id, _)| !self.is_firing(id) && !self.is_kept(id));
        let over = gone.map(|(id, alert)| {
            let mut alert = alert.clone();
            let end = self.resolved.get(id);
            if let Some(end) = end {
                alert.sentence.clone_from(&end.sentence);
                alert.finding.clone_from(&end.finding);
            }
            let at = end.map_or(self.now, |end| end.at);
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
    fn of(finding: &Finding, options: &NotifyOptions) -> Self {
        let mut labels = BTreeMap::new();
        let mut set = |name: &str, value: &str| {
            // To Prometheus, an empty value is the same as no label.
            if !value.is_empty() {
                labels.insert(label_name(name), value.to_owned());
            }
        };
        for (name, value) in &options.labels.0 {
            set(name, value);
        }
        for (name, value) in &finding.labels {
            set(name, value);
        }
        for (dimension, value) in &finding.group {
            set(dimension.as_str(), value);
        }
        if let Some(cluster) = &options.cluster {
            set("cluster", cluster);
        }
        set("alertname", &finding.rule);
        set("severity", finding.severity.as_str());
        Self {
            rule: finding.rule.clone(),
            severity: finding.severity.as_str().to_owned(),
            labels,
            sentence: finding.sentence.clone(),
            note: finding.note.clone(),
            runbook: finding.runbook.clone(),
            query: command(finding, options.cluster.as_deref()),
            since: finding.since.to_string(),
            finding: json_of(finding),
        }
    }
}

/// A name as Prometheus accepts it.
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

fn json_of(finding: &Finding) -> String {
    // Plain values, so this can't fail.
    serde_json::to_string(finding).unwrap_or_default()
}

/// The command that shows the counts of a finding.
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
    let by: Vec<&str> = query.dimensions.iter().map(|one| one.as_str()).collect();
    words.extend(["--by".to_owned(), by.join(",")]);
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

/// A word as a shell accepts it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./:,".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
