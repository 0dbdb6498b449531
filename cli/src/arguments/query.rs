//! Defines the flags of a query: its dimensions, its filters, its time range (`--since 24h`, or `--from` and `--to`), and the
//! windows that it is split into.

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use tallyfold::text;
use tallyfold::{
    CollectOptions, CountTable, Dimension, Metric, Series, TimeStep, Timestamp, Window,
};

use super::declared::{Flags, Suggested, steps};
use super::given::Given;
use crate::failure::{Failure, Result};

/// Returns the names of the dimensions.
pub(crate) fn dimensions() -> Vec<String> {
    Dimension::ALL.iter().map(ToString::to_string).collect()
}

/// Returns the beginnings of filters, such as `integration=`, which shells complete.
pub(crate) fn conditions() -> Vec<String> {
    dimensions().iter().map(|name| format!("{name}=")).collect()
}

/// Returns the values of `--keep` that shells complete.
fn kept() -> Vec<String> {
    ["windows", "1h", "1d", "total"].map(str::to_owned).into()
}

/// Returns common lengths of ranges, which shells complete.
pub(crate) fn ranges() -> Vec<String> {
    ["15m", "1h", "24h", "7d", "30d"].map(str::to_owned).into()
}

/// Flags for a query's dimensions and filters.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Query")]
pub(crate) struct QueryFlags {
    /// The dimensions to count by: any of write_key, event_name, integration, reason
    ///
    /// The output keeps their order. Only event delivery has reasons.
    #[arg(long, value_name = "A,B", default_value = "integration", value_parser = Suggested(dimensions), hide_possible_values = true)]
    pub(crate) by: String,
    /// Keeps only counts with this value; may be repeated
    ///
    /// Several values of one dimension are alternatives; several dimensions must all match. An empty value keeps counts
    /// without a value.
    #[arg(long = "where", value_name = "DIMENSION=VALUE", value_parser = Suggested(conditions), hide_possible_values = true)]
    pub(crate) only: Vec<String>,
}

/// A query whose dimensions and filters were checked.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// The dimensions that the counts are shown by.
    pub(crate) by: Vec<Dimension>,
    /// The dimensions to request from the service: all dimensions in `by`, and the dimensions that the filters need.
    pub(crate) requested: Vec<Dimension>,
    /// The filters: the values to keep, by dimension.
    pub(crate) only: Vec<(Dimension, Vec<String>)>,
}

impl QueryFlags {
    /// Checks the dimensions and the filters.
    ///
    /// # Errors
    /// For unknown dimensions in `--by`, and for a filter without a known dimension.
    pub(crate) fn query(&self) -> Result<Query> {
        Query::new(dimensions_in(&self.by)?, &self.only)
    }
}

impl Query {
    /// Creates a query by these dimensions, with filters such as `integration=warehouse`.
    ///
    /// # Errors
    /// For a filter without a known dimension.
    pub(crate) fn new(by: Vec<Dimension>, conditions: &[String]) -> Result<Self> {
        let mut only: Vec<(Dimension, Vec<String>)> = Vec::new();
        for condition in conditions {
            let (dimension, value) = condition_of(condition)?;
            match only.iter_mut().find(|(other, _)| *other == dimension) {
                Some((_, values)) => values.push(value),
                None => only.push((dimension, vec![value])),
            }
        }
        let mut requested = by.clone();
        for (dimension, _) in &only {
            if !requested.contains(dimension) {
                requested.push(*dimension);
            }
        }
        Ok(Self { by, requested, only })
    }

    /// Filters and groups counts as the flags require.
    ///
    /// # Errors
    /// For dimensions that the table does not have.
    pub(crate) fn shape(&self, table: &CountTable) -> Result<CountTable> {
        let kept = table.filter(&self.only)?;
        Ok(match self.by == self.requested {
            true => kept,
            false => kept.group_by(&self.by)?,
        })
    }

    /// Returns the options for collecting a range. The settings in `reading` override the defaults.
    ///
    /// # Errors
    /// For flags that can't be used.
    pub(crate) fn collect(
        &self,
        metric: Metric,
        range: Window,
        reading: &Given,
    ) -> Result<CollectOptions> {
        reading.read_over(CollectOptions::new(metric, range, &self.requested))
    }
}

