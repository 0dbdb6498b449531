//! Files in RiskLoc's format: a CSV of leaves for each case, and `injection_info.csv` with the true causes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use tallyfold_health::{Attribute, Leaves, Tally};

use super::case::{Case, Values, name, values};
use super::generated::{ATTRIBUTES, File};

const CAUSES: &str = "injection_info.csv";
/// How many events a value of 1 represents in files whose values are not whole numbers.
const UNIT: f64 = 1000.0;

/// Writes generated files, numbered from 0.
pub(crate) fn write(folder: &Path, files: impl Iterator<Item = File>) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| at(folder, &error))?;
    let mut causes = String::from("timestamp,set\n");
    for (number, file) in (0..).zip(files) {
        let name = name(number);
        let path = folder.join(format!("{name}.csv"));
        fs::write(&path, leaves_as_csv(&file)).map_err(|error| at(&path, &error))?;
        let elements: Vec<String> = file.causes.iter().map(|it| label(&values(it))).collect();
        causes.push_str(&format!("{name},{}\n", elements.join(";")));
    }
    let path = folder.join(CAUSES);
    fs::write(&path, causes).map_err(|error| at(&path, &error))
}

/// Reads a folder of such files, in the order of their names.
pub(crate) fn read(folder: &Path) -> Result<Vec<Case>, String> {
    let path = folder.join(CAUSES);
    let text = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        let place = header.iter().position(|own| *own == name);
        place.ok_or_else(|| format!("{}: no column {name}", path.display()))
    };
    let (names, sets) = (column("timestamp")?, column("set")?);
    let mut causes = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if let (Some(name), Some(set)) = (cells.get(names), cells.get(sets)) {
            causes.insert((*name).to_owned(), parsed_set(set));
        }
    }
    let cases = causes.into_iter().map(|(name, causes)| {
        let path = folder.join(format!("{name}.csv"));
        let text = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
        let leaves =
            parsed_leaves(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Case { name, leaves, causes })
    });
    cases.collect()
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn leaves_as_csv(file: &File) -> String {
    let mut text = format!("{},real,predict\n", ATTRIBUTES.join(","));
    for leaf in &file.leaves {
        for (name, value) in ATTRIBUTES.iter().zip(leaf.values) {
            // Writing to a string does not fail.
            let _ = write!(text, "{name}{},", value + 1);
        }
        let _ = writeln!(text, "{},{}", leaf.actual, leaf.expected);
    }
    text
}

/// Formats values, as in `a=a1&b=b2`.
fn label(values: &Values) -> String {
    let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn parsed_set(set: &str) -> BTreeSet<Values> {
    let values = |label: &str| {
        let pairs = label.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    set.split(';').map(values).collect()
}

/// Parses leaves. The columns `real` and `predict` are counts, and all other columns are attributes.
fn parsed_leaves(text: &str) -> Result<Leaves, String> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let mut columns: Vec<Vec<&str>> = vec![Vec::new(); header.len()];
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != header.len() {
            return Err(format!("want {} columns: {line}", header.len()));
        }
        for (column, cell) in columns.iter_mut().zip(cells) {
            column.push(cell);
        }
    }
    let mut attributes = Vec::new();
    let mut counts: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, column) in header.iter().zip(&columns) {
        if ["real", "predict"].contains(name) {
            counts.insert(name, numbers(column)?);
        } else {
            let attribute = Attribute::of_texts(*name, column);
            attributes.push(attribute.map_err(|error| error.to_string())?);
        }
    }
    let is_whole = counts.values().flatten().all(|count| count.fract() == 0.0);
    let unit = if is_whole { 1.0 } else { UNIT };
    let tallies = |name: &str| {
        let counts = counts.get(name).ok_or_else(|| format!("no column {name}"))?;
        let tally = |count: &f64| Tally { part: libm::round(count * unit) as u64, whole: 0 };
        Ok::<_, String>(counts.iter().map(tally).collect())
    };
    let leaves = Leaves::new(attributes, tallies("predict")?, tallies("real")?);
    leaves.map_err(|error| error.to_string())
}

fn numbers(cells: &[&str]) -> Result<Vec<f64>, String> {
    let number = |cell: &&str| {
        let number: f64 = cell.parse().map_err(|_| format!("{cell:?} is no number"))?;
        if number.is_finite() && number >= 0.0 {
            Ok(number)
        } else {
            Err(format!("want a number of events, got {number}"))
        }
    };
    cells.iter().map(number).collect()
}
