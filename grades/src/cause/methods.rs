//! The methods that are compared.

use tallyfold_health::{Cause, ExplainOptions, Measure, explain_leaves, usual_windows};

use super::cases::{Case, Values};
use super::marks::Ranking;
use super::plain;

/// A method: its name, and the function that answers a case.
pub(crate) type Method = (&'static str, fn(&Case) -> Result<Ranking, String>);

/// All methods. The last one is the one that tallyfold uses.
pub(crate) const METHODS: [Method; 4] = [
    ("plain scan, all minutes before", |case| plain::ranking(&case.leaves(&all(case))?)),
    ("plain scan, usual minutes", |case| plain::ranking(&case.leaves(&usual(case))?)),
    ("tallyfold, all minutes before", |case| explained(case, &all(case))),
    ("tallyfold, usual minutes", |case| explained(case, &usual(case))),
];

fn all(case: &Case) -> Vec<bool> {
    vec![true; case.minutes.len()]
}

fn usual(case: &Case) -> Vec<bool> {
    usual_windows(&case.totals_before())
}

fn explained(case: &Case, used: &[bool]) -> Result<Ranking, String> {
    let options = ExplainOptions::default();
    let told = explain_leaves(&case.leaves(used)?, Measure::ErrorRate, &options);
    let values = |cause: &Cause| cause.r#where.iter().cloned().collect::<Values>();
    Ok(Ranking {
        named: told.causes.len(),
        causes: told.causes.iter().chain(&told.others).map(values).collect(),
    })
}
