//! Draws the changes: incidents of each kind, and the life of the setting.

use super::change::{Change, DECLINE, Effect, Incident, Kind, Life, NEWS, Slice};
use super::clock::{DAY, HOUR, WEEK, Zone};
use super::names::{INTEGRATIONS, NEW_REASONS, REASONS, SOURCES, Users};
use super::random::Random;
use super::world::{BATCH, NIGHTLY, Pattern, Purpose, STEADY_ERRORS, Setting, Size, Stream, World};

/// The minimum mean number of events per window that an incident affects. At night, it may affect none.
const LEAST_AFFECTED: f64 = 8.0;
/// The minimum mean number of attempts per window of a pair, and of events per window of a stream that vanishes.
const LEAST_OF_PAIR: f64 = 40.0;
/// Windows between two changes that name the same source or the same integration.
const APART: usize = DAY / 2;
/// The number of weeks to which the next numbers apply.
const QUARTER: usize = 13;
/// How often each kind of life occurs in these weeks: in both settings, and only in the full setting.
const ALWAYS: [(Life, usize); 1] = [(Life::LateData, 5)];
const OFTEN: [(Life, usize); 8] = [
    (Life::Outage, 7),
    (Life::Burst, 10),
    (Life::Campaign, 8),
    (Life::Launch, 4),
    (Life::NewName, 4),
    (Life::RetiredName, 4),
    (Life::NewPair, 3),
    (Life::RetiredPair, 3),
];

/// All changes, in time order. Incidents before the first judged window are not graded, but baselines learn from them.
pub(super) fn plan(world: &World) -> Vec<Change> {
    let mut drawing =
        Drawing { world, random: Random::of(&[world.seed, Purpose::Plan as u64]), all: Vec::new() };
    drawing.incidents();
    drawing.life();
    let mut all = drawing.all;
    all.extend(holidays(world));
    all.extend(clock_changes(world));
    all.extend(late_batches(world));
    all.sort_by_key(|change| (change.start, change.end));
    all
}

struct Drawing<'w> {
    world: &'w World,
    random: Random,
    all: Vec<Change>,
}

