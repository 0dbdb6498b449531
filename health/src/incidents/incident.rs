//! An incident: findings that belong together. Its headline is the finding that explains the most other findings.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use tallyfold::text::harmless;
use tallyfold::{Dimension, Timestamp};

use super::finding::{Finding, Status};
use crate::measure::Measure;
use crate::rules::names::Severity;
use crate::shown::value;

/// Findings that belong together.
///
/// An incident keeps its identifier from check to check, even if it is over and comes back soon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Incident {
    /// An identifier of 16 hexadecimal digits, which no other incident has.
    pub id: String,
    /// The highest severity that its parts have had since it began or came back. Silenced and provisional parts don't raise it.
    /// If all open parts are silenced or all are provisional, the next part that is neither sets it anew.
    pub severity: Severity,
    /// Firing if a part fires; otherwise unjudged if a part is unjudged, and resolved if all parts are resolved.
    pub status: Status,
    /// When the incident began: the start of the first bad window of all parts.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub since: Timestamp,
    /// When the first part began to fire.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub fired: Timestamp,
    /// The end of the last bad window of all parts so far.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub until: Timestamp,
    /// The identifier of the part that explains more of the other parts than any other one.
    pub headline: String,
    /// The sentence of the headline, with the names of the other findings. If the incident came back, these are the findings since
    /// then.
    pub sentence: String,
    /// Whether silences cover all parts that are not over, or the incident is acknowledged or silenced.
    pub silenced: bool,
    /// Whether the incident depends on counts that may still change.
    pub provisional: bool,
    /// Whether the incident began, or came back, and ended between two checks. Then no receiver was notified that it fires.
    #[serde(default)]
    pub missed: bool,
    /// The acknowledgement or silence of the incident. While it is in force, no receiver is notified that the incident fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<IncidentHold>,
    /// The findings that belong to the incident, sorted by their identifiers.
    pub parts: Vec<IncidentPart>,
    /// What happened to the incident, in chronological order. A long history keeps the first and the latest entries.
    pub history: Vec<IncidentEvent>,
}

/// A finding that belongs to an incident, as it was last reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct IncidentPart {
    /// The identifier of the finding.
    pub id: String,
    /// The name of the rule.
    pub rule: String,
    /// The severity of the finding.
    pub severity: Severity,
    /// Whether the finding is firing, unjudged or resolved.
    pub status: Status,
    /// The values of the rule's dimensions.
    #[serde(with = "crate::pairs")]
    #[cfg_attr(feature = "surface", schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub group: Vec<(Dimension, String)>,
    /// The values of the main cause; without causes, the values that nearly all events of the finding have.
    #[serde(with = "crate::pairs")]
    #[cfg_attr(feature = "surface", schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub cause: Vec<(String, String)>,
    /// The measure that the rule judges.
    pub measure: Measure,
    /// By how many events the count differs from the expected count, rounded.
    pub events: i128,
    /// When the finding began: the start of the first bad window.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub since: Timestamp,
    /// The end of the last bad window so far.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub until: Timestamp,
    /// Whether a silence covers the finding.
    pub silenced: bool,
    /// Whether the counts of the finding may still change.
    pub provisional: bool,
    /// The finding in one sentence.
    pub sentence: String,
}

/// The acknowledgement or silence of an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct IncidentHold {
    /// When the silence ends. An acknowledgement has no such time: it ends when the incident becomes more severe or comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "surface", schemars(with = "Option<String>"))]
    pub until: Option<Timestamp>,
    /// Who knows of the incident, or what is done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Something that happened to an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct IncidentEvent {
    /// When it happened: the end of a window.
    #[cfg_attr(feature = "surface", schemars(with = "String"))]
    pub at: Timestamp,
    /// What happened.
    pub change: IncidentChange,
    /// The severity of the incident from then on.
    pub severity: Severity,
    /// The identifier of the finding that caused the change.
    pub finding: String,
}

