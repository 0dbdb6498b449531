//! What is sent of a finding, and what a receiver was told of it before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tallyfold::Timestamp;

/// A finding as receivers get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alert {
    /// The name of the rule.
    pub(crate) rule: String,
    /// How bad it is.
    pub(crate) severity: String,
    /// What tells it from others; the same from the first message to the last.
    pub(crate) labels: BTreeMap<String, String>,
    /// The sentence that says what is wrong.
    pub(crate) sentence: String,
    /// The command that shows it.
    pub(crate) query: String,
    /// Since when, as an instant.
    pub(crate) since: String,
    /// The whole finding, as JSON.
    pub(crate) finding: String,
}

/// Alerts by the fingerprints of their findings.
pub(crate) type Alerts = BTreeMap<String, Alert>;

/// What holds now, and what was found to be over.
#[derive(Clone, Debug)]
pub(crate) struct News {
    /// What fires and is not silenced.
    pub(crate) firing: Alerts,
    /// What fires by counts that may still change: only who was told before is told again.
    pub(crate) held: Alerts,
    /// Since when findings no longer hold that did in the last run.
    pub(crate) resolved: BTreeMap<String, Resolved>,
    /// Now.
    pub(crate) now: Timestamp,
}

/// The end of a finding.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// When it ended.
    pub(crate) at: Timestamp,
    /// What is said of it.
    pub(crate) sentence: String,
    /// The whole finding, as JSON.
    pub(crate) finding: String,
}

/// An alert that a receiver was told of and that is over.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    /// The alert as it was told, with the last sentence.
    pub(crate) alert: Alert,
    /// Since when it is over.
    pub(crate) at: Timestamp,
}

impl News {
    /// What a receiver is told that fires.
    pub(crate) fn firing(&self, told: &Alerts) -> Alerts {
        let held = self.held.iter().filter(|(id, _)| told.contains_key(*id));
        let held = held.map(|(id, alert)| (id.clone(), alert.clone()));
        self.firing.clone().into_iter().chain(held).collect()
    }

    /// What a receiver was told that is over now. A finding may be gone without a word: its rule was removed, or it was silenced.
    pub(crate) fn over(&self, told: &Alerts) -> Vec<(String, Over)> {
        let gone = told
            .iter()
            .filter(|(id, _)| !self.firing.contains_key(*id) && !self.held.contains_key(*id));
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
