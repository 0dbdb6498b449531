//! Which incidents were found, how soon and with which cause, and what the other alarms were about.

use std::collections::BTreeSet;

use tallyfold::Metric;
use tallyfold_health::Measure;

use super::alarm::{Alarm, Call, Detected, Values};
use super::change::{Change, Effect, Incident, Life, Slice};
use super::clock::{DAY, HOUR};
use super::names::{EVENT_NAMES, INTEGRATIONS, REASONS, SOURCES};
use super::traffic::{RARE, Traffic};
use super::world::{BATCH, Flow, Pattern, Setting, Stream, World};

/// How many windows after its end an incident may still be found.
const TAIL: usize = HOUR;
/// An incident is reported as over too early if that was more than this many windows before its end.
const EARLY: usize = HOUR;
/// An alarm is about a change if this change alone moves the alarm's number by the share `MOVED`, and by the part
/// `EXPLAINED` of what the alarm reports. So an alarm about a stream that is silent for once is not about a source that
/// has lost a tenth of its events.
const MOVED: f64 = 0.1;
const EXPLAINED: f64 = 0.5;
/// A reported share agrees with the true one if it differs by at most this part of it.
const AGREES: f64 = 0.25;
/// How many of the first causes are considered.
const FIRST_CAUSES: usize = 3;
/// False messages within this many windows are one episode, and messages within this many windows are one flood.
const TOGETHER: usize = 2 * HOUR;

/// What an alarm, or a message with several alarms, is about. An incident takes precedence over everything else, and an
/// outage over other life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    Incident,
    Life(Life),
    Nothing,
}

impl About {
    /// Whether the alarm or message was false.
    pub(super) fn is_false(self) -> bool {
        !matches!(self, Self::Incident | Self::Life(Life::Outage))
    }

    fn rank(self) -> usize {
        match self {
            Self::Incident => 0,
            Self::Life(life) => 1 + life as usize,
            Self::Nothing => usize::MAX,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Incident => "incident",
            Self::Life(life) => life.name(),
            Self::Nothing => "nothing",
        }
    }
}

/// How an incident was detected.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) change: Change,
    pub(super) kind: Incident,
    /// The alarms that are about it, in the order in which they fired.
    pub(super) alarms: Vec<Alarm>,
    /// The windows after which messages about it were sent, in order. If there are none, its alarms only joined incidents
    /// that were already reported.
    pub(super) messages: Vec<usize>,
    /// The causes of the alarms that fired first, most important first.
    pub(super) causes: Vec<Values>,
    /// The position of the right cause, from 0.
    pub(super) right: Option<usize>,
    /// Whether all alarms were reported as over although the incident continued.
    pub(super) is_called_over: bool,
}

impl Outcome {
    /// How many windows of the incident had passed at the end of the window that led to the first message.
    pub(super) fn delay(&self) -> Option<usize> {
        let first = self.messages.first()?;
        Some((first + 1).saturating_sub(self.change.start))
    }

    pub(super) fn is_explained(&self) -> bool {
        !self.messages.is_empty() && self.right.is_some_and(|place| place < FIRST_CAUSES)
    }
}

/// A message to a receiver about an incident, with the alarms that fire at that time.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) told: usize,
    pub(super) about: About,
    pub(super) alarms: Vec<(Alarm, About)>,
}

/// The most messages within two hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flood {
    pub(super) messages: usize,
    /// What most of them are about.
    pub(super) about: About,
}

/// How often a kind of life occurred, and how often an alarm was about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noticed {
    pub(super) life: Life,
    pub(super) occurred: usize,
    pub(super) noticed: usize,
}

/// The result for a seed.
#[derive(Clone, Debug)]
pub(super) struct Score {
    pub(super) seed: u64,
    pub(super) setting: Setting,
    pub(super) weeks: usize,
    pub(super) outcomes: Vec<Outcome>,
    /// Messages with warnings and critical alarms, in time order.
    pub(super) messages: Vec<Message>,
    /// How many of them are the first message about a retired name, which looks like a vanished event at that time.
    pub(super) retired: usize,
    /// Messages that only inform.
    pub(super) infos: Vec<Message>,
    /// The number of episodes of false messages.
    pub(super) episodes: usize,
    pub(super) flood: Option<Flood>,
    /// Alarms that are at least warnings, as what they are about.
    pub(super) findings: Vec<About>,
    pub(super) life: Vec<Noticed>,
}

