//! Totals that the service reported and that differ from the sums of their rows.

use tallyfold::Counts;
use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::grouped;

use crate::cause::explanation::Amount;
use crate::columns::groups::Grid;
use crate::measure::{Measure, most};
use crate::rules::judging::{BadWindow, Judging, Normal, Sink};
use crate::rules::kind::{Form, Judge, Scope};
use crate::rules::wording::{Measured, Total, Words, events};

pub(super) const FORM: Form =
    Form { keys: &["least"], scope: Scope::Totals, least: |_| 1, ..Form::COUNTS };

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# Totals that differ from the sums of their rows.
[[rule]]
name = "totals do not match"
kind = "reconciliation"
least = 1
"#;

/// Compares the totals that the service reported with the sums of the rows.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Reconciliation {}

impl Reconciliation {
    pub(super) fn read(_: &Table<'_>, _: Measure) -> Result<Self> {
        Ok(Self {})
    }
}

impl Judge for Reconciliation {
    fn all(&self, judging: &Judging<'_>, grid: &Grid<'_>, sink: &mut Sink) {
        let mut slots = vec![Totals::default(); judging.range.len()];
        let start = judging.range.start;
        let counted = grid.counted();
        let windows = counted.windows.iter().zip(&judging.slots.places);
        for (at, (window, place)) in windows.enumerate() {
            if let Some(slot) = place.filter(|slot| judging.range.contains(slot)) {
                slots[slot - start].add(window.reported, || counted.totals(at));
            }
        }
        for slot in judging.known() {
            let totals = &slots[slot - start];
            if totals.is_unknown {
                continue;
            }
            sink.judged(slot);
            let [reported, counted] =
                [totals.reported, totals.counted].map(|sums| most(sums.iter().sum()));
            if totals.difference() >= judging.least.into() {
                let observed = Amount::count(reported);
                let normal = Normal::Range(counted, counted);
                sink.add_bad(BadWindow::of(slot, observed, counted as f64, normal));
            }
        }
    }

    fn words(&self, measured: &Measured) -> Words {
        let reported = events(measured.observed.part);
        let what = match measured.low {
            counted if counted == measured.observed.part => format!(
                "the reported totals and the rows have {reported} each, but not as many delivered, failed and filtered"
            ),
            counted => {
                let counted = grouped(counted);
                format!("the reported totals are {reported}, but the rows add up to {counted}")
            }
        };
        Words { what, details: Vec::new(), is_usual: true }
    }

    /// Returns `None`, because rows don't contain the reported totals.
    fn total(&self, _: &Total) -> Option<Amount> {
        None
    }
}

/// The reported totals of a slot, and the sums of its rows.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    reported: [u128; 3],
    counted: [u128; 3],
    is_unknown: bool,
}

impl Totals {
    fn add(&mut self, reported: Option<Counts>, counted: impl FnOnce() -> [u128; 3]) {
        let Some(reported) = reported else {
            self.is_unknown = true;
            return;
        };
        add(&mut self.reported, reported.each().map(u128::from));
        add(&mut self.counted, counted());
    }

    /// Returns the sum of the differences between the three totals and the three sums of rows.
    fn difference(&self) -> u128 {
        let pairs = self.reported.iter().zip(self.counted);
        pairs.map(|(reported, counted)| reported.abs_diff(counted)).sum()
    }
}

fn add(sums: &mut [u128; 3], counts: [u128; 3]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}
