//! How fast windows are judged: levels and tails of every window of every group, on one core.

use std::process::ExitCode;

use tallyfold_health::{Level, Levels, Season, Stream, is_unremarkable, judge};

use crate::mix::{STEP, mix};

/// How many windows of each group are judged, and how many groups there are.
const WINDOWS: usize = 2_880;
const GROUPS: usize = 1_200;
/// A day of 15 minutes.
const PER_DAY: usize = 96;
/// Tails below this probability are counted as findings.
const LN_P: f64 = -13.8;

/// `speed-judge`: prints a line each for volumes and rates, with the whole history and without.
pub(crate) fn run(_: &[String]) -> ExitCode {
    println!(
        "{:<44}{:>10}{:>12}{:>10}{:>10}",
        "judged on one core", "seconds", "us a window", "tails", "findings"
    );
    for (name, history, is_rate) in [
        (
            "volumes, six weeks of history before",
            6 * 7 * PER_DAY,
            false,
        ),
        ("rates, six weeks of history before", 6 * 7 * PER_DAY, true),
        ("volumes, no history before", 0, false),
        ("rates, no history before", 0, true),
    ] {
        let groups: Vec<Group> = (0..GROUPS)
            .map(|group| Group::generated(group, history + WINDOWS))
            .collect();
        let began = busy();
        let totals = groups
            .iter()
            .map(|group| group.judged(history, is_rate))
            .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let seconds = (busy() - began) as f64 / 1e9;
        let each = seconds * 1e6 / (WINDOWS * GROUPS) as f64;
        println!(
            "{name:<44}{seconds:>10.2}{each:>12.3}{:>10}{:>10}",
            totals.0, totals.1
        );
    }
    ExitCode::SUCCESS
}

/// The processor time of this thread in nanoseconds, which does not depend on other programs.
pub(crate) fn busy() -> u64 {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    line.split(' ')
        .next()
        .and_then(|first| first.parse().ok())
        .unwrap_or_default()
}

/// A group's counts: attempts with a day and a week in them, and failures.
struct Group {
    attempts: Vec<u64>,
    failures: Vec<u64>,
    known: Vec<bool>,
}

impl Group {
    /// Groups differ in size, from one event in ten windows to a million in each.
    fn generated(group: usize, windows: usize) -> Self {
        let mut random = Random(group as u64 + 1);
        let size = 0.1 * 10_f64.powf(7.0 * group as f64 / GROUPS as f64);
        let mut attempts = Vec::with_capacity(windows);
        let mut failures = Vec::with_capacity(windows);
        for window in 0..windows {
            let day = (window % PER_DAY) as f64 / PER_DAY as f64;
            let weekend = if window / PER_DAY % 7 >= 5 { 0.6 } else { 1.0 };
            let mean = size * weekend * (1.0 + 0.6 * (day * std::f64::consts::TAU).sin());
            attempts.push(random.count(mean, 2.0));
            failures.push(random.count(0.02 * mean, 1.5).min(attempts[window]));
        }
        Self {
            attempts,
            failures,
            known: vec![true; windows],
        }
    }

    /// How many tails were computed, and how many of them are findings.
    fn judged(&self, from: usize, is_rate: bool) -> (usize, usize) {
        let stream = if is_rate {
            Stream {
                counts: &self.failures,
                wholes: Some(&self.attempts),
                known: &self.known,
            }
        } else {
            Stream {
                counts: &self.attempts,
                wholes: None,
                known: &self.known,
            }
        };
        let mut found = (0, 0);
        for (at, level) in
            (from..self.known.len()).zip(Levels::new(&stream, &Season::weekly(PER_DAY), from))
        {
            let Some(level) = level else { continue };
            let whole = stream.wholes.map(|wholes| wholes[at]);
            judge_one(stream.counts[at], whole, &level, &mut found);
        }
        found
    }
}

fn judge_one(part: u64, whole: Option<u64>, level: &Level, found: &mut (usize, usize)) {
    if is_unremarkable(part, whole, level) {
        return;
    }
    let tails = judge(part, whole, level);
    found.0 += 1;
    if tails.low.min(tails.high) < LN_P {
        found.1 += 1;
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        let bits = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Events in groups of `dispersion`, about Poisson in number: by counting for few, by the normal distribution for many.
    fn count(&mut self, mean: f64, dispersion: f64) -> u64 {
        if mean < 30.0 {
            let end = (-mean).exp();
            let mut product = self.uniform();
            let mut count = 0;
            while product > end {
                product *= self.uniform();
                count += 1;
            }
            return count;
        }
        let normal = (-2.0 * self.uniform().max(1e-300).ln()).sqrt()
            * (self.uniform() * std::f64::consts::TAU).cos();
        (mean + normal * (mean * dispersion).sqrt())
            .max(0.0)
            .round() as u64
    }
}
