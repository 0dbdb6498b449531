//! Changes in the number of deliveries per ingested event.

use std::collections::BTreeMap;

use tallyfold::arguments::toml::{Result, Table};
use tallyfold::text::{Fraction, grouped};
use tallyfold::{Dimension, Key};

use crate::cause::explanation::Amount;
use crate::columns::groups::{Columns, Grid};
use crate::columns::slots::Sum;
use crate::measure::{Measure, most};
use crate::rules::baseline::{Baseline, Comparing};
use crate::rules::judging::{Groups, Judging, Other, Sink, discover};
use crate::rules::kind::{Form, Judge, Scope};
use crate::rules::names::Severity;
use crate::rules::wording::{Measured, Total, Words, events, rounded, times};
use crate::usual::past::{Compare, Look, Past};

pub(super) const FORM: Form =
    Form { keys: &Baseline::KEYS, scope: Scope::PerIngested, least: |_| 50, ..Form::COUNTS };

/// Example rules of this kind with all of its keys, as text of a rules file.
pub(super) const EXAMPLE: &str = r#"# Deliveries per ingested event. side: "high", "low" or "both".
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

/// Compares the number of deliveries per ingested event with earlier weeks. The ratio may have any value, but it is steady as
/// long as events go to the same integrations, and the service counts ingestion in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    baseline: Baseline,
}

/// Reports changes by a fifth or more.
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
    fn baseline(&self) -> Option<&Baseline> {
        Some(&self.baseline)
    }

    fn groups(&self, judging: &Judging<'_>, groups: &Groups<'_>, sink: &mut Sink) {
        let Some(other) = groups.other else {
            return;
        };
        let (found, block) = groups.others(other, Measure::Events);
        for (place, group) in groups.range.clone().enumerate() {
            sink.begin(group);
            let Some((own, known)) = found[place] else {
                continue;
            };
            let ingested = block.columns(known).parts;
            let mut delivered = groups.block.columns(place).parts.to_vec();
            let mut wholes = vec![0; judging.slots.len()];
            for (slot, (part, whole)) in delivered.iter_mut().zip(&mut wholes).enumerate() {
                match other.known_place(judging.slots, slot) {
                    Some(place) => *whole = ingested[place],
                    // Without the number of ingested events, deliveries can't be judged.
                    None => *part = 0,
                }
            }
            let columns = Columns { parts: &delivered, wholes: Some(&wholes) };
            let of = ((groups.grid, group), (other, own));
            let mut parts = None;
            let mut confirm = |end: usize, length: usize| {
                let parts = parts.get_or_insert_with(|| Parts::read(judging, of));
                parts.look(end, length)
            };
            let comparing =
                Comparing { confirm: Some(&mut confirm), ..Comparing::with(Compare::Ratios) };
            self.baseline.group(judging, columns, comparing, sink);
        }
    }

    /// Lowers the severity to `info` if an integration starts or stops getting events from a source. Somebody has probably
    /// connected or disconnected the two.
    fn all(&self, judging: &Judging<'_>, grid: &Grid<'_>, sink: &mut Sink) {
        discover(sink, self.baseline.rate(judging));
        let has_parts = grid.dimensions().len() > 1;
        for bad in sink.bad.iter_mut().filter(|_| has_parts) {
            if is_on_or_off(bad.observed.part, bad.expected) {
                bad.severity = Some(Severity::Info);
            }
        }
    }

    fn words(&self, measured: &Measured) -> Words {
        let what = match times(measured, "deliveries per ingested event") {
            _ if measured.observed.part == 0 => format!("no events{}", measured.stage),
            None => "deliveries where none are usual".to_owned(),
            Some(what) => what,
        };
        let ingested = events(measured.observed.whole.unwrap_or_default());
        let details = vec![
            format!("{} for {ingested} ingested", grouped(measured.observed.part)),
            format!("usually {}", grouped(rounded(measured.expected))),
        ];
        Words { what, details, is_usual: true }
    }

    fn total(&self, total: &Total) -> Option<Amount> {
        let whole = Some(total.other?);
        Some(Amount { whole, ..total.own })
    }

    /// Returns false, because the usual number of deliveries depends on the number of ingested events.
    fn needs_usual(&self) -> bool {
        false
    }
}

/// Returns whether there are events although none were expected, or no events at all.
fn is_on_or_off(part: u64, expected: f64) -> bool {
    part == 0 || expected < 1.0
}

/// A part's ratio is learned from this many days of history.
const DAYS: u64 = 15;

/// The counts of a group's parts: its events, grouped by all dimensions that both endpoints have. The ratio of each
/// part is steady even if the mix of the parts changes, for example because an event name is new.
struct Parts<'j> {
    /// The parts, each with the number of its source. All parts have the number 0 if the rule groups by source.
    parts: Vec<(usize, Past<'j>)>,
    /// The minimum number of expected deliveries on a day that is judged.
    least: u64,
}

