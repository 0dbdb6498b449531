//! The kinds of rules, with their settings. Each kind has a file in `kinds/` and a line in the list below.

mod budget;
mod day_off;
mod new;
mod rate;
mod ratio;
mod reconciliation;
mod silent;
mod threshold;
mod undelivered;
mod vanished;
mod volume;

pub use budget::{Budget, Burn};
pub use day_off::DayOff;
pub use new::New;
pub use rate::Rate;
pub use ratio::Ratio;
pub use reconciliation::Reconciliation;
pub use silent::Silent;
pub use threshold::Threshold;
pub use undelivered::Undelivered;
pub use vanished::Vanished;
pub use volume::Volume;

use tallyfold::arguments::toml::{self, Table};

use super::kind::{Form, Judge};
use crate::measure::Measure;

/// Generates the enums [`RuleKind`] and [`Test`] from one line for each kind: its type, its file, and its name in a rules file.
macro_rules! kinds {
    ($( $(#[$doc:meta])+ $Kind:ident in $file:ident = $name:literal, )+) => {
        tallyfold::names! {
            /// What a rule looks for.
            #[non_exhaustive]
            pub enum RuleKind { $( $(#[$doc])+ $Kind = $name, )+ }
        }

        /// A rule's settings that depend on its kind. They decide how the rule judges windows.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Test { $( $(#[$doc])+ $Kind($Kind), )+ }

        $(impl From<$Kind> for Test {
            fn from(settings: $Kind) -> Self {
                Self::$Kind(settings)
            }
        })+

        impl RuleKind {
            /// Returns the properties of the kind.
            pub(crate) fn form(self) -> &'static Form {
                match self { $( Self::$Kind => &$file::FORM, )+ }
            }

            /// Returns example rules of the kind, with all keys of the kind, as text of a rules file.
            pub(crate) fn example(self) -> &'static str {
                match self { $( Self::$Kind => $file::EXAMPLE, )+ }
            }
        }

        impl Test {
            /// Reads the settings of a rule. `measure` is the measure that the rule judges.
            pub(crate) fn read(kind: RuleKind, table: &Table<'_>, measure: Measure) -> toml::Result<Self> {
                match kind { $( RuleKind::$Kind => $Kind::read(table, measure).map(Self::$Kind), )+ }
            }

            /// Returns the kind.
            pub(crate) fn kind(&self) -> RuleKind {
                match self { $( Self::$Kind(_) => RuleKind::$Kind, )+ }
            }

            /// Returns the settings as a [`Judge`].
            pub(crate) fn judge(&self) -> &dyn Judge {
                match self { $( Self::$Kind(settings) => settings, )+ }
            }
        }
    };
}

kinds! {
    /// A count or a share above or below a fixed limit.
    Threshold in threshold = "threshold",
    /// A share that differs from the same windows of earlier weeks.
    Rate in rate = "rate",
    /// A count that differs from the same windows of earlier weeks.
    Volume in volume = "volume",
    /// A group whose parts all decline for a day, as on a holiday.
    DayOff in day_off = "day_off",
    /// A number of deliveries per ingested event that differs from earlier weeks.
    Ratio in ratio = "ratio",
    /// No events at a time when there usually are some.
    Silent in silent = "silent",
    /// A group that always had events, and has none now.
    Vanished in vanished = "vanished",
    /// A group that had no events before.
    New in new = "new",
    /// Errors that use up a budget too fast.
    Budget in budget = "budget",
    /// Events that were ingested, but neither delivered, failed nor filtered.
    Undelivered in undelivered = "undelivered",
    /// Reported totals that differ from the sums of their rows.
    Reconciliation in reconciliation = "reconciliation",
}
