//! Defines the query flags of commands that read each window when it has ended, such as `follow`.

use clap::Args;
use tallyfold::{FollowOptions, TimeStep, Timestamp, Window};

use super::declared::{Declared, Flags, Suggested, steps};
use super::query::{
    MetricFlag, RangeFlags, dimensions, dimensions_in, ranges, step, time_of, timestamp,
};
use crate::failure::{Failure, Result};

/// Flags of commands that read each window when it has ended.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Query")]
pub(crate) struct FollowFlags {
    /// The metric to count
    #[arg(long, value_enum, default_value = "delivery")]
    pub(crate) metric: MetricFlag,
    /// The dimensions to count by: any of write_key, event_name, integration, reason
    #[arg(long, value_name = "A,B", default_value = "integration", value_parser = Suggested(dimensions), hide_possible_values = true)]
    pub(crate) by: String,
    /// The length of the windows, which are aligned to the UTC day: 5m, 15m, 1h
    #[arg(long, value_name = "STEP", default_value = "15m", value_parser = Suggested(steps), hide_possible_values = true)]
    pub(crate) window: String,
    /// How far back to begin: 15m, 24h, 7d [default: the current window]
    ///
    /// With a --state from an earlier run, this and --from are ignored: the command resumes where that run stopped.
    #[arg(long, value_name = "TIME", conflicts_with = "from", value_parser = Suggested(ranges), hide_possible_values = true)]
    pub(crate) since: Option<String>,
    /// The start, UTC: 2026-01-31T09:00:00Z, a date, today or yesterday
    #[arg(long, value_name = "TIMESTAMP")]
    pub(crate) from: Option<String>,
    /// The end, UTC, which is excluded
    #[arg(long, value_name = "TIMESTAMP")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) pacing: Declared<Pacing>,
}

/// The flags that set when windows are read.
#[derive(Clone, Debug)]
pub(crate) struct Pacing;

impl Flags for Pacing {
    type Options = FollowOptions;

    const NAMES: &'static [&'static str] =
        &["delay_ms", "reread_ms", "settle_ms", "settle_when_unchanged"];
    const HEADING: &'static str = "Following";
}

impl FollowFlags {
    /// Returns the options of a follow. With a state, the follow resumes from it. Without a state, the follow begins at the time
    /// in the flags, or else with the current window.
    ///
    /// # Errors
    /// For flags that can't be used.
    pub(crate) fn options(&self, state: Option<&str>, unix_ms: i64) -> Result<FollowOptions> {
        let start = self.start(unix_ms)?;
        let by = dimensions_in(&self.by)?;
        let end = self.until.as_deref();
        let end = end.map(|end| timestamp("--until", end, unix_ms)).transpose()?;
        // A state contains the timestamp to resume from, which may already be the end.
        if let Some(end) = end.filter(|end| state.is_none() && *end <= start) {
            return Err(Failure::usage(format!(
                "--until: want a timestamp after {start}, where the command begins, not {end}"
            )));
        }
        let mut options = FollowOptions::new(self.metric.into(), start, &by, self.step()?);
        options.end = end;
        options.state = state.map(str::to_owned);
        self.pacing.given.read_over(options)
    }

    /// Returns the length of a window.
    ///
    /// # Errors
    /// For a text that is not a step.
    pub(crate) fn step(&self) -> Result<TimeStep> {
        step("--window", &self.window)
    }

    /// Returns the start of a follow without a state.
    ///
    /// # Errors
    /// For flags that can't be used.
    pub(crate) fn start(&self, unix_ms: i64) -> Result<Timestamp> {
        if let Some(from) = &self.from {
            return timestamp("--from", from, unix_ms);
        }
        let start = match &self.since {
            None => time_of(unix_ms)?,
            Some(_) => self.range(None, unix_ms)?.start(),
        };
        // Starts at the edge of a window. Otherwise, the start of the first window would differ after a restart.
        Ok(self.step()?.floor(start))
    }

