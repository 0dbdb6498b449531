//! A rule: what it looks for, in which counts, and how severe its findings are.

use std::collections::BTreeMap;

use tallyfold::{Dimension, Metric, TimeStep};

use super::judging::Misfit;
use super::kind::{Form, Scope};
use super::kinds::{RuleKind, Test};
use super::names::Severity;
use super::values::{SHORTEST_WINDOW, setters};
use crate::columns::page_head::SumsBy;
use crate::measure::Measure;

/// How long a first check looks back, in seconds.
pub(crate) const FIRST_LOOK: u64 = 86_400;

/// The maximum length of a name, in characters.
const MOST_CHARS: usize = 200;

/// The maximum number of windows in a row that make a rule fire or end a finding.
pub(crate) const MOST_WINDOWS: u32 = 1_000;

/// The message for an invalid name.
pub(crate) const WANT_NAME: &str = "want a name of 1 to 200 characters without control characters";

/// The message for a rule that compares both endpoints and has the key `metric`.
pub(crate) const NO_METRIC: &str = "this kind of rule compares both endpoints; leave the key out";

/// A rule. [`Rules::new`](crate::Rules::new) checks it.
///
/// ```
/// # use tallyfold::{Dimension, text::Fraction};
/// # use tallyfold_health::{Rule, Rules, Severity, kinds::Threshold};
/// let above = Threshold::default().above(Fraction::new(5, 100));
/// let rule = Rule::new("integrations fail", above)
///     .by([Dimension::Integration])
///     .severity(Severity::Critical);
/// assert_eq!(Rules::new([rule])?.names(), ["integrations fail"]);
/// # Ok::<(), tallyfold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The name, which is unique and part of each finding.
    pub(crate) name: String,
    /// The endpoint whose counts the rule judges.
    pub(crate) metric: Metric,
    /// The number that the rule computes from the counts.
    pub(crate) measure: Measure,
    /// The dimensions to group by. Each group is judged by itself; without dimensions, all events are one group.
    pub(crate) by: Vec<Dimension>,
    /// For each restricted dimension, the values to keep. Events with other values do not count.
    pub(crate) only: Vec<(Dimension, Vec<String>)>,
    /// The length of the windows that are judged.
    pub(crate) window: TimeStep,
    /// How many bad windows in a row make the rule fire.
    pub(crate) bad: u32,
    /// How many good windows in a row end a finding.
    pub(crate) good: u32,
    /// How severe the findings of the rule are.
    pub(crate) severity: Severity,
    /// The minimum number of events in a window; `None` for the default of the kind.
    pub(crate) least: Option<u64>,
    /// The labels of the rule's findings.
    pub(crate) labels: BTreeMap<String, String>,
    /// A note for the people who receive the rule's findings.
    pub(crate) note: Option<String>,
    /// The address of a page that explains what to do.
    pub(crate) runbook: Option<String>,
    /// How a window is judged.
    pub(crate) test: Test,
}

impl Rule {
    /// Makes a rule with a name and the settings of one of the [`kinds`](crate::kinds). It judges all events of an
    /// endpoint together, in windows of 15 minutes.
    #[must_use]
    pub fn new(name: impl Into<String>, test: impl Into<Test>) -> Self {
        let test = test.into();
        let form = test.kind().form();
        Self {
            name: name.into(),
            metric: form.scope.metric(),
            measure: form.measure,
            by: Vec::new(),
            only: Vec::new(),
            window: TimeStep::QUARTER,
            bad: form.bad,
            good: 2,
            severity: Severity::Warning,
            least: None,
            labels: BTreeMap::new(),
            note: None,
            runbook: None,
            test,
        }
    }

    setters! {
        /// Sets the endpoint whose counts the rule judges.
        metric: Metric,

        /// Sets the number that the rule computes from the counts.
        measure: Measure,

        /// Sets the length of the windows that are judged, a minute or longer.
        window: TimeStep,

        /// Sets how severe the findings of the rule are.
        severity: Severity,

        /// Sets the minimum number of events in a window, 1 or more. Most kinds of rules don't judge windows with fewer events.
        least: Option<u64>,

        /// Sets a note for the people who receive the rule's findings.
        note: Option<String>,

        /// Sets the address of a page that explains what to do about the rule's findings.
        runbook: Option<String>,
    }

    /// Sets the dimensions to group by. Each group is judged by itself.
    #[must_use]
    pub fn by(self, dimensions: impl IntoIterator<Item = Dimension>) -> Self {
        let mut by: Vec<Dimension> = dimensions.into_iter().collect();
        // Dimensions are sorted, so that the IDs of findings don't depend on the order of the arguments.
        by.sort_unstable();
        by.dedup();
        Self { by, ..self }
    }

