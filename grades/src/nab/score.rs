//! How alarms of a labelled series are counted.

use tallyfold::{CountTable, Timestamp, Window};
use tallyfold_health::{Observed, Rules};

use crate::nab::series::{Hours, minutes};

/// A detector of alarms in a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detector {
    /// The rule `volume`, as a user would configure it.
    Rule,
    /// The method for comparison: how many median absolute deviations an hour is from the median of the same hour of
    /// earlier weeks.
    Median,
}

impl Detector {
    pub(crate) const ALL: [Self; 2] = [Self::Rule, Self::Median];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule volume",
            Self::Median => "median and MAD",
        }
    }
}

/// An alarm, at the end of an hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alarm {
    pub(crate) at: usize,
    pub(crate) score: f64,
}

/// The rules of a user who wants alerts for unusual volumes.
const RULES: &str = "window = '1h'\n[[rule]]\nname = 'volume'\nkind = 'volume'\nmeasure = 'events'";

/// The limit of the method for comparison, which is the best one on these series, and the hours without another alarm
/// after an alarm.
const DEVIATIONS: f64 = 12.0;
const QUIET: usize = 24;

/// The alarms of a series, without its first 15%, which are for learning.
pub(crate) fn alarms(hours: &Hours, detector: Detector) -> Result<Vec<Alarm>, String> {
    let learned = hours.counts.len() * 15 / 100;
    let mut alarms = match detector {
        Detector::Rule => by_rule(hours).map_err(|error| error.to_string())?,
        Detector::Median => by_median(hours),
    };
    alarms.retain(|alarm| alarm.at >= learned);
    Ok(alarms)
}

/// An alarm for each finding, in the hour at whose end it fired.
fn by_rule(hours: &Hours) -> tallyfold::Result<Vec<Alarm>> {
    let start = |at: usize| {
        let start = Timestamp::from_unix_ms(hours.start_ms + at as i64 * 3_600_000);
        start.map_or_else(|| Timestamp::parse(""), Ok)
    };
    let counts = |count: u64| serde_json::json!({ "success": count.to_string(), "errors": "0", "filtered": "0" });
    let window = |(at, count): (usize, &u64)| {
        let mut row = counts(*count);
        row["values"] = serde_json::json!([]);
        Ok(serde_json::json!({
            "start": start(at)?.to_string(), "end": start(at + 1)?.to_string(), "reported": counts(*count),
            "notes": {"repeated_combinations": 0, "null_dimensions": 0}, "rows": [row],
        }))
    };
    let windows = hours.counts.iter().enumerate().map(window);
    let windows = windows.collect::<tallyfold::Result<Vec<_>>>()?;
    let saved = serde_json::json!({
        "format": "tallyfold-table/1", "metric": "event_delivery", "dimensions": [], "filter": [],
        "totals": counts(hours.counts.iter().sum()), "windows": windows,
    });
    let table = CountTable::from_json(saved.to_string().as_bytes())?;
    let observed = Observed { delivery: Some(&table), ingestion: None };
    let range = Window::new(start(0)?, start(hours.counts.len())?)?;
    let replay = Rules::parse(RULES)?.replay(&observed, range)?;
    let alarm = |finding: &tallyfold_health::Finding| {
        let fired = finding.fired?.unix_ms() - hours.start_ms;
        Some(Alarm {
            at: usize::try_from(fired / 3_600_000 - 1).ok()?,
            score: finding.ln_p.map_or(0.0, |ln_p| -ln_p),
        })
    };
    Ok(replay.findings.iter().filter_map(alarm).collect())
}

/// The method for comparison. It compares each hour with the same hour of earlier weeks, or of earlier days while there
/// are fewer than three weeks.
fn by_median(hours: &Hours) -> Vec<Alarm> {
    let median = |mut numbers: Vec<f64>| {
        numbers.sort_by(f64::total_cmp);
        numbers.get(numbers.len() / 2).copied().unwrap_or_default()
    };
    let mut alarms: Vec<Alarm> = Vec::new();
    for (at, count) in hours.counts.iter().enumerate() {
        let same = |step: usize| {
            let earlier = (1..).map_while(|times| at.checked_sub(times * step));
            earlier.map(|at| hours.counts[at] as f64).collect::<Vec<_>>()
        };
        let mut usual = same(168);
        if usual.len() < 3 {
            usual = same(24);
        }
        if usual.len() < 3 {
            continue;
        }
        let middle = median(usual.clone());
        let spread = median(usual.iter().map(|one| (one - middle).abs()).collect());
        let score = (*count as f64 - middle).abs() / spread.max(libm::sqrt(middle)).max(1.0);
        let is_quiet = alarms.last().is_none_or(|last| at - last.at >= QUIET);
        if score > DEVIATIONS && is_quiet {
            alarms.push(Alarm { at, score });
        }
    }
    alarms
}

/// Alarms and windows of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Score {
    pub(crate) alarms: usize,
    pub(crate) right: usize,
    pub(crate) windows: usize,
    pub(crate) hit: usize,
    /// Hours from the start of each window that was hit to its first alarm.
    pub(crate) delay: f64,
    pub(crate) weeks: f64,
    /// The benchmark's own points: up to one for each window that is hit, more for an earlier alarm; minus one for each
    /// missed window; and minus up to 0.11 for each alarm outside of windows.
    pub(crate) points: f64,
}