impl Score {
    pub(super) fn new(traffic: &Traffic, detected: Detected) -> Self {
        let Detected { mut alarms, calls } = detected;
        let scale = traffic.world.scale;
        alarms.retain(|alarm| alarm.first >= scale.first());
        alarms.sort_by_key(|alarm| (alarm.told, alarm.first));
        let truth = Truth::new(traffic);
        let touched: Vec<Vec<usize>> = alarms.iter().map(|alarm| truth.touched(alarm)).collect();
        // The alarms that fire when a message is sent.
        let of_call = |call: &Call| {
            let own = alarms.iter().enumerate().filter(|(_, alarm)| {
                alarm.incident == call.incident && (alarm.first..=alarm.last).contains(&call.first)
            });
            own.map(|(place, _)| place).collect::<Vec<usize>>()
        };
        let calls: Vec<(&Call, Vec<usize>)> =
            calls.iter().map(|call| (call, of_call(call))).collect();
        let is_judged = |change: &&(usize, &Change)| change.1.start >= scale.first();
        let changes: Vec<(usize, &Change)> = traffic.changes.iter().enumerate().collect();
        let outcome = |(place, change): &(usize, &Change)| {
            let kind = change.incident()?;
            let is_about = |alarm: usize| !alarms[alarm].is_info && touched[alarm].contains(place);
            let own = (0..alarms.len()).filter(|alarm| is_about(*alarm));
            let own = own.map(|alarm| alarms[alarm].clone()).collect();
            let sent = calls.iter().filter(|(call, of_call)| {
                !call.is_info && of_call.iter().any(|alarm| is_about(*alarm))
            });
            let sent = sent.map(|(call, _)| call.first).collect();
            Some(truth.outcome(change, kind, own, sent))
        };
        let noticed = |life: Life| {
            let own = changes.iter().filter(is_judged);
            let own = own.filter(|(_, change)| change.life() == Some(life));
            let is_noticed =
                |(place, _): &&(usize, &Change)| touched.iter().any(|all| all.contains(place));
            Noticed { life, occurred: own.clone().count(), noticed: own.filter(is_noticed).count() }
        };
        let about: Vec<About> = touched.iter().map(|touched| truth.about(touched)).collect();
        let message = |(call, of_call): &(&Call, Vec<usize>)| {
            let own = of_call.iter();
            let own = own.map(|alarm| (alarms[*alarm].clone(), about[*alarm]));
            let alarms: Vec<(Alarm, About)> = own.collect();
            let first = alarms.iter().map(|(_, about)| *about);
            Message {
                told: call.told(),
                about: first.min_by_key(|about| about.rank()).unwrap_or(About::Nothing),
                alarms,
            }
        };
        let of_severity = |is_info: bool| -> Vec<Message> {
            let own = calls.iter().filter(|(call, _)| call.is_info == is_info);
            own.map(message).collect()
        };
        let messages = of_severity(false);
        let is_retired = |place: &usize| traffic.changes[*place].life() == Some(Life::RetiredName);
        let mut gone = BTreeSet::new();
        let serious = calls.iter().filter(|(call, _)| !call.is_info);
        let first_of_retired = serious.zip(&messages).filter(|((_, of_call), message)| {
            let touched = of_call.iter().flat_map(|alarm| &touched[*alarm]);
            let names = touched.copied().filter(is_retired);
            let known = gone.len();
            if message.about == About::Life(Life::RetiredName) {
                gone.extend(names);
            }
            gone.len() > known
        });
        let retired = first_of_retired.count();
        let all: Vec<Message> = calls.iter().map(message).collect();
        let findings = alarms.iter().zip(&about);
        let findings = findings.filter(|(alarm, _)| !alarm.is_info);
        Self {
            seed: traffic.world.seed,
            setting: traffic.world.setting,
            weeks: scale.judged,
            outcomes: changes.iter().filter(is_judged).filter_map(outcome).collect(),
            retired,
            infos: of_severity(true),
            episodes: episodes(&messages),
            messages,
            flood: flood(&all),
            findings: findings.map(|(_, about)| *about).collect(),
            life: Life::ALL.map(noticed).to_vec(),
        }
    }
}

