//! The events that are counted: those recorded one by one, and the seeded traffic.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::traffic::Traffic;
use crate::time::Timestamp;

/// What became of an event.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    Success,
    Errors,
    Filtered,
}

impl Outcome {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "success" => Some(Self::Success),
            "errors" => Some(Self::Errors),
            "filtered" => Some(Self::Filtered),
            _ => None,
        }
    }
}

/// The ids of an event's dimension values, in the order of `Dimension::ALL`.
pub(super) type Values = [u32; 4];

/// Every dimension value, numbered in order of first appearance.
#[derive(Default)]
pub(super) struct Names {
    texts: Vec<String>,
    ids: HashMap<String, u32, FixedState>,
}

impl Names {
    pub(super) fn id(&mut self, text: &str) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }

    pub(super) fn text(&self, id: u32) -> &str {
        &self.texts[id as usize]
    }
}

struct Record {
    timestamp: Timestamp,
    outcome: Outcome,
    values: Values,
    count: u64,
}

/// All events of a sandbox.
pub(super) struct Events {
    pub(super) names: Names,
    traffic: Option<Traffic>,
    records: Vec<Record>,
    in_order: bool,
    /// Whether the last instant of a window belongs to it.
    closed_windows: bool,
}

impl Events {
    pub(super) fn new(seed: Option<u64>, closed_windows: bool) -> Self {
        let mut names = Names::default();
        let traffic = seed.map(|seed| Traffic::new(seed, &mut names));
        Self {
            names,
            traffic,
            records: Vec::new(),
            in_order: true,
            closed_windows,
        }
    }

    pub(super) fn is_seeded(&self) -> bool {
        self.traffic.is_some()
    }

    pub(super) fn recorded(&self) -> usize {
        self.records.len()
    }

    pub(super) fn record(
        &mut self,
        timestamp: Timestamp,
        outcome: Outcome,
        values: [&str; 4],
        count: u64,
    ) {
        let values = values.map(|text| self.names.id(text));
        self.in_order &= self
            .records
            .last()
            .is_none_or(|last| last.timestamp <= timestamp);
        self.records.push(Record {
            timestamp,
            outcome,
            values,
            count,
        });
    }

    /// Puts the records in order of time, which `each_within` relies on.
    pub(super) fn sort(&mut self) {
        if !self.in_order {
            self.records.sort_by_key(|record| record.timestamp);
            self.in_order = true;
        }
    }

    /// Shows the events with `start <= timestamp < end`, and those at `end` if windows are closed;
    /// stops where `visit` has no answer.
    pub(super) fn each_within(
        &self,
        start: Timestamp,
        end: Timestamp,
        mut visit: impl FnMut(Values, Outcome, u64) -> Option<()>,
    ) -> Option<()> {
        if let Some(traffic) = &self.traffic {
            let first_after = if self.closed_windows {
                end.unix_ms() + 1
            } else {
                millisecond_from(end)
            };
            traffic.each_within(millisecond_from(start)..first_after, &mut visit)?;
        }
        let first = self
            .records
            .partition_point(|record| record.timestamp < start);
        self.records[first..]
            .iter()
            .take_while(|record| {
                record.timestamp < end || self.closed_windows && record.timestamp == end
            })
            .try_for_each(|record| visit(record.values, record.outcome, record.count))
    }
}

/// The first whole millisecond that is not before the instant.
fn millisecond_from(instant: Timestamp) -> i64 {
    let floor = instant.unix_ms();
    if Timestamp::from_unix_ms(floor) == Some(instant) {
        floor
    } else {
        floor + 1
    }
}
