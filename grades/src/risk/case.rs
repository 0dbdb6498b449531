//! A file with its known causes, and the explanation of its counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tallyfold::Dictionary;
use tallyfold_health::{Attribute, ExplainOptions, Leaves, Measure, Tally, explain_leaves};

use super::generated::{ATTRIBUTES, Element, File};

/// The values of a combination by the names of their attributes.
pub(crate) type Values = BTreeMap<String, String>;

/// Leaves whose causes are known.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) leaves: Leaves,
    pub(crate) causes: BTreeSet<Values>,
}

/// The maximum number of named causes. No generated file has more than nine causes, so this does not limit the result.
const MOST: usize = 16;

impl Case {
    /// A generated file. Value 3 of attribute b is called "b3", as in RiskLoc's files.
    pub(crate) fn of(number: u64, file: &File) -> Result<Self, String> {
        let columns = ATTRIBUTES.iter().zip(file.sizes).enumerate();
        let attributes: Result<Vec<Attribute>, String> = columns
            .map(|(place, (name, size))| {
                let ids = file.leaves.iter().map(|leaf| leaf.values[place]);
                attribute(name, size, ids.collect())
            })
            .collect();
        let tallies = |count: fn(&super::generated::Leaf) -> u64| {
            let tally = |part| Tally { part, whole: 0 };
            file.leaves.iter().map(|leaf| tally(count(leaf))).collect()
        };
        let leaves =
            Leaves::new(attributes?, tallies(|leaf| leaf.expected), tallies(|leaf| leaf.actual));
        Ok(Self {
            name: name(number),
            leaves: leaves.map_err(|error| error.to_string())?,
            causes: file.causes.iter().map(values).collect(),
        })
    }

    /// The causes that were named, and the other candidates, best first.
    pub(crate) fn explained(&self) -> [Vec<Values>; 2] {
        let options = ExplainOptions::default().most(MOST);
        let told = explain_leaves(&self.leaves, Measure::Events, &options);
        [told.causes, told.others].map(|causes| {
            let values = causes.into_iter().map(|cause| cause.r#where);
            values.map(|values| values.into_iter().collect()).collect()
        })
    }
}

/// RiskLoc requires file names that are numbers.
pub(crate) fn name(number: u64) -> String {
    (100_001 + number).to_string()
}

pub(crate) fn values(element: &Element) -> Values {
    let pairs = ATTRIBUTES.iter().zip(element);
    let named = pairs.filter_map(|(name, value)| {
        value.map(|value| ((*name).to_owned(), format!("{name}{}", value + 1)))
    });
    named.collect()
}

fn attribute(name: &str, size: u32, numbers: Vec<u32>) -> Result<Attribute, String> {
    let mut texts: Vec<String> = (1..=size).map(|value| format!("{name}{value}")).collect();
    let unsorted = texts.clone();
    texts.sort_unstable();
    let id = |text: &String| texts.binary_search(text).unwrap_or_default() as u32;
    let ids: Vec<u32> = unsorted.iter().map(id).collect();
    let dictionary = Dictionary::of_sorted(texts.iter().map(String::as_str));
    let dictionary = dictionary.ok_or_else(|| "too many values".to_owned())?;
    let column = numbers.into_iter().map(|number| ids[number as usize]);
    Ok(Attribute::new(name, Arc::new(dictionary), column.collect()))
}