/// Counts the episodes of false messages. Messages within two hours are one episode.
fn episodes(messages: &[Message]) -> usize {
    let mut episodes = 0;
    let mut end = 0;
    for message in messages.iter().filter(|message| message.about.is_false()) {
        if message.told >= end {
            episodes += 1;
            end = message.told + TOGETHER;
        }
    }
    episodes
}

fn flood(messages: &[Message]) -> Option<Flood> {
    let from = |first: usize| {
        let end = messages[first].told + TOGETHER;
        let later = messages[first..].iter();
        &messages[first..first + later.take_while(|one| one.told < end).count()]
    };
    let most = (0..messages.len()).map(from);
    // If several are equally long, the first one.
    let most = most.rev().max_by_key(|some| some.len())?;
    let count = |one: &About| most.iter().filter(|other| other.about == *one).count();
    let about = most.iter().map(|one| one.about);
    Some(Flood { messages: most.len(), about: about.max_by_key(count)? })
}

/// The causes of the alarms that fired first, in the reported order.
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

/// Whether everything that had fired was reported as over at some time more than an hour before the end.
fn is_called_over(alarms: &[Alarm], end: usize) -> bool {
    let Some(first) = alarms.first() else {
        return false;
    };
    let mut last = first.last;
    for alarm in alarms {
        if alarm.first > last + 1 {
            break;
        }
        last = last.max(alarm.last);
    }
    last + 1 + EARLY < end
}

/// A part of the counts: what a group of values selects.
#[derive(Clone, Copy, Debug)]
struct Group<'a> {
    slice: Slice,
    reason: Option<&'a str>,
}

impl<'a> Group<'a> {
    /// Returns `None` if a value does not exist.
    fn of(values: &'a [(String, String)]) -> Option<Self> {
        let named = |name: &str| {
            let mut values = values.iter();
            let named = values.find(|(own, _)| own == name);
            named.map(|(_, value)| value.as_str())
        };
        let place = |name: &str, all: &[&str]| match named(name) {
            Some(value) => all.iter().position(|one| *one == value).map(Some),
            None => Some(None),
        };
        Some(Self {
            slice: Slice {
                source: place("write_key", &SOURCES.map(|source| source.0))?,
                event_name: place("event_name", &EVENT_NAMES)?,
                integration: place("integration", &INTEGRATIONS)?,
            },
            reason: named("reason"),
        })
    }
}

/// The true changes, and their effects on any number.
struct Truth<'t> {
    traffic: &'t Traffic,
    world: &'t World,
    for_good: Vec<&'t Change>,
}

impl<'t> Truth<'t> {
    fn new(traffic: &'t Traffic) -> Self {
        let for_good = traffic.changes.iter().filter(|one| one.is_for_good());
        Self { traffic, world: &traffic.world, for_good: for_good.collect() }
    }

    /// The changes that an alarm is about. It fired while they lasted or shortly after, and each of them alone moves its
    /// number in its direction.
    fn touched(&self, alarm: &Alarm) -> Vec<usize> {
        let Some(group) = Group::of(&alarm.group) else {
            return Vec::new();
        };
        let changes = self.traffic.changes.iter().enumerate();
        let is_then = |change: &Change| (change.start..change.end + TAIL).contains(&alarm.first);
        let touched =
            changes.filter(|(_, change)| is_then(change) && self.moves(alarm, group, change));
        touched.map(|(place, _)| place).collect()
    }

    fn about(&self, touched: &[usize]) -> About {
        let about = touched.iter().map(|place| {
            let life = self.traffic.changes[*place].life();
            life.map_or(About::Incident, About::Life)
        });
        let first = about.min_by_key(|about| about.rank());
        first.unwrap_or(About::Nothing)
    }

    /// Whether a change alone moves the number of an alarm in the alarm's direction, by a tenth and by half of what the
    /// alarm reports. If the usual share is nearly zero, its estimate is so rough that a multiple of it means little. So
    /// the difference of the shares is sufficient, too, if the reported share agrees with the share that the change leads
    /// to.
    fn moves(&self, alarm: &Alarm, group: Group<'_>, change: &Change) -> bool {
        if change.effect == Effect::Moved {
            return !alarm.measure.is_rate() && self.share(alarm, group, change) >= MOVED;
        }
        let of = |is_on| value(self.numbers(alarm, group, change, is_on), alarm.measure);
        let (usual, now) = (of(false), of(true));
        if let Some(whole) = alarm.whole.filter(|_| alarm.is_high()) {
            let [observed, expected] = [alarm.observed, alarm.expected].map(|part| part / whole);
            let is_true = (observed - now).abs() <= AGREES * now;
            if is_true && now - usual >= EXPLAINED * (observed - expected) && now > usual {
                return true;
            }
        }
        let least = match alarm.expected > 0.0 {
            true => EXPLAINED * (alarm.observed / alarm.expected - 1.0).abs(),
            false => 0.0,
        };
        let least = least.max(MOVED) * usual;
        match alarm.is_high() {
            true => now > usual && now - usual >= least,
            false => usual > 0.0 && usual - now >= least,
        }
    }

