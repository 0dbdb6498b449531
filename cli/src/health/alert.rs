//! Alerts: what is sent about a finding, and what a receiver was told about it before.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tallyfold::Timestamp;

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
    /// The command that shows the counts.
    pub(crate) query: String,
    /// The instant at which the finding began.
    pub(crate) since: String,
    /// The whole finding, as JSON.
    pub(crate) finding: String,
}

/// Alerts by the fingerprints of their findings.
pub(crate) type Alerts = BTreeMap<String, Alert>;

/// The findings that fire now, and those that are over.
#[derive(Clone, Debug)]
pub(crate) struct News {
    /// What fires and is not silenced.
    pub(crate) firing: Alerts,
    /// What fires from counts that may still change. It is sent only to receivers that were told of it before.
    pub(crate) held: Alerts,
    /// The ends of findings that fired in the last run and are over.
    pub(crate) resolved: BTreeMap<String, Resolved>,
    /// What fires and is silenced: nobody is told of it, nor that it is over.
    pub(crate) silenced: BTreeSet<String>,
    /// Whether findings were left out, because there are too many: what is not among them may go on.
    pub(crate) is_cut: bool,
    /// Now.
    pub(crate) now: Timestamp,
}

/// The end of a finding.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// When it ended.
    pub(crate) at: Timestamp,
    /// The sentence about it.
    pub(crate) sentence: String,
    /// The whole finding, as JSON.
    pub(crate) finding: String,
}

/// An alert that a receiver was told of and that is over.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    /// The alert as it was told, with the last sentence.
    pub(crate) alert: Alert,
    /// When it ended.
    pub(crate) at: Timestamp,
}

impl News {
    /// The firing alerts that a receiver is told of.
    pub(crate) fn firing(&self, told: &Alerts) -> Alerts {
        let held = self.held.iter().filter(|(id, _)| told.contains_key(*id));
        let held = held.map(|(id, alert)| (id.clone(), alert.clone()));
        self.firing.clone().into_iter().chain(held).collect()
    }

    /// The alerts that a receiver was told of and that go on, although it is told nothing now: it is told neither that a
    /// finding is silenced nor that one was left out.
    pub(crate) fn kept(&self, told: &Alerts) -> Alerts {
        let kept = told.iter().filter(|(id, _)| self.is_kept(id));
        kept.map(|(id, alert)| (id.clone(), alert.clone()))
            .collect()
    }

    fn is_firing(&self, id: &str) -> bool {
        self.firing.contains_key(id) || self.held.contains_key(id)
    }

    fn is_kept(&self, id: &str) -> bool {
        let is_over = self.resolved.contains_key(id);
        self.silenced.contains(id) || self.is_cut && !self.is_firing(id) && !is_over
    }

    /// The alerts that a receiver was told of and that are over. An alert may end without a resolved finding: its rule
    /// was removed.
    pub(crate) fn over(&self, told: &Alerts) -> Vec<(String, Over)> {
        let gone = told
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
}
