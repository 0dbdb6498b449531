//! Reads a rules file.

use std::collections::BTreeMap;

use tallyfold::arguments::toml::{Document, Entry, Result, Table, Wrong, shown};
use tallyfold::text::nearest;
use tallyfold::{Code, Dimension, Error, Metric, TimeStep, Timestamp};

use super::kinds::{RuleKind, Test};
use super::names::Severity;
use super::rule::{MOST_WINDOWS, NO_METRIC, Rule, WANT_NAME};
use super::set::{LocalDays, MOST, Rules, Silence};
use super::values::{count, dimensions, labels, named, step, texts, values};
use crate::measure::Measure;
use crate::usual::calendar::{DAY, Local};
use crate::usual::zone::Zone;

/// The maximum size of a rules file, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

/// The keys of a file.
const KEYS: [&str; 6] = ["window", "dimensions", "labels", "rule", "calendar", "silence"];

/// The keys that every rule may have.
pub(super) const COMMON: [&str; 12] = [
    "name", "kind", "metric", "by", "where", "window", "for", "clear", "severity", "labels",
    "note", "runbook",
];

/// The keys of a calendar.
const CALENDAR_KEYS: [&str; 5] = ["rule", "where", "zone", "holidays", "comment"];

/// The maximum number of holidays in a calendar.
const MOST_HOLIDAYS: usize = 1_000;

/// The keys of a silence.
const SILENCE_KEYS: [&str; 5] = ["rule", "where", "from", "until", "comment"];

impl Rules {
    /// Reads a rules file.
    ///
    /// # Errors
    /// `invalid_rules`, with the line, the column, the key, the byte offset, and what would be valid.
    pub fn parse(toml: &str) -> tallyfold::Result<Self> {
        let invalid = |message: String| Error::new(Code::InvalidRules, message);
        // Some editors on Windows begin a file with a byte order mark.
        let text = toml.strip_prefix('\u{feff}').unwrap_or(toml);
        if text.len() > MOST_BYTES {
            return Err(invalid(format!("want at most {MOST_BYTES} bytes")));
        }
        let skipped = toml.len() - text.len();
        let at_place = |wrong: Wrong| {
            invalid(wrong.to_string()).with_offset((skipped + wrong.place.offset) as u64)
        };
        let document = Document::parse(None, text).map_err(at_place)?;
        read(&document.root()).map_err(at_place)
    }
}

fn read(root: &Table<'_>) -> Result<Rules> {
    root.check_keys(&KEYS)?;
    let window = match root.entry("window") {
        Some(entry) => step(&entry)?,
        None => TimeStep::QUARTER,
    };
    let mut rules = Rules {
        rules: rules(root, window)?,
        silences: Vec::new(),
        calendars: Vec::new(),
        labels: BTreeMap::new(),
        dimensions: Dimension::ALL.to_vec(),
    };
    if let Some(entry) = root.entry("dimensions") {
        rules.dimensions = dimensions(&entry)?;
        if let Some((rule, missing)) = rules.unexplained() {
            let name = shown(&rule.name);
            return Err(entry.wrong(format_args!("the rule {name} uses {missing} too")));
        }
    }
    for table in tables(root, "calendar")? {
        let calendar = calendar(&table, &rules.names())?;
        rules.calendars.push(calendar);
    }
    for table in tables(root, "silence")? {
        let silence = silence(&table, &rules.names())?;
        rules.silences.push(silence);
    }
    if let Some(entry) = root.entry("labels") {
        rules.labels = labels(&entry)?;
    }
    if rules.rules.is_empty() {
        let text = "there is no rule in this file; want one or more [[rule]]";
        return Err(root.wrong_at("rule", text));
    }
    Ok(rules)
}

fn rules(root: &Table<'_>, window: TimeStep) -> Result<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    for table in tables(root, "rule")? {
        let rule = rule(&table, window)?;
        if rules.iter().any(|other| other.name == rule.name) {
            return Err(table.wrong_at("name", "another rule has this name"));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// Returns the tables under `[[name]]`.
fn tables<'d>(root: &Table<'d>, name: &str) -> Result<Vec<Table<'d>>> {
    let Some(entry) = root.entry(name) else {
        return Ok(Vec::new());
    };
    let wanted = format!("want tables [[{name}]]");
    let items = entry.items(&wanted)?;
    if items.len() > MOST {
        return Err(entry.wrong(format_args!("want at most {MOST} of them")));
    }
    items.iter().map(|item| item.table(&wanted)).collect()
}

