//! A rule: what it looks for, in which counts, and how bad it is.

use std::collections::BTreeMap;

use tallyfold::{Dimension, Metric, TimeStep};

use super::kind::{Form, Misfit, Scope};
use super::kinds::{RuleKind, Test};
use super::names::Severity;
use crate::columns::page_head::SumsBy;
use crate::measure::Measure;

/// How long a first check looks back, in seconds.
pub(crate) const FIRST_LOOK: u64 = 86_400;

/// The shortest windows, in seconds. Shorter ones would need far more requests than the service can answer.
const SHORTEST_WINDOW: u32 = 60;

/// The maximum length of a name, in characters.
const MOST_CHARS: usize = 200;

/// The largest number of windows after which a rule fires or is resolved.
pub(crate) const MOST_WINDOWS: u32 = 1_000;

/// What a name must be.
pub(crate) const WANT_NAME: &str = "want a name of 1 to 200 characters without control characters";

/// Why a rule that compares both endpoints has no endpoint of its own.
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
    /// The name, which findings carry; it is unique.
    pub(crate) name: String,
    /// The endpoint whose counts are judged.
    pub(crate) metric: Metric,
    /// The number that is made from the counts.
    pub(crate) measure: Measure,
    /// The dimensions to group by. Each group is judged by itself; without dimensions, all events are one group.
    pub(crate) by: Vec<Dimension>,
    /// The values to keep, for each dimension that is named. Other events do not count.
    pub(crate) only: Vec<(Dimension, Vec<String>)>,
    /// The length of the windows that are judged.
    pub(crate) window: TimeStep,
    /// After how many bad windows in a row it fires.
    pub(crate) bad: u32,
    /// After how many good windows in a row it is resolved.
    pub(crate) good: u32,
    /// How severe its findings are.
    pub(crate) severity: Severity,
    /// The fewest events that are judged; `None` for the default of its kind.
    pub(crate) least: Option<u64>,
    /// Labels for its findings.
    pub(crate) labels: BTreeMap<String, String>,
    /// A note for the people who receive its findings.
    pub(crate) note: Option<String>,
    /// The address of a page that says what to do.
    pub(crate) runbook: Option<String>,
    /// How a window is judged.
    pub(crate) test: Test,
}

impl Rule {
    /// A rule with a name and the settings of one of the [`kinds`](crate::kinds). It judges all events of an endpoint
    /// together, in windows of 15 minutes.
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

    /// The endpoint whose counts are judged.
    #[must_use]
    pub fn metric(self, metric: Metric) -> Self {
        Self { metric, ..self }
    }

    /// The number that is made from the counts.
    #[must_use]
    pub fn measure(self, measure: Measure) -> Self {
        Self { measure, ..self }
    }

    /// The dimensions to group by. Each group is judged by itself.
    #[must_use]
    pub fn by(self, dimensions: impl IntoIterator<Item = Dimension>) -> Self {
        let mut by: Vec<Dimension> = dimensions.into_iter().collect();
        // Sorted, so that findings keep their IDs whatever the order of the arguments.
        by.sort_unstable();
        by.dedup();
        Self { by, ..self }
    }

    /// Judges only events with one of these values of a dimension.
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

    /// The length of the windows that are judged, a minute or longer.
    #[must_use]
    pub fn window(self, window: TimeStep) -> Self {
        Self { window, ..self }
    }

    /// After how many bad windows in a row it fires, and after how many good ones it is resolved: from 1 to 1,000.
    #[must_use]
    pub fn windows(self, bad: u32, good: u32) -> Self {
        Self { bad, good, ..self }
    }

    /// How severe its findings are.
    #[must_use]
    pub fn severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// The fewest events that are judged, at least 1.
    #[must_use]
    pub fn least(self, least: u64) -> Self {
        let least = Some(least);
        Self { least, ..self }
    }

    /// Adds a label to its findings.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.labels.insert(name.into(), text.into());
        self
    }

    /// A note for the people who receive its findings.
    #[must_use]
    pub fn note(self, text: impl Into<String>) -> Self {
        let note = Some(text.into());
        Self { note, ..self }
    }

    /// The address of a page that says what to do about its findings.
    #[must_use]
    pub fn runbook(self, address: impl Into<String>) -> Self {
        let runbook = Some(address.into());
        Self { runbook, ..self }
    }

    /// What the rule looks for.
    #[must_use]
    pub fn kind(&self) -> RuleKind {
        self.test.kind()
    }

    /// The properties of its kind.
    pub(crate) fn form(&self) -> &'static Form {
        self.kind().form()
    }

    /// The fewest events that are judged.
    pub(crate) fn fewest(&self) -> u64 {
        self.least
            .unwrap_or_else(|| (self.form().least)(self.measure))
    }

    /// Whether the counts of an endpoint are needed.
    pub(crate) fn needs(&self, metric: Metric) -> bool {
        self.form().scope.needs(self.metric, metric)
    }

    /// The dimensions that it names.
    pub(crate) fn dimensions(&self) -> impl Iterator<Item = Dimension> {
        let only = self.only.iter().map(|(dimension, _)| *dimension);
        self.by.iter().copied().chain(only)
    }

    /// The counts of the other endpoint that it compares its own with: by which dimensions and for which values.
    pub(crate) fn other(&self) -> Option<(Metric, SumsBy)> {
        let mut of = self.own();
        match self.form().scope {
            Scope::BothEndpoints => Some((Metric::EventDelivery, of)),
            Scope::PerIngested => {
                // What came in is counted for all integrations together.
                of.by.retain(|own| *own != Dimension::Integration);
                of.only.retain(|(own, _)| *own != Dimension::Integration);
                Some((Metric::EventIngestion, of))
            }
            Scope::Groups | Scope::Sources | Scope::Totals => None,
        }
    }

    /// By which dimensions and for which values its counts are added up.
    pub(crate) fn own(&self) -> SumsBy {
        SumsBy {
            by: self.by.clone(),
            only: self.only.clone(),
        }
    }

    /// How many seconds of history before a judged window are read. Older counts have no effect.
    pub(crate) fn history(&self) -> u64 {
        self.test.judge().history(self.window.seconds().into())
    }

    /// How many seconds before now are read: the windows that a first check judges, and their history.
    pub(crate) fn back(&self) -> u64 {
        let window = u64::from(self.window.seconds());
        let windows = u64::from(self.bad) + u64::from(self.good) + 2;
        self.history() + (windows * window).max(FIRST_LOOK)
    }

    /// The first invalid setting.
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
            return Some(Misfit::of("where", "want one value or more"));
        }
        self.test.judge().misfit()
    }
}
