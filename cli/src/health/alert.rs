//! What is sent of a finding, and what a receiver was told of it before.

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

    /// What a receiver was told that goes on, of which it is told nothing now.
    pub(crate) fn kept(&self, told: &Alerts) -> Alerts {
        let kept = told.iter().filter(|(id, _)| self.is_kept(id));
        kept.map(|(id, alert)| (id.clone(), alert.clone()))
            .collect()
    }

    fn is_kept(&self, id: &str) -> bool {
        let is_told = self.firing.contains_key(id) || self.held.contains_key(id);
        let is_over = self.resolved.contains_key(id);
        self.silenced.contains(id) || self.is_cut && !is_told && !is_over
    }

    /// What a receiver was told that is over now. A finding may be gone without a word: its rule was removed.
    pub(crate) fn over(&self, told: &Alerts) -> Vec<(String, Over)> {
        let goes_on = |id: &String| {
            self.firing.contains_key(id) || self.held.contains_key(id) || self.is_kept(id)
        };
        let gone = told.iter().filter(|(id, _)| !goes_on(id));
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
