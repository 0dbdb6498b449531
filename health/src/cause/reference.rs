//! Which windows a reference is made of.

use super::leaves::Tally;

/// A window is usual if its count is within this factor of the count at the median rate...
const FACTOR: f64 = 1.25;
/// ...plus or minus this many standard deviations of a Poisson count. Without them, windows with few events would be
/// unusual by chance.
const DEVIATIONS: f64 = 2.0;

/// Which of some windows are usual: those whose rate is near the median of all rates. Only these are used as a
/// reference, so that an earlier incident is not taken for normal. Of fewer than three windows, each is usual.
#[must_use]
pub fn usual_windows(windows: &[Tally]) -> Vec<bool> {
    let rate = |window: &Tally| window.part as f64 / window.whole as f64;
    let mut rates: Vec<f64> = windows
        .iter()
        .filter(|window| window.whole > 0)
        .map(rate)
        .collect();
    rates.sort_unstable_by(f64::total_cmp);
    let Some(median) = rates
        .get(rates.len().saturating_sub(1) / 2)
        .filter(|_| rates.len() >= 3)
    else {
        return vec![true; windows.len()];
    };
    let is_usual = |window: &Tally| {
        let expected = median * window.whole as f64;
        let margin = DEVIATIONS * expected.sqrt();
        let part = window.part as f64;
        part <= expected * FACTOR + margin && part >= expected / FACTOR - margin
    };
    windows.iter().map(is_usual).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(pairs: &[(u64, u64)]) -> Vec<Tally> {
        pairs
            .iter()
            .map(|(part, whole)| Tally {
                part: *part,
                whole: *whole,
            })
            .collect()
    }

    #[test]
    fn an_earlier_incident_is_left_out_and_chance_is_not() {
        let all = windows(&[
            (100, 10_000),
            (110, 10_000),
            (900, 10_000),
            (95, 10_000),
            (1, 10_000),
        ]);
        assert_eq!(usual_windows(&all), [true, true, false, true, false]);
        let few = windows(&[(1, 100), (0, 100), (3, 100), (1, 100)]);
        assert_eq!(usual_windows(&few), [true; 4]);
    }

    #[test]
    fn two_windows_and_windows_without_events_are_usual() {
        assert_eq!(usual_windows(&windows(&[(1, 10), (9, 10)])), [true; 2]);
        assert_eq!(
            usual_windows(&windows(&[(0, 0), (5, 100), (5, 100), (5, 100)])),
            [true; 4]
        );
        assert!(usual_windows(&[]).is_empty());
    }
}
