//! The parts of the simulation: sources, the streams of events that they send, the integrations that receive them, and
//! the level of traffic in each window if nothing happens.

use chrono::NaiveDate;

use super::clock::{Clock, DAY, HOUR, WEEK};
use super::names::{EVENT_NAMES, INTEGRATIONS, REASONS, SOURCES, Users};
use super::random::Random;

/// The levels of traffic at each full local hour, of private users and of business users. Machines always have the level 1.
const PRIVATE_HOURS: [f64; 24] = [
    0.45, 0.28, 0.18, 0.13, 0.12, 0.18, 0.38, 0.70, 0.95, 1.05, 1.10, 1.18, 1.30, 1.25, 1.15, 1.15,
    1.22, 1.35, 1.52, 1.75, 1.90, 1.80, 1.35, 0.80,
];
const BUSINESS_HOURS: [f64; 24] = [
    0.08, 0.06, 0.05, 0.05, 0.06, 0.12, 0.40, 1.10, 2.10, 2.50, 2.60, 2.45, 1.90, 2.20, 2.40, 2.30,
    1.90, 1.20, 0.60, 0.35, 0.22, 0.18, 0.14, 0.10,
];
/// The levels from Monday to Sunday.
const PRIVATE_DAYS: [f64; 7] = [0.95, 0.94, 0.95, 0.98, 1.05, 1.12, 1.01];
const BUSINESS_DAYS: [f64; 7] = [1.28, 1.32, 1.30, 1.26, 1.12, 0.40, 0.32];

/// How much noise carries over from one window to the next, and the standard deviations of its logarithm: for the volume
/// of a source, from window to window and from day to day, and for the error rate of an integration.
const MEMORY: f64 = 0.9;
const VOLUME_NOISE: f64 = 0.05;
const DAY_NOISE: f64 = 0.04;
const RATE_NOISE: f64 = 0.2;

/// The share of windows in which a sparse stream sends anything, and its maximum mean number of events per window.
const SPARSE: f64 = 0.6;
const SPARSE_MOST: f64 = 20.0;
/// The quarter of an hour of the local day in which nightly batches begin, how many windows they take, and the factor for
/// the mean volume of a stream with batches.
pub(super) const NIGHTLY: usize = 3 * HOUR;
pub(super) const BATCH: usize = 6;
const BATCH_SHARE: f64 = 0.3;

/// The error rate of the large integrations whose rate doubles in some incidents.
pub(super) const STEADY_ERRORS: f64 = 0.02;
/// The mean number of events per window that a small integration gets.
pub(super) const SMALL_ATTEMPTS: std::ops::RangeInclusive<f64> = 10.0..=60.0;

/// What happens in the simulation besides incidents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Everything.
    Full,
    /// No bursts, campaigns, launches, new or retired names, outages or clock changes.
    Calm,
}

impl Setting {
    pub(super) const ALL: [Self; 2] = [Self::Full, Self::Calm];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Calm => "calm",
        }
    }
}

/// How much is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Weeks before the first week that is judged.
    pub(super) history: usize,
    /// Weeks that are judged.
    pub(super) judged: usize,
    /// Incidents in the weeks that are judged.
    pub(super) incidents: usize,
}

impl Scale {
    /// All windows.
    pub(super) const fn windows(self) -> usize {
        (self.history + self.judged) * WEEK
    }

    /// The first window that is judged.
    pub(super) const fn first(self) -> usize {
        self.history * WEEK
    }
}

/// When a stream sends its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// In every window.
    Steady,
    /// In the first window of each hour.
    Hourly,
    /// In a batch at night, which is late in some nights.
    Nightly,
    /// In some windows only: the others have none.
    Sparse,
}

/// The events of one name from one source.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) source: usize,
    pub(super) event_name: usize,
    /// Events a window, on average.
    pub(super) mean: f64,
    pub(super) pattern: Pattern,
    /// The shape of its negative binomial noise.
    pub(super) shape: f64,
    pub(super) flows: Vec<Flow>,
}

/// The delivery of a stream to one integration.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) integration: usize,
    /// The share of events that are usually filtered.
    pub(super) filtered: f64,
    /// The usual reason and a rare one.
    pub(super) reasons: [usize; 2],
}

/// How many events an integration gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Large,
    Medium,
    Small,
}