tallyfold::names! {
    /// A change of an incident.
    pub enum IncidentChange {
        /// Its first finding began to fire.
        Began = "began",
        /// Another finding joined it.
        Joined = "joined",
        /// It became more severe.
        Worse = "worse",
        /// All findings were over.
        Ended = "ended",
        /// It came back.
        Reopened = "reopened",
    }
}

/// The maximum number of entries in a history. If an incident has more parts than this, resolved parts are removed.
const MOST: usize = 100;

impl IncidentHold {
    /// Returns an acknowledgement, which ends when the incident becomes more severe, or is over and comes back.
    #[must_use]
    pub const fn acknowledged(note: Option<String>) -> Self {
        let until = None;
        Self { until, note }
    }

    /// Returns a silence, which lasts until a time even if the incident becomes more severe or comes back.
    #[must_use]
    pub const fn silenced(until: Timestamp, note: Option<String>) -> Self {
        let until = Some(until);
        Self { until, note }
    }
}

/// The first cause represents a finding if it explains at least this share of the change.
const MAIN_SHARE: f64 = 0.5;

impl Incident {
    /// Returns the beginning of an incident's identifier, as people see it: eight digits, which are enough for
    /// [`State::hold`](crate::State::hold).
    #[must_use]
    pub fn short_id(id: &str) -> &str {
        id.get(..8).unwrap_or(id)
    }

    /// Begins an incident with a finding.
    pub(super) fn of(finding: &Finding) -> Self {
        let since = finding.since.to_string();
        let mut incident = Self {
            id: id_of([finding.id.as_str(), since.as_str()].into_iter()),
            severity: finding.severity,
            status: finding.status,
            since: finding.since,
            fired: fired(finding),
            until: until(finding),
            headline: finding.id.clone(),
            sentence: finding.sentence.clone(),
            silenced: finding.silenced,
            provisional: finding.provisional,
            missed: false,
            hold: None,
            parts: vec![IncidentPart::of(finding)],
            history: Vec::new(),
        };
        incident.record(IncidentChange::Began, fired(finding), &finding.id);
        if finding.status == Status::Resolved {
            incident.record(IncidentChange::Ended, incident.until, &finding.id);
        }
        incident
    }

    /// Adds a finding as a new part, or updates its part if there is one.
    pub(super) fn update(&mut self, finding: &Finding) {
        let is_known = self.update_part(finding);
        self.since = self.since.min(finding.since);
        self.until = self.until.max(until(finding));
        let is_reopened = self.status == Status::Resolved && finding.status != Status::Resolved;
        // Silenced and provisional findings don't raise the severity.
        let can_raise = !finding.silenced && !finding.provisional;
        let is_quiet = self.silenced || self.provisional;
        let is_worse = can_raise && finding.severity > self.severity;
        if is_reopened || can_raise && is_quiet {
            self.severity = finding.severity;
        }
        if is_reopened || is_worse {
            // Drop an acknowledgement, but keep a silence, which has its own end.
            self.hold = self.hold.take().filter(|hold| hold.until.is_some());
        }
        if is_reopened {
            self.record(IncidentChange::Reopened, fired(finding), &finding.id);
        } else if is_worse {
            self.severity = finding.severity;
            let at = fired(finding).max(finding.window.end());
            self.record(IncidentChange::Worse, at, &finding.id);
        } else if !is_known {
            self.record(IncidentChange::Joined, fired(finding), &finding.id);
        }
        self.refresh();
    }