impl Drawing<'_> {
    /// Draws one incident for each week before the judged weeks, except the last, and then as many of each kind as the
    /// scale sets, if there is space for them. One incident in four begins while another one lasts.
    fn incidents(&mut self) {
        let scale = self.world.scale;
        for week in 0..scale.history.saturating_sub(1) {
            let kind = Incident::ALL[self.random.below(Incident::ALL.len())];
            self.add(|drawing| drawing.incident(kind, week * WEEK..(week + 1) * WEEK));
        }
        let past = self.all.len();
        let kinds = Incident::ALL.into_iter().cycle();
        let mut kinds: Vec<Incident> = kinds.take(scale.incidents).collect();
        self.random.shuffle(&mut kinds);
        for (number, kind) in kinds.into_iter().enumerate() {
            self.add(|drawing| {
                let range = match number % 4 {
                    3 => {
                        let judged = drawing.all.len() - past;
                        let other = &drawing.all[past + drawing.random.below(judged)];
                        other.start..other.end
                    }
                    _ => scale.first()..scale.windows(),
                };
                drawing.incident(kind, range)
            });
        }
    }

    fn life(&mut self) {
        let scale = self.world.scale;
        let weeks = scale.history + scale.judged;
        let often = match self.world.setting {
            Setting::Full => &OFTEN[..],
            Setting::Calm => &[],
        };
        for (life, count) in ALWAYS.iter().chain(often) {
            for _ in 0..(count * weeks).div_ceil(QUARTER) {
                self.add(|drawing| drawing.event(*life));
            }
        }
    }

    /// Draws until a change fits, but at most 2,000 times.
    fn add(&mut self, draw: impl Fn(&mut Self) -> Option<Change>) {
        for _ in 0..2_000 {
            let drawn = draw(self);
            let fits = |change: &Change| {
                change.end <= self.world.scale.windows() + NEWS
                    && !self.all.iter().any(|other| collide(change, other))
            };
            if let Some(change) = drawn.filter(fits) {
                self.all.push(change);
                return;
            }
        }
    }

    /// Draws an incident that begins in a range. Returns `None` if it does not end in the simulation, or affects too few
    /// events.
    fn incident(&mut self, kind: Incident, begins: std::ops::Range<usize>) -> Option<Change> {
        let start = self.random.between(begins.start, begins.end - 1);
        let length = self.length(kind);
        let is_in_pair = self.random.below(3) == 0;
        let slice = match kind {
            Incident::IntegrationFails | Incident::IntegrationSilent => {
                self.integration(&[Size::Large, Size::Medium])
            }
            Incident::SmallFails => self.integration(&[Size::Small]),
            Incident::ErrorsDouble => self.steady(),
            Incident::PartFails => self.pair(),
            Incident::DeliveredTwice if is_in_pair => self.pair(),
            Incident::NewReason if is_in_pair => self.source(),
            Incident::DeliveredTwice | Incident::NewReason => {
                self.integration(&[Size::Large, Size::Medium])
            }
            Incident::SlowDecline | Incident::ConsentFilter => self.source(),
            Incident::EventVanishes => self.stream(|stream| stream.mean >= LEAST_OF_PAIR)?,
        };
        let effect = self.effect(kind);
        let change =
            Change { kind: Kind::Incident(kind), slice, effect, start, end: start + length };
        let is_large = self.affected(&change) >= LEAST_AFFECTED;
        (is_large && change.end <= self.world.scale.windows()).then_some(change)
    }

    fn effect(&mut self, kind: Incident) -> Effect {
        let is_new = |change: &&Change| change.incident() == Some(Incident::NewReason);
        // Each incident has another reason, so that the reason is new.
        let reason = NEW_REASONS[self.all.iter().filter(is_new).count() % NEW_REASONS.len()];
        let random = &mut self.random;
        match kind {
            Incident::IntegrationFails => Effect::Fails(random.log_between(0.2, 1.0)),
            Incident::SmallFails => Effect::Fails(random.log_between(0.5, 1.0)),
            Incident::PartFails => Effect::Fails(0.3),
            Incident::ErrorsDouble => Effect::MoreErrors(2.0),
            Incident::DeliveredTwice => Effect::Copies(2),
            Incident::SlowDecline => Effect::Volume { before: 1.0, now: 0.5 },
            Incident::ConsentFilter => Effect::Filtered(REASONS[0], random.log_between(0.08, 0.8)),
            Incident::NewReason => Effect::Filtered(reason, random.log_between(0.03, 0.3)),
            Incident::EventVanishes | Incident::IntegrationSilent => {
                Effect::Volume { before: 1.0, now: 0.0 }
            }
        }
    }

    fn length(&mut self, kind: Incident) -> usize {
        let (least, most) = match kind {
            Incident::IntegrationFails | Incident::IntegrationSilent => (4.0, 32.0),
            Incident::SmallFails | Incident::PartFails | Incident::DeliveredTwice => (8.0, 48.0),
            Incident::ConsentFilter | Incident::NewReason => (8.0, 48.0),
            Incident::ErrorsDouble | Incident::EventVanishes => (16.0, 96.0),
            Incident::SlowDecline => return DECLINE + self.random.below(DAY / 2),
        };
        libm::round(self.random.log_between(least, most)) as usize
    }

    /// Draws something that happens besides incidents.
    fn event(&mut self, life: Life) -> Option<Change> {
        let windows = self.world.scale.windows();
        let random = &mut self.random;
        let start = random.below(windows);
        let length = match life {
            Life::Outage => random.between(2, 16),
            Life::Burst => random.between(2, 12),
            Life::Campaign => random.between(4 * HOUR, 36 * HOUR),
            Life::LateData => random.between(HOUR, 4 * HOUR),
            _ => NEWS,
        };
        let volume = |now: f64| Effect::Volume { before: 1.0, now };
        let effect = match life {
            Life::Outage | Life::RetiredName | Life::RetiredPair => volume(0.0),
            Life::Burst => volume(random.log_between(1.8, 5.0)),
            Life::Campaign => volume(random.log_between(1.8, 6.0)),
            Life::Launch => volume(random.log_between(1.3, 2.5)),
            Life::NewName | Life::NewPair => Effect::Volume { before: 0.0, now: 1.0 },
            Life::LateData => Effect::Late(0.05 + 0.25 * random.unit()),
            Life::ClockChange | Life::Holiday | Life::LateBatch => Effect::Moved,
        };
        let slice = match life {
            Life::Campaign | Life::NewName | Life::RetiredName => {
                self.stream(|stream| stream.pattern == Pattern::Steady && stream.mean >= 20.0)?
            }
            Life::Launch if self.random.below(2) == 0 => {
                self.stream(|stream| stream.pattern == Pattern::Steady)?
            }
            Life::NewPair | Life::RetiredPair => self.pair(),
            _ => self.source(),
        };
        Some(Change { kind: Kind::Life(life), slice, effect, start, end: start + length })
    }

    fn source(&mut self) -> Slice {
        Slice { source: Some(self.random.below(SOURCES.len())), ..Slice::default() }
    }

    fn integration(&mut self, sizes: &[Size]) -> Slice {
        loop {
            let integration = self.random.below(INTEGRATIONS.len());
            if sizes.contains(&Size::of(integration)) {
                return Slice { integration: Some(integration), ..Slice::default() };
            }
        }
    }

    /// A large integration that usually has 2% errors.
    fn steady(&mut self) -> Slice {
        loop {
            let slice = self.integration(&[Size::Large]);
            let rate = slice.integration.map(|own| self.world.error_rates[own]);
            if rate == Some(STEADY_ERRORS) {
                return slice;
            }
        }
    }

    /// A source and an integration with enough events between them.
    fn pair(&mut self) -> Slice {
        loop {
            let slice = Slice {
                source: Some(self.random.below(SOURCES.len())),
                integration: Some(self.random.below(INTEGRATIONS.len())),
                event_name: None,
            };
            let flows = self.world.flows();
            let own = flows.filter(|(stream, flow)| slice.has(stream, flow));
            let attempts = own.map(|(stream, flow)| stream.mean * (1.0 - flow.filtered));
            if attempts.sum::<f64>() >= LEAST_OF_PAIR {
                return slice;
            }
        }
    }

    /// An event name of one source.
    fn stream(&mut self, is_wanted: impl Fn(&Stream) -> bool) -> Option<Slice> {
        let streams = &self.world.streams;
        let stream = &streams[self.random.below(streams.len())];
        let slice = Slice {
            source: Some(stream.source),
            event_name: Some(stream.event_name),
            integration: None,
        };
        is_wanted(stream).then_some(slice)
    }

    /// How many events an incident affects in one of its windows, on average.
    fn affected(&self, change: &Change) -> f64 {
        let share = match change.effect {
            Effect::Fails(share) | Effect::Filtered(_, share) => share,
            Effect::MoreErrors(_) => STEADY_ERRORS,
            _ => 1.0,
        };
        let mut events = 0.0;
        for (place, stream) in self.world.streams.iter().enumerate() {
            let flows = stream.flows.iter();
            let flows = flows.filter(|flow| change.slice.has(stream, flow)).count();
            if flows > 0 {
                let all = (change.start..change.end.min(self.world.scale.windows()))
                    .map(|at| self.world.expected(place, at));
                events += flows as f64 * share * all.sum::<f64>();
            }
        }
        events / (change.end - change.start) as f64
    }
}