/// An alarm is right if it is within a labelled window, both ends included; a window is hit by one alarm or more.
pub(crate) fn score(hours: &Hours, alarms: &[Alarm], labels: &[(String, String)]) -> Score {
    let at = |alarm: &Alarm| minutes(&hours.times[alarm.at]).unwrap_or_default();
    let windows = labels.iter().filter_map(|(start, end)| Some((minutes(start)?, minutes(end)?)));
    let windows = windows.collect::<Vec<_>>();
    let is_in = |time: i64, window: &(i64, i64)| window.0 <= time && time <= window.1;
    let first = |window: &(i64, i64)| alarms.iter().map(at).find(|time| is_in(*time, window));
    let delays =
        windows.iter().filter_map(|window| Some((first(window)? - window.0) as f64 / 60.0));
    let delays = delays.collect::<Vec<_>>();
    let of_window = |window: &(i64, i64)| match first(window) {
        Some(time) => sigmoid((time - window.1) as f64 / length(*window)) / sigmoid(-1.0),
        None => -1.0,
    };
    let of_false = |alarm: &Alarm| {
        let time = at(alarm);
        let is_right = windows.iter().any(|window| is_in(time, window));
        let before = windows.iter().filter(|window| window.1 < time);
        match before.max_by_key(|window| window.1) {
            _ if is_right => 0.0,
            Some(window) => 0.11 * sigmoid((time - window.1) as f64 / length(*window)),
            None => -0.11,
        }
    };
    let points = windows.iter().map(of_window).chain(alarms.iter().map(of_false));
    Score {
        points: points.fold(0.0, |sum, points| sum + points),
        alarms: alarms.len(),
        right: alarms
            .iter()
            .filter(|alarm| windows.iter().any(|window| is_in(at(alarm), window)))
            .count(),
        windows: windows.len(),
        hit: delays.len(),
        delay: delays.iter().fold(0.0, |sum, delay| sum + delay),
        weeks: hours.counts.len() as f64 * 0.85 / 168.0,
    }
}

fn length((start, end): (i64, i64)) -> f64 {
    (end - start).max(1) as f64
}

/// The benchmark's weight of a position, in lengths of a window after its end: from 0.99 at its start to 0 at its end and
/// -1 long after it.
fn sigmoid(position: f64) -> f64 {
    match position > 3.0 {
        true => -1.0,
        false => 2.0 / (1.0 + libm::exp(5.0 * position)) - 1.0,
    }
}

impl Score {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.alarms += other.alarms;
        self.right += other.right;
        self.windows += other.windows;
        self.hit += other.hit;
        self.delay += other.delay;
        self.weeks += other.weeks;
        self.points += other.points;
    }

    /// Precision, recall, mean delay in hours, false alarms a week, and the benchmark's standard score: 0 without any alarm,
    /// 100 for a perfect detector.
    pub(crate) fn figures(&self) -> [f64; 5] {
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let wrong = (self.alarms - self.right) as f64;
        let windows = self.windows as f64;
        [
            share(self.right, self.alarms),
            share(self.hit, self.windows),
            self.delay / self.hit.max(1) as f64,
            wrong / self.weeks.max(0.01),
            100.0 * (self.points + windows) / (2.0 * windows.max(1.0)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// Eight weeks of half hours with a day and a weekend, a surge, and a day that is too quiet.
    #[test]
    fn a_generated_series_is_scanned_without_a_mistake() {
        let mut text = "timestamp,value\n".to_owned();
        for step in 0..2688usize {
            let (hour, day) = (step / 2, step / 48);
            let mean = 300.0 + 200.0 * libm::sin(hour as f64 * std::f64::consts::PI / 12.0);
            let week = if day % 7 > 4 { 0.6 } else { 1.0 };
            let odd = match hour {
                900..=910 => 5.0,
                1104..=1128 => 0.3,
                _ => 1.0,
            };
            let noise = 1.0 + 0.1 * libm::sin(step as f64 * 12.9898);
            let time = format!(
                "2015-{:02}-{:02} {:02}:{:02}:00",
                1 + day / 28,
                1 + day % 28,
                hour % 24,
                step % 2 * 30
            );
            let _ = writeln!(text, "{time},{}", (mean * week * noise * odd) as u64);
        }
        let hours = Hours::parse(&text).unwrap();
        let windows = [
            ("2015-02-10 06:00:00", "2015-02-11 06:00:00"),
            ("2015-02-18 20:00:00", "2015-02-20 06:00:00"),
        ];
        let labels = windows.map(|(start, end)| (start.to_owned(), end.to_owned()));
        let found = alarms(&hours, Detector::Rule).unwrap();
        let score = score(&hours, &found, &labels);
        assert_eq!(
            (score.alarms, score.right, score.windows, score.hit),
            (2, 2, 2, 2),
            "{found:?}"
        );
        assert!(score.delay < 20.0, "{score:?}");
        assert!(score.figures()[4] > 70.0, "{score:?}");
    }

    #[test]
    fn points_are_those_of_the_benchmark() {
        let hours = Hours {
            counts: vec![1; 100],
            times: (0..100)
                .map(|at| format!("2015-01-{:02} {:02}:00:00", 1 + at / 24, at % 24))
                .collect(),
            start_ms: 0,
        };
        let labels = [("2015-01-02 00:00:00".to_owned(), "2015-01-02 10:00:00".to_owned())];
        let of = |alarms: &[usize]| {
            let alarms: Vec<Alarm> =
                alarms.iter().map(|at| Alarm { at: *at, score: 1.0 }).collect();
            score(&hours, &alarms, &labels).figures()[4]
        };
        assert!((of(&[24]) - 100.0).abs() < 1e-9 && of(&[]).abs() < 1e-9);
        // In the middle of the window; and before any window.
        let middle = 100.0 * (1.0 + 0.848_283_639_957_513_4 / 0.986_614_298_151_430_3) / 2.0;
        assert!((of(&[29]) - middle).abs() < 1e-9, "{}", of(&[29]));
        assert!((of(&[3, 24]) - 94.5).abs() < 1e-9);
        assert!((of(&[24, 90]) - 94.5).abs() < 1e-9);
    }
}