    /// Restricts the rule to events that have one of these values in a dimension.
    #[must_use]
    pub fn only<V: Into<String>>(
        mut self,
        dimension: Dimension,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.only.retain(|(own, _)| *own != dimension);
        self.only.push((dimension, values));
        self.only.sort();
        self
    }

    /// Sets how many bad windows in a row make the rule fire, and how many good windows in a row end a finding. Both numbers
    /// are from 1 to 1,000.
    #[must_use]
    pub fn windows(self, bad: u32, good: u32) -> Self {
        Self { bad, good, ..self }
    }

    /// Adds a label to the rule's findings.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.labels.insert(name.into(), text.into());
        self
    }

    /// Returns what the rule looks for.
    #[must_use]
    pub fn kind(&self) -> RuleKind {
        self.test.kind()
    }

    /// Returns the properties of the rule's kind.
    pub(crate) fn form(&self) -> &'static Form {
        self.kind().form()
    }

    /// Returns the minimum number of events in a window.
    pub(crate) fn fewest(&self) -> u64 {
        self.least.unwrap_or_else(|| (self.form().least)(self.measure))
    }

    /// Returns whether the rule needs the counts of an endpoint.
    pub(crate) fn needs(&self, metric: Metric) -> bool {
        self.form().scope.needs(self.metric, metric)
    }

    /// Returns the dimensions that the rule names, to group by or to restrict.
    pub(crate) fn dimensions(&self) -> impl Iterator<Item = Dimension> {
        let only = self.only.iter().map(|(dimension, _)| *dimension);
        self.by.iter().copied().chain(only)
    }

    /// Returns the other endpoint that the rule compares with, and the sums that the rule needs from this endpoint.
    pub(crate) fn other(&self) -> Option<(Metric, SumsBy)> {
        let mut of = self.own();
        match self.form().scope {
            Scope::BothEndpoints => Some((Metric::EventDelivery, of)),
            Scope::PerIngested => {
                // Ingestion counts events for all integrations together.
                of.by.retain(|own| *own != Dimension::Integration);
                of.only.retain(|(own, _)| *own != Dimension::Integration);
                Some((Metric::EventIngestion, of))
            }
            Scope::Groups | Scope::Sources | Scope::Totals => None,
        }
    }

    /// Returns the sums that the rule judges: its dimensions to group by, and the values to keep.
    pub(crate) fn own(&self) -> SumsBy {
        SumsBy { by: self.by.clone(), only: self.only.clone() }
    }

    /// Returns how many seconds of history before a judged window the rule reads. Older counts have no effect.
    pub(crate) fn history(&self) -> u64 {
        self.test.judge().history(self.window.seconds().into())
    }

    /// Returns how many seconds back the rule reads at a first check: the windows to judge, and their history.
    pub(crate) fn back(&self) -> u64 {
        let window = u64::from(self.window.seconds());
        let windows = u64::from(self.bad) + u64::from(self.good) + 2;
        self.history() + (windows * window).max(FIRST_LOOK)
    }

    /// Returns the first invalid setting.
    pub(crate) fn misfit(&self) -> Option<Misfit> {
        let chars = self.name.chars().count();
        if !(1..=MOST_CHARS).contains(&chars) || self.name.chars().any(char::is_control) {
            return Some(Misfit::of("name", WANT_NAME));
        }
        let form = self.form();
        if !(form.judges)(self.measure) {
            let measures = Measure::ALL.iter().filter(|own| (form.judges)(**own));
            let measures: Vec<&str> = measures.map(|own| own.as_str()).collect();
            let text = format!("want one of {}", measures.join(", "));
            return Some(Misfit::of("measure", text));
        }
        if self.window.seconds() < SHORTEST_WINDOW {
            return Some(Misfit::of("window", "want a minute or more"));
        }
        for (key, windows) in [("for", self.bad), ("clear", self.good)] {
            if !(1..=MOST_WINDOWS).contains(&windows) {
                return Some(Misfit::of(key, "want a number of windows, from 1 to 1000"));
            }
        }
        if self.least == Some(0) {
            return Some(Misfit::of("least", "want a number of events, 1 or more"));
        }
        if form.scope.is_both() && self.metric != form.scope.metric() {
            return Some(Misfit::of("metric", NO_METRIC));
        }
        let refused = |dimension: &Dimension| form.scope.refuses(self.metric, *dimension);
        let by = self.by.iter().find_map(refused);
        let only = self.only.iter().find_map(|(own, _)| refused(own));
        if let Some(text) = by {
            return Some(Misfit::of("by", text));
        }
        if let Some(text) = only {
            return Some(Misfit::of("where", text));
        }
        if self.only.iter().any(|(_, values)| values.is_empty()) {
            return Some(Misfit::of("where", "want at least one value"));
        }
        self.test.judge().misfit()
    }
}
