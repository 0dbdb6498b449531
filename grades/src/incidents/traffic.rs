//! The events of each window, their outcomes, and how many of them are counted when the window is read.

use super::change::{Change, Effect};
use super::names::REASONS;
use super::plan::plan;
use super::random::Random;
use super::world::{Flow, Purpose, World};

/// The share of filtered events that have the rare reason of their flow.
pub(super) const RARE: f64 = 0.1;
/// A window settles this many windows after its end, which is the usual hour.
pub(super) const SETTLED: usize = 4;
/// The share of the missing events that arrives before the end of their window, and in each window after it until the
/// window settles.
const ARRIVING: [f64; SETTLED] = [0.96, 0.6, 0.6, 0.6];
/// The share of events that usually arrives after that, so that no rule sees it.
const LATER: f64 = 0.002;

/// The events of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cells {
    /// The ingested events, by stream.
    pub(super) ingested: Vec<(usize, u64)>,
    /// The outcomes of these events, by stream and flow.
    pub(super) delivered: Vec<Cell>,
}

/// The outcomes of the events of one stream at one integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) stream: usize,
    pub(super) flow: usize,
    pub(super) success: u64,
    pub(super) errors: u64,
    /// By reason.
    pub(super) filtered: Vec<(&'static str, u64)>,
}

/// The traffic with all of its changes.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) world: World,
    pub(super) changes: Vec<Change>,
}

impl Traffic {
    pub(super) fn new(world: World) -> Self {
        let changes = plan(&world);
        Self { world, changes }
    }

    /// The events of a window once all have arrived.
    pub(super) fn cells(&self, at: usize) -> Cells {
        let acting: Vec<&Change> = self.changes.iter().filter(|one| one.acts(at)).collect();
        let mut cells = Cells::default();
        for (place, stream) in self.world.streams.iter().enumerate() {
            let own = acting.iter().copied();
            let own: Vec<&Change> = own.filter(|one| one.slice.has_stream(stream)).collect();
            let of_all = own.iter().filter(|one| one.slice.integration.is_none());
            let factor: f64 = of_all.map(|one| one.volume(at)).product();
            let mean = self.world.noisy(place, at) * factor;
            let mut random = self.random(Purpose::Events, at, place, 0);
            let events = random.negative_binomial(mean, stream.shape);
            if events == 0 {
                continue;
            }
            cells.ingested.push((place, events));
            for (number, flow) in stream.flows.iter().enumerate() {
                let mut random = self.random(Purpose::Fates, at, place, number);
                let own = own.iter().copied();
                let own: Vec<&Change> = own.filter(|one| one.slice.has(stream, flow)).collect();
                let fate = self.fate(&mut random, flow, &own, at, events);
                let is_any = fate.success + fate.errors + fate.sum() > 0;
                cells.delivered.extend(is_any.then_some(Cell {
                    stream: place,
                    flow: number,
                    ..fate
                }));
            }
        }
        cells
    }

    /// Draws the outcomes of some events at an integration. The usual losses are drawn before the effects of changes, so
    /// only a change of the volume affects them.
    fn fate(
        &self,
        random: &mut Random,
        flow: &Flow,
        changes: &[&Change],
        at: usize,
        events: u64,
    ) -> Cell {
        let of_pair = changes.iter().filter(|one| one.slice.integration.is_some());
        let factor: f64 = of_pair.map(|one| one.volume(at)).product();
        let events = match factor {
            1.0 => events,
            _ => random.binomial(events, factor.min(1.0)),
        };
        let mut filtered = Vec::new();
        let all = random.binomial(events, flow.filtered);
        let rare = random.binomial(all, RARE);
        add(&mut filtered, REASONS[flow.reasons[0]], all - rare);
        add(&mut filtered, REASONS[flow.reasons[1]], rare);
        let rate = self.world.error_rate(flow.integration, at).min(1.0);
        let mut errors = random.binomial(events - all, rate);
        let mut success = events - all - errors;
        for change in changes {
            match change.effect {
                Effect::Fails(share) => {
                    let failed = random.binomial(success, share);
                    (success, errors) = (success - failed, errors + failed);
                }
                Effect::MoreErrors(factor) => {
                    let more = ((factor - 1.0) * rate / (1.0 - rate)).min(1.0);
                    let failed = random.binomial(success, more);
                    (success, errors) = (success - failed, errors + failed);
                }
                Effect::Filtered(reason, share) => {
                    let taken = [&mut success, &mut errors].map(|count| {
                        let taken = random.binomial(*count, share);
                        *count -= taken;
                        taken
                    });
                    add(&mut filtered, reason, taken.iter().sum());
                }
                Effect::Copies(copies) => (success, errors) = (success * copies, errors * copies),
                Effect::Volume { .. } | Effect::Moved | Effect::Late(_) => {}
            }
        }
        Cell { stream: 0, flow: 0, success, errors, filtered }
    }

