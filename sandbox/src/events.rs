//! The events that the sandbox counts: recorded events and the seeded traffic.

use crate::event::Outcome;
use crate::instant::Instant;
use crate::numbered::{Names, Values};
use crate::options::SandboxOptions;
use crate::traffic::Traffic;

/// The seed of a scene without a seed, because a scene needs traffic.
const SEED_OF_SCENES: u64 = 1;

struct Record {
    timestamp: Instant,
    outcome: Outcome,
    values: Values,
    count: u64,
}

/// All events of a sandbox.
pub(crate) struct Events {
    pub(crate) names: Names,
    traffic: Option<Traffic>,
    records: Vec<Record>,
    in_order: bool,
    /// Whether the last timestamp of a window belongs to it.
    closed_windows: bool,
}

impl Events {
    pub(crate) fn new(options: &SandboxOptions) -> Self {
        let mut names = Names::default();
        let scene = options.scene;
        let seed = options.seed.or(scene.map(|_| SEED_OF_SCENES));
        let traffic = seed.map(|seed| Traffic::new(seed, scene, &mut names));
        Self {
            names,
            traffic,
            records: Vec::new(),
            in_order: true,
            closed_windows: options.closed_windows,
        }
    }

    /// Notes the time of a request.
    pub(crate) fn pass(&mut self, now_ms: i64) {
        if let Some(traffic) = &mut self.traffic {
            traffic.pass(now_ms);
        }
    }

    pub(crate) fn is_seeded(&self) -> bool {
        self.traffic.is_some()
    }

    pub(crate) fn recorded(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn record(
        &mut self,
        timestamp: Instant,
        outcome: Outcome,
        values: [&str; 4],
        count: u64,
    ) {
        let values = values.map(|text| self.names.id(text));
        self.in_order &= self.records.last().is_none_or(|last| last.timestamp <= timestamp);
        self.records.push(Record { timestamp, outcome, values, count });
    }

    /// Sorts the records by time, which `each_within` requires.
    pub(crate) fn sort(&mut self) {
        if !self.in_order {
            self.records.sort_by_key(|record| record.timestamp);
            self.in_order = true;
        }
    }

    /// Calls `visit` with the events with `start <= timestamp < end`, and with the events at `end` if windows are closed.
    /// Stops when `visit` returns `None`.
    pub(crate) fn each_within(
        &self,
        start: Instant,
        end: Instant,
        mut visit: impl FnMut(Values, Outcome, u64) -> Option<()>,
    ) -> Option<()> {
        if let Some(traffic) = &self.traffic {
            let first_after = if self.closed_windows {
                end.timestamp_millis() + 1
            } else {
                millisecond_from(end)
            };
            traffic.each_within(millisecond_from(start)..first_after, &mut visit)?;
        }
        let first = self.records.partition_point(|record| record.timestamp < start);
        self.records[first..]
            .iter()
            .take_while(|record| {
                record.timestamp < end || self.closed_windows && record.timestamp == end
            })
            .try_for_each(|record| visit(record.values, record.outcome, record.count))
    }
}

/// The first whole millisecond that is not before the timestamp.
fn millisecond_from(instant: Instant) -> i64 {
    let has_more = !instant.timestamp_subsec_nanos().is_multiple_of(1_000_000);
    instant.timestamp_millis() + i64::from(has_more)
}
