//! Reads incidents whose causes are known.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use tallyfold_health::{Attribute, Leaves, Tally};

/// A set of attribute values.
pub(crate) type Values = BTreeMap<String, String>;

/// An incident: its leaves, their counts in each minute up to the incident, and its true causes.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) attributes: Vec<Attribute>,
    /// The counts of each leaf, minute after minute. The last minute is the minute of the incident.
    pub(crate) minutes: Vec<Vec<Tally>>,
    pub(crate) truth: Vec<Values>,
}

#[derive(Deserialize)]
struct Label {
    minute: i64,
    causes: Vec<Values>,
}

/// Reads all incidents of a folder that contains `labels.json` and a file for each incident.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<Case>, String> {
    let text = read(&folder.join("labels.json"))?;
    let labels: BTreeMap<String, Label> =
        serde_json::from_str(&text).map_err(|error| format!("labels.json: {error}"))?;
    let case = |(name, label): (String, Label)| {
        let text = read(&folder.join(format!("{name}.csv")))?;
        Case::parse(&name, &text, &label).map_err(|message| format!("{name}.csv: {message}"))
    };
    labels.into_iter().map(case).collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

impl Case {
    fn parse(name: &str, text: &str, label: &Label) -> Result<Self, String> {
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |name: &str| {
            let place = header.iter().position(|own| *own == name);
            place.ok_or_else(|| format!("no column {name}"))
        };
        let (min, value, cnt) = (column("min")?, column("value")?, column("cnt")?);
        let named: Vec<usize> =
            (0..header.len()).filter(|place| ![min, value, cnt].contains(place)).collect();
        let mut minutes: BTreeMap<i64, BTreeMap<Vec<&str>, Tally>> = BTreeMap::new();
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            if cells.len() != header.len() {
                return Err(format!("{} cells in {line:?}", cells.len()));
            }
            let minute: i64 = number(cells[min])?;
            if minute <= label.minute {
                let leaf = named.iter().map(|place| cells[*place]).collect();
                let tally = minutes.entry(minute).or_default().entry(leaf).or_default();
                tally.part += number::<u64>(cells[value])?;
                tally.whole += number::<u64>(cells[cnt])?;
            }
        }
        if minutes.keys().next_back() != Some(&label.minute) {
            return Err("the minute of the incident is missing".to_owned());
        }
        let names = named.iter().map(|place| header[*place].to_owned()).collect();
        Self::of(name, names, &minutes, label)
    }

    fn of(
        name: &str,
        names: Vec<String>,
        minutes: &BTreeMap<i64, BTreeMap<Vec<&str>, Tally>>,
        label: &Label,
    ) -> Result<Self, String> {
        let mut leaves: Vec<&Vec<&str>> = minutes.values().flat_map(BTreeMap::keys).collect();
        leaves.sort_unstable();
        leaves.dedup();
        let attribute = |(place, name): (usize, String)| {
            let texts: Vec<&str> = leaves.iter().map(|leaf| leaf[place]).collect();
            Attribute::of_texts(name, &texts).map_err(|error| error.to_string())
        };
        let attributes: Result<Vec<Attribute>, String> =
            names.into_iter().enumerate().map(attribute).collect();
        let counts = |rows: &BTreeMap<Vec<&str>, Tally>| {
            let tally = |leaf: &&Vec<&str>| rows.get(*leaf).copied().unwrap_or_default();
            leaves.iter().map(tally).collect()
        };
        Ok(Self {
            name: name.to_owned(),
            attributes: attributes?,
            minutes: minutes.values().map(counts).collect(),
            truth: label.causes.clone(),
        })
    }

    /// The sum of all leaves in each of the minutes before the incident.
    pub(crate) fn totals_before(&self) -> Vec<Tally> {
        let total = |tallies: &Vec<Tally>| Tally {
            part: tallies.iter().map(|tally| tally.part).sum(),
            whole: tallies.iter().map(|tally| tally.whole).sum(),
        };
        let (_, before) = self.minutes.split_last().unwrap_or((&NONE, &[]));
        before.iter().map(total).collect()
    }

    /// The leaves in the minute of the incident, with the sum of the used minutes as the reference.
    pub(crate) fn leaves(&self, used: &[bool]) -> Result<Leaves, String> {
        let (now, before) = self.minutes.split_last().unwrap_or((&NONE, &[]));
        let mut sums = vec![Tally::default(); now.len()];
        for (tallies, _) in before.iter().zip(used).filter(|(_, is_used)| **is_used) {
            for (sum, tally) in sums.iter_mut().zip(tallies) {
                sum.part += tally.part;
                sum.whole += tally.whole;
            }
        }
        Leaves::new(self.attributes.clone(), sums, now.clone()).map_err(|error| error.to_string())
    }
}

static NONE: Vec<Tally> = Vec::new();

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number"))
}