/// Flags that split counts by time.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Query")]
pub(crate) struct StepFlags {
    /// Also splits counts into windows of this length: 15m, 1h, 1d
    #[arg(long, value_name = "STEP", value_parser = Suggested(steps), hide_possible_values = true)]
    pub(crate) by_window: Option<String>,
    /// The time zone of the days of --by-window 1d, such as Europe/Berlin [default: UTC]
    ///
    /// A day is shorter or longer when the clocks change, in most zones by an hour. All timestamps stay in UTC, in flags
    /// and in the output.
    #[arg(long, value_name = "ZONE", requires = "by_window")]
    pub(crate) zone: Option<String>,
}

/// The windows that counts are split into: steps, or the days of a time zone.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    step: TimeStep,
    /// The name of a time zone, and the timestamps at which the days of the range begin there.
    days: Option<(String, Vec<Timestamp>)>,
}

impl StepFlags {
    /// Returns the windows that a range is split into; `None` without `--by-window`.
    ///
    /// # Errors
    /// For a text that is not a step, for an unknown time zone, for `--zone` with windows other than days, and for days of a time
    /// zone outside of the years 1 to 9998.
    pub(crate) fn of(&self, range: Window) -> Result<Option<Steps>> {
        let Some(text) = &self.by_window else {
            return Ok(None);
        };
        let step = step("--by-window", text)?;
        let days = match &self.zone {
            Some(zone) if step == TimeStep::DAY => {
                Some((zone.clone(), midnights(zone, range, jiff::tz::db())?))
            }
            Some(zone) => {
                let message = format!(
                    "--zone {zone}: want --by-window 1d, not {text}: shorter windows are aligned to the UTC day"
                );
                return Err(Failure::usage(message));
            }
            None => None,
        };
        Ok(Some(Steps { step, days }))
    }
}

impl Steps {
    /// Returns a length for the windows to read, so that no window crosses the edge of a step. The length is the step itself
    /// or, for the days of a time zone, the longest suitable one of 1h, 30m, 15m, 5m and 1m.
    pub(crate) fn unit(&self) -> TimeStep {
        let Some((_, midnights)) = &self.days else {
            return self.step;
        };
        let divides = |unit: &TimeStep| midnights.iter().all(|at| unit.floor(*at) == *at);
        let units = ["1h", "30m", "15m", "5m"].map(TimeStep::parse);
        let unit = units.into_iter().flatten().find(divides);
        unit.unwrap_or(TimeStep::MINUTE)
    }

    /// Shortens the windows to read if they are longer than a step, because their counts can't be split.
    ///
    /// # Errors
    /// If a step does not consist of whole windows.
    pub(crate) fn fit(&self, options: &mut CollectOptions) -> Result<()> {
        let unit = self.unit();
        if unit.seconds() < options.window.seconds() {
            options.window = unit;
        }
        match unit.seconds().is_multiple_of(options.window.seconds()) {
            true => Ok(()),
            false => Err(Failure::usage(format!(
                "--by-window {}: want a --window that divides {unit}, not {}",
                self.step, options.window
            ))),
        }
    }

    /// Splits counts by step.
    ///
    /// # Errors
    /// If a window crosses the edge of a step.
    pub(crate) fn split(&self, table: &CountTable) -> Result<Series> {
        Ok(match &self.days {
            None => table.by_window(Some(self.step))?,
            Some((zone, midnights)) => table.by_window_in(Some(self.step), zone, midnights)?,
        })
    }
}

/// Returns the timestamps at which days begin in a time zone. The first day begins at or before the start of the range. The
/// last day begins at or after the end of the range.
fn midnights(name: &str, range: Window, zones: &TimeZoneDatabase) -> Result<Vec<Timestamp>> {
    let zone = time_zone(name, zones)?;
    let begins = |day: Date| {
        let midnight = zone.to_ambiguous_timestamp(day.at(0, 0, 0, 0));
        let mut first = midnight.compatible().ok()?;
        if let AmbiguousOffset::Gap { .. } = midnight.offset() {
            // This day has no midnight. It begins when the clocks are set forward.
            let after = first.checked_add(SignedDuration::from_secs(1)).ok()?;
            first = zone.preceding(after).next()?.timestamp();
        }
        Timestamp::from_unix_ms(first.as_millisecond())
    };
    let found = || {
        let start = jiff::Timestamp::from_millisecond(range.start().unix_ms()).ok()?;
        let mut day = start.to_zoned(zone.clone()).date();
        let mut found = vec![begins(day)?];
        while found.last().is_some_and(|last| *last < range.end()) {
            day = day.tomorrow().ok()?;
            found.push(begins(day)?);
        }
        // A time zone can skip a date. The skipped date and the next date then begin at the same time.
        found.dedup();
        Some(found)
    };
    found().ok_or_else(|| {
        Failure::usage(format!("--zone {name}: want a range in the years 1 to 9998"))
    })
}

