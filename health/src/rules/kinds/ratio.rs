//! Deliveries for each event that came in, where their number changes.

use tallyfold::Dimension;
use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::Fraction;

use crate::columns::groups::{Block, Columns, Grid, read};
use crate::measure::Measure;
use crate::rules::baseline::Baseline;
use crate::rules::judging::{Groups, Judging, Sink, discover};
use crate::rules::kind::{Compared, Form, Judge, Misfit, Scope};
use crate::rules::wording::{self, Seen};
use crate::usual::past::Compare;

pub(super) const FORM: Form = Form {
    keys: &[
        "measure",
        "least",
        "baseline",
        "side",
        "false_alarms",
        "change",
    ],
    scope: Scope::PerIngested,
    least: |_| 50,
    ..Form::COUNTS
};

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# Deliveries for each event that came in. side: "high", "low" or "both".
[[rule]]
name = "an integration gets events twice"
kind = "ratio"
measure = "events"
by = ["write_key", "integration"]
baseline = { weeks = 6, neighbours = 1 }
side = "both"
false_alarms = 0.1
change = "20%"
least = 50
"#;

/// The number of deliveries for each event that came in, compared with earlier weeks. It is steady as long as nothing
/// changes, whatever the service counts as ingestion.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    baseline: Baseline,
}

/// A change by a fifth.
impl Default for Ratio {
    fn default() -> Self {
        Baseline::default().into()
    }
}

impl From<Baseline> for Ratio {
    fn from(baseline: Baseline) -> Self {
        let baseline = baseline.or_change(Fraction::new(20, 100));
        Self { baseline }
    }
}

impl Ratio {
    pub(super) fn read(table: &Table<'_>, _: Measure) -> Result<Self> {
        Ok(Baseline::read(table)?.into())
    }
}

impl Judge for Ratio {
    fn misfit(&self) -> Option<Misfit> {
        self.baseline.misfit()
    }

    fn history(&self, window: u64) -> u64 {
        self.baseline.history(window)
    }

    fn groups(&self, judging: &Judging<'_>, groups: &Groups<'_>, sink: &mut Sink) {
        let Some(other) = groups.other else {
            return;
        };
        let length = other.grid.len();
        let mut block = [Block::new(
            other.grid,
            &other.slots,
            Measure::Events,
            length,
            |group| group,
        )];
        read(other.grid.counted(), &mut block);
        let ahead = judging.slots.ahead_of(&other.slots);
        let is_known = |slot: &usize| {
            let own = usize::try_from(i64::try_from(*slot).unwrap_or(i64::MAX) + ahead).ok();
            own.filter(|own| other.slots.known.get(*own) == Some(&true))
        };
        for (place, group) in groups.range.clone().enumerate() {
            sink.begin(group);
            let values = groups.grid.values(group);
            let dimensions = groups.grid.dimensions();
            let shared = values.iter().zip(dimensions);
            let shared = shared.filter(|(_, dimension)| *dimension != Dimension::Integration);
            let shared: Vec<&str> = shared.map(|(value, _)| *value).collect();
            let Some(ingested) = other.grid.find(&shared) else {
                continue;
            };
            let ingested = block[0].columns(ingested).parts;
            let wholes =
                (0..judging.slots.len()).map(|slot| is_known(&slot).map_or(0, |own| ingested[own]));
            let wholes: Vec<u64> = wholes.collect();
            let columns = Columns {
                parts: groups.block.columns(place).parts,
                wholes: Some(&wholes),
            };
            self.baseline
                .group(judging, columns, Compare::Ratios, None, sink);
        }
    }

    fn all(&self, judging: &Judging<'_>, _: &Grid<'_>, sink: &mut Sink) {
        discover(sink, self.baseline.rate(judging));
    }

    fn compared(&self) -> Option<Compared> {
        Some(self.baseline.compared())
    }

    fn sentence(&self, seen: &Seen) -> (String, Option<String>) {
        let whole = seen.observed.whole.unwrap_or_default().max(1) as f64;
        let each = |part: f64| format!("{:.2}", part / whole);
        let counted = format!(
            "{} for each event that came in ({})",
            each(seen.observed.part as f64),
            wording::events(seen.observed.part)
        );
        (counted, Some(format!("usually {}", each(seen.expected))))
    }
}