    /// Returns the range that the flags select, for a command that reads once. `usual` is the default length of the
    /// range. The start and the end are edges of windows, unless `--from` or `--until` sets them.
    ///
    /// # Errors
    /// For flags that can't be used and, without `--until`, if no window has ended since the start.
    pub(crate) fn single_range(&self, usual: &str, unix_ms: i64) -> Result<Window> {
        let (range, step) = (self.range(Some(usual), unix_ms)?, self.step()?);
        let start = match self.from {
            None => step.floor(range.start()),
            Some(_) => range.start(),
        };
        let end = match self.until {
            None => step.floor(range.end()),
            Some(_) => range.end(),
        };
        let empty = |_| {
            Failure::usage(format!(
                "no window of {} has ended between {start} and now",
                self.window
            ))
        };
        Window::new(start, end).map_err(empty)
    }

    /// Returns the range of the flags. It ends now, or at `--until` for a command that reads once, which passes a `usual` length.
    fn range(&self, usual: Option<&str>, unix_ms: i64) -> Result<Window> {
        let to = self.until.as_deref().filter(|_| usual.is_some());
        // Check `--until` here, because an error of `RangeFlags` would call it `--to`.
        if let Some(until) = to {
            timestamp("--until", until, unix_ms)?;
        }
        let range = RangeFlags {
            since: self.since.clone(),
            from: self.from.clone(),
            to: to.map(str::to_owned),
        };
        range.window_or(usual.unwrap_or("1h"), unix_ms)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches};

    use super::*;

    const NOW: i64 = 1_767_225_661_500; // 2026-01-01T00:01:01.5Z

    fn flags(arguments: &[&str]) -> FollowFlags {
        let command = FollowFlags::augment_args(clap::Command::new("x"));
        let matches =
            command.get_matches_from(std::iter::once("x").chain(arguments.iter().copied()));
        FollowFlags::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn a_follow_begins_at_the_edge_of_a_window() {
        for (arguments, start) in [
            (&[][..], "2026-01-01T00:00:00Z"),
            (&["--since", "20m"], "2025-12-31T23:30:00Z"),
            (&["--since", "20m", "--window", "5m"], "2025-12-31T23:40:00Z"),
            (&["--from", "2025-12-31T12:07:00Z"], "2025-12-31T12:07:00Z"),
            // For a follow, `--since` counts from now, not from `--until`. Only `single_range` counts it from `--until`.
            (&["--since", "20m", "--until", "2026-01-02T00:00:00Z"], "2025-12-31T23:30:00Z"),
        ] {
            let options = flags(arguments).options(None, NOW).unwrap();
            assert_eq!(options.start.to_string(), start, "{arguments:?}");
            assert_eq!(
                options.end.map(|end| end.to_string()).as_deref(),
                arguments.contains(&"--until").then_some("2026-01-02T00:00:00Z")
            );
        }
    }

    #[test]
    fn a_follow_that_ends_before_it_begins_is_refused_unless_it_resumes() {
        let flags = flags(&["--until", "2026-01-01T00:00:00Z"]);
        let failure = flags.options(None, NOW).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "--until: want a timestamp after 2026-01-01T00:00:00Z, where the command begins, not 2026-01-01T00:00:00Z"
        );
        flags.options(Some("a state"), NOW).unwrap();
    }

    #[test]
    fn a_single_range_begins_at_the_edge_of_a_window() {
        for (arguments, range) in [
            (&[][..], "[2025-12-31T00:00:00Z, 2026-01-01T00:00:00Z)"),
            (&["--since", "1h", "--window", "30m"], "[2025-12-31T23:00:00Z, 2026-01-01T00:00:00Z)"),
            (
                &["--since", "30m", "--until", "2025-12-31T12:05:00Z"],
                "[2025-12-31T11:30:00Z, 2025-12-31T12:05:00Z)",
            ),
        ] {
            let window = flags(arguments).single_range("24h", NOW).unwrap();
            assert_eq!(format!("{window:?}"), range, "{arguments:?}");
        }
    }
}
