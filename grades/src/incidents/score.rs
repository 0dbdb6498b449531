//! Which incidents were found, how soon and with which cause, and which alarms were false.

use super::alarm::{Alarm, Values};
use super::incident::{Incident, Kind, Slice};
use super::traffic::Traffic;
use super::vocabulary::{EVENT_NAMES, INTEGRATIONS, WRITE_KEYS};
use super::world::{Stream, WEEK, World};

/// How many windows after its end an incident may still be found. Alarms that are this close count as one.
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
    /// How many windows of the incident had passed before the first window that raised an alarm.
    pub(super) fn delay(&self) -> Option<usize> {
        let first = self.alarms.first()?;
        Some(first.first.saturating_sub(self.incident.start))
    }

    /// How many windows had passed when the alarm was sent, which includes the time until windows are settled.
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
    /// Alarms that are not about an incident. Alarms at about the same time count as one.
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

/// Whether an alarm fired during an incident or shortly after it, and is about events that the incident affects.
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

/// The causes of the alarms that fired first, in the order in which they are told.
fn told_causes(alarms: &[Alarm]) -> Vec<Values> {
    let start = alarms.first().map(|alarm| alarm.first);
    let first = alarms.iter().filter(|alarm| Some(alarm.first) == start);
    let mut causes: Vec<Values> = Vec::new();
    for cause in first.flat_map(|alarm| &alarm.causes) {
        if !causes.contains(cause) {
            causes.push(cause.clone());
        }
    }
    causes
}

/// Whether a cause is that of an incident: its values select the same streams and flows. So an event name that only one
/// write key sends is the same cause with and without that write key. A new reason has to be named, and is sufficient;
/// a usual reason may be left out.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incidents::world::Scale;

    const SMALL: Scale = Scale {
        streams: 20,
        history: 1,
        judged: 1,
        quiet: 0,
        incidents_a_week: 4,
    };

    fn traffic() -> Traffic {
        Traffic::new(World::new(3, SMALL))
    }

    fn values(pairs: &[(&str, &str)]) -> Values {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn alarm(group: &[(&str, &str)], first: usize, last: usize) -> Alarm {
        Alarm {
            rule: "r".to_owned(),
            group: values(group),
            causes: vec![values(group)],
            first,
            last,
            told: last + 2,
            sentence: String::new(),
        }
    }

    /// An integration that fails, at one write key that has another integration too.
    fn failing(traffic: &Traffic) -> Incident {
        let stream = &traffic.world.streams[0];
        Incident {
            kind: Kind::IntegrationFails,
            slice: Slice {
                write_key: Some(stream.write_key),
                event_name: None,
                integration: Some(stream.flows[0].integration),
            },
            reason: None,
            size: 0.5,
            start: 1_000,
            end: 1_010,
        }
    }

    #[test]
    fn an_alarm_is_about_what_goes_on_then_and_there() {
        let mut traffic = traffic();
        let incident = failing(&traffic);
        traffic.planned.judged = vec![incident.clone()];
        let integration = INTEGRATIONS[incident.slice.integration.unwrap()];
        let group: &[(&str, &str)] = &[("integration", integration)];
        let found = |group: &[(&str, &str)], first: usize| {
            let score = Score::new(&traffic, vec![alarm(group, first, first + 1)]);
            assert_eq!(
                score.false_alarms.len(),
                usize::from(score.outcomes[0].alarms.is_empty())
            );
            score.outcomes[0].delay()
        };
        assert_eq!(found(group, 1_002), Some(2));
        assert_eq!(found(&[], 1_013), Some(13));
        assert_eq!(found(group, 999), None);
        assert_eq!(found(group, 1_014), None);
        assert_eq!(found(&[("integration", "another")], 1_002), None);
        assert_eq!(found(&[("event_name", "any")], 1_002), Some(2));
    }

    #[test]
    fn false_alarms_that_touch_are_told_together() {
        let group: &[(&str, &str)] = &[("integration", "another")];
        let alarms = [(900, 905), (909, 920), (925, 926), (1_200, 1_201)];
        let alarms = alarms.map(|(first, last)| alarm(group, first, last));
        let lengths =
            |alarms: Vec<Vec<Alarm>>| -> Vec<usize> { alarms.iter().map(Vec::len).collect() };
        assert_eq!(lengths(together(alarms.to_vec())), [2, 1, 1]);
    }

    #[test]
    fn a_cause_is_right_if_it_is_the_same_events() {
        let traffic = traffic();
        let world = &traffic.world;
        let mut incident = failing(&traffic);
        let cause: Vec<(&str, &str)> = incident.cause().into_iter().collect();
        let is =
            |incident: &Incident, cause: &[(&str, &str)]| is_right(world, incident, &values(cause));
        assert!(is(&incident, &cause));
        assert!(!is(&incident, &cause[..1]) && !is(&incident, &[]));
        // Everything that has one of its event names is only a part of it.
        let part = [
            &cause[..],
            &[("event_name", EVENT_NAMES[world.streams[0].event_name])],
        ]
        .concat();
        assert!(!is(&incident, &part));
        assert!(!is(&incident, &[&cause[..], &[("reason", "a")]].concat()));
        incident.reason = Some("a");
        incident.kind = Kind::ConsentFilter;
        assert!(is(&incident, &cause) && is(&incident, &[&cause[..], &[("reason", "a")]].concat()));
        assert!(!is(&incident, &[("reason", "a")]));
        incident.kind = Kind::NewReason;
        assert!(is(&incident, &[("reason", "a")]) && !is(&incident, &cause));
        assert!(!is(&incident, &[("reason", "b")]));
    }

    #[test]
    fn the_causes_of_what_fired_first_are_told() {
        let causes = |names: &[&str]| {
            let names = names.iter();
            names.map(|name| values(&[("event_name", name)])).collect()
        };
        let mut alarms = [alarm(&[], 5, 6), alarm(&[], 5, 7), alarm(&[], 6, 7)];
        let told = [&["a", "b"][..], &["c", "a"], &["d"]];
        for (alarm, names) in alarms.iter_mut().zip(told) {
            alarm.causes = causes(names);
        }
        let wanted: Vec<Values> = causes(&["a", "b", "c"]);
        assert_eq!(told_causes(&alarms), wanted);
    }
}
