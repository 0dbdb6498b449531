//! Draws incidents of every kind and size, and weeks without any.

use super::incident::{Incident, Kind, Slice};
use super::random::Random;
use super::vocabulary::{NEW_REASONS, REASONS};
use super::world::{DAY, Purpose, WEEK, World};

/// An incident affects at least this many events a window on average. Smaller ones are not worth an alert.
pub(super) const LEAST_AFFECTED: f64 = 25.0;

/// Weeks of history with an incident that is not graded, but is part of what baselines learn from.
const PAST_INCIDENTS: usize = 6;

/// The incidents that are judged and those before, each in order of time.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) past: Vec<Incident>,
    pub(super) judged: Vec<Incident>,
}

impl Planned {
    pub(super) fn new(world: &World) -> Self {
        let mut random = Random::of(&[world.seed, Purpose::Plan as u64]);
        let scale = world.scale;
        let mut weeks: Vec<usize> = (0..scale.judged).collect();
        shuffle(&mut random, &mut weeks);
        let mut weeks = weeks.split_off(scale.quiet);
        weeks.sort_unstable();
        let count = weeks.len() * scale.incidents_a_week;
        let mut kinds: Vec<Kind> = Kind::ALL.into_iter().cycle().take(count).collect();
        shuffle(&mut random, &mut kinds);
        let room = WEEK / scale.incidents_a_week;
        let places = weeks.iter().flat_map(|week| {
            let start = (scale.history + week) * WEEK;
            (0..scale.incidents_a_week).map(move |place| start + place * room)
        });
        let mut reasons = NEW_REASONS.into_iter();
        let mut draw = |start: usize, room: usize, kind: Kind| {
            let incident = drawn(&mut random, world, kind, start, room);
            Incident {
                reason: match kind {
                    Kind::ConsentFilter => Some(REASONS[0]),
                    // Another one for each, so that it is new.
                    Kind::NewReason => reasons.next(),
                    _ => None,
                },
                ..incident
            }
        };
        let past = (0..PAST_INCIDENTS.min(scale.history)).map(|week| {
            let kind = Kind::ALL[week % Kind::ALL.len()];
            draw(week * WEEK, WEEK, kind)
        });
        Self {
            past: past.collect(),
            judged: places
                .zip(&kinds)
                .map(|(start, kind)| draw(start, room, *kind))
                .collect(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Incident> {
        self.past.iter().chain(&self.judged)
    }
}

/// An incident that lies in a room of time, with two hours before and eight after it.
fn drawn(random: &mut Random, world: &World, kind: Kind, start: usize, room: usize) -> Incident {
    loop {
        let length = length(random, kind);
        let begin = start + random.between(8, room - length - 32);
        let incident = Incident {
            kind,
            slice: slice(random, world, kind),
            reason: None,
            size: size(random, kind),
            start: begin,
            end: begin + length,
        };
        if incident.affected(world) >= LEAST_AFFECTED {
            return incident;
        }
    }
}

/// How many windows it lasts.
fn length(random: &mut Random, kind: Kind) -> usize {
    let (least, most) = match kind {
        Kind::IntegrationFails | Kind::SilentStream | Kind::DuplicateDelivery => (3.0, 24.0),
        Kind::ConsentFilter | Kind::EventVanishes => (8.0, 48.0),
        Kind::NewReason => (4.0, 48.0),
        Kind::SlowDecline => return DAY,
    };
    libm::round(random.log_between(least, most)) as usize
}

/// The share of events that it affects.
fn size(random: &mut Random, kind: Kind) -> f64 {
    match kind {
        Kind::IntegrationFails => random.log_between(0.03, 0.95),
        Kind::ConsentFilter => random.log_between(0.05, 0.95),
        Kind::SlowDecline => random.log_between(0.35, 0.8),
        Kind::NewReason => random.log_between(0.01, 0.3),
        Kind::EventVanishes | Kind::SilentStream | Kind::DuplicateDelivery => 1.0,
    }
}

/// What the incident affects. For some kinds, it is only the events of one write key in one of three cases.
fn slice(random: &mut Random, world: &World, kind: Kind) -> Slice {
    let stream = &world.streams[random.below(world.streams.len())];
    let flow = &stream.flows[random.below(stream.flows.len())];
    let write_key = Some(stream.write_key);
    let event_name = Some(stream.event_name);
    let integration = Some(flow.integration);
    let one_write_key = (random.below(3) == 0).then_some(stream.write_key);
    let of_integration = Slice {
        write_key: one_write_key,
        integration,
        ..Slice::default()
    };
    let of_write_key = Slice {
        write_key,
        ..Slice::default()
    };
    match kind {
        Kind::IntegrationFails | Kind::DuplicateDelivery => of_integration,
        Kind::ConsentFilter | Kind::SlowDecline => of_write_key,
        Kind::EventVanishes => Slice {
            write_key: one_write_key,
            event_name,
            integration: None,
        },
        Kind::NewReason if one_write_key.is_some() => of_write_key,
        Kind::NewReason => of_integration,
        Kind::SilentStream if one_write_key.is_some() => Slice {
            integration,
            ..Slice::default()
        },
        Kind::SilentStream => of_write_key,
    }
}

fn shuffle<T>(random: &mut Random, all: &mut [T]) {
    for end in (1..all.len()).rev() {
        all.swap(end, random.below(end + 1));
    }
}