    /// Adds or updates the part of a finding. Returns whether the part existed before.
    fn update_part(&mut self, finding: &Finding) -> bool {
        let part = IncidentPart::of(finding);
        match self.position(&finding.id) {
            Ok(at) => {
                let known = &mut self.parts[at];
                let cause = match known.since == part.since {
                    // The finding joined this incident because of these values, so the part keeps them.
                    true => std::mem::take(&mut known.cause),
                    false => part.cause.clone(),
                };
                // If no further window was judged, for example because counts are missing, the part keeps its sentence.
                let is_same = known.since == part.since && known.until == part.until;
                let sentence = match is_same && known.status == part.status {
                    true => std::mem::take(&mut known.sentence),
                    false => part.sentence.clone(),
                };
                *known = IncidentPart { cause, sentence, ..part };
                true
            }
            Err(at) => {
                self.parts.insert(at, part);
                false
            }
        }
    }

    /// Returns the position of a finding's part, or where to insert it.
    fn position(&self, finding: &str) -> Result<usize, usize> {
        self.parts.binary_search_by(|part| part.id.as_str().cmp(finding))
    }

    /// Returns whether a finding is a part of the incident.
    pub(super) fn has(&self, finding: &str) -> bool {
        self.position(finding).is_ok()
    }

    /// Returns whether the incident has a hold that is in force at a time.
    #[must_use]
    pub fn is_held(&self, at: Timestamp) -> bool {
        let hold = self.hold.as_ref();
        hold.is_some_and(|hold| hold.until.is_none_or(|until| at < until))
    }

    /// Returns whether the incident is silenced until a later time than `at`.
    pub(super) fn is_silenced(&self, at: Timestamp) -> bool {
        let until = self.hold.as_ref().and_then(|hold| hold.until);
        until.is_some_and(|until| at < until)
    }

    /// Returns whether the silence of the incident covers its last bad window, whose counts may settle after the silence.
    /// False for an unjudged incident, which may continue after that window.
    pub(crate) fn is_silenced_to_its_end(&self) -> bool {
        let until = self.hold.as_ref().and_then(|hold| hold.until);
        self.status != Status::Unjudged && until.is_some_and(|until| self.until <= until)
    }

    /// Returns whether the incident has an unresolved part for a finding that began at `since`.
    pub(super) fn has_unresolved(&self, finding: &str, since: Timestamp) -> bool {
        let position = self.position(finding).ok();
        position.is_some_and(|at| {
            let part = &self.parts[at];
            part.since == since && part.status != Status::Resolved
        })
    }

    /// Ends the parts whose findings are no longer reported, such as the parts of a rule that was removed.
    pub(super) fn end_others(&mut self, is_reported: impl Fn(&str) -> bool) {
        for part in &mut self.parts {
            if !is_reported(&part.id) {
                part.status = Status::Resolved;
            }
        }
        self.refresh();
    }

    /// Updates the fields that depend on the parts. Removes the oldest resolved parts if there are too many.
    fn refresh(&mut self) {
        let was_over = self.status == Status::Resolved;
        let is_any = |status| self.parts.iter().any(|part| part.status == status);
        self.status = match () {
            () if is_any(Status::Firing) => Status::Firing,
            () if is_any(Status::Unjudged) => Status::Unjudged,
            () => Status::Resolved,
        };
        let is_over = self.status == Status::Resolved;
        let is_reopened = |event: &&IncidentEvent| event.change == IncidentChange::Reopened;
        let reopened = self.history.iter().rfind(is_reopened).map(|event| event.at);
        let newest = self.parts.iter().map(|part| part.until).max();
        let is_shown = |part: &&IncidentPart| match is_over {
            true => reopened.min(newest).is_none_or(|at| at <= part.until),
            false => part.status != Status::Resolved,
        };
        let shown: Vec<&IncidentPart> = self.parts.iter().filter(is_shown).collect();
        self.silenced = shown.iter().all(|part| part.silenced);
        self.provisional = shown.iter().all(|part| part.provisional);
        if let Some(headline) = headline(&shown) {
            self.sentence = sentence(headline, &shown);
            self.headline.clone_from(&headline.id);
        }
        if is_over && !was_over {
            let last = self.parts.iter().max_by_key(|part| part.until);
            let last = last.map_or_else(String::new, |last| last.id.clone());
            self.record(IncidentChange::Ended, self.until, &last);
        }
        while self.parts.len() > MOST {
            let over = self.parts.iter().enumerate();
            let over = over.filter(|(_, part)| part.status == Status::Resolved);
            match over.min_by_key(|(_, part)| part.until) {
                Some((at, part)) if part.id != self.headline => self.parts.remove(at),
                _ => break,
            };
        }
    }