/// Returns the time zone with that name. UTC needs no time zone database.
fn time_zone(name: &str, zones: &TimeZoneDatabase) -> Result<TimeZone> {
    if ["UTC", "Etc/UTC"].iter().any(|utc| name.eq_ignore_ascii_case(utc)) {
        return Ok(TimeZone::UTC);
    }
    // `Etc/Unknown` stands for an unknown time zone.
    let found = zones.get(name).ok().filter(|zone| !zone.is_unknown());
    found.ok_or_else(|| {
        let known: Vec<String> = zones.available().map(|zone| zone.to_string()).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let message =
            format!("--zone {name:?}: want the name of a time zone, such as America/New_York");
        // Suggests `Asia/Kolkata` for `Kolkata`.
        let is_of_city = |zone: &&&str| {
            let city = zone.rsplit_once('/').map(|(_, city)| city);
            city.is_some_and(|city| city.eq_ignore_ascii_case(name))
        };
        let near = known.iter().find(is_of_city).copied();
        match (near.or_else(|| text::nearest(name, &known)), known.is_empty()) {
            (Some(near), _) => Failure::usage(format!("{message}; did you mean {near}?")),
            (None, false) => Failure::usage(message),
            (None, true) => Failure::usage(format!(
                "{message}; no time zones were found: install the package tzdata, or set TZDIR to their folder"
            )),
        }
    })
}

/// Parses the value of `--by`.
///
/// # Errors
/// For an unknown dimension.
pub(crate) fn dimensions_in(text: &str) -> Result<Vec<Dimension>> {
    let names = text::list(text).into_iter();
    names.map(|name| Ok(Dimension::parse(&name)?)).collect()
}

/// Joins the names of dimensions, with `between` as the separator.
pub(crate) fn joined(dimensions: &[Dimension], between: &str) -> String {
    let names: Vec<&str> = dimensions.iter().map(|one| one.as_str()).collect();
    names.join(between)
}

fn condition_of(text: &str) -> Result<(Dimension, String)> {
    let names = dimensions();
    let wanted = || {
        let names = names.join(", ");
        Failure::usage(format!(
            "--where {text}: want DIMENSION=VALUE with one of {names}, such as integration=warehouse"
        ))
    };
    let (name, value) = text.split_once('=').ok_or_else(wanted)?;
    let dimension = Dimension::from_name(name.trim()).ok_or_else(wanted)?;
    Ok((dimension, value.to_owned()))
}

/// The endpoint to query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricFlag {
    /// Events at integrations: delivered, failed or filtered.
    Delivery,
    /// Events that arrived at the router.
    Ingestion,
}

impl From<MetricFlag> for Metric {
    fn from(flag: MetricFlag) -> Self {
        match flag {
            MetricFlag::Delivery => Self::EventDelivery,
            MetricFlag::Ingestion => Self::EventIngestion,
        }
    }
}

/// The options that control how a range is read.
const READING: &[&str] = &[
    "window",
    "concurrency",
    "finest",
    "settle_ms",
    "memory_limit",
    "probe",
    "patience_ms",
    "deadline_ms",
];

/// The flags for how a job reads a long range.
#[derive(Clone, Debug)]
pub(crate) struct Reading;

impl Flags for Reading {
    type Options = CollectOptions;

    const NAMES: &'static [&'static str] = READING;
    const HEADING: &'static str = "Reading";
}

/// The same flags for an interactive command, which fails fast if the service is down.
#[derive(Clone, Debug)]
pub(crate) struct ReadingNow;

impl Flags for ReadingNow {
    type Options = CollectOptions;