    /// The events of a window as they are read `age` windows after its end. The counts no longer change after [`SETTLED`]
    /// windows; events that arrive later are never read.
    pub(super) fn read(&self, at: usize, age: usize) -> Cells {
        let mut cells = self.cells(at);
        let late = self.changes.iter().filter(|one| one.is_on(at));
        let late = late.filter_map(|one| match one.effect {
            Effect::Late(share) => Some((one.slice, share)),
            _ => None,
        });
        let late: Vec<_> = late.collect();
        let share = |place: usize| {
            let stream = &self.world.streams[place];
            let own = late.iter().filter(|(slice, _)| slice.has_stream(stream));
            own.fold(LATER, |most, (_, share)| most.max(*share))
        };
        for (place, count) in &mut cells.ingested {
            let mut random = self.random(Purpose::Late, at, *place, 0);
            *count = arrived(random.part(), *count, share(*place), age);
        }
        for cell in &mut cells.delivered {
            let mut random = self.random(Purpose::Late, at, cell.stream, 1 + cell.flow);
            let share = share(cell.stream);
            let filtered = cell.filtered.iter_mut().map(|(_, count)| count);
            for count in [&mut cell.success, &mut cell.errors].into_iter().chain(filtered) {
                *count = arrived(random.part(), *count, share, age);
            }
        }
        cells
    }

    fn random(&self, purpose: Purpose, at: usize, stream: usize, flow: usize) -> Random {
        let seed = self.world.seed;
        Random::of(&[seed, purpose as u64, at as u64, stream as u64, flow as u64])
    }
}

/// How many of `count` events have arrived `age` windows after the end of their window. The random numbers do not depend
/// on the age, so the result never decreases with it.
fn arrived(mut random: Random, count: u64, later: f64, age: usize) -> u64 {
    let mut missing = count - random.binomial(count, later);
    let mut arrived = 0;
    if age >= SETTLED {
        return missing;
    }
    for share in &ARRIVING[..=age] {
        let now = random.binomial(missing, *share);
        (missing, arrived) = (missing - now, arrived + now);
    }
    arrived
}

