//! How answers are graded.

use super::cases::{Case, Values};

/// An answer: all candidates, best first. The first `named` candidates are named as causes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranking {
    pub(crate) causes: Vec<Values>,
    pub(crate) named: usize,
}

/// The marks of several answers.
///
/// F1 is defined as in the studies of RobustSpot and RiskLoc. Over all cases, a named cause that is exactly a true cause
/// is a true positive, and any other named cause is a false positive. A true cause that was not named is a false
/// negative. F1 is 2·TP / (2·TP + FP + FN). `first` counts the cases whose first candidate is a true cause, and
/// `among_five` counts the cases with a true cause among the first five candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) cases: usize,
    pub(crate) true_positives: usize,
    pub(crate) false_positives: usize,
    pub(crate) false_negatives: usize,
    pub(crate) first: usize,
    pub(crate) among_five: usize,
}

impl Marks {
    pub(crate) fn add(&mut self, case: &Case, ranking: &Ranking) {
        let is_true = |values: &Values| case.truth.contains(values);
        let named = ranking.causes.iter().take(ranking.named);
        let right = named.clone().filter(|values| is_true(values)).count();
        self.cases += 1;
        self.true_positives += right;
        self.false_positives += named.count() - right;
        self.false_negatives += case.truth.len() - right;
        self.first += usize::from(ranking.causes.first().is_some_and(is_true));
        self.among_five += usize::from(ranking.causes.iter().take(5).any(is_true));
    }

    pub(crate) fn f1(&self) -> f64 {
        let right = 2 * self.true_positives;
        share(right, right + self.false_positives + self.false_negatives)
    }

    pub(crate) fn top1(&self) -> f64 {
        share(self.first, self.cases)
    }

    pub(crate) fn top5(&self) -> f64 {
        share(self.among_five, self.cases)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
