//! Scans one stream by its slots of the day and of the week, for counts that vary by factors. What is unusual is
//! learned from the stream's earlier deviations, not from a distribution of counts.

use crate::baseline::stream::Stream;

/// How a stream is scanned by its slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotOptions {
    /// Windows in a day, such as 24 windows of an hour each.
    pub day: usize,
    /// How many days to look back for the slot of the day.
    pub days: usize,
    /// How many weeks to look back for the slot of the week.
    pub weeks: usize,
    /// A distance is unusual beyond this multiple of the usual distance: for a single window, and for the sum of a day.
    pub limits: [f64; 2],
    /// The usual distance is at least this: the logarithm of a factor.
    pub least_distance: f64,
}

/// A window that is unusual, by itself or with the windows of the day before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unusual {
    /// The window.
    pub at: usize,
    /// How many windows are summed. This window is the last of them.
    pub windows: usize,
    /// The events of these windows.
    pub observed: u64,
    /// How far they deviate, in usual distances; positive if there are too many events. This is the smaller of the
    /// deviations from the two slots.
    pub distance: f64,
    /// Whether it begins an excursion: no window of the day before it was unusual.
    pub alarm: bool,
}

impl SlotOptions {
    /// Options for windows of an hour. Each is compared with the same hour of the last 21 days, and with the same hour
    /// of the week in the last four weeks. `make grade-detect` evaluates these options.
    #[must_use]
    pub const fn hours() -> Self {
        Self {
            day: 24,
            days: 21,
            weeks: 4,
            limits: [4.0, 3.0],
            least_distance: 0.03,
        }
    }
}

/// The unusual windows of a stream of volumes, each judged by the windows before it.
///
/// A window must deviate from its slot of the day and, if two weeks are known, also from its slot of the week, in the
/// same direction. Days of the week differ, and a single unusual week proves little.
#[must_use]
pub fn scan_slots(stream: &Stream, options: &SlotOptions) -> Vec<Unusual> {
    let day = options.day.max(1);
    let lengths = [1, day];
    let scans = lengths.map(|length| Distances::new(stream, length, options));
    let mut found: Vec<Unusual> = Vec::new();
    for at in 0..stream.counts.len() {
        let unusual = scans
            .iter()
            .zip(options.limits)
            .filter_map(|(scan, limit)| {
                let distance = scan.at(at)?;
                (distance.abs() > limit).then_some((scan, distance, distance.abs() / limit))
            });
        let Some((scan, distance, _)) = unusual.max_by(|a, b| a.2.total_cmp(&b.2)) else {
            continue;
        };
        let before = found.last().map(|unusual| unusual.at);
        found.push(Unusual {
            at,
            windows: scan.length,
            observed: scan.sums[at].unwrap_or(0),
            distance,
            alarm: before.is_none_or(|before| at - before > day),
        });
    }
    found
}

/// For each window, how far the sum of the `length` windows that end with it deviates.
struct Distances {
    length: usize,
    sums: Vec<Option<u64>>,
    by_day: Vec<Option<f64>>,
    by_week: Vec<Option<f64>>,
}

impl Distances {
    fn new(stream: &Stream, length: usize, options: &SlotOptions) -> Self {
        let sums = sums(stream, length);
        let small = 2.0 + 0.5 * length as f64;
        let logarithm = |sum: &Option<u64>| sum.map(|sum| libm::log(sum as f64 + small));
        let logarithms = sums.iter().map(logarithm).collect::<Vec<_>>();
        let day = options.day.max(1);
        let by = |period: usize, periods: usize| {
            let slots = Slots {
                period,
                periods,
                length,
                day,
            };
            slots.distances(&logarithms, options.least_distance)
        };
        Self {
            length,
            by_day: by(day, options.days),
            by_week: by(day.saturating_mul(7), options.weeks),
            sums,
        }
    }

    /// The smaller of the two distances; 0 if they point in different directions.
    fn at(&self, at: usize) -> Option<f64> {
        let by_day = self.by_day[at]?;
        let Some(by_week) = self.by_week[at] else {
            return Some(by_day);
        };
        if (by_day < 0.0) != (by_week < 0.0) {
            return Some(0.0);
        }
        Some(if by_day.abs() < by_week.abs() {
            by_day
        } else {
            by_week
        })
    }
}

/// The sums of the last `length` windows; `None` if one of them is unknown or before the first window.
fn sums(stream: &Stream, length: usize) -> Vec<Option<u64>> {
    let known = |at: usize| stream.known_at(at).map(|(part, _)| part);
    let sum = |at: usize| {
        let first = (at + 1).checked_sub(length)?;
        (first..=at).try_fold(0u64, |sum, at| Some(sum.saturating_add(known(at)?)))
    };
    (0..stream.counts.len()).map(sum).collect()
}

/// The same slot of earlier periods, with a neighbour on each side.
#[derive(Clone, Copy)]
struct Slots {
    period: usize,
    periods: usize,
    length: usize,
    day: usize,
}