    /// The share of a group's events that a change moves to another time.
    fn share(&self, alarm: &Alarm, group: Group<'_>, change: &Change) -> f64 {
        let sum = |is_on| self.numbers(alarm, group, change, is_on).iter().sum::<f64>();
        let (without, all) = (sum(false), sum(true));
        (all - without) / all.max(f64::MIN_POSITIVE)
    }

    /// The usual numbers of delivered, failed and filtered events in a group at the time of an alarm, with a change or
    /// without it.
    fn numbers(&self, alarm: &Alarm, group: Group<'_>, change: &Change, is_on: bool) -> [f64; 3] {
        let mut sums = [0.0; 3];
        let mut add = |numbers: [f64; 3]| {
            for (sum, number) in sums.iter_mut().zip(numbers) {
                *sum += number;
            }
        };
        if alarm.metric == Metric::EventIngestion {
            let streams = self.world.streams.iter();
            for stream in streams.filter(|stream| group.slice.has_stream(stream)) {
                let is_in =
                    |one: &Change| one.slice.integration.is_none() && one.slice.has_stream(stream);
                add([self.volume(stream, alarm.first, change, is_on, is_in), 0.0, 0.0]);
            }
            return sums;
        }
        let flows = self.world.flows();
        for (stream, flow) in flows.filter(|(stream, flow)| group.slice.has(stream, flow)) {
            let is_in = |one: &Change| one.slice.has(stream, flow);
            let volume = self.volume(stream, alarm.first, change, is_on, is_in);
            let change = (is_on && is_in(change)).then_some(change);
            add(fate(self.world, flow, change, group.reason).map(|share| share * volume));
        }
        sums
    }

    /// The usual events of a stream at a time, on average over the hours of the week.
    fn volume(
        &self,
        stream: &Stream,
        at: usize,
        change: &Change,
        is_on: bool,
        is_in: impl Fn(&Change) -> bool,
    ) -> f64 {
        let others = self.for_good.iter().filter(|one| **one != change);
        let factors = others.filter(|one| is_in(one)).map(|one| one.volume(at));
        let own = match change.effect {
            _ if !is_in(change) => 1.0,
            Effect::Volume { .. } if is_on => change.volume(at.min(change.end - 1)),
            Effect::Volume { before, .. } => before,
            Effect::Late(share) if is_on => 1.0 - share,
            Effect::Moved if !is_on => 0.0,
            // A batch is as large as the events of a day.
            Effect::Moved if stream.pattern == Pattern::Nightly => (DAY / BATCH) as f64,
            _ => 1.0,
        };
        stream.mean * own * factors.product::<f64>()
    }

    fn outcome(
        &self,
        change: &Change,
        kind: Incident,
        alarms: Vec<Alarm>,
        messages: Vec<usize>,
    ) -> Outcome {
        let causes = told_causes(&alarms);
        let is_right = |cause: &Values| self.is_right(change, kind, cause);
        Outcome {
            change: change.clone(),
            kind,
            messages,
            right: causes.iter().position(is_right),
            is_called_over: is_called_over(&alarms, change.end),
            causes,
            alarms,
        }
    }

    /// Whether a cause is the cause of an incident: its values must select the same streams and flows. So an event name
    /// that only one source sends is the same cause with and without that source. A new reason must be named, and is
    /// sufficient; a usual reason may be left out.
    fn is_right(&self, change: &Change, kind: Incident, cause: &[(String, String)]) -> bool {
        let Some(group) = Group::of(cause) else {
            return false;
        };
        let own = match change.effect {
            Effect::Filtered(reason, _) => Some(reason),
            _ => None,
        };
        let is_same = group.reason.is_some() && group.reason == own;
        match kind {
            Incident::NewReason if is_same && cause.len() == 1 => return true,
            Incident::NewReason if !is_same => return false,
            _ if group.reason.is_some() && !is_same => return false,
            _ => {}
        }
        let mut flows = self.world.flows();
        flows.all(|(stream, flow)| group.slice.has(stream, flow) == change.slice.has(stream, flow))
    }
}