impl Size {
    pub(super) const fn of(integration: usize) -> Self {
        match integration {
            0..10 => Self::Large,
            10..26 => Self::Medium,
            _ => Self::Small,
        }
    }
}

/// The purpose of each sequence of random numbers.
#[repr(u64)]
pub(super) enum Purpose {
    Sources = 1,
    Streams,
    Flows,
    Rates,
    Noise,
    Pauses,
    Nights,
    Plan,
    Events,
    Fates,
    Late,
}

/// Everything that does not depend on changes.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) setting: Setting,
    pub(super) scale: Scale,
    pub(super) clock: Clock,
    pub(super) streams: Vec<Stream>,
    /// The usual share of attempts that fail, by integration.
    pub(super) error_rates: Vec<f64>,
    /// How much the traffic of each source grows in a week.
    growth: Vec<f64>,
    /// Logarithms, by source or integration and window.
    volume_noise: Vec<Vec<f64>>,
    rate_noise: Vec<Vec<f64>>,
}

impl World {
    pub(super) fn new(seed: u64, setting: Setting, scale: Scale) -> Self {
        let windows = scale.windows();
        let mut growth = Random::of(&[seed, Purpose::Sources as u64, 1]);
        let noise = |of: usize, deviation| walk(seed, of as u64, deviation, windows);
        let mut streams = streams(seed);
        add_flows(seed, &mut streams);
        Self {
            clock: Clock::new(monday(seed, scale), windows, setting == Setting::Full),
            streams,
            error_rates: error_rates(seed),
            growth: SOURCES.map(|_| 0.003 + 0.008 * growth.normal()).to_vec(),
            volume_noise: (0..SOURCES.len()).map(|of| noise(of, VOLUME_NOISE)).collect(),
            rate_noise: (0..INTEGRATIONS.len()).map(|of| noise(100 + of, RATE_NOISE)).collect(),
            seed,
            setting,
            scale,
        }
    }

    /// The expected events of a stream in a window, by the calendar alone.
    pub(super) fn expected(&self, place: usize, at: usize) -> f64 {
        let stream = &self.streams[place];
        let (_, zone, users) = SOURCES[stream.source];
        let (day, quarter) = self.clock.local(zone, at);
        let grown = libm::exp(self.growth[stream.source] * at as f64 / WEEK as f64);
        let level = || level(users, day, quarter);
        let of_pattern = match stream.pattern {
            Pattern::Steady => level(),
            Pattern::Hourly if quarter.is_multiple_of(HOUR) => level() * HOUR as f64,
            Pattern::Sparse if self.is_busy(place, at) => level() / SPARSE,
            Pattern::Nightly => {
                let begin = NIGHTLY + self.lateness(place, day);
                let is_on = (begin..begin + BATCH).contains(&quarter);
                f64::from(u8::from(is_on)) * (DAY / BATCH) as f64
            }
            Pattern::Hourly | Pattern::Sparse => 0.0,
        };
        stream.mean * grown * of_pattern
    }

    /// Like [`World::expected`], with the noise that all events of a source share.
    pub(super) fn noisy(&self, place: usize, at: usize) -> f64 {
        let source = self.streams[place].source;
        let (day, _) = self.clock.local(SOURCES[source].1, at);
        let name = [self.seed, Purpose::Noise as u64, 200 + source as u64, day as u64];
        let of_day = DAY_NOISE * Random::of(&name).normal();
        self.expected(place, at) * libm::exp(self.volume_noise[source][at] + of_day)
    }

    /// The usual share of attempts that fail, with its noise.
    pub(super) fn error_rate(&self, integration: usize, at: usize) -> f64 {
        self.error_rates[integration] * libm::exp(self.rate_noise[integration][at])
    }

    /// Whether a sparse stream sends anything in this window.
    fn is_busy(&self, place: usize, at: usize) -> bool {
        let name = [self.seed, Purpose::Pauses as u64, place as u64, at as u64];
        Random::of(&name).unit() < SPARSE
    }

    /// By how many windows the nightly batch of a stream is late on a local day. One night in 20, it is up to an hour
    /// late, and one night in 40, it is two to five hours late.
    pub(super) fn lateness(&self, place: usize, day: usize) -> usize {
        let name = [self.seed, Purpose::Nights as u64, place as u64, day as u64];
        let mut random = Random::of(&name);
        match random.below(40) {
            0..2 => random.between(1, HOUR),
            2 => random.between(2 * HOUR, 5 * HOUR),
            _ => 0,
        }
    }