    fn record(&mut self, change: IncidentChange, at: Timestamp, finding: &str) {
        self.history.push(IncidentEvent {
            at,
            change,
            severity: self.severity,
            finding: finding.to_owned(),
        });
        if self.history.len() > MOST {
            self.history.remove(1);
        }
    }

    /// Returns whether the parts are sorted, the headline is one of them, and the history has entries.
    pub(crate) fn is_valid(&self) -> bool {
        self.parts.is_sorted_by(|one, other| one.id < other.id)
            && self.has(&self.headline)
            && !self.history.is_empty()
    }
}

impl IncidentPart {
    pub(super) fn of(finding: &Finding) -> Self {
        Self {
            id: finding.id.clone(),
            rule: finding.rule.clone(),
            severity: finding.severity,
            status: finding.status,
            group: finding.group.clone(),
            cause: main_cause(finding),
            measure: finding.measure,
            // The conversion saturates.
            events: libm::round(finding.observed.part as f64 - finding.expected) as i128,
            since: finding.since,
            until: until(finding),
            silenced: finding.silenced,
            provisional: finding.provisional,
            sentence: finding.sentence.clone(),
        }
    }

    /// Returns the values of the events that the part is about.
    pub(super) fn values(&self) -> EventValues<'_> {
        EventValues { group: &self.group, cause: &self.cause }
    }

    /// Returns the rule and the group for a sentence, such as `integration fails (integration Webhook)`.
    fn subject(&self) -> String {
        let pairs = self.group.iter();
        let pairs = pairs.map(|(name, own)| format!("{name} {}", value(own)));
        let pairs: Vec<String> = pairs.collect();
        match pairs.is_empty() {
            true => harmless(&self.rule),
            false => format!("{} ({})", harmless(&self.rule), pairs.join(", ")),
        }
    }
}

/// The values of the events that a finding is about: the values of its group and of its main cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventValues<'a> {
    pub(super) group: &'a [(Dimension, String)],
    pub(super) cause: &'a [(String, String)],
}