impl<'j> Parts<'j> {
    /// Reads the parts of a delivery group and of the ingestion group with the same values.
    fn read(
        judging: &'j Judging<'_>,
        ((grid, group), (other, own)): ((&Grid<'_>, usize), (&Other<'_>, usize)),
    ) -> Self {
        let of_both = |dimension: &Dimension| {
            *dimension != Dimension::Integration
                && [grid, other.grid]
                    .iter()
                    .all(|grid| grid.counted().dimensions.position(*dimension).is_some())
        };
        let dimensions = Dimension::ALL.iter().copied().filter(of_both);
        let dimensions: Vec<Dimension> = dimensions.collect();
        let slots = judging.slots;
        let first = judging.range.start.saturating_sub(slots.in_seconds(DAYS * 86_400));
        // If the group has several sources, `look` leaves out sources that were connected or disconnected. So each part needs its
        // source's number.
        let is_of_source = grid.dimensions().contains(&Dimension::WriteKey);
        let source = dimensions.iter().position(|own| *own == Dimension::WriteKey);
        let source = source.filter(|_| !is_of_source);
        let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        let mut counts: Vec<[Vec<u64>; 2]> = Vec::new();
        let sides = [(grid, group, slots), (other.grid, own, &other.slots)];
        for (side, (grid, group, of)) in sides.into_iter().enumerate() {
            let own_slot = |slot: usize| {
                let slot = of.place_in(slots, slot);
                slot.filter(|slot| (first..slots.len()).contains(slot))
            };
            let is_wanted = |slot: usize| {
                own_slot(slot).is_some_and(|slot| other.known_place(slots, slot).is_some())
            };
            let measure = if side == 0 { judging.measure } else { Measure::Events };
            let mut rows: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
            grid.each_row(group, of, is_wanted, |row, slot, events| {
                if let Some(slot) = own_slot(slot) {
                    let row = rows.entry(*row);
                    let row = row.or_insert_with(|| vec![0; slots.len() - first]);
                    let count = &mut row[slot - first];
                    *count = count.saturating_add(most(measure.part(events)));
                }
            });
            for (row, events) in rows {
                let next = places.len();
                let place = places.entry(grid.row_values(&row, &dimensions));
                let place = *place.or_insert(next);
                if place == counts.len() {
                    counts.push([vec![0; slots.len()], vec![0; slots.len()]]);
                }
                for (count, number) in counts[place][side][first..].iter_mut().zip(events) {
                    *count = count.saturating_add(number);
                }
            }
        }
        let mut sources: BTreeMap<String, usize> = BTreeMap::new();
        let mut source_of = vec![0; counts.len()];
        for (values, place) in &places {
            let name = source.and_then(|source| values.get(source));
            let next = sources.len();
            let name = name.cloned().unwrap_or_default();
            source_of[*place] = *sources.entry(name).or_insert(next);
        }
        let parts = source_of.into_iter().zip(&counts).map(|(source, [delivered, ingested])| {
            let columns = Columns { parts: delivered, wholes: Some(ingested) };
            let learned = (judging.calendar(group), &judging.learned);
            let past = Past::new(learned, Compare::Ratios, (2, 0), columns, &judging.finals);
            (source, past)
        });
        Self { parts: parts.collect(), least: judging.least }
    }

    /// Returns the sums of the parts whose ratio is known, and how many events are expected. Leaves out sources that were
    /// connected or disconnected, because a sum that spans such a change has deliveries only from one side of it. Such a
    /// source isn't steady, or the last quarter of the sum shows the change (see [`is_on_or_off`]). If all sources were
    /// connected or disconnected, leaves out none.
    fn look(&self, end: usize, length: usize) -> Option<Look> {
        let of_sources = self.of_sources(end, length);
        let latest = self.of_sources(end, (length / 4).max(1));
        let is_kept = |source: &usize, look: &Look| {
            let latest = latest.get(source).unwrap_or(look);
            !is_on_or_off(latest.sum.part, look.expected) && self.is_steady(*source, end)
        };
        let looks = of_sources.values().copied();
        let kept = of_sources.iter();
        let kept = kept.filter(|(source, look)| is_kept(source, look));
        let kept = kept.map(|(_, look)| *look);
        kept.reduce(added).or_else(|| looks.reduce(added))
    }

    /// Returns the sums of the parts of each source.
    fn of_sources(&self, end: usize, length: usize) -> BTreeMap<usize, Look> {
        let mut of_sources: BTreeMap<usize, Look> = BTreeMap::new();
        for (source, part) in &self.parts {
            if let Some(look) = part.look(end, length) {
                let sum = of_sources.get(source).map_or(look, |sum| added(*sum, look));
                of_sources.insert(*source, sum);
            }
        }
        of_sources
    }

    /// Returns whether a source had deliveries on each of the days from which its ratio is learned, except for days on which
    /// fewer than `least` were expected.
    fn is_steady(&self, source: usize, end: usize) -> bool {
        let own = self.parts.iter().filter(|(own, _)| *own == source);
        let own: Vec<&Past<'_>> = own.map(|(_, part)| part).collect();
        let Some(per_day) = own.first().map(|part| part.calendar().per_day) else {
            return true;
        };
        let of_day = |ago: usize| {
            let end = end.checked_sub(ago * per_day)?;
            let sums = own.iter().map(|part| part.sum(end, per_day));
            let add = |(part, whole): (f64, f64), sum: Sum| {
                (part + sum.part as f64, whole + sum.whole as f64)
            };
            Some(sums.fold((0.0, 0.0), add))
        };
        let days: Vec<(f64, f64)> = (0..DAYS as usize).filter_map(of_day).collect();
        let add = |sums: (f64, f64), day: &(f64, f64)| (sums.0 + day.0, sums.1 + day.1);
        let (parts, wholes) = days.iter().fold((0.0, 0.0), add);
        let is_gone = |(part, whole): &(f64, f64)| {
            *part <= 0.0 && parts * whole >= self.least as f64 * wholes
        };
        !days.iter().any(is_gone)
    }
}

/// Adds the counts and the expected events of two parts.
fn added(one: Look, other: Look) -> Look {
    Look {
        sum: Sum {
            part: one.sum.part.saturating_add(other.sum.part),
            whole: one.sum.whole.saturating_add(other.sum.whole),
            known: one.sum.known,
        },
        expected: one.expected + other.expected,
    }
}