/// The shares of a flow's events that are delivered, failed and filtered; with a reason, only of the events that have
/// this reason.
fn fate(world: &World, flow: &Flow, change: Option<&Change>, reason: Option<&str>) -> [f64; 3] {
    let rate = world.error_rates[flow.integration];
    let mut success = (1.0 - flow.filtered) * (1.0 - rate);
    let mut errors = (1.0 - flow.filtered) * rate;
    let of_reason = |place: usize, share: f64| match reason {
        Some(reason) if reason != REASONS[flow.reasons[place]] => 0.0,
        _ => flow.filtered * share,
    };
    let mut filtered = of_reason(0, 1.0 - RARE) + of_reason(1, RARE);
    match change.map(|change| change.effect) {
        Some(Effect::Fails(share)) => {
            (success, errors) = (success * (1.0 - share), errors + success * share);
        }
        Some(Effect::MoreErrors(factor)) => {
            let more = errors * (factor - 1.0);
            (success, errors) = (success - more, errors + more);
        }
        Some(Effect::Filtered(own, share)) => {
            if reason.is_none_or(|reason| reason == own) {
                filtered += share * (success + errors);
            }
            (success, errors) = (success * (1.0 - share), errors * (1.0 - share));
        }
        Some(Effect::Copies(copies)) => {
            (success, errors) = (success * copies as f64, errors * copies as f64);
        }
        Some(Effect::Volume { .. } | Effect::Moved | Effect::Late(_)) | None => {}
    }
    match reason {
        // Assumption `reason_of_delivered`: only filtered events have a reason.
        Some("") => [success, errors, 0.0],
        Some(_) => [0.0, 0.0, filtered],
        None => [success, errors, filtered],
    }
}

