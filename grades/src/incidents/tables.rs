//! The simulated counts as a caller reads them: settled windows from response bodies, and newer windows provisionally.

use std::collections::VecDeque;
use std::fmt::Write;

use tallyfold::{AggregatorOptions, AggregatorPlan, CountTable, Metric, Result, Timestamp};

use super::clock::DAY;
use super::names::{EVENT_NAMES, INTEGRATIONS, SOURCES};
use super::traffic::Cells;
use super::world::World;

/// When a window starts. Simulations stay within the years that timestamps can express.
pub(super) fn start(world: &World, at: usize) -> Result<Timestamp> {
    let start = Timestamp::from_unix_ms(world.clock.start_ms(at));
    start.map_or_else(|| Timestamp::parse(""), Ok)
}

/// The counts of one endpoint up to now.
#[derive(Debug)]
pub(super) struct History {
    metric: Metric,
    plan: AggregatorPlan,
    /// How many days are kept.
    days: usize,
    /// A table for each past day, the sum of these tables, and the settled windows of the current day.
    past: VecDeque<CountTable>,
    all_past: Option<CountTable>,
    today: Vec<CountTable>,
}

impl History {
    /// The history of an endpoint, which keeps this many days.
    pub(super) fn new(metric: Metric, days: usize) -> Result<Self> {
        let options = AggregatorOptions::default().metric(metric);
        Ok(Self {
            metric,
            plan: AggregatorPlan::new(dimensions(metric), options)?,
            days,
            past: VecDeque::new(),
            all_past: None,
            today: Vec::new(),
        })
    }

    /// Adds the next window, whose counts no longer change. At the end of a day, drops the days that are older than the
    /// days to keep.
    pub(super) fn settle(&mut self, world: &World, at: usize, cells: &Cells) -> Result<()> {
        let mut aggregator = self.plan.aggregator(0);
        aggregator.push(body(self.metric, world, at, cells).as_bytes())?;
        self.today.push(aggregator.finish()?);
        if (at + 1).is_multiple_of(DAY) {
            self.past.push_back(CountTable::merge_all(&self.today)?);
            self.today.clear();
            if self.past.len() > self.days {
                self.past.pop_front();
            }
            self.all_past = None;
        }
        Ok(())
    }

    /// All settled windows.
    pub(super) fn settled(&self) -> Result<CountTable> {
        CountTable::merge_all(self.past.iter().chain(&self.today))
    }

    /// All settled windows, and windows that may still change.
    pub(super) fn read(
        &mut self,
        world: &World,
        provisional: &[(usize, Cells)],
    ) -> Result<CountTable> {
        let saved = saved(self.metric, world, provisional);
        let mut recent = CountTable::from_json(saved.as_bytes())?;
        if !self.today.is_empty() {
            recent = recent.merge(&CountTable::merge_all(&self.today)?, false)?;
        }
        if self.past.is_empty() {
            return Ok(recent);
        }
        let past = match self.all_past.take() {
            Some(past) => past,
            None => CountTable::merge_all(&self.past)?,
        };
        self.all_past.insert(past).merge(&recent, false)
    }
}

pub(super) fn dimensions(metric: Metric) -> &'static [&'static str] {
    match metric {
        Metric::EventDelivery => &["write_key", "event_name", "integration", "reason"],
        Metric::EventIngestion => &["write_key", "event_name"],
    }
}

/// A row: its values and its counts.
type Row<'a> = (Vec<&'a str>, [u64; 3]);

fn rows<'a>(metric: Metric, world: &World, cells: &'a Cells) -> Vec<Row<'a>> {
    let of = |place: usize| {
        let stream = &world.streams[place];
        [SOURCES[stream.source].0, EVENT_NAMES[stream.event_name]]
    };
    if metric == Metric::EventIngestion {
        let rows = cells.ingested.iter();
        return rows.map(|(place, count)| (of(*place).to_vec(), [*count, 0, 0])).collect();
    }
    let mut rows = Vec::new();
    for cell in &cells.delivered {
        let [write_key, event_name] = of(cell.stream);
        let integration = INTEGRATIONS[world.streams[cell.stream].flows[cell.flow].integration];
        let mut add = |reason: &'a str, counts: [u64; 3]| {
            if counts != [0; 3] {
                rows.push((vec![write_key, event_name, integration, reason], counts));
            }
        };
        // Assumption `reason_of_delivered`: only filtered events have a reason.
        add("", [cell.success, cell.errors, 0]);
        for (reason, count) in &cell.filtered {
            add(reason, [0, 0, *count]);
        }
    }
    rows
}

/// The window's start and end.
fn bounds(world: &World, at: usize) -> [String; 2] {
    [at, at + 1].map(|at| {
        let start = start(world, at);
        start.map_or_else(|error| error.to_string(), |start| start.to_string())
    })
}

fn totals(rows: &[Row<'_>]) -> [u64; 3] {
    let add = |sum: [u64; 3], row: &Row<'_>| [0, 1, 2].map(|kind| sum[kind] + row.1[kind]);
    rows.iter().fold([0; 3], add)
}

/// The body of a response (service reference 2.2).
fn body(metric: Metric, world: &World, at: usize, cells: &Cells) -> String {
    let rows = rows(metric, world, cells);
    let [success, errors, filtered] = totals(&rows);
    let [start, end] = bounds(world, at);
    let mut body = format!(
        r#"{{"start":"{start}","end":"{end}","totalDelivered":"{success}","totalErrors":"{errors}","totalFiltered":"{filtered}","counts":["#
    );
    for (place, (values, [success, errors, filtered])) in rows.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let _ = write!(
            body,
            r#"{comma}{{"success":"{success}","errors":"{errors}","filtered":"{filtered}","dimensions":{{"#
        );
        for (place, (name, value)) in dimensions(metric).iter().zip(values).enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(body, r#"{comma}"{name}":"{value}""#);
        }
        body.push_str("}}");
    }
    body.push_str("]}");
    body
}

/// A table with provisional windows, in its saved form.
fn saved(metric: Metric, world: &World, windows: &[(usize, Cells)]) -> String {
    let counts = |[success, errors, filtered]: [u64; 3]| {
        serde_json::json!({
            "success": success.to_string(), "errors": errors.to_string(), "filtered": filtered.to_string(),
        })
    };
    let mut sum = [0; 3];
    let window = |(at, cells): &(usize, Cells)| {
        let rows = rows(metric, world, cells);
        let own = totals(&rows);
        sum = [0, 1, 2].map(|kind| sum[kind] + own[kind]);
        let row = |(values, own): &Row<'_>| {
            let mut row = counts(*own);
            row["values"] = serde_json::json!(values);
            row
        };
        let [start, end] = bounds(world, *at);
        serde_json::json!({
            "start": start, "end": end, "provisional": true, "reported": counts(own),
            "notes": {"repeated_combinations": 0, "null_dimensions": 0},
            "rows": rows.iter().map(row).collect::<Vec<_>>(),
        })
    };
    let windows: Vec<_> = windows.iter().map(window).collect();
    let saved = serde_json::json!({
        "format": "tallyfold-table/1", "metric": metric.as_str(), "dimensions": dimensions(metric), "filter": [],
        "totals": counts(sum), "windows": windows,
    });
    saved.to_string()
}
