//! The state that a check returns for the next check.

use serde::{Deserialize, Serialize};
use tallyfold::keeper::DocumentKind;
use tallyfold::text::harmless;
use tallyfold::{Code, Dimension, Error, Identity, Result, Timestamp, Window};

use crate::cause::explanation::Amount;
use crate::incidents::incident::{Incident, IncidentHold};
use crate::rules::names::Severity;

/// The state that a check returns for the next check: how far each rule has judged, which findings are pending or firing, and
/// their incidents.
///
/// [`State::to_json`] and [`State::from_json`] write and read it. Its size grows only with the findings that are pending
/// or firing, and with the incidents that are open or may be reopened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The cluster and the client whose counts were judged.
    pub(crate) identity: Identity,
    /// The state of each rule, sorted by name.
    pub(crate) rules: Vec<RuleState>,
    /// The incidents that are open or may be reopened, sorted by identifier.
    pub(crate) incidents: Vec<Incident>,
}

/// The state of one rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleState {
    /// The name of the rule.
    pub(crate) name: String,
    /// The end of the last window that was judged for this rule.
    pub(crate) judged: Timestamp,
    /// The findings that are pending or firing, sorted by group.
    pub(crate) live: Vec<Live>,
}

/// A finding that is pending or firing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Live {
    /// The values of the rule's dimensions.
    pub(crate) group: Vec<(Dimension, String)>,
    /// The number of bad windows in a row, at most as many as the rule needs to fire.
    pub(crate) bad: u32,
    /// The number of good windows in a row since the last bad one.
    pub(crate) good: u32,
    /// The start of the first bad window.
    pub(crate) since: Timestamp,
    /// The end of the window that made the finding fire; `None` while it is pending.
    pub(crate) fired: Option<Timestamp>,
    /// The end of the last window that left no evidence that the finding is over, such as a bad window.
    pub(crate) until: Timestamp,
    /// The end of the last window that had enough events to judge the group.
    pub(crate) seen: Timestamp,
    /// The evidence that the finding has ended: the logarithm of a likelihood ratio.
    pub(crate) evidence: f64,
    /// How much the group's counts vary: the variance of a count is `expected + phi * expected²`.
    pub(crate) phi: f64,
    /// For a share or a ratio, what was usual on the first day of the finding: the largest usual value for a finding about too
    /// many events, otherwise the smallest. Rules learn a value that lasts for days, so only a return to this value is evidence
    /// that the finding has ended.
    pub(crate) usual: Option<f64>,
    /// The numbers of the last bad window.
    pub(crate) numbers: Numbers,
}

impl Live {
    /// Returns whether the finding fires; otherwise it is pending.
    pub(crate) fn is_firing(&self) -> bool {
        self.fired.is_some()
    }
}

/// The numbers of a bad window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers {
    /// The window.
    pub(crate) window: Window,
    /// What was counted.
    pub(crate) observed: Amount,
    /// The expected number of counted events.
    pub(crate) expected: f64,
    /// The normal range of counted events.
    pub(crate) normal: (u64, u64),
    /// The natural logarithm of the probability of these counts; `None` if the rule does not compute a probability.
    pub(crate) ln_p: Option<f64>,
    /// How bad the window is.
    pub(crate) severity: Severity,
}

impl State {
    /// Returns the time up to which every rule has judged; `None` before the first check. The next check needs the counts
    /// from this time on, and the earlier counts that its rules compare them with.
    #[must_use]
    pub fn judged(&self) -> Option<Timestamp> {
        self.rules.iter().map(|rule| rule.judged).min()
    }

    /// Acknowledges or silences an incident; `None` removes the acknowledgement or the silence. While the hold is in force,
    /// the incident counts as silenced: a check may be healthy in spite of it, and no receiver is notified. `incident` is the
    /// beginning of an identifier, or the whole identifier.
    ///
    /// # Errors
    /// `invalid_argument` unless exactly one incident has this identifier, for a note of more than a thousand characters, and for
    /// a silence that ends before or at the time up to which the checks have judged.
    pub fn hold(&mut self, incident: &str, hold: Option<IncidentHold>) -> Result<&Incident> {
        let refused = |what: String| Err(Error::argument("incident", Code::InvalidArgument, what));
        let note = hold.as_ref().and_then(|hold| hold.note.as_deref());
        if note.is_some_and(|note| note.chars().nth(MOST_OF_NOTE).is_some()) {
            let message = format!("want at most {MOST_OF_NOTE} characters");
            return Err(Error::argument("note", Code::InvalidArgument, message));
        }
        let until = hold.as_ref().and_then(|hold| hold.until);
        if until.is_some_and(|until| Some(until) <= self.judged()) {
            let message = "this is in the past: the checks have judged all windows up to it";
            return Err(Error::argument("until", Code::InvalidArgument, message));
        }
        let wanted = incident.to_ascii_lowercase();
        let matching = self.incidents.iter_mut();
        let matching = matching.filter(|one| one.id.starts_with(&wanted));
        let mut matching: Vec<&mut Incident> = matching.collect();
        match &mut matching[..] {
            _ if incident.is_empty() => refused("want the identifier of an incident".to_owned()),
            [] => {
                refused(format!("no recent incident has the identifier {:?}", harmless(incident)))
            }
            [_] => {
                let incident = matching.remove(0);
                incident.hold = hold;
                Ok(incident)
            }
            several => refused(format!(
                "{} incidents have identifiers that begin with {:?}",
                several.len(),
                harmless(incident)
            )),
        }
    }

