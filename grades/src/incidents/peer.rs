//! The peer, a simple method for comparison with the rules: the median and the median absolute deviation (MAD) of the
//! same quarters of an hour of earlier weeks, with one fixed limit for all groups.

use std::collections::BTreeMap;

use tallyfold::{Dimension, Metric, Result, Timestamp, Window};
use tallyfold_health::kinds::RuleKind;
use tallyfold_health::{Amount, Finding, Measure, Query, Severity, Status, incidents};

use super::alarm::{Alarm, Detected, Values};
use super::clock::WEEK;
use super::names::{INTEGRATIONS, SOURCES};
use super::tables::start;
use super::traffic::{Cells, SETTLED};
use super::world::World;

/// A window is unusual if it is more than this many robust deviations from the median. In the full setting of the tuning
/// seeds 1 to 3, this limit finds 80 of 120 incidents, and 148 of 3,090 messages are right. A limit of 4 finds 113
/// incidents with 398 right messages of 9,513, and a limit of 16 finds 56 with 75 of 1,017.
const LIMIT: f64 = 8.0;
/// The number of earlier weeks. Three windows of each week are used.
const WEEKS: usize = 6;
/// The fewest earlier windows for a judgement.
const LEAST_WINDOWS: usize = 9;
/// The fewest events of which a share is judged.
const LEAST_WHOLE: u32 = 30;
/// For normal noise, the standard deviation is the MAD times this factor.
const OF_MAD: f64 = 1.4826;
/// Deviations that are smaller than this share of the median are not worth an alarm, whatever the noise.
const LEAST_CHANGE: f64 = 0.05;
/// This many unusual windows in a row begin an alarm, and this many usual windows end it.
const IN_A_ROW: usize = 2;

/// The groups whose measures are judged: each source, each integration or each pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Source,
    Integration,
    Pair,
}

const JUDGED: [(By, Measure); 6] = [
    (By::Source, Measure::Events),
    (By::Source, Measure::FilteredRate),
    (By::Integration, Measure::Success),
    (By::Integration, Measure::ErrorRate),
    (By::Pair, Measure::Success),
    (By::Pair, Measure::ErrorRate),
];

impl By {
    const ALL: [Self; 3] = [Self::Source, Self::Integration, Self::Pair];

    const fn groups(self) -> usize {
        match self {
            Self::Source => SOURCES.len(),
            Self::Integration => INTEGRATIONS.len(),
            Self::Pair => SOURCES.len() * INTEGRATIONS.len(),
        }
    }

    const fn group(self, source: usize, integration: usize) -> usize {
        match self {
            Self::Source => source,
            Self::Integration => integration,
            Self::Pair => source * INTEGRATIONS.len() + integration,
        }
    }

    fn values(self, group: usize) -> Values {
        let source = |source: usize| ("write_key".to_owned(), SOURCES[source].0.to_owned());
        let integration = |own: usize| ("integration".to_owned(), INTEGRATIONS[own].to_owned());
        match self {
            Self::Source => vec![source(group)],
            Self::Integration => vec![integration(group)],
            Self::Pair => {
                vec![source(group / INTEGRATIONS.len()), integration(group % INTEGRATIONS.len())]
            }
        }
    }
}

/// Delivered, failed and filtered events, by group and window.
pub(super) struct Peer {
    counts: [Vec<Vec<[u32; 3]>>; 3],
}

impl Peer {
    pub(super) fn new(world: &World) -> Self {
        let windows = world.scale.windows();
        Self { counts: By::ALL.map(|by| vec![vec![[0; 3]; windows]; by.groups()]) }
    }

