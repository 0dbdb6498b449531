//! What every kind of rule provides. Each has a file of its own in `kinds/`.

use std::fmt;

use tallyfold::{Dimension, Metric};

use super::judging::{Groups, Judging, Sink};
use super::wording::{self, Said, Seen};
use crate::columns::blocks::Columns;
use crate::columns::groups::Grid;
use crate::measure::Measure;

/// The properties of a kind that are known before a rule of it is read.
pub(crate) struct Form {
    /// The keys that its rules have besides the common ones.
    pub(crate) keys: &'static [&'static str],
    /// Which counts it judges.
    pub(crate) scope: Scope,
    /// Whether it can judge a measure.
    pub(crate) judges: fn(Measure) -> bool,
    /// The measure by default.
    pub(crate) measure: Measure,
    /// After how many bad windows in a row a rule fires, by default.
    pub(crate) bad: u32,
    /// The fewest events that are judged, by default.
    pub(crate) least: fn(Measure) -> u64,
}

impl Form {
    /// The form of a kind that counts the events of groups. Other kinds override some of its fields.
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
    /// The counts of groups of one endpoint.
    Groups,
    /// The counts of whole sources of one endpoint.
    Sources,
    /// The counts of groups of ingestion, compared with the counts of delivery.
    BothEndpoints,
    /// The counts of groups of delivery, compared with what was ingested for all integrations.
    PerIngested,
    /// The totals that the service reported; there are no groups.
    Totals,
}

impl Scope {
    /// The endpoint of a rule that names none.
    pub(crate) const fn metric(self) -> Metric {
        match self {
            Self::Groups | Self::Sources | Self::Totals | Self::PerIngested => {
                Metric::EventDelivery
            }
            Self::BothEndpoints => Metric::EventIngestion,
        }
    }

    /// Whether a rule about an endpoint needs the counts of another one, too.
    pub(crate) fn needs(self, own: Metric, metric: Metric) -> bool {
        own == metric || self.is_both()
    }

    /// Whether both endpoints are compared.
    pub(crate) const fn is_both(self) -> bool {
        matches!(self, Self::BothEndpoints | Self::PerIngested)
    }

    /// Why a rule about an endpoint can't name a dimension.
    pub(crate) fn refuses(self, metric: Metric, dimension: Dimension) -> Option<String> {
        let lacking = Metric::ALL
            .iter()
            .find(|other| self.needs(metric, **other) && !other.has(dimension));
        match self {
            Self::Sources if dimension != Dimension::WriteKey => {
                Some("a day off is one of whole sources; want write_key or nothing".to_owned())
            }
            Self::Totals => Some("totals are reported for all events together".to_owned()),
            _ => lacking.map(|lacking| format!("{lacking} does not have {dimension}")),
        }
    }
}

/// How rules of a kind judge windows and describe the results.
pub(crate) trait Judge: fmt::Debug {
    /// What is wrong with its settings, with the key; an empty key means the rule as a whole.
    fn misfit(&self) -> Option<Misfit> {
        None
    }

    /// How many seconds of history before a judged window are read. The argument is the length of a window in seconds.
    /// Older counts have no effect.
    fn history(&self, _window: u64) -> u64 {
        0
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
    fn all(&self, _judging: &Judging<'_>, _grid: &Grid<'_>, _sink: &mut Sink) {}

    /// Whether a group without any row is judged: it has no events, which may be too few.
    fn judges_absent(&self) -> bool {
        false
    }

    /// The earlier counts that explain a finding; `None` if there is nothing to compare it with.
    fn compared(&self) -> Option<Compared> {
        None
    }

    /// What a sentence says about the numbers of a finding.
    fn said(&self, seen: &Seen) -> Said {
        wording::compared(seen)
    }
}

/// An invalid setting, and what a valid one would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The key of the setting; empty for the rule as a whole.
    pub(crate) key: &'static str,
    /// What a valid setting would be.
    pub(crate) text: String,
}

impl Misfit {
    /// A misfit of a key.
    pub(crate) fn of(key: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { key, text }
    }
}

/// The earlier counts that explain a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    /// How many weeks before the finding are compared with it.
    pub(crate) weeks: usize,
    /// Whether to explain only the time since the finding began. This is for findings whose numbers cover a longer
    /// window that is mostly good.
    pub(crate) since_it_began: bool,
}

impl Compared {
    /// For a kind without a baseline.
    pub(crate) const FOUR_WEEKS: Self = Self {
        weeks: 4,
        since_it_began: false,
    };
}
