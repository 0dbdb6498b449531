//! Events that were ingested, but neither delivered, failed nor filtered.

use tallyfold::arguments::toml::{Result, Table};

use crate::cause::explanation::Amount;
use crate::columns::groups::{Block, Columns, NO_GROUP, read};
use crate::measure::Measure;
use crate::rules::judging::{BadWindow, Groups, Judging, Normal, Other, Sink};
use crate::rules::kind::{Form, Judge, Scope};
use crate::rules::wording::{Measured, Total, Words, events, rounded};

pub(super) const FORM: Form = Form {
    keys: &["least"],
    scope: Scope::BothEndpoints,
    ..Form::COUNTS
};

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
        let mut places = vec![NO_GROUP; delivery.grid.len()];
        let mut found: Vec<Option<usize>> = Vec::with_capacity(groups.range.len());
        let mut next = 0;
        for group in groups.range.clone() {
            let own = groups.grid.find_in(delivery.grid, group);
            found.push(own.map(|_| next as usize));
            if let Some(own) = own {
                places[own] = next;
                next += 1;
            }
        }
        let place_of = |group: u32| places[group as usize];
        let (measure, length) = (judging.measure, next as usize);
        let mut block = [Block::new(
            delivery.grid,
            &delivery.slots,
            measure,
            length,
            place_of,
        )];
        read(delivery.grid.counted(), &mut block);
        for (place, group) in groups.range.clone().enumerate() {
            sink.begin(group);
            let delivered = found[place].map(|place| block[0].columns(place));
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