    /// Adds the events of a window.
    pub(super) fn count(&mut self, world: &World, at: usize, cells: &Cells) {
        for cell in &cells.delivered {
            let stream = &world.streams[cell.stream];
            let integration = stream.flows[cell.flow].integration;
            let counts = [cell.success, cell.errors, cell.sum()];
            for (by, all) in By::ALL.into_iter().zip(&mut self.counts) {
                let sums = &mut all[by.group(stream.source, integration)][at];
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum = sum.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
                }
            }
        }
    }

    /// The alarms in the judged weeks, grouped into incidents like the findings of the rules.
    pub(super) fn detected(&self, world: &World) -> Result<Detected> {
        let mut alarms = self.alarms(world);
        let findings = alarms.iter().map(|alarm| finding(world, alarm));
        let mut findings: Vec<Finding> = findings.collect::<Result<_>>()?;
        let over = alarms.iter().map(|alarm| over(world, alarm));
        let over: Vec<Option<Timestamp>> = over.collect::<Result<_>>()?;
        let incidents = incidents(&mut findings, &over);
        for (alarm, finding) in alarms.iter_mut().zip(findings) {
            alarm.incident = finding.incident.unwrap_or_default();
        }
        Ok(Detected::of(world, alarms, &incidents))
    }

    fn alarms(&self, world: &World) -> Vec<Alarm> {
        let mut alarms = Vec::new();
        for (by, measure) in JUDGED {
            for (group, counts) in self.counts[by as usize].iter().enumerate() {
                alarms.extend(alarms_of(world, counts, by.values(group), measure));
            }
        }
        alarms
    }
}

/// The value of a measure, and the number of events that it is based on. Returns `None` for a share of too few events.
fn value([success, errors, filtered]: [u32; 3], measure: Measure) -> Option<(f64, f64)> {
    let count = |count: u32| Some((f64::from(count), f64::from(count)));
    let share = |part: u32, whole: u32| {
        let ratio = f64::from(part) / f64::from(whole);
        (whole >= LEAST_WHOLE).then_some((ratio, f64::from(whole)))
    };
    match measure {
        Measure::Success => count(success),
        Measure::ErrorRate => share(errors, success + errors),
        Measure::FilteredRate => share(filtered, success + errors + filtered),
        _ => count(success + errors + filtered),
    }
}

fn alarms_of(world: &World, counts: &[[u32; 3]], group: Values, measure: Measure) -> Vec<Alarm> {
    let mut alarms: Vec<Alarm> = Vec::new();
    let (mut bad, mut good, mut is_firing) = (0, 0, false);
    for at in world.scale.first()..counts.len() {
        let judged = judge(counts, at, measure);
        match judged.as_ref().is_some_and(Judged::is_unusual) {
            true => (bad, good) = (bad + 1, 0),
            false => (bad, good) = (0, good + 1),
        }
        if let (true, false, Some(judged)) = (bad >= IN_A_ROW, is_firing, judged) {
            is_firing = true;
            alarms.push(Alarm {
                rule: format!("peer: {measure}"),
                measure,
                metric: Metric::EventDelivery,
                observed: judged.now,
                expected: judged.usual,
                whole: None,
                is_info: false,
                group: group.clone(),
                incident: String::new(),
                causes: vec![group.clone()],
                first: at,
                last: at,
                told: at + SETTLED,
                sentence: String::new(),
            });
        }
        is_firing = is_firing && good < IN_A_ROW;
        if let (true, Some(alarm)) = (is_firing && good == 0, alarms.last_mut()) {
            alarm.last = at;
        }
    }
    if let (true, Some(alarm)) = (is_firing, alarms.last_mut()) {
        alarm.last = counts.len() - 1;
    }
    alarms
}

/// When an alarm is reported as over, after [`IN_A_ROW`] usual windows; `None` if the simulation ends before that.
fn over(world: &World, alarm: &Alarm) -> Result<Option<Timestamp>> {
    let end = alarm.last + 1 + IN_A_ROW;
    let is_over = end <= world.scale.windows();
    is_over.then(|| start(world, end)).transpose()
}