fn value([success, errors, filtered]: [f64; 3], measure: Measure) -> f64 {
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    match measure {
        Measure::Success => success,
        Measure::Errors => errors,
        Measure::Filtered => filtered,
        Measure::ErrorRate => share(errors, success + errors),
        Measure::FilteredRate => share(filtered, success + errors + filtered),
        _ => success + errors + filtered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incidents::change::Kind;
    use crate::incidents::world::Scale;

    const SMALL: Scale = Scale { history: 1, judged: 2, incidents: 0 };
    const START: usize = 1_000;

    /// Traffic with only these changes.
    fn traffic(changes: Vec<Change>) -> Traffic {
        let mut traffic = Traffic::new(World::new(3, Setting::Calm, SMALL));
        traffic.changes = changes;
        traffic
    }

    /// A change that lasts for 20 windows.
    fn change(kind: Kind, slice: Slice, effect: Effect) -> Change {
        Change { kind, slice, effect, start: START, end: START + 20 }
    }

    fn failing(integration: usize, share: f64) -> Change {
        let slice = Slice { integration: Some(integration), ..Slice::default() };
        let kind = Kind::Incident(Incident::IntegrationFails);
        change(kind, slice, Effect::Fails(share))
    }

    fn values(pairs: &[(&str, &str)]) -> Values {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// An alarm about errors that are ten times as many as expected.
    fn alarm(group: &[(&str, &str)], first: usize, last: usize) -> Alarm {
        Alarm {
            rule: "r".to_owned(),
            measure: Measure::ErrorRate,
            metric: Metric::EventDelivery,
            observed: 100.0,
            expected: 10.0,
            whole: None,
            is_info: false,
            incident: format!("{group:?} {first}"),
            group: values(group),
            causes: vec![values(group)],
            first,
            last,
            told: first + 4,
            sentence: String::new(),
        }
    }

    /// Alarms with a message for each incident, when its first alarm fires.
    fn detected(alarms: Vec<Alarm>) -> Detected {
        let mut calls: Vec<Call> = Vec::new();
        for alarm in &alarms {
            if calls.iter().all(|call| call.incident != alarm.incident) {
                calls.push(Call {
                    incident: alarm.incident.clone(),
                    is_info: alarm.is_info,
                    first: alarm.first,
                });
            }
        }
        Detected { alarms, calls }
    }

    fn found(traffic: &Traffic, alarm: Alarm) -> Option<usize> {
        Score::new(traffic, detected(vec![alarm])).outcomes[0].delay()
    }

    #[test]
    fn an_alarm_is_about_what_moves_its_number_then_and_there() {
        let traffic = traffic(vec![failing(0, 0.5)]);
        let group: &[(&str, &str)] = &[("integration", INTEGRATIONS[0])];
        let at = |first: usize| found(&traffic, alarm(group, first, first + 1));
        assert_eq!(
            [START - 1, START, START + 23, START + 24].map(at),
            [None, Some(1), Some(24), None]
        );
        let other = alarm(&[("integration", INTEGRATIONS[1])], START, START);
        assert_eq!(found(&traffic, other), None);
        let low = Alarm { observed: 1.0, ..alarm(group, START, START) };
        assert_eq!(found(&traffic, low.clone()), None);
        let low = Alarm { measure: Measure::Success, observed: 5.0, ..low };
        assert_eq!(found(&traffic, low), Some(1));
        let filtered = Alarm { measure: Measure::FilteredRate, ..alarm(group, START, START) };
        assert_eq!(found(&traffic, filtered), None);
        let info = Alarm { is_info: true, ..alarm(group, START, START) };
        assert_eq!(found(&traffic, info), None);
    }

    #[test]
    fn a_share_that_is_reported_as_it_is_needs_no_usual_share() {
        let traffic = traffic(vec![failing(0, 0.95)]);
        let group: &[(&str, &str)] = &[("integration", INTEGRATIONS[0])];
        // The alarm expects hardly any errors, so its multiple is much larger than the true one.
        let of = |observed: f64, group| Alarm {
            observed,
            expected: 0.2,
            whole: Some(683.0),
            ..alarm(group, START, START + 1)
        };
        assert_eq!(found(&traffic, of(650.0, group)), Some(1));
        assert_eq!(found(&traffic, of(450.0, group)), None);
        let late = Alarm { first: START + 24, ..of(650.0, group) };
        assert_eq!(found(&traffic, late), None);
        let other: &[(&str, &str)] = &[("integration", INTEGRATIONS[1])];
        assert_eq!(found(&traffic, of(650.0, other)), None);
        let filtered = Alarm { measure: Measure::FilteredRate, ..of(650.0, group) };
        assert_eq!(found(&traffic, filtered), None);
        // The share is true, but nearly all of it is usual.
        let slight = self::traffic(vec![failing(0, 0.001)]);
        assert_eq!(found(&slight, of(14.0, group)), None);
    }

    #[test]
    fn a_silence_is_not_about_a_tenth_less() {
        let silence = |source: usize| Alarm {
            measure: Measure::Events,
            observed: 0.0,
            ..alarm(&[("write_key", SOURCES[source].0)], START + 2, START + 3)
        };
        let source = Slice { source: Some(0), ..Slice::default() };
        let kind = Kind::Incident(Incident::SlowDecline);
        let declining =
            |now| traffic(vec![change(kind, source, Effect::Volume { before: 1.0, now })]);
        // After three of the 144 windows of its decline, the source has lost a hundredth of its events.
        assert_eq!(found(&declining(0.5), silence(0)), None);
        let kind = Kind::Incident(Incident::EventVanishes);
        let gone = change(kind, source, Effect::Volume { before: 1.0, now: 0.0 });
        let gone = traffic(vec![gone]);
        assert_eq!(found(&gone, silence(0)), Some(3));
        assert_eq!(found(&gone, silence(1)), None);
    }

    #[test]
    fn new_reasons_are_those_of_their_incident() {
        let kind = Kind::Incident(Incident::NewReason);
        let slice = failing(0, 0.0).slice;
        let traffic = traffic(vec![change(kind, slice, Effect::Filtered("a", 0.1))]);
        let new = |reason: &str| Alarm {
            measure: Measure::Events,
            expected: 0.0,
            ..alarm(&[("reason", reason)], START, START)
        };
        assert_eq!(found(&traffic, new("a")), Some(1));
        assert_eq!(found(&traffic, new("b")), None);
        let score = Score::new(&traffic, detected(vec![new("a")]));
        assert!(score.outcomes[0].is_explained());
    }

    #[test]
    fn what_is_no_incident_is_life_or_nothing() {
        let source = Slice { source: Some(0), ..Slice::default() };
        let volume = |now| Effect::Volume { before: 1.0, now };
        let outage = change(Kind::Life(Life::Outage), source, volume(0.0));
        let burst = Change {
            start: START + 100,
            end: START + 110,
            ..change(Kind::Life(Life::Burst), source, volume(3.0))
        };
        let traffic = traffic(vec![outage, burst]);
        let of = |observed, first| Alarm {
            measure: Measure::Events,
            observed,
            ..alarm(&[("write_key", SOURCES[0].0)], first, first)
        };
        let alarms = vec![
            of(0.0, START + 1),
            of(30.0, START + 101),
            of(0.0, START + 200),
            of(0.0, START + 203),
        ];
        let score = Score::new(&traffic, detected(alarms));
        let about: Vec<About> = score.messages.iter().map(|one| one.about).collect();
        let [outage, burst] = [Life::Outage, Life::Burst].map(About::Life);
        assert_eq!(about, [outage, burst, About::Nothing, About::Nothing]);
        assert_eq!(score.episodes, 2);
        assert_eq!(score.flood.unwrap().messages, 2);
        let noticed = score.life.iter().map(|one| one.noticed).sum::<usize>();
        assert_eq!(noticed, 2);
    }

    #[test]
    fn the_first_message_about_a_retired_name_is_counted() {
        let name = |source| {
            let slice = Slice { source: Some(source), event_name: Some(0), integration: None };
            let volume = Effect::Volume { before: 1.0, now: 0.0 };
            change(Kind::Life(Life::RetiredName), slice, volume)
        };
        let traffic = Traffic::new(World::new(3, Setting::Calm, SMALL));
        let streams = traffic.world.streams.iter();
        let sources: Vec<usize> =
            streams.filter(|stream| stream.event_name == 0).map(|stream| stream.source).collect();
        let traffic = self::traffic(sources.iter().map(|source| name(*source)).collect());
        let of = |first: usize| {
            let group = [("write_key", SOURCES[sources[0]].0), ("event_name", EVENT_NAMES[0])];
            Alarm { measure: Measure::Events, observed: 0.0, ..alarm(&group, first, first) }
        };
        let score = Score::new(&traffic, detected(vec![of(START + 1), of(START + 9)]));
        assert_eq!((score.messages.len(), score.retired), (2, 1));
    }

    #[test]
    fn alarms_of_an_incident_are_one_message() {
        let traffic = traffic(vec![failing(0, 0.9)]);
        let group: &[(&str, &str)] = &[("integration", INTEGRATIONS[0])];
        let other: &[(&str, &str)] = &[("integration", INTEGRATIONS[1])];
        let of = |incident: &str, alarm: Alarm| Alarm { incident: incident.to_owned(), ..alarm };
        let alarms = vec![
            of("a", alarm(group, START, START)),
            of("a", alarm(other, START, START)),
            of("b", alarm(other, START, START)),
            of("a", alarm(group, START + 5, START + 6)),
        ];
        let score = Score::new(&traffic, detected(alarms.clone()));
        let about: Vec<About> = score.messages.iter().map(|one| one.about).collect();
        assert_eq!(about, [About::Incident, About::Nothing]);
        let outcome = &score.outcomes[0];
        assert_eq!((outcome.alarms.len(), &outcome.messages[..]), (2, &[START][..]));
        assert!(outcome.is_explained());
        // An incident whose alarms only join an earlier message is not found.
        let mut early = detected(alarms[2..].to_vec());
        early.alarms[1].incident = "b".to_owned();
        let score = Score::new(&traffic, early);
        assert_eq!(score.outcomes[0].alarms.len(), 1);
        assert_eq!(score.outcomes[0].delay(), None);
    }

    #[test]
    fn what_is_called_over_while_it_goes_on_is_called_over_too_early() {
        let over = |alarms: &[(usize, usize)]| {
            let alarms: Vec<Alarm> =
                alarms.iter().map(|(first, last)| alarm(&[], *first, *last)).collect();
            is_called_over(&alarms, 100)
        };
        assert!(!over(&[]));
        assert!(!over(&[(50, 95)]) && over(&[(50, 94)]));
        assert!(!over(&[(50, 60), (55, 99)]) && !over(&[(50, 60), (61, 99)]));
        assert!(over(&[(50, 60), (63, 99)]));
    }
}