    const NAMES: &'static [&'static str] = READING;
    const USUAL: &'static [(&'static str, &'static str)] = &[("patience_ms", "0s")];
    const HEADING: &'static str = "Reading";
}

/// The flags for how `collect` keeps counts, and for splitting its work among several machines. Without a checkpoint,
/// `drop_old` has no effect.
#[derive(Clone, Debug)]
pub(crate) struct Sharing;

impl Flags for Sharing {
    type Options = CollectOptions;

    const NAMES: &'static [&'static str] = &["keep", "part", "drop_old"];
    const COMPUTED: &'static [(&'static str, &'static str)] =
        &[("keep", "the step of --by-window, a day with --by-date, or else windows")];
    const SUGGESTED: &'static [(&'static str, Suggested)] = &[("keep", Suggested(kept))];
    const HEADING: &'static str = "Checkpoint";
    const IS_COMMON: bool = true;
}

/// Flags for a range of time.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Range")]
pub(crate) struct RangeFlags {
    /// How far back: 15m, 24h, 7d [default: 1h]
    ///
    /// Counted back from the end of the range (--to, or its default).
    #[arg(long, value_name = "TIME", conflicts_with = "from", value_parser = Suggested(ranges), hide_possible_values = true)]
    pub(crate) since: Option<String>,
    /// The start, UTC: 2026-01-31T09:00:00Z, a date, today or yesterday
    #[arg(long, value_name = "TIMESTAMP")]
    pub(crate) from: Option<String>,
    /// The end, which is excluded [default: the last whole minute]
    #[arg(long, value_name = "TIMESTAMP")]
    pub(crate) to: Option<String>,
}

/// The default of `--since`.
const USUAL_SINCE: &str = "1h";

impl RangeFlags {
    /// Returns the time range. `unix_ms` is the current time in milliseconds since 1970.
    ///
    /// # Errors
    /// For texts that are not timestamps or lengths of time, for a range that begins before the year 0, for a range that does not
    /// end after its start, and for a clock outside of the years 0 to 9999.
    pub(crate) fn window(&self, unix_ms: i64) -> Result<Window> {
        self.window_or(USUAL_SINCE, unix_ms)
    }

    /// Returns the time range. `usual` is the length of the range if no flag sets it. `unix_ms` is the current time.
    ///
    /// # Errors
    /// Same as [`RangeFlags::window`].
    pub(crate) fn window_or(&self, usual: &str, unix_ms: i64) -> Result<Window> {
        let end = match &self.to {
            Some(text) => timestamp("--to", text, unix_ms)?,
            None => TimeStep::MINUTE.floor(time_of(unix_ms)?),
        };
        let start = match &self.from {
            Some(text) => timestamp("--from", text, unix_ms)?,
            None => before(end, self.since.as_deref().unwrap_or(usual))?,
        };
        let refused = |_| {
            Failure::usage(format!(
                "--from: want a timestamp before the end of the range, {end}; not {start}"
            ))
        };
        Window::new(start, end).map_err(refused)
    }
}

/// Parses a flag's value as a step.
///
/// # Errors
/// For a text that is not a step.
pub(crate) fn step(flag: &str, text: &str) -> Result<TimeStep> {
    TimeStep::parse(text).map_err(|error| Failure::usage(format!("{flag}: {}", error.message())))
}

/// Parses a flag's value as a timestamp. A date, `today` or `yesterday` is the UTC midnight at which that day begins. `unix_ms`
/// is the current time.
///
/// # Errors
/// For a text that is not a timestamp or a day.
pub(crate) fn timestamp(flag: &str, text: &str, unix_ms: i64) -> Result<Timestamp> {
    let midnight = |days: i64| {
        let day_ms = unix_ms.div_euclid(DAY_MS).checked_sub(days)?.checked_mul(DAY_MS)?;
        Timestamp::from_unix_ms(day_ms)
    };
    let midnight = match text {
        "today" => midnight(0),
        "yesterday" => midnight(1),
        _ => Timestamp::parse(&format!("{text}T00:00:00Z")).ok(),
    };
    let timestamp = midnight.map_or_else(|| Timestamp::parse(text), Ok);
    timestamp.map_err(|error| {
        let wanted = error.message();
        Failure::usage(format!("{flag}: {wanted}, or a date, today or yesterday; not {text:?}"))
    })
}