/// Whether two changes name the same source or the same integration at about the same time. A permanent change disturbs
/// others only on its first day.
fn collide(one: &Change, other: &Change) -> bool {
    let end = |change: &Change| match change.is_for_good() {
        true => change.start + DAY,
        false => change.end,
    };
    let names_the_same = |one: Option<usize>, other: Option<usize>| one.is_some() && one == other;
    let is_near = one.start < end(other) + APART && other.start < end(one) + APART;
    // A name or a pair that appears or disappears can't be part of another change at any time.
    let is_gone = |change: &Change| change.is_for_good() && change.life() != Some(Life::Launch);
    let is_part = is_gone(one) || is_gone(other);
    let is_same_stream = names_the_same(one.slice.source, other.slice.source)
        && names_the_same(one.slice.event_name, other.slice.event_name);
    let is_same_pair = names_the_same(one.slice.source, other.slice.source)
        && names_the_same(one.slice.integration, other.slice.integration);
    let is_same = names_the_same(one.slice.source, other.slice.source)
        || names_the_same(one.slice.integration, other.slice.integration);
    (is_near && is_same) || (is_part && (is_same_stream || is_same_pair))
}

/// One holiday of each zone except UTC in the history and two in the judged weeks, on working days. The sources of the
/// zone then have 35% to 65% of their usual traffic.
fn holidays(world: &World) -> Vec<Change> {
    let scale = world.scale;
    let mut random = Random::of(&[world.seed, Purpose::Plan as u64, 1]);
    let mut all = Vec::new();
    for zone in Zone::ALL.into_iter().filter(|zone| *zone != Zone::Utc) {
        let weeks = [(0, scale.history), (scale.history, scale.judged / 2)];
        let last = (scale.history + scale.judged / 2, scale.judged.div_ceil(2));
        for (first, weeks) in weeks.into_iter().chain([last]) {
            let day = (1 + first + random.below(weeks.max(1))) * 7 + random.below(5);
            let now = 0.35 + 0.3 * random.unit();
            let mut on = (0..scale.windows()).filter(|at| world.clock.local(zone, *at).0 == day);
            let (Some(start), Some(end)) = (on.next(), on.next_back()) else {
                continue;
            };
            let own = SOURCES.iter().enumerate().filter(|(_, own)| own.1 == zone);
            all.extend(own.map(|(source, _)| Change {
                kind: Kind::Life(Life::Holiday),
                slice: Slice { source: Some(source), ..Slice::default() },
                effect: Effect::Volume { before: 1.0, now },
                start,
                end: end + 1,
            }));
        }
    }
    all
}

