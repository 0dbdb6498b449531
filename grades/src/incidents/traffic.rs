//! The events of each window, and what became of them.

use super::incident::{Incident, Kind};
use super::plan::Planned;
use super::random::Random;
use super::vocabulary::{REASONS, WRITE_KEYS};
use super::world::{Flow, Purpose, Stream, World};

/// The standard deviation of the logarithm of a stream's volume, by itself in each window.
const STREAM_NOISE: f64 = 0.06;
/// One filtered event in this many has the rare reason of its flow.
const RARE: f64 = 0.1;
/// The share of events that has arrived when a window is read at its end, and one window later. After two windows, all
/// events have arrived.
const ARRIVED: [f64; 2] = [0.97, 0.995];
/// The same for one window of a hundred, when a batch is late.
const LATE_ARRIVED: [f64; 2] = [0.8, 0.95];

/// The events of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    /// What was taken in, by stream.
    pub(super) ingested: Vec<(usize, u64)>,
    /// What became of it, by stream and flow.
    pub(super) delivered: Vec<Cell>,
}

/// What became of the events of one stream on their way to one integration.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) stream: usize,
    pub(super) flow: usize,
    pub(super) success: u64,
    pub(super) errors: u64,
    /// By reason.
    pub(super) filtered: Vec<(&'static str, u64)>,
}

/// Traffic with its incidents.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) world: World,
    pub(super) planned: Planned,
}

impl Traffic {
    pub(super) fn new(world: World) -> Self {
        let planned = Planned::new(&world);
        Self { world, planned }
    }

    /// The events of a window once all have arrived.
    pub(super) fn cells(&self, at: usize) -> Cells {
        let incidents: Vec<&Incident> = self.planned.all().filter(|one| one.is_on(at)).collect();
        let mut cells = Cells::default();
        let levels: Vec<f64> = (0..WRITE_KEYS.len())
            .map(|write_key| self.world.noisy_level(write_key, at))
            .collect();
        for (place, stream) in self.world.streams.iter().enumerate() {
            let name = [
                self.world.seed,
                Purpose::Cells as u64,
                at as u64,
                place as u64,
            ];
            let mut random = Random::of(&name);
            let noise = libm::exp(STREAM_NOISE * random.normal());
            let there = remaining(&incidents, stream, at);
            let mean = stream.mean * levels[stream.write_key] * noise * there;
            let events = random.poisson(mean);
            if events > 0 {
                cells.ingested.push((place, events));
            }
            for flow in 0..stream.flows.len() {
                let cell = self.cell(&mut random, &incidents, at, (place, flow), events);
                cells.delivered.extend(cell);
            }
        }
        cells
    }

    /// What becomes of so many events on their way to an integration.
    fn cell(
        &self,
        random: &mut Random,
        incidents: &[&Incident],
        at: usize,
        (place, number): (usize, usize),
        events: u64,
    ) -> Option<Cell> {
        let stream = &self.world.streams[place];
        let flow = &stream.flows[number];
        let mut filtered = usual_filters(random, flow, events);
        let mut rest = events - filtered.iter().map(|(_, count)| count).sum::<u64>();
        let mut error_rate = self.world.error_rate(flow.integration, at);
        let mut copies = 1;
        for incident in incidents.iter().filter(|one| one.slice.has(stream, flow)) {
            match incident.kind {
                Kind::IntegrationFails => error_rate += incident.size * (1.0 - error_rate),
                Kind::ConsentFilter | Kind::NewReason => {
                    let taken = random.binomial(rest, incident.size);
                    rest -= taken;
                    add(&mut filtered, incident.reason.unwrap_or_default(), taken);
                }
                Kind::SilentStream => return None,
                Kind::DuplicateDelivery => copies = 2,
                Kind::EventVanishes | Kind::SlowDecline => {}
            }
        }
        let errors = random.binomial(rest, error_rate);
        (events > 0).then_some(Cell {
            stream: place,
            flow: number,
            success: (rest - errors) * copies,
            errors,
            filtered,
        })
    }

    /// The events of a window as they are read so many windows after its end.
    pub(super) fn cells_read(&self, at: usize, age: usize) -> Cells {
        let mut cells = self.cells(at);
        let mut of_window = Random::of(&[self.world.seed, Purpose::Late as u64, at as u64]);
        let arrived = if of_window.below(100) == 0 {
            LATE_ARRIVED
        } else {
            ARRIVED
        };
        let Some(arrived) = arrived.get(age) else {
            return cells;
        };
        let name = [
            self.world.seed,
            Purpose::Late as u64,
            at as u64,
            age as u64 + 1,
        ];
        let mut random = Random::of(&name);
        let mut thin = |count: &mut u64| *count = random.binomial(*count, *arrived);
        cells.ingested.iter_mut().for_each(|(_, count)| thin(count));
        for cell in &mut cells.delivered {
            thin(&mut cell.success);
            thin(&mut cell.errors);
            cell.filtered.iter_mut().for_each(|(_, count)| thin(count));
        }
        cells
    }
}