    /// All flows, each with its stream.
    pub(super) fn flows(&self) -> impl Iterator<Item = (&Stream, &Flow)> {
        let streams = self.streams.iter();
        streams.flat_map(|stream| stream.flows.iter().map(move |flow| (stream, flow)))
    }
}

/// The first day: the judged weeks begin in March or in September, so that they contain the clock changes of each zone.
fn monday(seed: u64, scale: Scale) -> NaiveDate {
    let (month, day) = if seed.is_multiple_of(2) { (3, 2) } else { (9, 14) };
    let judged = NaiveDate::from_ymd_opt(2026, month, day).unwrap_or_default();
    judged - chrono::TimeDelta::weeks(scale.history as i64)
}

/// The level of traffic at a local time.
fn level(users: Users, day: usize, quarter: usize) -> f64 {
    let (hours, days) = match users {
        Users::Private => (&PRIVATE_HOURS, &PRIVATE_DAYS),
        Users::Business => (&BUSINESS_HOURS, &BUSINESS_DAYS),
        Users::Machines => return 1.0,
    };
    let (hour, rest) = (quarter / HOUR, (quarter % HOUR) as f64 / HOUR as f64);
    (hours[hour] * (1.0 - rest) + hours[(hour + 1) % 24] * rest) * days[day % 7]
}

/// Noise that changes slowly.
fn walk(seed: u64, of: u64, deviation: f64, windows: usize) -> Vec<f64> {
    let mut random = Random::of(&[seed, Purpose::Noise as u64, of]);
    let mut now = deviation * random.normal();
    let fresh = deviation * libm::sqrt(1.0 - MEMORY * MEMORY);
    let next = |_| {
        now = MEMORY * now + fresh * random.normal();
        now
    };
    (0..windows).map(next).collect()
}

/// Six streams of each source, the busiest first. The busiest source sends about fifty times as many events as the
/// smallest one.
fn streams(seed: u64) -> Vec<Stream> {
    const SHARES: [f64; 6] = [0.42, 0.25, 0.14, 0.09, 0.06, 0.04];
    let mut random = Random::of(&[seed, Purpose::Streams as u64]);
    let mut ranks: Vec<usize> = (0..SOURCES.len()).collect();
    random.shuffle(&mut ranks);
    let mut streams = Vec::new();
    for (source, rank) in ranks.into_iter().enumerate() {
        let volume = 6_000.0 * libm::exp(-0.35 * rank as f64);
        let mut names: Vec<usize> = (0..EVENT_NAMES.len()).collect();
        random.shuffle(&mut names);
        for (place, share) in SHARES.into_iter().enumerate() {
            let pattern = match (place, random.below(10)) {
                (3, 0..3) => Pattern::Hourly,
                (4, 0..4) => Pattern::Nightly,
                (5, 0..3) => Pattern::Sparse,
                _ => Pattern::Steady,
            };
            streams.push(Stream {
                source,
                event_name: names[place],
                mean: match pattern {
                    Pattern::Nightly => BATCH_SHARE * volume * share,
                    Pattern::Sparse => SPARSE_MOST.min(volume * share),
                    Pattern::Steady | Pattern::Hourly => volume * share,
                },
                pattern,
                shape: random.log_between(8.0, 80.0),
                flows: Vec::new(),
            });
        }
    }
    streams
}

/// Gives each integration its streams: most names of seven sources to a large one, a few names of some sources to a
/// medium one, and a few small streams to a small one.
fn add_flows(seed: u64, streams: &mut [Stream]) {
    for integration in 0..INTEGRATIONS.len() {
        let mut random = Random::of(&[seed, Purpose::Flows as u64, integration as u64]);
        let chosen = match Size::of(integration) {
            Size::Large => of_sources(&mut random, streams, 7, 6),
            Size::Medium => {
                let sources = random.between(2, 4);
                of_sources(&mut random, streams, sources, 3)
            }
            Size::Small => small(&mut random, streams),
        };
        for place in chosen {
            let flow = Flow {
                integration,
                // Two of five have no filter; the others lose up to an eighth of their events.
                filtered: match random.below(5) {
                    0 | 1 => 0.0,
                    _ => random.unit() / 8.0,
                },
                reasons: [random.below(REASONS.len()), random.below(REASONS.len())],
            };
            streams[place].flows.push(flow);
        }
    }
}