    /// Returns the incidents that are open, or that ended so recently that they may be reopened.
    pub fn incidents(&self) -> impl Iterator<Item = &Incident> {
        self.incidents.iter()
    }

    /// Returns the state of a rule.
    pub(crate) fn rule(&self, name: &str) -> Option<&RuleState> {
        self.rules.iter().find(|rule| rule.name == name)
    }
}

const KIND: DocumentKind = DocumentKind { format: "tallyfold-health/2", what: "state of checks" };

/// The maximum length of a hold's note, in characters.
const MOST_OF_NOTE: usize = 1_000;

/// The maximum size of a document, in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The fields of the stored document.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    rules: Vec<StoredRule>,
    incidents: Vec<Incident>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRule {
    name: String,
    judged: String,
    live: Vec<StoredLive>,
}

/// Floats are stored as text, which every language reads as the same bits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLive {
    group: Vec<(String, String)>,
    bad: u32,
    good: u32,
    since: String,
    fired: Option<String>,
    until: String,
    seen: String,
    evidence: String,
    phi: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usual: Option<String>,
    start: String,
    end: String,
    part: u64,
    whole: Option<u64>,
    expected: String,
    low: u64,
    high: u64,
    ln_p: Option<String>,
    severity: String,
}

impl State {
    /// Reads what [`State::to_json`] wrote.
    ///
    /// # Errors
    /// `invalid_checkpoint` if the document isn't a state, was changed, or has more than 64 MiB.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        if json.len() > MOST_BYTES {
            return Err(KIND.wrong(format_args!("want at most {MOST_BYTES} bytes")));
        }
        let fields = KIND.read(json)?;
        let stored: StoredState =
            serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        let rules = stored.rules.into_iter().map(rule_of).collect::<Option<Vec<_>>>();
        let rules = rules.filter(|rules| rules.is_sorted_by(|one, other| one.name < other.name));
        let rules = rules.ok_or_else(|| KIND.wrong("a value is invalid"))?;
        let incidents = stored.incidents;
        if !incidents.is_sorted_by(|one, other| one.id < other.id)
            || !incidents.iter().all(Incident::is_valid)
        {
            return Err(KIND.wrong("an incident is invalid"));
        }
        let identity = stored.identity.as_deref();
        Ok(Self { identity: identity.map(Identity::new).unwrap_or_default(), rules, incidents })
    }

    /// Returns the state as JSON with a checksum. The same state gives the same bytes, in every language.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let stored = StoredState {
            identity: self.identity.as_str().map(str::to_owned),
            rules: self.rules.iter().map(stored_rule).collect(),
            incidents: self.incidents.clone(),
        };
        // `stored` has only texts and whole numbers, so writing it as JSON can't fail.
        KIND.write(&serde_json::to_string(&stored).unwrap_or_default()).into_bytes()
    }
}

fn stored_rule(rule: &RuleState) -> StoredRule {
    StoredRule {
        name: rule.name.clone(),
        judged: rule.judged.to_string(),
        live: rule.live.iter().map(stored_live).collect(),
    }
}

fn stored_live(live: &Live) -> StoredLive {
    let numbers = &live.numbers;
    let group = live.group.iter();
    StoredLive {
        group: group.map(|(name, value)| (name.as_str().to_owned(), value.clone())).collect(),
        bad: live.bad,
        good: live.good,
        since: live.since.to_string(),
        fired: live.fired.map(|fired| fired.to_string()),
        until: live.until.to_string(),
        seen: live.seen.to_string(),
        evidence: live.evidence.to_string(),
        phi: live.phi.to_string(),
        usual: live.usual.map(|usual| usual.to_string()),
        start: numbers.window.start().to_string(),
        end: numbers.window.end().to_string(),
        part: numbers.observed.part,
        whole: numbers.observed.whole,
        expected: numbers.expected.to_string(),
        low: numbers.normal.0,
        high: numbers.normal.1,
        ln_p: numbers.ln_p.map(|ln_p| ln_p.to_string()),
        severity: numbers.severity.as_str().to_owned(),
    }
}

fn rule_of(stored: StoredRule) -> Option<RuleState> {
    Some(RuleState {
        name: stored.name,
        judged: instant(&stored.judged)?,
        live: stored.live.iter().map(live_of).collect::<Option<_>>()?,
    })
}

fn live_of(stored: &StoredLive) -> Option<Live> {
    let group = stored.group.iter();
    let fired = match &stored.fired {
        Some(fired) => Some(instant(fired)?),
        None => None,
    };
    let optional = |text: &Option<String>| match text {
        Some(text) => finite(text).map(Some),
        None => Some(None),
    };
    Some(Live {
        group: group
            .map(|(name, value)| Some((Dimension::from_name(name)?, value.clone())))
            .collect::<Option<_>>()?,
        bad: stored.bad,
        good: stored.good,
        since: instant(&stored.since)?,
        fired,
        until: instant(&stored.until)?,
        seen: instant(&stored.seen)?,
        evidence: finite(&stored.evidence)?,
        phi: finite(&stored.phi)?,
        usual: optional(&stored.usual)?,
        numbers: Numbers {
            window: Window::new(instant(&stored.start)?, instant(&stored.end)?).ok()?,
            observed: Amount { part: stored.part, whole: stored.whole },
            expected: finite(&stored.expected)?,
            normal: (stored.low, stored.high),
            ln_p: optional(&stored.ln_p)?,
            severity: Severity::from_name(&stored.severity)?,
        },
    })
}

fn instant(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text).ok()
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}
