//! What every kind of rule provides. Each kind has its own file in `kinds/`.

use std::fmt;

use tallyfold::{Dimension, Metric};

use super::baseline::Baseline;
use super::judging::{Compared, Groups, Judging, Misfit, Sink, discover};
use super::wording::{self, Measured, Total, Words};
use crate::cause::explanation::Amount;
use crate::columns::groups::{Columns, Grid};
use crate::measure::Measure;

/// The properties that all rules of a kind have.
pub(crate) struct Form {
    /// The keys that rules of the kind have in addition to the common keys.
    pub(crate) keys: &'static [&'static str],
    /// Which counts the kind judges.
    pub(crate) scope: Scope,
    /// Returns whether the kind can judge a measure.
    pub(crate) judges: fn(Measure) -> bool,
    /// The default measure.
    pub(crate) measure: Measure,
    /// By default, how many bad windows in a row make a rule fire.
    pub(crate) bad: u32,
    /// Returns the default minimum number of events in a window.
    pub(crate) least: fn(Measure) -> u64,
}

impl Form {
    /// The properties of a kind that judges the counts of groups. Other kinds override some of these fields.
    pub(crate) const COUNTS: Self = Self {
        keys: &["measure", "least"],
        scope: Scope::Groups,
        judges: |measure| !measure.is_rate(),
        measure: Measure::Events,
        bad: 1,
        least: |_| 20,
    };
}

/// Which counts a kind judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One endpoint's counts, by group.
    Groups,
    /// One endpoint's counts of whole sources.
    Sources,
    /// Ingestion counts by group, compared with delivery counts.
    BothEndpoints,
    /// Delivery counts by group, compared with ingestion counts. Ingestion counts events for all integrations together.
    PerIngested,
    /// The totals that the service reported; there are no groups.
    Totals,
}

impl Scope {
    /// Returns the endpoint of a rule that doesn't name an endpoint.
    pub(crate) const fn metric(self) -> Metric {
        match self {
            Self::Groups | Self::Sources | Self::Totals | Self::PerIngested => {
                Metric::EventDelivery
            }
            Self::BothEndpoints => Metric::EventIngestion,
        }
    }

    /// Returns whether a rule about the endpoint `own` needs the counts of the endpoint `metric`.
    pub(crate) fn needs(self, own: Metric, metric: Metric) -> bool {
        own == metric || self.is_both()
    }

    /// Returns whether rules compare both endpoints.
    pub(crate) const fn is_both(self) -> bool {
        matches!(self, Self::BothEndpoints | Self::PerIngested)
    }

    /// Returns why a rule about an endpoint can't name a dimension, or `None` if it can.
    pub(crate) fn refuses(self, metric: Metric, dimension: Dimension) -> Option<String> {
        let lacking =
            Metric::ALL.iter().find(|other| self.needs(metric, **other) && !other.has(dimension));
        match self {
            Self::Sources if dimension != Dimension::WriteKey => Some(
                "a day off is a decline of whole sources; want write_key, or no dimension"
                    .to_owned(),
            ),
            Self::Totals => Some("totals are reported for all events together".to_owned()),
            _ => lacking.map(|lacking| format!("{lacking} does not have {dimension}")),
        }
    }
}

/// How rules of a kind judge windows and describe the results.
pub(crate) trait Judge: fmt::Debug {
    /// Returns the baseline, if the kind has one. The default methods use it.
    fn baseline(&self) -> Option<&Baseline> {
        None
    }

    /// Returns the first invalid setting with its key. The key is empty if the rule as a whole is invalid.
    fn misfit(&self) -> Option<Misfit> {
        self.baseline().and_then(Baseline::misfit)
    }

    /// Returns how many seconds of history before a judged window the rule reads. The argument is the length of a window
    /// in seconds. Older counts have no effect.
    fn history(&self, window: u64) -> u64 {
        self.baseline().map_or(0, |baseline| baseline.history(window))
    }

    /// Judges some windows of a group.
    fn group(&self, _judging: &Judging<'_>, _columns: Columns<'_>, _sink: &mut Sink) {}

    /// Judges some windows of some groups, by default each group by itself.
    fn groups(&self, judging: &Judging<'_>, groups: &Groups<'_>, sink: &mut Sink) {
        for (place, group) in groups.range.clone().enumerate() {
            sink.begin(group);
            self.group(judging, groups.block.columns(place), sink);
        }
    }

    /// Judges all groups together, after each group was judged.
    fn all(&self, judging: &Judging<'_>, _grid: &Grid<'_>, sink: &mut Sink) {
        if let Some(baseline) = self.baseline() {
            discover(sink, baseline.rate(judging));
        }
    }

    /// Returns whether a group without any row is judged. Such a group has no events, which may be below a lower limit.
    fn judges_absent(&self) -> bool {
        false
    }

    /// Returns which earlier counts explain a finding; `None` if there is nothing to compare the finding with.
    fn compared(&self) -> Option<Compared> {
        self.baseline().map(Baseline::compared)
    }

    /// Describes the numbers of a finding for its sentence.
    fn words(&self, measured: &Measured) -> Words {
        wording::compared(measured)
    }

    /// Returns the counts of all windows of a finding together, or `None` if they can't be added up.
    fn total(&self, total: &Total) -> Option<Amount> {
        Some(total.own)
    }

    /// Returns the expected count of all windows of a finding together. Returns `None` if the total has no meaning for the
    /// kind, for example because a limit applies to each window.
    fn expected_in_total(&self, total: &Total) -> Option<f64> {
        total.usual
    }

    /// Returns whether the total of a finding is compared with the same time in earlier weeks.
    fn needs_usual(&self) -> bool {
        self.baseline().is_some()
    }

    /// Returns whether the counts of all windows of a finding together break the fixed limit, too. Returns true for a kind
    /// without such a limit.
    fn is_beyond(&self, _total: Amount) -> bool {
        true
    }

    /// Returns the words that end the sentence of a finding that is over.
    fn over(&self) -> &'static str {
        "over"
    }
}