impl Slots {
    /// How many windows back the slots are. Sums that share windows with the judged sum are left out.
    fn back(self) -> Vec<usize> {
        let slots = (1..=self.periods).map(|period| self.period.saturating_mul(period));
        let slots = slots.flat_map(|slot| [slot.saturating_sub(1), slot, slot.saturating_add(1)]);
        slots.filter(|back| *back >= self.length.max(1)).collect()
    }

    /// For each window, its residual divided by the usual residual. The usual residual is estimated from the median of
    /// the earlier residuals, without the last day.
    fn distances(self, logarithms: &[Option<f64>], least: f64) -> Vec<Option<f64>> {
        let residuals = self.residuals(logarithms);
        let reach = self
            .period
            .saturating_mul(self.periods)
            .saturating_add(self.day);
        let distance = |(at, residual): (usize, &Option<f64>)| {
            let history = at.saturating_sub(reach)..at.saturating_sub(self.day);
            let mut usual = residuals[history]
                .iter()
                .flatten()
                .map(|residual| residual.abs())
                .collect::<Vec<_>>();
            if usual.len() < self.day.saturating_mul(3) {
                return None;
            }
            // 1.4826 makes the median a standard deviation where residuals are normal.
            let usual = 1.4826 * median(&mut usual)?;
            Some((*residual)? / usual.max(least).max(1e-6))
        };
        residuals.iter().enumerate().map(distance).collect()
    }

    /// The logarithm of each sum, minus the median of the logarithms of its slots.
    fn residuals(self, logarithms: &[Option<f64>]) -> Vec<Option<f64>> {
        let back = self.back();
        let enough = (back.len() / 4).max(3);
        let residual = |(at, logarithm): (usize, &Option<f64>)| {
            let slots = back
                .iter()
                .filter_map(|back| logarithms[at.checked_sub(*back)?]);
            let mut slots = slots.collect::<Vec<_>>();
            if slots.len() < enough {
                return None;
            }
            Some((*logarithm)? - median(&mut slots)?)
        };
        logarithms.iter().enumerate().map(residual).collect()
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    let is_even = values.len().is_multiple_of(2);
    let (_, low, above) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let next = above
        .iter()
        .copied()
        .min_by(f64::total_cmp)
        .filter(|_| is_even);
    Some(next.map_or(*low, |high| (*low + high) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// Six weeks of hourly counts with a daily cycle and quiet weekends. Counts in the `odd` hours are multiplied by
    /// `factor`.
    fn stream(odd: std::ops::Range<usize>, factor: f64) -> Vec<u64> {
        let count = |hour: usize| {
            let day = 60.0 + 40.0 * libm::sin(hour as f64 * std::f64::consts::PI / 12.0);
            let week = if (hour / 24) % 7 > 4 { 0.5 } else { 1.0 };
            let noise = 1.0 + 0.1 * libm::sin(hour as f64 * 12.9898);
            (day * week * noise * if odd.contains(&hour) { factor } else { 1.0 }) as u64
        };
        (0..1008).map(count).collect()
    }

    fn alarms(counts: &[u64], known: &[bool]) -> Vec<Unusual> {
        let stream = Stream {
            counts,
            wholes: None,
            known,
        };
        let found = scan_slots(&stream, &SlotOptions::hours());
        found.into_iter().filter(|unusual| unusual.alarm).collect()
    }

    #[test]
    fn a_weekend_is_usual_and_a_surge_is_one_alarm() {
        let known = vec![true; 1008];
        assert_eq!(alarms(&stream(0..0, 1.0), &known), []);
        let [surge] = alarms(&stream(900..912, 6.0), &known)[..] else {
            panic!()
        };
        assert_eq!((surge.at, surge.windows), (900, 1));
        assert!(surge.distance > 4.0);
        let [drop] = alarms(&stream(900..930, 0.1), &known)[..] else {
            panic!()
        };
        assert!(drop.at == 900 && drop.distance < -4.0);
    }

    #[test]
    fn a_day_that_is_a_little_off_is_seen_in_its_sum() {
        let found = alarms(&stream(888..936, 1.22), &[true; 1008]);
        assert!(found.len() == 1 && found[0].windows == 24, "{found:?}");
    }

    #[test]
    fn an_unknown_window_neither_alarms_nor_teaches() {
        let mut known = vec![true; 1008];
        known[890..930].fill(false);
        assert_eq!(alarms(&stream(890..930, 0.0), &known), []);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn it_is_total(counts in prop::collection::vec(any::<u64>(), 0..400), day in 0usize..30, gap in 0usize..9) {
            let known = (0..counts.len()).map(|at| at % 9 != gap).collect::<Vec<_>>();
            let stream = Stream { counts: &counts, wholes: None, known: &known };
            let options = SlotOptions { day, ..SlotOptions::hours() };
            for unusual in scan_slots(&stream, &options) {
                prop_assert!(unusual.distance.is_finite() && known[unusual.at]);
            }
        }
    }
}
