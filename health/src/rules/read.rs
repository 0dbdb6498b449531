//! Reads a rules file.

use std::collections::BTreeMap;

use tallyfold::{Dimension, Result, TimeStep, Timestamp};

use super::document::{Document, Entry, Table, shown};
use super::read_rule::read_rule;
use super::rule::Rule;
use super::set::Rules;
use super::silence::Silence;
use super::values::{dimensions, labels, step, values};

/// The maximum number of rules in a file, and that of silences.
const MOST: usize = 1_000;

/// The keys of a file.
const KEYS: [&str; 5] = ["window", "dimensions", "labels", "rule", "silence"];

/// The keys of a silence.
const SILENCE_KEYS: [&str; 5] = ["rule", "where", "from", "until", "comment"];

impl Rules {
    /// Reads a rules file.
    ///
    /// # Errors
    /// `invalid_rules`, with line, column and key, and what would be right.
    pub fn parse(toml: &str) -> Result<Self> {
        read(toml)
    }
}

fn read(text: &str) -> Result<Rules> {
    // Editors of Windows put this mark at the beginning.
    let document = Document::parse(text.strip_prefix('\u{feff}').unwrap_or(text))?;
    let root = document.root();
    root.check_keys(&KEYS)?;
    let window = match root.entry("window") {
        Some(entry) => step(&entry)?,
        None => TimeStep::from_seconds(900)?,
    };
    let rules = rules(&root, window)?;
    let dimensions = match root.entry("dimensions") {
        Some(entry) => explaining(&entry, &rules)?,
        None => Dimension::ALL.to_vec(),
    };
    let silences = tables(&root, "silence")?;
    let silences = silences.iter().map(|table| silence(table, &rules));
    let all = Rules {
        silences: silences.collect::<Result<_>>()?,
        labels: match root.entry("labels") {
            Some(entry) => labels(&entry)?,
            None => BTreeMap::new(),
        },
        rules,
        dimensions,
    };
    if all.rules.is_empty() {
        let text = "there is no rule in this file; want one or more [[rule]]";
        let entry = root.entry("rule");
        return Err(entry.map_or_else(|| root.wrong(text), |entry| entry.wrong(text)));
    }
    Ok(all)
}

fn rules(root: &Table<'_>, window: TimeStep) -> Result<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    for table in tables(root, "rule")? {
        let rule = read_rule(&table, window)?;
        if rules.iter().any(|other| other.name == rule.name) {
            let entry = table.entry("name");
            let text = "another rule has this name";
            return Err(entry.map_or_else(|| table.wrong(text), |entry| entry.wrong(text)));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// The tables under `[[name]]`.
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

/// The dimensions that the service is asked for. The dimensions of rules must be among them.
fn explaining(entry: &Entry<'_>, rules: &[Rule]) -> Result<Vec<Dimension>> {
    let dimensions = dimensions(entry)?;
    for rule in rules {
        let only = rule.only.iter().map(|(dimension, _)| dimension);
        let missing = rule
            .by
            .iter()
            .chain(only)
            .find(|own| !dimensions.contains(own));
        if let Some(missing) = missing {
            let name = shown(&rule.name);
            return Err(entry.wrong(format_args!("the rule {name} uses {missing} too")));
        }
    }
    Ok(dimensions)
}

fn silence(table: &Table<'_>, rules: &[Rule]) -> Result<Silence> {
    table.check_keys(&SILENCE_KEYS)?;
    let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    let mut silence = Silence {
        rules: Vec::new(),
        group: Vec::new(),
        from: None,
        until: None,
    };
    for entry in table.entries() {
        match entry.name {
            "rule" => {
                silence.rules = entry.texts("want the name of a rule, or a list of names")?;
                let unknown = silence.rules.iter().find(|name| !names.contains(&&***name));
                if let Some(name) = unknown {
                    return Err(entry.unknown("rule", name, &names));
                }
            }
            "where" => silence.group = values(&entry)?,
            "from" => silence.from = Some(instant(&entry)?),
            "until" => silence.until = Some(instant(&entry)?),
            // A comment for readers of the file.
            _ => drop(entry.text("want text")?),
        }
    }
    match (silence.from, silence.until) {
        (Some(from), Some(until)) if from >= until => Err(table.wrong("from must be before until")),
        _ => Ok(silence),
    }
}

fn instant(entry: &Entry<'_>) -> Result<Timestamp> {
    let wanted = "want an instant such as 2026-01-31T09:00:00Z";
    Timestamp::parse(&entry.instant_text(wanted)?).map_err(|_| entry.wrong(wanted))
}
