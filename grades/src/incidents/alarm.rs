//! Alarms, which a detector reports until it reports their end, and the messages about incidents that a receiver gets.

use tallyfold::{Dimension, Metric};
use tallyfold_health::{Finding, Incident, IncidentChange, Measure, Severity};

use super::traffic::SETTLED;
use super::world::World;

/// Attributes and values.
pub(super) type Values = Vec<(String, String)>;

/// A finding from the time when it fired until it no longer did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Alarm {
    pub(super) rule: String,
    /// The unusual number: its measure, its endpoint, and the observed and the expected events. For a share, the rules
    /// report the events of the part, and the peer reports the share itself.
    pub(super) measure: Measure,
    pub(super) metric: Metric,
    pub(super) observed: f64,
    pub(super) expected: f64,
    /// The events that a share of the rules is a share of.
    pub(super) whole: Option<f64>,
    /// Whether it only informs, and pages nobody.
    pub(super) is_info: bool,
    pub(super) group: Values,
    /// The identifier of the incident that it belongs to.
    pub(super) incident: String,
    /// Its causes when it fired first: parts of its group, and then the whole group.
    pub(super) causes: Vec<Values>,
    /// The window that made it fire.
    pub(super) first: usize,
    /// The last window in which it fired. It is reported as over from the end of this window.
    pub(super) last: usize,
    /// The last window that was over when the alarm was sent.
    pub(super) told: usize,
    pub(super) sentence: String,
}

impl Alarm {
    /// The alarm of a finding as it was when it fired first.
    pub(super) fn of(finding: &Finding, first: usize, last: usize, told: usize) -> Self {
        let pair = |(dimension, value): &(Dimension, String)| {
            (dimension.as_str().to_owned(), value.clone())
        };
        let group: Values = finding.group.iter().map(pair).collect();
        let causes = finding.causes.iter();
        let whole = finding.observed.whole.filter(|_| finding.measure.is_rate());
        let causes = causes.map(|cause| [&group[..], &cause.r#where].concat());
        Self {
            causes: causes.chain([group.clone()]).collect(),
            rule: finding.rule.clone(),
            measure: finding.measure,
            metric: finding.query.metric,
            observed: finding.observed.part as f64,
            expected: finding.expected,
            whole: whole.map(|whole| whole as f64),
            is_info: finding.severity < Severity::Warning,
            group,
            incident: finding.incident.clone().unwrap_or_default(),
            first,
            last,
            told,
            sentence: finding.sentence.clone(),
        }
    }

    /// Whether the number is too high.
    pub(super) fn is_high(&self) -> bool {
        self.observed >= self.expected
    }
}

/// A message to a receiver: an incident begins, becomes more severe or is reopened. The end of an incident pages nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The identifier of the incident.
    pub(super) incident: String,
    /// Whether it only informs.
    pub(super) is_info: bool,
    /// The window that leads to the message, which is sent once this window has settled.
    pub(super) first: usize,
}

impl Call {
    /// The last window that was over when the message was sent.
    pub(super) fn told(&self) -> usize {
        self.first + SETTLED
    }
}

/// Everything that a detector reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Detected {
    pub(super) alarms: Vec<Alarm>,
    /// In time order.
    pub(super) calls: Vec<Call>,
}

impl Detected {
    /// Collects alarms, and the messages about the incidents that they belong to.
    pub(super) fn of<'i>(
        world: &World,
        alarms: Vec<Alarm>,
        incidents: impl IntoIterator<Item = &'i Incident>,
    ) -> Self {
        let mut calls = Vec::new();
        for incident in incidents {
            let sent = incident.history.iter().filter(|event| {
                use IncidentChange::{Began, Reopened, Worse};
                matches!(event.change, Began | Reopened | Worse)
            });
            calls.extend(sent.map(|event| Call {
                incident: incident.id.clone(),
                is_info: event.severity < Severity::Warning,
                first: world.clock.window(event.at.unix_ms()).saturating_sub(1),
            }));
        }
        calls.sort_by(|one, other| {
            let key = |call: &Call| (call.first, call.incident.clone(), call.is_info);
            key(one).cmp(&key(other))
        });
        // An incident that becomes worse in the check in which it begins is one message.
        calls.dedup_by(|one, other| (one.first, &one.incident) == (other.first, &other.incident));
        Self { alarms, calls }
    }
}
