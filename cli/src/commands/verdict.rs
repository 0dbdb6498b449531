//! `--fail-above`: whether too many events failed, as an exit code.

use clap::Args;
use tallyfold::text::Fraction;
use tallyfold::{Counts, Frame, Row};

use crate::failure::{Failure, Result};
use crate::output::report::{Counted, Part, Report};
use crate::output::safe::harmless;
use crate::voice::Voice;

/// Flags of commands that can judge what they have counted.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Health")]
pub(crate) struct VerdictFlags {
    /// Ends with 1 if a row has more errors than this share of its attempts: 5%
    ///
    /// Attempts are events that were delivered or failed; filtered events are none. Rows with fewer attempts than --fewest
    /// are not judged; no row at all fails too. Each row that has failed is said on stderr.
    #[arg(long, value_name = "SHARE")]
    pub(crate) fail_above: Option<String>,
    /// The fewest attempts of a row that is judged, because a share of few events says little
    #[arg(long, value_name = "N", default_value_t = 100, requires = "fail_above")]
    pub(crate) fewest: u64,
}

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    share: Fraction,
    fewest: u64,
}

impl VerdictFlags {
    /// The limit, if one was given.
    ///
    /// # Errors
    /// For a text that is no share.
    pub(crate) fn limit(&self) -> Result<Option<Limit>> {
        let Some(text) = &self.fail_above else {
            return Ok(None);
        };
        let wanted = || {
            Failure::usage(format!(
                "--fail-above {text}: want a share such as 5% or 0.5%"
            ))
        };
        let share = Fraction::share(text).ok_or_else(wanted)?;
        Ok(Some(Limit {
            share,
            fewest: self.fewest,
        }))
    }
}

impl Limit {
    /// Says which rows of a report have failed; whether there is one.
    pub(crate) fn judge(self, report: &Report, voice: &Voice) -> bool {
        let mut has_failed = false;
        let place = |part: &Part| match report.is_named {
            true => format!("{}: ", part.cluster),
            false => String::new(),
        };
        for part in &report.parts {
            let place = place(part);
            let judged = self.judged(&part.counts);
            if judged == 0 && part.counts.frame().is_empty() {
                voice.error(format_args!("{place}there is no event to judge"));
                has_failed = true;
            } else if judged == 0 {
                let fewest = self.fewest;
                voice.warning(format_args!(
                    "{place}no row has {fewest} attempts, so none was judged"
                ));
            }
        }
        for part in &report.parts {
            let failed: Vec<String> = match &part.counts {
                Counted::Table(table) => {
                    let rows = table.rows().filter(|row| self.has_failed(row.counts()));
                    rows.map(|row| told(row, row.counts(), String::new()))
                        .collect()
                }
                Counted::Series(series) => {
                    let rows = series.rows().filter(|row| self.has_failed(row.counts()));
                    rows.map(|row| told(row, row.counts(), format!(" in {:?}", row.window())))
                        .collect()
                }
                Counted::Comparison(_) => Vec::new(),
            };
            has_failed |= !failed.is_empty();
            for text in failed {
                voice.error(format_args!("{}{text}", place(part)));
            }
        }
        has_failed
    }

    /// How many rows have enough attempts.
    fn judged(self, counts: &Counted) -> usize {
        match counts {
            Counted::Table(table) => table
                .rows()
                .filter(|row| self.is_judged(row.counts()))
                .count(),
            Counted::Series(series) => series
                .rows()
                .filter(|row| self.is_judged(row.counts()))
                .count(),
            Counted::Comparison(_) => 0,
        }
    }

    fn is_judged(self, counts: Counts) -> bool {
        attempts_of(counts) >= u128::from(self.fewest.max(1))
    }

    fn has_failed(self, counts: Counts) -> bool {
        self.is_judged(counts) && self.share.is_below(counts.errors, attempts_of(counts))
    }
}

fn attempts_of(counts: Counts) -> u128 {
    u128::from(counts.success) + u128::from(counts.errors)
}

fn told<F: Frame>(row: Row<'_, F>, counts: Counts, place: String) -> String {
    let values: Vec<&str> = row
        .values()
        .map(|value| if value.is_empty() { "(none)" } else { value })
        .collect();
    let attempts = attempts_of(counts);
    let name = match values.is_empty() {
        true => "all".to_owned(),
        false => harmless(&values.join(", ")),
    };
    format!(
        "{name}: {} of {attempts} attempts failed{place}",
        counts.errors
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_fails_above_the_share_not_at_it() {
        let limit = Limit {
            share: Fraction::share("5%").unwrap(),
            fewest: 100,
        };
        let counts = |success, errors| Counts {
            success,
            errors,
            filtered: 1_000_000,
        };
        assert!(!limit.has_failed(counts(95, 5)));
        assert!(limit.has_failed(counts(94, 6)));
        assert!(!limit.has_failed(counts(0, 99)));
        assert!(limit.has_failed(counts(u64::MAX, u64::MAX)));
        let none = Limit {
            share: Fraction::share("0%").unwrap(),
            fewest: 0,
        };
        assert!(!none.has_failed(counts(0, 0)) && none.has_failed(counts(1_000_000, 1)));
    }
}
