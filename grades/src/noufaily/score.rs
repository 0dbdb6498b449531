//! How alarms are counted.

use crate::noufaily::simulate::{FIRST, GRADED, Run};

/// Alarms of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// Graded weeks without cases of an outbreak, and how many of them alarmed.
    quiet: u32,
    false_alarms: u32,
    /// Runs whose outbreak has cases, and how many of them have an alarm in a week with cases of it.
    outbreaks: u32,
    detected: u32,
}

impl Score {
    /// Counts the alarms of a run's graded weeks. Ignores weeks that have only late cases of an outbreak in the baseline.
    pub(crate) fn add(&mut self, run: &Run, alarms: &[bool]) {
        let from = GRADED - FIRST;
        let weeks = run.outbreak[from..].iter().zip(&run.earlier[from..]);
        let mut has_outbreak = false;
        let mut is_detected = false;
        for ((&cases, &earlier), &alarm) in weeks.zip(alarms) {
            if cases > 0 {
                has_outbreak = true;
                is_detected |= alarm;
            } else if earlier == 0 {
                self.quiet += 1;
                self.false_alarms += u32::from(alarm);
            }
        }
        self.outbreaks += u32::from(has_outbreak);
        self.detected += u32::from(is_detected);
    }

    /// The share of quiet weeks that alarmed.
    pub(crate) fn false_positives(&self) -> f64 {
        f64::from(self.false_alarms) / f64::from(self.quiet.max(1))
    }

    /// The share of outbreaks that were detected.
    pub(crate) fn detection(&self) -> f64 {
        f64::from(self.detected) / f64::from(self.outbreaks.max(1))
    }

    /// Whether this score has more detections, and no more false alarms. Both scores must be of the same runs.
    pub(crate) fn beats(&self, other: &Self) -> bool {
        self.false_alarms <= other.false_alarms && self.detected > other.detected
    }

    /// Adds the runs of another scenario.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.quiet += other.quiet;
        self.false_alarms += other.false_alarms;
        self.outbreaks += other.outbreaks;
        self.detected += other.detected;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(outbreak: &[(usize, u64)]) -> Run {
        let mut run = Run { counts: vec![3; 312], earlier: vec![0; 312], outbreak: vec![0; 312] };
        run.earlier[GRADED - FIRST] = 1;
        for &(week, cases) in outbreak {
            run.outbreak[GRADED - FIRST + week] = cases;
        }
        run
    }

    fn alarms(weeks: &[usize]) -> Vec<bool> {
        (0..49).map(|week| weeks.contains(&week)).collect()
    }

    #[test]
    fn a_week_with_cases_detects_and_other_weeks_are_false_alarms() {
        let mut score = Score::default();
        score.add(&run(&[(5, 3), (6, 1)]), &alarms(&[0, 6, 9]));
        score.add(&run(&[(5, 3), (7, 1)]), &alarms(&[6]));
        assert_eq!((score.quiet, score.false_alarms), (92, 2));
        assert_eq!((score.outbreaks, score.detected), (2, 1));
    }

    #[test]
    fn an_outbreak_without_cases_is_none() {
        let mut score = Score::default();
        score.add(&run(&[]), &alarms(&[]));
        assert_eq!((score.outbreaks, score.quiet), (0, 48));
        assert!(!score.beats(&score));
    }
}
