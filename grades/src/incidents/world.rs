//! What exists in the simulation: streams of events, where they are delivered, and how busy each window is.

use super::random::Random;
use super::vocabulary::{EVENT_NAMES, INTEGRATIONS, REASONS, WRITE_KEYS};

/// Windows of a quarter of an hour.
pub(super) const HOUR: usize = 4;
pub(super) const DAY: usize = 24 * HOUR;
pub(super) const WEEK: usize = 7 * DAY;

/// The level of traffic at each full hour UTC and of each day from Monday to Sunday, as in the sandbox.
const HOURS: [f64; 24] = [
    0.42, 0.35, 0.31, 0.30, 0.33, 0.42, 0.60, 0.82, 1.02, 1.18, 1.29, 1.35, 1.38, 1.40, 1.42, 1.44,
    1.43, 1.38, 1.31, 1.22, 1.08, 0.88, 0.69, 0.53,
];
const WEEKDAYS: [f64; 7] = [1.00, 1.02, 1.04, 1.02, 0.98, 0.64, 0.58];
/// A holiday has about the traffic of a Sunday.
const HOLIDAY: f64 = 0.6;
/// How much an hour of noise in common keeps from one window to the next, and the standard deviations of its logarithm:
/// of the volume of a write key, of the error rate of an integration, and of a whole day.
const MEMORY: f64 = 0.9;
const VOLUME_NOISE: f64 = 0.04;
const RATE_NOISE: f64 = 0.2;
const DAY_NOISE: f64 = 0.03;

/// How much is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Combinations of a write key and an event name.
    pub(super) streams: usize,
    /// Weeks before the first one that is judged.
    pub(super) history: usize,
    /// Weeks that are judged.
    pub(super) judged: usize,
    /// Of these, weeks without an incident.
    pub(super) quiet: usize,
    /// Incidents in a week that is not quiet.
    pub(super) incidents_a_week: usize,
}

impl Scale {
    /// All windows.
    pub(super) fn windows(self) -> usize {
        (self.history + self.judged) * WEEK
    }
}

/// The events of one name from one write key.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) write_key: usize,
    pub(super) event_name: usize,
    /// Events in a window at level 1.
    pub(super) mean: f64,
    pub(super) flows: Vec<Flow>,
}

/// The delivery of a stream to one integration.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) integration: usize,
    /// The part that filters take on usual days.
    pub(super) filtered: f64,
    /// The usual reason and a rare one.
    pub(super) reasons: [usize; 2],
}

/// Everything in the simulation that does not depend on incidents.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) scale: Scale,
    pub(super) streams: Vec<Stream>,
    error_rates: Vec<f64>,
    /// How much the traffic of each write key grows in a week.
    growth: Vec<f64>,
    /// Days since the start.
    holidays: [usize; 2],
    /// Logarithms, by write key or integration and window.
    volume_noise: Vec<Vec<f64>>,
    rate_noise: Vec<Vec<f64>>,
}

/// The purpose of each stream of random numbers.
#[repr(u64)]
pub(super) enum Purpose {
    Streams = 1,
    Rates,
    Growth,
    Holidays,
    Noise,
    Plan,
    Cells,
    Late,
}

impl World {
    pub(super) fn new(seed: u64, scale: Scale) -> Self {
        let mut rates = Random::of(&[seed, Purpose::Rates as u64]);
        let mut growth = Random::of(&[seed, Purpose::Growth as u64]);
        let mut days = Random::of(&[seed, Purpose::Holidays as u64]);
        let mut holiday = |weeks: usize| days.below(weeks) * 7 + days.below(5);
        let first = holiday(scale.history);
        let noise = |of: u64, deviation| walk(seed, of, deviation, scale.windows());
        Self {
            streams: streams(seed, scale.streams),
            error_rates: INTEGRATIONS
                .iter()
                .map(|_| rates.log_between(0.003, 0.023))
                .collect(),
            growth: WRITE_KEYS
                .iter()
                .map(|_| 0.005 + 0.01 * growth.normal())
                .collect(),
            holidays: [first, scale.history * 7 + holiday(scale.judged)],
            volume_noise: (0..WRITE_KEYS.len() as u64)
                .map(|of| noise(of, VOLUME_NOISE))
                .collect(),
            rate_noise: (100..100 + INTEGRATIONS.len() as u64)
                .map(|of| noise(of, RATE_NOISE))
                .collect(),
            seed,
            scale,
        }
    }