/// The length of a day in milliseconds.
pub(crate) const DAY_MS: i64 = 86_400_000;

/// Parses a flag's value as a length of time in milliseconds, which must be at least `least_ms`. `wanted` describes the
/// accepted values in the error.
///
/// # Errors
/// For a text that is not such a length of time.
pub(crate) fn length(flag: &str, text: &str, wanted: &str, least_ms: u64) -> Result<u64> {
    let ms = text::milliseconds(text).filter(|ms| *ms >= least_ms);
    ms.ok_or_else(|| {
        Failure::usage(format!("{flag}: want a length of time {wanted}, not {text:?}"))
    })
}

/// Returns the timestamp that lies `since` before `end`.
fn before(end: Timestamp, since: &str) -> Result<Timestamp> {
    let ms = length("--since", since, "such as 15m, 24h or 7d", 1)?;
    let start_ms = i64::try_from(ms).ok();
    let start_ms = start_ms.and_then(|ms| end.unix_ms().checked_sub(ms));
    let start = start_ms.and_then(Timestamp::from_unix_ms);
    start.ok_or_else(|| {
        Failure::usage(format!(
            "--since {since}: the range would begin before the year 0; want a shorter length"
        ))
    })
}

/// Converts a time in milliseconds since 1970 to a timestamp.
///
/// # Errors
/// For a clock outside of the years 0 to 9999.
pub(crate) fn time_of(unix_ms: i64) -> Result<Timestamp> {
    let refused = || Failure::usage("this machine's clock is outside of the years 0 to 9999");
    Timestamp::from_unix_ms(unix_ms).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_add_dimensions_to_the_request() {
        let flags = QueryFlags {
            by: "reason, integration".to_owned(),
            only: ["write_key=a=b", "integration=", "write_key=c"].map(str::to_owned).into(),
        };
        let query = flags.query().unwrap();
        let [reason, integration, write_key] =
            ["reason", "integration", "write_key"].map(|name| Dimension::parse(name).unwrap());
        assert_eq!(query.by, [reason, integration]);
        assert_eq!(query.requested, [reason, integration, write_key]);
        let only = |dimension: Dimension, values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned());
            (dimension, values.collect())
        };
        assert_eq!(query.only, [only(write_key, &["a=b", "c"]), only(integration, &[""])]);
    }

    #[test]
    fn a_filter_without_a_known_dimension_is_refused() {
        for condition in ["warehouse", "=x", "cluster=eu", "Integration=x"] {
            let flags =
                QueryFlags { by: "integration".to_owned(), only: vec![condition.to_owned()] };
            assert!(flags.query().unwrap_err().text.contains(condition));
        }
    }

    const NOW: i64 = 1_767_225_661_500; // 2026-01-01T00:01:01.5Z

    fn flags(since: Option<&str>, from: Option<&str>, to: Option<&str>) -> RangeFlags {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        RangeFlags { since: owned(since), from: owned(from), to: owned(to) }
    }

    #[test]
    fn a_range_ends_at_a_whole_minute() {
        for (since, from, to, expected) in [
            (None, None, None, "[2025-12-31T23:01:00Z, 2026-01-01T00:01:00Z)"),
            (Some("24h"), None, None, "[2025-12-31T00:01:00Z, 2026-01-01T00:01:00Z)"),
            (
                Some("15m"),
                None,
                Some("2026-01-31T00:00:00Z"),
                "[2026-01-30T23:45:00Z, 2026-01-31T00:00:00Z)",
            ),
            (
                None,
                Some("2025-12-31T12:00:30Z"),
                None,
                "[2025-12-31T12:00:30Z, 2026-01-01T00:01:00Z)",
            ),
            (
                None,
                Some("yesterday"),
                Some("today"),
                "[2025-12-31T00:00:00Z, 2026-01-01T00:00:00Z)",
            ),
            (
                None,
                Some("2025-12-30"),
                Some("2025-12-31"),
                "[2025-12-30T00:00:00Z, 2025-12-31T00:00:00Z)",
            ),
            (
                None,
                Some("2025-12-31T12:00:00+01:00"),
                Some("2025-12-31T12:00:00Z"),
                "[2025-12-31T11:00:00Z, 2025-12-31T12:00:00Z)",
            ),
        ] {
            let window = flags(since, from, to).window(NOW).unwrap();
            assert_eq!(format!("{window:?}"), expected);
        }
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for (since, from, to) in [
            (Some("0h"), None, None),
            (Some("yesterday"), None, None),
            (Some("99999999w"), None, None),
            (None, Some("2026-01-01T00:00:00"), None),
            (None, Some("2026-13-01"), None),
            (None, Some("tomorrow"), None),
            (None, Some("2026-02-01T00:00:00Z"), Some("2026-01-01T00:00:00Z")),
        ] {
            let failure = flags(since, from, to).window(NOW).unwrap_err();
            assert!(failure.text.contains("want"), "{failure}");
        }
    }

    /// The vectors that all languages share include clock changes, offsets of half an hour, and midnights that don't exist.
    #[test]
    fn days_begin_at_the_midnights_in_the_vectors() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../../tests/vectors/series.json")).unwrap();
        let text = |value: &serde_json::Value| Timestamp::parse(value.as_str().unwrap()).unwrap();
        let mut checked = 0;
        for case in vectors["cases"].as_array().unwrap() {
            let Some(zone) = case["zone"].as_str() else {
                continue;
            };
            let windows = || {
                let tables = case["tables"].as_array().unwrap().iter();
                tables.flat_map(|table| table["windows"].as_array().unwrap())
            };
            let start = windows().map(|window| text(&window["start"])).min().unwrap();
            let end = windows().map(|window| text(&window["end"])).max().unwrap();
            let expected: Vec<_> = case["midnights"].as_array().unwrap().iter().map(text).collect();
            let range = Window::new(start, end).unwrap();
            let found = midnights(zone, range, jiff::tz::db()).unwrap();
            // Some vectors cover one more day.
            assert!(expected.starts_with(&found), "{}: {found:?}", case["name"]);
            assert!(found.len() > 1, "{}", case["name"]);
            checked += 1;
        }
        assert!(checked > 20, "{checked}");
    }

    #[test]
    fn a_zone_needs_windows_of_a_day_and_a_known_name() {
        let range = |from: &str, to: &str| {
            Window::new(Timestamp::parse(from).unwrap(), Timestamp::parse(to).unwrap()).unwrap()
        };
        let march = range("2026-03-28T00:00:00Z", "2026-03-30T12:00:00Z");
        let flags = |step: &str, zone: &str| StepFlags {
            by_window: Some(step.to_owned()),
            zone: Some(zone.to_owned()),
        };
        let given = |step: &str, zone: &str| {
            let steps = flags(step, zone).of(march);
            steps.map(|steps| steps.unwrap().unit().to_string())
        };
        let refused = |step: &str, zone: &str| given(step, zone).unwrap_err().text;
        assert_eq!(given("1d", "Europe/Berlin").unwrap(), "1h");
        assert_eq!(given("24h", "Asia/Kolkata").unwrap(), "30m");
        assert_eq!(given("1d", "Asia/Kathmandu").unwrap(), "15m");
        assert_eq!(
            refused("1h", "Europe/Berlin"),
            "--zone Europe/Berlin: want --by-window 1d, not 1h: shorter windows are aligned to the UTC day"
        );
        assert_eq!(
            refused("1d", "Europe/Berln"),
            "--zone \"Europe/Berln\": want the name of a time zone, such as America/New_York; did you mean Europe/Berlin?"
        );
        assert!(refused("1d", "kolkata").ends_with("did you mean Asia/Kolkata?"));
        for name in ["../../etc/passwd", "Etc/Unknown", ""] {
            assert!(refused("1d", name).contains("want the name of a time zone"), "{name}");
        }
        let none = TimeZoneDatabase::none();
        for utc in ["UTC", "utc", "Etc/UTC"] {
            assert_eq!(midnights(utc, march, &none).unwrap().len(), 4, "{utc}");
        }
        let without = midnights("Europe/Berlin", march, &none).unwrap_err().text;
        assert!(without.contains("tzdata") && without.contains("TZDIR"), "{without}");
        let late = range("9999-12-30T00:00:00Z", "9999-12-31T12:00:00Z");
        let error = flags("1d", "Asia/Tokyo").of(late).unwrap_err();
        assert!(error.text.contains("want a range in the years"), "{error}");
    }
}
