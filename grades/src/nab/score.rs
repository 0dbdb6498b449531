//! How alarms of a labelled series are counted.

use crate::nab::series::{Hours, minutes};
use tallyfold_health::{SlotOptions, Stream, Unusual, scan_slots};

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
}

/// The alarms of a series, but for its first 15%, which is for learning.
pub(crate) fn alarms(hours: &Hours) -> Vec<Unusual> {
    let known = vec![true; hours.counts.len()];
    let stream = Stream {
        counts: &hours.counts,
        wholes: None,
        known: &known,
    };
    let learned = hours.counts.len() * 15 / 100;
    let found = scan_slots(&stream, &SlotOptions::hours());
    found
        .into_iter()
        .filter(|unusual| unusual.alarm && unusual.at >= learned)
        .collect()
}

/// An alarm is right if it is within a labelled window, both ends included; a window is hit by one alarm or more.
pub(crate) fn score(hours: &Hours, alarms: &[Unusual], labels: &[(String, String)]) -> Score {
    let at = |alarm: &Unusual| minutes(&hours.times[alarm.at]).unwrap_or_default();
    let windows = labels
        .iter()
        .filter_map(|(start, end)| Some((minutes(start)?, minutes(end)?)));
    let windows = windows.collect::<Vec<_>>();
    let is_in = |time: i64, window: &(i64, i64)| window.0 <= time && time <= window.1;
    let first = |window: &(i64, i64)| alarms.iter().map(at).find(|time| is_in(*time, window));
    let delays = windows
        .iter()
        .filter_map(|window| Some((first(window)? - window.0) as f64 / 60.0));
    let delays = delays.collect::<Vec<_>>();
    Score {
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

impl Score {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.alarms += other.alarms;
        self.right += other.right;
        self.windows += other.windows;
        self.hit += other.hit;
        self.delay += other.delay;
        self.weeks += other.weeks;
    }

    /// Precision, recall, mean delay in hours, false alarms a week.
    pub(crate) fn figures(&self) -> [f64; 4] {
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let wrong = (self.alarms - self.right) as f64;
        [
            share(self.right, self.alarms),
            share(self.hit, self.windows),
            self.delay / self.hit.max(1) as f64,
            wrong / self.weeks.max(0.01),
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
        let found = alarms(&hours);
        let windows = [
            ("2015-02-10 06:00:00", "2015-02-11 06:00:00"),
            ("2015-02-18 20:00:00", "2015-02-20 06:00:00"),
        ];
        let labels = windows.map(|(start, end)| (start.to_owned(), end.to_owned()));
        let score = score(&hours, &found, &labels);
        assert_eq!(
            (score.alarms, score.right, score.windows, score.hit),
            (2, 2, 2, 2),
            "{found:?}"
        );
        assert!(score.delay < 20.0, "{score:?}");
    }
}