    /// The expected level of a write key's traffic: what is known beforehand.
    pub(super) fn level(&self, write_key: usize, at: usize) -> f64 {
        let day = at / DAY;
        let (hour, quarter) = (at % DAY / HOUR, at % HOUR);
        let rest = quarter as f64 / HOUR as f64;
        let of_hour = HOURS[hour] * (1.0 - rest) + HOURS[(hour + 1) % 24] * rest;
        let of_day = if self.holidays.contains(&day) {
            HOLIDAY
        } else {
            WEEKDAYS[day % 7]
        };
        let weeks = at as f64 / WEEK as f64;
        of_hour * of_day * libm::exp(self.growth[write_key] * weeks)
    }

    /// The level with the noise that all events of a write key have in common.
    pub(super) fn noisy_level(&self, write_key: usize, at: usize) -> f64 {
        let mut of_day = Random::of(&[self.seed, Purpose::Noise as u64, 200, (at / DAY) as u64]);
        let noise = self.volume_noise[write_key][at] + DAY_NOISE * of_day.normal();
        self.level(write_key, at) * libm::exp(noise)
    }

    /// The usual part of attempts that fail.
    pub(super) fn error_rate(&self, integration: usize, at: usize) -> f64 {
        self.error_rates[integration] * libm::exp(self.rate_noise[integration][at])
    }
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

/// Distinct streams, the busiest first. A write key has a part of the event names and of the integrations, and the
/// smaller of two draws prefers the first ones.
fn streams(seed: u64, count: usize) -> Vec<Stream> {
    let mut random = Random::of(&[seed, Purpose::Streams as u64]);
    let mut streams: Vec<Stream> = Vec::new();
    let mut skewed = |end: usize| random.below(end).min(random.below(end));
    while streams.len() < count {
        let write_key = skewed(WRITE_KEYS.len());
        let event_name = (write_key * 5 + skewed(12)) % EVENT_NAMES.len();
        let is_there =
            |other: &Stream| other.write_key == write_key && other.event_name == event_name;
        if !streams.iter().any(is_there) {
            let rank = streams.len() as f64;
            streams.push(Stream {
                write_key,
                event_name,
                mean: 6_000.0 / (2.0 * rank + 4.0) * 100.0 / (rank + 100.0),
                flows: flows(seed, write_key, event_name),
            });
        }
    }
    streams
}

/// Three or four of the five integrations that a write key uses.
fn flows(seed: u64, write_key: usize, event_name: usize) -> Vec<Flow> {
    let name = [
        seed,
        Purpose::Streams as u64,
        write_key as u64,
        event_name as u64,
    ];
    let mut random = Random::of(&name);
    let skipped = [random.below(5), random.below(5)];
    let used = (0..5).filter(|place| !skipped.contains(place));
    let flow = |place: usize| Flow {
        integration: (write_key * 3 + place * place) % INTEGRATIONS.len(),
        // Two of five have no filter; the others lose up to an eighth of their events.
        filtered: if random.below(5) < 2 {
            0.0
        } else {
            random.unit() / 8.0
        },
        reasons: [random.below(REASONS.len()), random.below(REASONS.len())],
    };
    let mut flows: Vec<Flow> = used.map(flow).collect();
    flows.sort_by_key(|flow| flow.integration);
    flows.dedup_by_key(|flow| flow.integration);
    flows
}