/// For two weeks after a clock change, the traffic of people and the nightly batches of machines arrive at another hour.
fn clock_changes(world: &World) -> Vec<Change> {
    let mut all = Vec::new();
    for (source, (_, zone, users)) in SOURCES.into_iter().enumerate() {
        let batches = world.streams.iter();
        let batches = batches.filter(|one| one.source == source && one.pattern == Pattern::Nightly);
        let names: Vec<Option<usize>> = match users {
            Users::Machines => batches.map(|one| Some(one.event_name)).collect(),
            Users::Private | Users::Business => vec![None],
        };
        for start in world.clock.changes(zone) {
            let range = start..start + NEWS;
            let moved =
                |name: &Option<usize>| moved(Life::ClockChange, range.clone(), source, *name);
            all.extend(names.iter().map(moved));
        }
    }
    all
}

/// Nights with a late batch, from the time at which it usually begins until it is over.
fn late_batches(world: &World) -> Vec<Change> {
    let mut all = Vec::new();
    for (place, stream) in world.streams.iter().enumerate() {
        if stream.pattern != Pattern::Nightly {
            continue;
        }
        for at in 0..world.scale.windows() {
            let (day, quarter) = world.clock.local(SOURCES[stream.source].1, at);
            let late = world.lateness(place, day);
            if quarter == NIGHTLY && late > 0 {
                let name = Some(stream.event_name);
                let range = at..at + late + BATCH;
                all.push(moved(Life::LateBatch, range, stream.source, name));
            }
        }
    }
    all
}

fn moved(
    life: Life,
    range: std::ops::Range<usize>,
    source: usize,
    event_name: Option<usize>,
) -> Change {
    Change {
        kind: Kind::Life(life),
        slice: Slice { source: Some(source), event_name, integration: None },
        effect: Effect::Moved,
        start: range.start,
        end: range.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incidents::world::Scale;

    const QUARTER: Scale = Scale { history: 6, judged: 13, incidents: 40 };

    fn planned(setting: Setting) -> (World, Vec<Change>) {
        let world = World::new(3, setting, QUARTER);
        let all = plan(&world);
        (world, all)
    }

    #[test]
    fn each_kind_of_incident_occurs_equally_often() {
        for setting in Setting::ALL {
            let (world, all) = planned(setting);
            for kind in Incident::ALL {
                let judged = all.iter().filter(|one| one.start >= world.scale.first());
                assert_eq!(
                    judged.filter(|one| one.incident() == Some(kind)).count(),
                    4,
                    "{kind:?}"
                );
            }
            assert!(
                all.iter().any(|one| one.incident().is_some() && one.start < world.scale.first())
            );
        }
    }

    #[test]
    fn each_kind_of_life_occurs_in_its_setting() {
        let count =
            |all: &[Change], life| all.iter().filter(|one| one.life() == Some(life)).count();
        let [(_, full), (_, calm)] = Setting::ALL.map(planned);
        for life in Life::ALL {
            assert!(count(&full, life) > 1, "{life:?}");
            let is_calm = [Life::Holiday, Life::LateBatch, Life::LateData].contains(&life);
            assert_eq!(count(&calm, life) > 0, is_calm, "{life:?}");
        }
    }

    #[test]
    fn some_incidents_overlap_but_not_in_the_same_place() {
        let (_, all) = planned(Setting::Full);
        let incidents: Vec<&Change> = all.iter().filter(|one| one.incident().is_some()).collect();
        let mut overlaps = 0;
        for (place, one) in incidents.iter().enumerate() {
            for other in &incidents[..place] {
                overlaps += usize::from(one.start < other.end);
                assert!(!collide(one, other));
            }
        }
        assert!(overlaps >= 10, "{overlaps}");
    }
}