/// The part of a stream that comes in at all.
fn remaining(incidents: &[&Incident], stream: &Stream, at: usize) -> f64 {
    let part = |incident: &&Incident| match incident.kind {
        // A silent integration does not reduce ingestion.
        Kind::SilentStream if incident.slice.integration.is_some() => 1.0,
        Kind::EventVanishes | Kind::SlowDecline | Kind::SilentStream
            if incident.slice.has_stream(stream) =>
        {
            1.0 - incident.size_at(at)
        }
        _ => 1.0,
    };
    incidents.iter().map(part).product()
}

fn usual_filters(random: &mut Random, flow: &Flow, events: u64) -> Vec<(&'static str, u64)> {
    let mut filtered = Vec::new();
    let all = random.binomial(events, flow.filtered);
    let rare = random.binomial(all, RARE);
    add(&mut filtered, REASONS[flow.reasons[0]], all - rare);
    add(&mut filtered, REASONS[flow.reasons[1]], rare);
    filtered
}

fn add(filtered: &mut Vec<(&'static str, u64)>, reason: &'static str, count: u64) {
    match filtered.iter_mut().find(|(own, _)| *own == reason) {
        Some((_, sum)) => *sum += count,
        None if count > 0 => filtered.push((reason, count)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incidents::world::{DAY, Scale, WEEK};

    const SMALL: Scale = Scale {
        streams: 20,
        history: 2,
        judged: 3,
        quiet: 1,
        incidents_a_week: 4,
    };

    fn traffic() -> Traffic {
        Traffic::new(World::new(3, SMALL))
    }

    /// The events that one incident of a kind changes: delivered, failed, filtered and taken in, with and without it.
    fn sums(kind: Kind) -> [[u64; 4]; 2] {
        let traffic = traffic();
        let found = traffic.planned.judged.iter().find(|one| one.kind == kind);
        let incident = found.unwrap().clone();
        let mut without = traffic.clone();
        without
            .planned
            .judged
            .retain(|one| one.start != incident.start);
        [&traffic, &without].map(|traffic| {
            let mut sums = [0; 4];
            for at in incident.start..incident.end {
                let cells = traffic.cells(at);
                for cell in &cells.delivered {
                    let stream = &traffic.world.streams[cell.stream];
                    if incident.slice.has(stream, &stream.flows[cell.flow]) {
                        sums[0] += cell.success;
                        sums[1] += cell.errors;
                        sums[2] += cell.filtered.iter().map(|(_, count)| count).sum::<u64>();
                    }
                }
                for (place, count) in &cells.ingested {
                    if incident.slice.has_stream(&traffic.world.streams[*place]) {
                        sums[3] += count;
                    }
                }
            }
            sums
        })
    }

    #[test]
    fn every_kind_does_what_it_says() {
        let [with, without] = sums(Kind::IntegrationFails);
        assert!(
            with[1] > 2 * without[1] && with[3] == without[3],
            "{with:?}"
        );
        let [with, without] = sums(Kind::ConsentFilter);
        assert!(with[2] > without[2] && with[3] == without[3], "{with:?}");
        let [with, without] = sums(Kind::NewReason);
        assert!(with[2] > without[2] && with[3] == without[3], "{with:?}");
        let [with, without] = sums(Kind::EventVanishes);
        assert!(with == [0; 4] && without[3] > 0, "{with:?}");
        let [with, without] = sums(Kind::SlowDecline);
        assert!(10 * with[3] < 9 * without[3], "{with:?} {without:?}");
        let [with, _] = sums(Kind::SilentStream);
        assert_eq!(with[..3], [0; 3]);
        let [with, without] = sums(Kind::DuplicateDelivery);
        assert_eq!(with[0], 2 * without[0]);
        assert_eq!(with[1..], without[1..]);
    }

    #[test]
    fn the_same_seed_gives_the_same_incidents_and_counts() {
        let [one, other] = [traffic(), traffic()];
        assert_eq!(format!("{:?}", one.planned), format!("{:?}", other.planned));
        assert_eq!(
            format!("{:?}", one.cells(700)),
            format!("{:?}", other.cells(700))
        );
        let third = Traffic::new(World::new(4, SMALL));
        assert_ne!(format!("{:?}", one.planned), format!("{:?}", third.planned));
    }

    #[test]
    fn incidents_lie_apart_and_quiet_weeks_have_none() {
        let planned = traffic().planned;
        assert_eq!(planned.judged.len(), 8);
        for pair in planned.judged.windows(2) {
            assert!(pair[0].end + DAY / 3 < pair[1].start);
        }
        let weeks = planned.judged.iter().map(|one| one.start / WEEK);
        let weeks: std::collections::BTreeSet<usize> = weeks.collect();
        assert_eq!(weeks.len(), 2);
        assert!(weeks.iter().all(|week| (2..5).contains(week)));
    }

    #[test]
    fn late_events_arrive_within_two_windows() {
        let traffic = traffic();
        let events = |age| -> u64 {
            let windows = 700..740;
            let cells = windows.flat_map(|at| traffic.cells_read(at, age).ingested);
            cells.map(|(_, count)| count).sum()
        };
        assert!(events(0) < events(1) && events(1) < events(2));
        assert_eq!(events(2), events(3));
    }
}