/// Converts an alarm to a finding.
fn finding(world: &World, alarm: &Alarm) -> Result<Finding> {
    let end = start(world, alarm.first + 1)?;
    let window = Window::new(start(world, alarm.first)?, end)?;
    let group = alarm.group.iter();
    let group: Vec<(Dimension, String)> = group
        .filter_map(|(name, value)| Some((Dimension::from_name(name)?, value.clone())))
        .collect();
    let resolved = over(world, alarm)?.map(|_| start(world, alarm.last + 1));
    Ok(Finding {
        id: format!("{} {:?}", alarm.rule, alarm.group),
        rule: alarm.rule.clone(),
        kind: RuleKind::Volume,
        severity: Severity::Warning,
        status: match resolved {
            Some(_) => Status::Resolved,
            None => Status::Firing,
        },
        window,
        since: start(world, (alarm.first + 1).saturating_sub(IN_A_ROW))?,
        fired: Some(end),
        resolved: resolved.transpose()?,
        seen: end,
        measure: alarm.measure,
        // The conversion saturates.
        observed: Amount { part: alarm.observed as u64, whole: None },
        total: None,
        expected: alarm.expected,
        low: 0,
        high: None,
        ln_p: None,
        causes: Vec::new(),
        within: Vec::new(),
        unexplained: 0,
        compared: Vec::new(),
        silenced: false,
        provisional: false,
        labels: BTreeMap::new(),
        note: None,
        runbook: None,
        incident: None,
        sentence: String::new(),
        query: Query {
            metric: alarm.metric,
            start: window.start(),
            end,
            dimensions: Vec::new(),
            r#where: Vec::new(),
        },
        group,
    })
}

/// A number, its usual value, and the robust deviation.
struct Judged {
    now: f64,
    usual: f64,
    deviation: f64,
}

impl Judged {
    fn is_unusual(&self) -> bool {
        (self.now - self.usual).abs() > LIMIT * self.deviation
    }
}

fn judge(counts: &[[u32; 3]], at: usize, measure: Measure) -> Option<Judged> {
    let (now, size) = value(counts[at], measure)?;
    let mut usual: Vec<f64> = Vec::with_capacity(3 * WEEKS);
    for week in 1..=WEEKS {
        let Some(middle) = at.checked_sub(week * WEEK) else {
            continue;
        };
        let near = middle.saturating_sub(1)..=middle + 1;
        let values = near.filter_map(|other| value(counts[other], measure));
        usual.extend(values.map(|(value, _)| value));
    }
    if usual.len() < LEAST_WINDOWS {
        return None;
    }
    let middle = median(&mut usual);
    let mut distances: Vec<f64> = usual.iter().map(|one| (one - middle).abs()).collect();
    let spread = OF_MAD * median(&mut distances);
    let of_counting = match measure.is_rate() {
        true => libm::sqrt((middle * (1.0 - middle)).max(1.0 / size) / size),
        false => libm::sqrt(middle.max(1.0)),
    };
    let least = LEAST_CHANGE * middle / LIMIT;
    Some(Judged { now, usual: middle, deviation: spread.max(of_counting).max(least) })
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    let half = all.len() / 2;
    match all.len() % 2 {
        1 => all[half],
        _ => (all[half - 1] + all[half]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incidents::world::{Scale, Setting};

    #[test]
    fn the_peer_reports_what_lasts_two_windows_and_until_two_are_usual() {
        let scale = Scale { history: 4, judged: 1, incidents: 0 };
        let world = World::new(1, Setting::Calm, scale);
        let mut counts: Vec<[u32; 3]> =
            (0..scale.windows() as u32).map(|at| [1_000 + at * 7 % 50, 10 + at % 3, 0]).collect();
        let first = scale.first();
        let alarms = |counts: &[[u32; 3]], measure| {
            let alarms = alarms_of(&world, counts, By::Source.values(0), measure);
            let ranges = alarms.iter().map(|alarm| (alarm.first - first, alarm.last - first));
            ranges.collect::<Vec<_>>()
        };
        assert_eq!(alarms(&counts, Measure::Success), []);
        for at in [10, 20, 21, 22, 24, 40, 41, 43] {
            counts[first + at][0] *= 2;
        }
        counts[first + 60][1] = 300;
        counts[first + 61][1] = 300;
        assert_eq!(alarms(&counts, Measure::Success), [(21, 24), (41, 43)]);
        assert_eq!(alarms(&counts, Measure::ErrorRate), [(61, 61)]);
        counts[first + 61] = [2, 2, 0];
        assert_eq!(alarms(&counts, Measure::ErrorRate), []);
    }
}