/// Reads one rule. `window` is the length of its windows if the rule does not set one.
fn rule(table: &Table<'_>, window: TimeStep) -> Result<Rule> {
    let kind = required(table, "kind")?;
    let kind = named(&kind, "kind", RuleKind::ALL, RuleKind::as_str)?;
    let form = kind.form();
    let known: Vec<&str> = COMMON.iter().chain(form.keys).copied().collect();
    table.check_keys(&known)?;
    let name = required(table, "name")?.text(WANT_NAME)?;
    let measure = match table.entry("measure") {
        Some(entry) => {
            let judged = Measure::ALL.iter().filter(|own| (form.judges)(**own));
            let judged: Vec<Measure> = judged.copied().collect();
            named(&entry, "measure", &judged, Measure::as_str)?
        }
        None => form.measure,
    };
    let test = Test::read(kind, table, measure)?;
    let mut rule = Rule::new(name, test).measure(measure).window(window);
    for entry in table.entries() {
        rule = match entry.name {
            "metric" if form.scope.is_both() => return Err(entry.wrong(NO_METRIC)),
            "metric" => rule.metric(named(&entry, "metric", Metric::ALL, Metric::as_str)?),
            "by" => rule.by(dimensions(&entry)?),
            "where" => Rule { only: values(&entry)?, ..rule },
            "window" => rule.window(step(&entry)?),
            "for" => Rule { bad: windows(&entry)?, ..rule },
            "clear" => Rule { good: windows(&entry)?, ..rule },
            "severity" => {
                rule.severity(named(&entry, "severity", Severity::ALL, Severity::as_str)?)
            }
            "least" => rule.least(count(&entry, 1)?),
            "labels" => Rule { labels: labels(&entry)?, ..rule },
            "note" => rule.note(entry.text("want text")?),
            "runbook" => rule.runbook(entry.text("want the address of a page")?),
            // `Test::read` has read the keys of the kind.
            _ => rule,
        };
    }
    match rule.misfit() {
        Some(misfit) => Err(table.wrong_at(misfit.key, misfit.text)),
        None => Ok(rule),
    }
}

fn required<'d>(table: &Table<'d>, key: &str) -> Result<Entry<'d>> {
    let entry = table.entry(key);
    entry.ok_or_else(|| table.wrong(format_args!("the key {key} is missing")))
}

fn windows(entry: &Entry<'_>) -> Result<u32> {
    let windows = entry.within(1, MOST_WINDOWS.into(), "a number of windows")?;
    Ok(u32::try_from(windows).unwrap_or(MOST_WINDOWS))
}

fn silence(table: &Table<'_>, names: &[&str]) -> Result<Silence> {
    table.check_keys(&SILENCE_KEYS)?;
    let mut silence = Silence { rules: Vec::new(), group: Vec::new(), from: None, until: None };
    for entry in table.entries() {
        match entry.name {
            "rule" => silence.rules = rules_named(&entry, names)?,
            "where" => silence.group = values(&entry)?,
            "from" => silence.from = Some(timestamp(&entry)?),
            "until" => silence.until = Some(timestamp(&entry)?),
            // A comment for readers of the file.
            _ => drop(entry.text("want text")?),
        }
    }
    match (silence.from, silence.until) {
        (Some(from), Some(until)) if from >= until => Err(table.wrong("from must be before until")),
        _ => Ok(silence),
    }
}

fn calendar(table: &Table<'_>, names: &[&str]) -> Result<LocalDays> {
    table.check_keys(&CALENDAR_KEYS)?;
    let mut calendar = LocalDays { rules: Vec::new(), group: Vec::new(), local: Local::default() };
    for entry in table.entries() {
        match entry.name {
            "rule" => calendar.rules = rules_named(&entry, names)?,
            "where" => calendar.group = values(&entry)?,
            "zone" => calendar.local.zone = Some(zone(&entry)?),
            "holidays" => calendar.local.holidays = holidays(&entry)?,
            // A comment for readers of the file.
            _ => drop(entry.text("want text")?),
        }
    }
    match calendar.local == Local::default() {
        true => Err(table.wrong("want zone, holidays or both")),
        false => Ok(calendar),
    }
}

fn zone(entry: &Entry<'_>) -> Result<Zone> {
    let wanted = "want a time zone such as \"America/New_York\"";
    let name = entry.text(wanted)?;
    Zone::named(name).ok_or_else(|| {
        let names: Vec<&str> = Zone::names().collect();
        match nearest(name, &names) {
            Some(near) => entry.unknown("time zone", name, &[near]),
            None => entry.wrong(format_args!("there is no such time zone; {wanted}")),
        }
    })
}

/// Reads dates as days since 1970, sorted.
fn holidays(entry: &Entry<'_>) -> Result<Vec<i64>> {
    let wanted = "want a list of dates, such as [2026-11-26, 2026-12-25]";
    let items = entry.items(wanted)?;
    if items.len() > MOST_HOLIDAYS {
        return Err(entry.wrong(format_args!("want at most {MOST_HOLIDAYS} of them")));
    }
    let mut days = Vec::new();
    for item in items {
        let midnight = format!("{}T00:00:00Z", item.timestamp_text(wanted)?);
        let midnight = Timestamp::parse(&midnight).map_err(|_| item.wrong(wanted))?;
        days.push(midnight.unix_ms().div_euclid(1_000 * DAY as i64));
    }
    days.sort_unstable();
    days.dedup();
    Ok(days)
}

/// Reads names of rules, which must be in the file.
fn rules_named(entry: &Entry<'_>, names: &[&str]) -> Result<Vec<String>> {
    let rules = texts(entry, "want the name of a rule, or a list of names")?;
    match rules.iter().find(|name| !names.contains(&&***name)) {
        Some(name) => Err(entry.unknown("rule", name, names)),
        None => Ok(rules),
    }
}

fn timestamp(entry: &Entry<'_>) -> Result<Timestamp> {
    let wanted = "want a timestamp such as 2026-01-31T09:00:00Z";
    Timestamp::parse(&entry.timestamp_text(wanted)?).map_err(|_| entry.wrong(wanted))
}