impl<'a> EventValues<'a> {
    fn group(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.group.iter();
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the values of the group and of the cause.
    fn all(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let cause = self.cause.iter();
        self.group().chain(cause.map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Returns whether the finding is about all events.
    pub(super) fn is_everything(self) -> bool {
        self.group.is_empty() && self.cause.is_empty()
    }
}

/// Returns whether `narrow` has all values of the group of `wide`.
pub(super) fn is_inside(narrow: EventValues<'_>, wide: EventValues<'_>) -> bool {
    wide.group().all(|pair| narrow.all().any(|other| other == pair))
}

/// Returns whether two groups have the same value in each dimension that both have.
pub(super) fn is_compatible(one: EventValues<'_>, other: EventValues<'_>) -> bool {
    let differs = |(name, value): (&str, &str)| {
        other.group().any(|(same, different)| same == name && different != value)
    };
    !one.group().any(differs)
}

/// Returns how many values two findings have in common, including the values of their causes.
pub(super) fn common(one: EventValues<'_>, other: EventValues<'_>) -> usize {
    one.all().filter(|pair| other.all().any(|same| same == *pair)).count()
}

/// Returns the values of the first cause if it explains at least half of a finding, and otherwise the values that nearly all
/// events of the finding have.
fn main_cause(finding: &Finding) -> Vec<(String, String)> {
    let first = finding.causes.first();
    let first = first.filter(|cause| cause.share >= MAIN_SHARE);
    let within = || {
        let within = finding.within.iter();
        within.map(|(name, value)| (name.as_str().to_owned(), value.clone()))
    };
    first.map_or_else(|| within().collect(), |cause| cause.r#where.clone())
}

/// Returns when a finding began to fire, or the end of its window if it has not fired.
fn fired(finding: &Finding) -> Timestamp {
    finding.fired.unwrap_or(finding.window.end())
}

/// Returns the end of the last bad window of a finding.
fn until(finding: &Finding) -> Timestamp {
    finding.resolved.unwrap_or(finding.window.end())
}

/// Returns the part that explains the most other parts. A part explains another part if its group contains the other part.
///
/// - A part comes last if another part with the same measure deviates more than twice as much. Among equals, the most severe part
///   comes first, then the earliest, then the largest.
/// - A part about all events contains every other part, which shows little. So it is the headline only if no other part explains
///   half of the parts.
/// - A part with the severity `info` is the headline only if all parts have this severity, because a message has the severity of
///   the incident.
/// - Among the remaining parts, one that doesn't fire is the headline only if none fires.
fn headline<'p>(parts: &[&'p IncidentPart]) -> Option<&'p IncidentPart> {
    let is_severe = |part: &&&IncidentPart| part.severity != Severity::Info;
    let is_firing = |part: &&&IncidentPart| part.status == Status::Firing;
    let only = |is_wanted: &dyn Fn(&&&'p IncidentPart) -> bool| {
        let wanted: Vec<&'p IncidentPart> = parts.iter().filter(is_wanted).copied().collect();
        (!wanted.is_empty() && wanted.len() < parts.len()).then_some(wanted)
    };
    if let Some(parts) = only(&is_severe).or_else(|| only(&is_firing)) {
        return headline(&parts);
    }
    let is_large = |part: &IncidentPart| {
        let mut same = parts.iter().filter(|other| other.measure == part.measure);
        same.all(|other| 2 * part.events.unsigned_abs() >= other.events.unsigned_abs())
    };
    let explained = |part: &IncidentPart| {
        let others = parts.iter().filter(|other| other.id != part.id);
        others.filter(|other| is_inside(other.values(), part.values())).count()
    };
    let rank = |part: &&&'p IncidentPart| {
        (
            is_large(part),
            explained(part),
            part.severity,
            Reverse(part.since),
            part.events.unsigned_abs(),
            Reverse(part.id.clone()),
        )
    };
    let is_of_all = |part: &&&'p IncidentPart| part.group.is_empty();
    let narrow = parts.iter().filter(|part| !is_of_all(part));
    let best = narrow.clone().max_by_key(rank);
    let explains_half = best.filter(|best| 2 * (explained(best) + 1) >= narrow.count());
    let of_all = || parts.iter().filter(is_of_all).max_by_key(rank);
    explains_half.or_else(of_all).or(best).copied()
}

/// The maximum number of other parts that a sentence names.
const NAMED: usize = 2;

/// Returns the headline's sentence, followed by the number and names of the other parts.
fn sentence(headline: &IncidentPart, parts: &[&IncidentPart]) -> String {
    let mut others: Vec<&&IncidentPart> =
        parts.iter().filter(|part| part.id != headline.id).collect();
    others.sort_by_key(|part| (Reverse(part.severity), part.group.len(), &part.id));
    let named = others.iter().take(NAMED).map(|part| part.subject());
    let named = named.collect::<Vec<_>>().join(", ");
    let dots = if others.len() > NAMED { ", …" } else { "" };
    let own = &headline.sentence;
    match others.len() {
        0 => own.clone(),
        1 => format!("{own}; also found: {named}"),
        all => format!("{own}; also {all} findings: {named}{dots}"),
    }
}

/// Returns an identifier for some texts, such as the name of a rule and the values of a group: a 64-bit FNV-1a hash.
/// After each text, it hashes a byte that UTF-8 never contains, so different lists of texts never give the same bytes.
pub(crate) fn id_of<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for text in texts {
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}
