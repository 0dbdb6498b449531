//! Events that were ingested, but neither delivered, failed nor filtered.

use tallyfold::arguments::toml::{Result, Table};

use crate::cause::explanation::Amount;
use crate::columns::groups::Columns;
use crate::measure::Measure;
use crate::rules::judging::{BadWindow, Groups, Judging, Normal, Other, Sink};
use crate::rules::kind::{Form, Judge, Scope};
use crate::rules::wording::{Measured, Total, Words, events, rounded};

pub(super) const FORM: Form =
    Form { keys: &["least"], scope: Scope::BothEndpoints, ..Form::COUNTS };

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# Events that were ingested, but neither delivered, failed nor filtered.
[[rule]]
name = "a source is not delivered"
kind = "undelivered"
by = ["write_key"]
least = 20
"#;

/// Compares the counts of ingestion with the counts of delivery, group by group.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Undelivered {}

impl Undelivered {
    pub(super) fn read(_: &Table<'_>, _: Measure) -> Result<Self> {
        Ok(Self {})
    }
}

impl Judge for Undelivered {
    fn groups(&self, judging: &Judging<'_>, groups: &Groups<'_>, sink: &mut Sink) {
        let Some(delivery) = groups.other else {
            return;
        };
        let (found, block) = groups.others(delivery, judging.measure);
        for (place, group) in groups.range.clone().enumerate() {
            sink.begin(group);
            let delivered = found[place].map(|(_, place)| block.columns(place));
            let ingested = groups.block.columns(place).parts;
            judge_group(judging, delivery, ingested, delivered, sink);
        }
    }

    fn words(&self, measured: &Measured) -> Words {
        let ingested = events(rounded(measured.expected));
        Words {
            what: format!("{ingested} ingested, but none delivered, failed or filtered"),
            details: Vec::new(),
            is_usual: true,
        }
    }

    fn total(&self, total: &Total) -> Option<Amount> {
        total.other.map(Amount::count)
    }

    fn expected_in_total(&self, total: &Total) -> Option<f64> {
        (total.other == Some(0)).then_some(total.own.part as f64)
    }
}

fn judge_group(
    judging: &Judging<'_>,
    delivery: &Other<'_>,
    ingested: &[u64],
    delivered: Option<Columns<'_>>,
    sink: &mut Sink,
) {
    for slot in judging.known().filter(|slot| judging.finals[*slot]) {
        let other = delivery.known_place(judging.slots, slot);
        let Some(other) = other.filter(|other| delivery.slots.settled[*other]) else {
            continue;
        };
        let count = ingested[slot];
        if count < judging.least {
            continue;
        }
        sink.judged(slot);
        if delivered.is_none_or(|delivered| delivered.parts[other] == 0) {
            let normal = Normal::Range(1, u64::MAX);
            sink.add_bad(BadWindow::of(slot, Amount::count(0), count as f64, normal));
        }
    }
}