fn add(filtered: &mut Vec<(&'static str, u64)>, reason: &'static str, count: u64) {
    match filtered.iter_mut().find(|(own, _)| *own == reason) {
        Some((_, sum)) => *sum += count,
        None if count > 0 => filtered.push((reason, count)),
        None => {}
    }
}

impl Cell {
    /// All filtered events.
    pub(super) fn sum(&self) -> u64 {
        self.filtered.iter().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incidents::change::{Incident, Kind, Life};
    use crate::incidents::world::{Scale, Setting};

    const SMALL: Scale = Scale { history: 1, judged: 4, incidents: 20 };

    fn traffic() -> Traffic {
        Traffic::new(World::new(5, Setting::Full, SMALL))
    }

    /// The same traffic without one change, and this change.
    fn without(traffic: &Traffic, kind: Kind) -> (Traffic, Change) {
        let mut changes = traffic.changes.iter();
        let change = changes.find(|one| one.kind == kind).unwrap().clone();
        let mut without = traffic.clone();
        without.changes.retain(|one| *one != change);
        (without, change)
    }

    /// Delivered, failed, filtered and ingested events in a change's slice, with the change and without it. Fails if the
    /// change affects any other event.
    fn sums(kind: Kind) -> ([[u64; 4]; 2], Change) {
        let traffic = traffic();
        let (without, change) = without(&traffic, kind);
        let begin = match kind {
            Kind::Life(Life::RetiredName | Life::RetiredPair) => change.start,
            _ => change.start.saturating_sub(8),
        };
        let mut outside = Vec::new();
        let sums = [&traffic, &without].map(|traffic| {
            let mut sums = [[0; 4]; 2];
            for at in begin..(change.end + 8).min(SMALL.windows()) {
                let cells = traffic.cells(at);
                for cell in &cells.delivered {
                    let stream = &traffic.world.streams[cell.stream];
                    let is_in = change.slice.has(stream, &stream.flows[cell.flow])
                        && (change.is_on(at) || change.is_for_good());
                    let own = &mut sums[usize::from(!is_in)];
                    let counts = [cell.success, cell.errors, cell.sum()];
                    own.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                }
                for (place, count) in &cells.ingested {
                    let is_in = change.slice.has_stream(&traffic.world.streams[*place])
                        && (change.is_on(at) || change.is_for_good());
                    sums[usize::from(!is_in)][3] += count;
                }
            }
            outside.push(sums[1]);
            sums[0]
        });
        assert_eq!(outside[0], outside[1], "{kind:?}");
        (sums, change)
    }

    #[test]
    fn every_incident_does_what_it_says_and_nothing_else() {
        for incident in Incident::ALL {
            let ([with, usual], change) = sums(Kind::Incident(incident));
            let shown = format!("{incident:?}: {with:?} {usual:?}");
            let is_near = |found: f64, wanted: f64| (found - wanted).abs() < 0.15 * wanted;
            let [success, errors, filtered, ingested] = [0, 1, 2, 3].map(|one| with[one] as f64);
            let [success_usual, errors_usual, filtered_usual, _] =
                [0, 1, 2, 3].map(|one| usual[one] as f64);
            match change.effect {
                Effect::Fails(share) => {
                    assert_eq!(with[0] + with[1], usual[0] + usual[1], "{shown}");
                    assert_eq!(with[2..], usual[2..], "{shown}");
                    assert!(is_near(errors - errors_usual, share * success_usual), "{shown}");
                }
                Effect::MoreErrors(factor) => {
                    assert_eq!(with[0] + with[1], usual[0] + usual[1], "{shown}");
                    assert!(is_near(errors, factor * errors_usual), "{shown}");
                }
                Effect::Filtered(_, share) => {
                    assert_eq!(with[..3].iter().sum::<u64>(), usual[..3].iter().sum::<u64>());
                    let attempts = success_usual + errors_usual;
                    assert!(is_near(filtered - filtered_usual, share * attempts), "{shown}");
                }
                Effect::Copies(copies) => {
                    assert_eq!(with[..2], [usual[0] * copies, usual[1] * copies], "{shown}");
                    assert_eq!(with[2..], usual[2..], "{shown}");
                }
                Effect::Volume { now: 0.0, .. } => {
                    assert_eq!(with[..3], [0; 3], "{shown}");
                    let is_taken_in = change.slice.integration.is_some();
                    assert_eq!(ingested > 0.0, is_taken_in, "{shown}");
                }
                _ => assert!(success < 0.8 * success_usual && ingested > 0.0, "{shown}"),
            }
        }
    }

    #[test]
    fn every_kind_of_life_changes_what_it_names() {
        for life in Life::ALL {
            if matches!(life, Life::ClockChange | Life::LateBatch | Life::LateData) {
                continue;
            }
            let ([with, usual], _) = sums(Kind::Life(life));
            let shown = format!("{life:?}: {with:?} {usual:?}");
            let is_more = with[0] > usual[0];
            match life {
                Life::Outage | Life::RetiredName => {
                    assert_eq!([with[0], with[3]], [0; 2], "{shown}")
                }
                Life::RetiredPair => assert!(with[0] < usual[0], "{shown}"),
                // Without the change, the name or the pair exists all the time.
                Life::NewName | Life::NewPair | Life::Holiday => assert!(!is_more, "{shown}"),
                _ => assert!(is_more, "{shown}"),
            }
        }
    }

    #[test]
    fn late_events_add_up() {
        let traffic = traffic();
        let late = traffic.changes.iter().find(|one| one.life() == Some(Life::LateData));
        let late = late.unwrap();
        let all = |cells: &Cells| -> u64 {
            let delivered = cells.delivered.iter();
            let delivered = delivered.map(|cell| cell.success + cell.errors + cell.sum());
            let ingested = cells.ingested.iter().map(|(_, count)| count);
            delivered.sum::<u64>() + ingested.sum::<u64>()
        };
        for at in [700, 701, late.start] {
            let events: Vec<u64> = (0..=SETTLED).map(|age| all(&traffic.read(at, age))).collect();
            assert!(events.windows(2).all(|two| two[0] < two[1]), "{events:?}");
            assert_eq!(traffic.read(at, SETTLED), traffic.read(at, SETTLED + 5));
            let missing = all(&traffic.cells(at)) - events[SETTLED];
            assert!(missing > 0 && missing < all(&traffic.cells(at)) / 10);
        }
        let Effect::Late(share) = late.effect else { unreachable!("it is late data") };
        let of_source = |cells: &Cells| -> u64 {
            let streams = &traffic.world.streams;
            let own = cells.ingested.iter();
            let own = own.filter(|(place, _)| late.slice.has_stream(&streams[*place]));
            own.map(|(_, count)| count).sum()
        };
        let windows = || late.start..late.end;
        let read: u64 = windows().map(|at| of_source(&traffic.read(at, SETTLED))).sum();
        let sent: u64 = windows().map(|at| of_source(&traffic.cells(at))).sum();
        let found = 1.0 - read as f64 / sent as f64;
        assert!((found - share).abs() < 0.05, "{found} {share}");
    }

    #[test]
    fn the_same_seed_gives_the_same_counts() {
        let [one, other] = [traffic(), traffic()];
        assert_eq!(one.changes, other.changes);
        assert_eq!(format!("{:?}", one.read(900, 2)), format!("{:?}", other.read(900, 2)));
        let third = Traffic::new(World::new(6, Setting::Full, SMALL));
        assert_ne!(one.changes, third.changes);
    }
}
