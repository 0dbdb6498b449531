//! Which incidents were found, how soon and with which cause, and which alarms were false.

use super::alarm::{Alarm, Values};
use super::incident::{Incident, Kind, Slice};
use super::traffic::Traffic;
use super::vocabulary::{EVENT_NAMES, INTEGRATIONS, WRITE_KEYS};
use super::world::{Stream, WEEK, World};

/// How many windows after its end an incident may still be found, and how long alarms are told together.
pub(super) const TAIL: usize = 4;
/// How many causes are looked at.
const FIRST_CAUSES: usize = 3;

/// What became of an incident.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) incident: Incident,
    /// The alarms that are about it, in the order in which they fired.
    pub(super) alarms: Vec<Alarm>,
    /// The causes that were told with the first of them, most important first.
    pub(super) causes: Vec<Values>,
    /// The place of the right one, from 0.
    pub(super) right: Option<usize>,
}

impl Outcome {
    /// How many windows had passed when the first window was judged that made an alarm.
    pub(super) fn delay(&self) -> Option<usize> {
        let first = self.alarms.first()?;
        Some(first.first.saturating_sub(self.incident.start))
    }

    /// How many windows had passed when somebody was told: with the time until windows are settled.
    pub(super) fn told(&self) -> Option<usize> {
        let told = self.alarms.iter().map(|alarm| alarm.told).min()?;
        Some((told + 1).saturating_sub(self.incident.start))
    }

    pub(super) fn is_explained(&self) -> bool {
        self.right.is_some_and(|place| place < FIRST_CAUSES)
    }
}

/// The result for a seed.
#[derive(Clone, Debug)]
pub(super) struct Score {
    pub(super) seed: u64,
    pub(super) weeks: usize,
    pub(super) outcomes: Vec<Outcome>,
    /// Alarms that are about no incident; those that are told together are one.
    pub(super) false_alarms: Vec<Vec<Alarm>>,
}

impl Score {
    pub(super) fn new(traffic: &Traffic, alarms: Vec<Alarm>) -> Self {
        let world = &traffic.world;
        let judged = world.scale.history * WEEK;
        let alarms = alarms.into_iter().filter(|alarm| alarm.first >= judged);
        let incidents = &traffic.planned.judged;
        let mut about: Vec<Vec<Alarm>> = vec![Vec::new(); incidents.len()];
        let mut others = Vec::new();
        for alarm in alarms {
            match incidents.iter().position(|one| is_about(&alarm, one)) {
                Some(place) => about[place].push(alarm),
                None => others.push(alarm),
            }
        }
        let outcomes = incidents.iter().zip(about);
        Self {
            seed: world.seed,
            weeks: world.scale.judged,
            outcomes: outcomes
                .map(|(incident, alarms)| outcome(world, incident, alarms))
                .collect(),
            false_alarms: together(others),
        }
    }
}

/// Whether an alarm fired while an incident went on, or shortly after, and is about events that it happens to.
fn is_about(alarm: &Alarm, incident: &Incident) -> bool {
    let cause: Vec<_> = incident.cause().into_iter().collect();
    (incident.start..incident.end + TAIL).contains(&alarm.first) && alarm.may_be_about(&cause)
}

/// Alarms whose times touch are told together.
fn together(mut alarms: Vec<Alarm>) -> Vec<Vec<Alarm>> {
    alarms.sort_by_key(|alarm| alarm.first);
    let mut all: Vec<Vec<Alarm>> = Vec::new();
    for alarm in alarms {
        let last = all.last_mut().filter(|others| {
            let end = others.iter().map(|other| other.last).max();
            end.is_some_and(|end| alarm.first <= end + TAIL)
        });
        match last {
            Some(others) => others.push(alarm),
            None => all.push(vec![alarm]),
        }
    }
    all
}

fn outcome(world: &World, incident: &Incident, mut alarms: Vec<Alarm>) -> Outcome {
    alarms.sort_by_key(|alarm| alarm.first);
    let causes = told_causes(&alarms);
    let right = causes
        .iter()
        .position(|cause| is_right(world, incident, cause));
    Outcome {
        incident: incident.clone(),
        alarms,
        causes,
        right,
    }
}

/// The causes of the alarms that fired first: the most important of each, then the second of each, and so on.
fn told_causes(alarms: &[Alarm]) -> Vec<Values> {
    let first = alarms.first().map(|alarm| alarm.first);
    let first: Vec<&Alarm> = alarms
        .iter()
        .filter(|alarm| Some(alarm.first) == first)
        .collect();
    let most = first.iter().map(|alarm| alarm.causes.len()).max();
    let mut causes: Vec<Values> = Vec::new();
    for place in 0..most.unwrap_or_default() {
        for cause in first.iter().filter_map(|alarm| alarm.causes.get(place)) {
            if !causes.contains(cause) {
                causes.push(cause.clone());
            }
        }
    }
    causes
}

/// Whether a cause is that of an incident: the same streams and flows have its values, so an event name that only one
/// write key sends is the same with and without that write key. A new reason has to be named, and is enough; an everyday one
/// may be left out.
fn is_right(world: &World, incident: &Incident, cause: &[(String, String)]) -> bool {
    let named = |name: &str| cause.iter().find(|(own, _)| own == name);
    let reason = named("reason").map(|(_, value)| value.as_str());
    let is_same = reason.is_some() && reason == incident.reason;
    match incident.kind {
        Kind::NewReason if is_same && cause.len() == 1 => return true,
        Kind::NewReason if !is_same => return false,
        _ if reason.is_some() && !is_same => return false,
        _ => {}
    }
    let place = |name: &str, all: &[&str]| match named(name) {
        Some((_, value)) => all.iter().position(|one| one == value).map(Some),
        None => Some(None),
    };
    let slice = || {
        Some(Slice {
            write_key: place("write_key", &WRITE_KEYS)?,
            event_name: place("event_name", &EVENT_NAMES)?,
            integration: place("integration", &INTEGRATIONS)?,
        })
    };
    slice().is_some_and(|slice| has_the_same(world, slice, incident.slice))
}

fn has_the_same(world: &World, one: Slice, other: Slice) -> bool {
    let agrees = |stream: &Stream| {
        let mut flows = stream.flows.iter();
        flows.all(|flow| one.has(stream, flow) == other.has(stream, flow))
    };
    world.streams.iter().all(agrees)
}
