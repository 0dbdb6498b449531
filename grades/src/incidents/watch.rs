//! Applies the rules and the peer to the simulated traffic.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tallyfold::{Metric, Result, Window};
use tallyfold_health::{Finding, Incident, Observed, Rules, State, Status};

use super::alarm::{Alarm, Detected};
use super::clock::DAY;
use super::peer::Peer;
use super::tables::{History, start};
use super::traffic::{SETTLED, Traffic};

/// The reports of one replay over settled windows, and of the peer.
pub(super) fn replay(traffic: &Traffic, rules: &Rules) -> Result<[Detected; 2]> {
    let world = &traffic.world;
    let windows = world.scale.windows();
    let mut delivery = History::new(Metric::EventDelivery, windows)?;
    let mut ingestion = History::new(Metric::EventIngestion, windows)?;
    let mut peer = Peer::new(world);
    for at in 0..windows {
        let cells = traffic.read(at, SETTLED);
        delivery.settle(world, at, &cells)?;
        ingestion.settle(world, at, &cells)?;
        peer.count(world, at, &cells);
    }
    let (delivery, ingestion) = (delivery.settled()?, ingestion.settled()?);
    let observed = Observed { delivery: Some(&delivery), ingestion: Some(&ingestion) };
    let range = Window::new(start(world, world.scale.first())?, start(world, windows)?)?;
    let replay = rules.replay(&observed, range)?;
    let alarm = |finding: &Finding| {
        let window = |end: Option<tallyfold::Timestamp>, none| {
            let number = end.map_or(none, |end| world.clock.window(end.unix_ms()));
            number.saturating_sub(1)
        };
        let first = window(finding.fired, 0);
        let last = window(finding.resolved, windows).max(first);
        Alarm::of(finding, first, last, first + SETTLED)
    };
    let ours = replay.findings.iter().map(alarm).collect();
    let ours = Detected::of(world, ours, &replay.incidents);
    Ok([ours, peer.detected(world)?])
}

/// The reports of a cron job that checks the rules after each window, reads the last windows again and keeps a state.
/// Also returns the mean CPU time of a check in milliseconds.
pub(super) fn checks(traffic: &Traffic, rules: &Rules) -> Result<(Detected, f64)> {
    let world = &traffic.world;
    let days = days_needed(rules);
    let mut delivery = History::new(Metric::EventDelivery, days)?;
    let mut ingestion = History::new(Metric::EventIngestion, days)?;
    let mut state = State::default();
    let mut alarms = Alarms::default();
    // Each incident as it was reported last.
    let mut incidents: BTreeMap<String, Incident> = BTreeMap::new();
    let (mut spent, mut count) = (0, 0_u32);
    for at in SETTLED..world.scale.windows() {
        let cells = traffic.read(at - SETTLED, SETTLED);
        delivery.settle(world, at - SETTLED, &cells)?;
        ingestion.settle(world, at - SETTLED, &cells)?;
        if at < world.scale.first() {
            continue;
        }
        let read = |age: usize| (at - age, traffic.read(at - age, age));
        let provisional: Vec<_> = (0..SETTLED).rev().map(read).collect();
        let delivery = delivery.read(world, &provisional)?;
        let ingestion = ingestion.read(world, &provisional)?;
        let observed = Observed { delivery: Some(&delivery), ingestion: Some(&ingestion) };
        let began = busy();
        let check = rules.check(&observed, &state, start(world, at + 1)?)?;
        spent += busy() - began;
        count += 1;
        let last = |finding: &Finding| {
            let end = world.clock.window(finding.window.end().unix_ms());
            end.saturating_sub(1)
        };
        alarms.take(&check.findings, at, last);
        for incident in check.incidents.iter().filter(|one| !one.provisional) {
            incidents.insert(incident.id.clone(), incident.clone());
        }
        // The state goes through JSON, as in a job that keeps it in a file.
        state = State::from_json(&check.state.to_json())?;
    }
    let detected = Detected::of(world, alarms.all, incidents.values());
    Ok((detected, spent as f64 / 1e6 / f64::from(count.max(1))))
}

fn days_needed(rules: &Rules) -> usize {
    let needs = rules.needs();
    let back = needs.iter().map(|need| need.back_s).max().unwrap_or_default();
    usize::try_from(back.div_ceil(86_400)).unwrap_or(DAY) + 1
}

/// The alarms so far, and the place of the alarm of each finding that fires.
#[derive(Default)]
struct Alarms {
    all: Vec<Alarm>,
    firing: BTreeMap<String, usize>,
}

impl Alarms {
    /// Adds the findings of the check after the window `at`.
    fn take(&mut self, findings: &[Finding], at: usize, last_of: impl Fn(&Finding) -> usize) {
        let mut firing = BTreeMap::new();
        let is_told = |finding: &&Finding| {
            finding.status == Status::Firing && !finding.provisional && !finding.silenced
        };
        for finding in findings.iter().filter(is_told) {
            let last = last_of(finding);
            let place = match self.firing.get(&finding.id) {
                Some(place) => *place,
                None => {
                    self.all.push(Alarm::of(finding, last, last, at));
                    self.all.len() - 1
                }
            };
            self.all[place].last = last.max(self.all[place].last);
            firing.insert(finding.id.clone(), place);
        }
        self.firing = firing;
    }
}

/// A line for each alarm or message that only the checks or only the replay reported.
pub(super) fn differences(checked: &Detected, replayed: &Detected) -> String {
    let named = |Detected { alarms, calls }: &Detected| -> BTreeSet<String> {
        let name = |alarm: &Alarm| {
            let (first, last) = (alarm.first, alarm.last);
            format!("{} {:?} from window {first} to {last}", alarm.rule, alarm.group)
        };
        let called = calls
            .iter()
            .map(|call| format!("message after window {} about {}", call.first, call.incident));
        alarms.iter().map(name).chain(called).collect()
    };
    let (checked, replayed) = (named(checked), named(replayed));
    let both = checked.intersection(&replayed).count();
    let mut text = format!("{both} alarms and messages of checks and of a replay are the same\n");
    for (who, one, other) in [("checks", &checked, &replayed), ("a replay", &replayed, &checked)] {
        for alarm in one.difference(other) {
            let _ = writeln!(text, "  only {who}: {alarm}");
        }
    }
    text
}

/// The CPU time of this thread in nanoseconds. It does not include the time in which other programs run.
fn busy() -> u64 {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    line.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}
