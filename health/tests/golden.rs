//! Compares the statistics with exact values (mpmath), scipy and R. `golden/detection.R` makes the table `detection.csv`, and
//! `golden/make.py` makes the other tables.

use tallyfold_health::{
    Level, Tails, beta_binomial, binomial, deviance, discovery_limit, ln_silence,
    negative_binomial, normal_ln_tail, poisson,
};

/// Returns the rows of a table in `golden/`, without the header.
fn rows(table: &str) -> Vec<Vec<&str>> {
    let rows: Vec<Vec<&str>> =
        table.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert!(rows.len() > 8, "a table without rows tests nothing");
    rows
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap()
}

fn relative_error(value: f64, exact: f64) -> f64 {
    if value == exact { 0.0 } else { (value - exact).abs() / exact.abs().max(f64::MIN_POSITIVE) }
}

fn tails_of(row: &[&str]) -> Tails {
    let (x, n, mean, dispersion) =
        (row[1].parse().unwrap(), row[2].parse().unwrap(), number(row[3]), number(row[4]));
    match row[0] {
        "poisson" => poisson(x, mean),
        "negative_binomial" => negative_binomial(x, mean, dispersion),
        "binomial" => binomial(x, n, mean),
        "beta_binomial" => beta_binomial(x, n, mean, dispersion),
        other => panic!("unknown distribution {other}"),
    }
}

/// Returns the largest relative error of ln p for a distribution in `tails.csv`, and how many values were compared. `columns` are
/// the columns of the lower and the upper tail. Only values for which `is_compared` returns true are compared.
fn worst(
    distribution: &str,
    columns: [usize; 2],
    is_compared: impl Fn(&[&str], f64) -> bool,
) -> (f64, usize) {
    let table = rows(include_str!("golden/tails.csv"));
    let (mut worst, mut compared) = (0.0, 0);
    for row in table.iter().filter(|row| row[0] == distribution) {
        let tails = tails_of(row);
        for (value, column) in [(tails.low, columns[0]), (tails.high, columns[1])] {
            if row[column].is_empty() || !is_compared(row, number(row[column])) {
                continue;
            }
            let error = relative_error(value, number(row[column]));
            compared += 1;
            if error > worst {
                worst = error;
            }
        }
    }
    (worst, compared)
}

#[test]
fn tails_are_as_precise_as_documented() {
    for (distribution, limit) in [
        ("poisson", 1e-12),
        ("negative_binomial", 1e-12),
        ("binomial", 1e-11),
        ("beta_binomial", 1e-9),
    ] {
        let (worst, compared) = worst(distribution, [5, 6], |_, _| true);
        assert!(compared > 100, "{distribution}: {compared} values");
        assert!(worst < limit, "{distribution}: {worst:e} in {compared} values");
    }
}

/// Leaves out values that scipy can't compute precisely: very small probabilities, probabilities near 1, and Poisson
/// probabilities for means of millions.
#[test]
fn tails_agree_with_scipy() {
    let is_precise = |row: &[&str], ln_p: f64| {
        let farthest = if row[0] == "beta_binomial" { -12.0 } else { -600.0 };
        ln_p > farthest && ln_p < -1e-3 && number(row[3]) < 1e6
    };
    for distribution in ["poisson", "negative_binomial", "binomial", "beta_binomial"] {
        let (worst, compared) = worst(distribution, [7, 8], is_precise);
        let limit = if distribution == "beta_binomial" { 1e-3 } else { 1e-7 };
        assert!(compared > 50 && worst < limit, "{distribution}: {worst:e} in {compared} values");
    }
}

/// Leaves out values that R can't compute precisely: probabilities near 1, and dispersions of nearly 1.
#[test]
fn tails_agree_with_r() {
    let is_precise = |row: &[&str], ln_p: f64| {
        ln_p < -1e-3 && (row[0] != "negative_binomial" || number(row[4]) > 1.001)
    };
    for distribution in ["poisson", "negative_binomial", "binomial"] {
        let (worst, compared) = worst(distribution, [9, 10], is_precise);
        assert!(compared > 50 && worst < 1e-7, "{distribution}: {worst:e} in {compared} values");
    }
}

#[test]
fn normal_tails_are_precise() {
    for row in rows(include_str!("golden/normal_tail.csv")) {
        let error = relative_error(normal_ln_tail(number(row[0])), number(row[1]));
        assert!(error < 1e-13, "{row:?}: {error:e}");
    }
}

#[test]
fn deviances_are_precise() {
    for row in rows(include_str!("golden/deviance.csv")) {
        let value = deviance(number(row[0]), number(row[1]));
        assert!(relative_error(value, number(row[2])) < 2e-15, "{row:?}: {value}");
        if number(row[3]) > 1e-3 {
            assert!(relative_error(value, number(row[3])) < 1e-9, "{row:?}: {value}");
        }
    }
}

#[test]
fn discoveries_are_the_tests_whose_adjusted_p_is_low_enough() {
    let table = rows(include_str!("golden/discoveries.csv"));
    let ln_p: Vec<f64> = table.iter().map(|row| libm::log(number(row[0]))).collect();
    for rate in [1e-9, 0.005, 0.02, 0.05, 0.0834, 0.2, 0.5, 0.95] {
        let expected: Vec<bool> = table.iter().map(|row| number(row[1]) <= rate).collect();
        let limit = discovery_limit(&ln_p, ln_p.len(), rate);
        let found: Vec<bool> = ln_p.iter().map(|one| *one <= limit).collect();
        assert_eq!(found, expected, "at {rate}");
    }
}

/// Reads numbers that are separated by spaces.
fn numbers(cell: &str) -> Vec<u64> {
    cell.split(' ').map(|cell| cell.parse().unwrap()).collect()
}

#[test]
fn silence_and_budgets_agree_with_densities_in_r() {
    for row in rows(include_str!("golden/detection.csv")) {
        let (expected, dispersion) = (number(row[3]), number(row[4]));
        let level = Level { expected, dispersion };
        let found = match row[0] {
            "silence" => vec![ln_silence(&level)],
            "budget" => {
                let (part, whole) = (numbers(row[1])[0], numbers(row[2])[0]);
                let rate = part as f64 / whole as f64 / expected;
                vec![rate, binomial(part, whole, expected).high]
            }
            other => panic!("unknown statistic {other}"),
        };
        let values: Vec<f64> = row[5].split(' ').map(number).collect();
        assert_eq!(found.len(), values.len());
        for (place, (found, value)) in found.iter().zip(&values).enumerate() {
            let distance = (found - value).abs();
            assert!(distance <= 1e-10 * value.abs().max(1.0), "{row:?}: value {place} is {found}");
        }
    }
}