/// Half to all of `most` streams from each of `sources` sources.
fn of_sources(random: &mut Random, streams: &[Stream], sources: usize, most: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..SOURCES.len()).collect();
    random.shuffle(&mut all);
    let mut chosen = Vec::new();
    for source in &all[..sources] {
        let own = streams.iter().enumerate();
        let own = own.filter(|(_, stream)| stream.source == *source);
        let mut own: Vec<usize> = own.map(|(place, _)| place).collect();
        random.shuffle(&mut own);
        chosen.extend(&own[..random.between(most.div_ceil(2), most)]);
    }
    chosen.sort_unstable();
    chosen
}

/// Streams that together have as many events as a small integration gets.
fn small(random: &mut Random, streams: &[Stream]) -> Vec<usize> {
    let is_steady = |place: &usize| streams[*place].pattern == Pattern::Steady;
    let mut all: Vec<usize> = (0..streams.len()).filter(is_steady).collect();
    random.shuffle(&mut all);
    let mut chosen = Vec::new();
    let mut sum = 0.0;
    // A filter may take an eighth of them.
    let most = *SMALL_ATTEMPTS.end();
    for place in all {
        if sum + streams[place].mean <= most {
            sum += streams[place].mean;
            chosen.push(place);
        }
        if sum >= most / 3.0 {
            break;
        }
    }
    chosen.sort_unstable();
    chosen
}

fn error_rates(seed: u64) -> Vec<f64> {
    let mut random = Random::of(&[seed, Purpose::Rates as u64]);
    let rate = |integration: usize| match Size::of(integration) {
        Size::Large if integration.is_multiple_of(2) => STEADY_ERRORS,
        _ => random.log_between(0.001, 0.04),
    };
    (0..INTEGRATIONS.len()).map(rate).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::incidents::clock::Zone;

    pub(in super::super) const SMALL: Scale = Scale { history: 2, judged: 3, incidents: 20 };

    #[test]
    fn there_are_integrations_of_each_size() {
        for seed in 1..20 {
            let world = World::new(seed, Setting::Calm, SMALL);
            for integration in 0..INTEGRATIONS.len() {
                let flows = world.flows();
                let own = flows.filter(|(_, flow)| flow.integration == integration);
                let attempts = own.map(|(stream, flow)| stream.mean * (1.0 - flow.filtered));
                let attempts: f64 = attempts.sum();
                match Size::of(integration) {
                    Size::Small => assert!(SMALL_ATTEMPTS.contains(&attempts), "{attempts}"),
                    Size::Large => assert!(attempts > 1_000.0, "{attempts}"),
                    Size::Medium => assert!(attempts > 10.0, "{attempts}"),
                }
            }
        }
    }

    #[test]
    fn every_pattern_sends_its_mean_when_it_should() {
        let world = World::new(4, Setting::Calm, SMALL);
        for pattern in [Pattern::Steady, Pattern::Hourly, Pattern::Nightly, Pattern::Sparse] {
            let mut streams = world.streams.iter();
            let place = streams.position(|stream| stream.pattern == pattern).unwrap();
            let all: Vec<f64> = (0..2 * WEEK).map(|at| world.expected(place, at)).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let ratio = mean / world.streams[place].mean;
            assert!((0.8..1.2).contains(&ratio), "{pattern:?}: {ratio}");
            let busy = all.iter().filter(|mean| **mean > 0.0).count() as f64 / all.len() as f64;
            let wanted = match pattern {
                Pattern::Steady => 1.0,
                Pattern::Hourly => 0.25,
                Pattern::Nightly => BATCH as f64 / DAY as f64,
                Pattern::Sparse => SPARSE,
            };
            assert!((busy - wanted).abs() < 0.1, "{pattern:?}: {busy}");
        }
    }

    #[test]
    fn the_judged_weeks_have_clock_changes_unless_they_are_calm() {
        let scale = Scale { history: 6, judged: 13, incidents: 40 };
        for seed in [1, 2] {
            let world = World::new(seed, Setting::Full, scale);
            for zone in [Zone::Berlin, Zone::London, Zone::NewYork, Zone::LosAngeles, Zone::Sydney]
            {
                let changes: Vec<usize> = world.clock.changes(zone).collect();
                assert_eq!(changes.len(), 1, "{zone:?}");
                assert!(changes[0] >= scale.first());
            }
        }
    }
}
