//! Labels that counts get which leave for another system.

use tallyfold_export::Labels;

use crate::config::settings::{Cluster, Settings};
use crate::failure::{Failure, Result};

/// The label that says which cluster counts are of.
const CLUSTER: &str = "cluster";

/// A name and a value.
pub(crate) type Pair = (String, String);

/// Clusters whose counts get labels.
pub(crate) struct Labeled<'a> {
    /// The name of each, and the labels of its section.
    pub(crate) clusters: Vec<(&'a str, &'a [Pair])>,
    /// Whether counts say which cluster they are of.
    pub(crate) is_named: bool,
}

impl Labeled<'_> {
    /// The labels of each cluster: its name, if clusters have names; those of its section; those of `--label`, which
    /// replace others of the same name.
    ///
    /// All clusters get the same names in the same order, so that rows of several clusters have the same columns. Where a
    /// cluster has no such label, its value is empty.
    ///
    /// # Errors
    /// For labels that are none, and for one that has the name of the cluster's: without that name, the counts of two
    /// clusters would be the same series.
    pub(crate) fn pairs(&self, flags: &[String]) -> Result<Vec<Vec<Pair>>> {
        let flags: Vec<Pair> = flags
            .iter()
            .map(|text| parsed(text))
            .collect::<Result<_>>()?;
        let names = self.names(&flags)?;
        let of_cluster = |(cluster, own): &(&str, &[Pair])| {
            let value = |name: &str| {
                let mut all = flags.iter().rev().chain(own.iter());
                all.find(|(other, _)| other == name)
                    .map_or_else(String::new, |(_, value)| value.clone())
            };
            let cluster = (CLUSTER.to_owned(), (*cluster).to_owned());
            let cluster = self.is_named.then_some(cluster);
            let others = names.iter().map(|name| (name.clone(), value(name)));
            let pairs: Vec<Pair> = cluster.into_iter().chain(others).collect();
            Labels::new(pairs.iter().cloned())?;
            Ok(pairs)
        };
        self.clusters.iter().map(of_cluster).collect()
    }

    /// The names of all labels but the cluster's, each once.
    fn names(&self, flags: &[Pair]) -> Result<Vec<String>> {
        let own = self.clusters.iter().flat_map(|(_, labels)| labels.iter());
        let mut names: Vec<String> = Vec::new();
        for (name, _) in own.chain(flags) {
            if self.is_named && name == CLUSTER {
                return Err(Failure::usage(
                    "the label cluster is the name of the cluster: want another name for a label",
                ));
            }
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Ok(names)
    }
}

/// The labels of one of the clusters that are asked.
///
/// # Errors
/// As [`Labeled::pairs`].
pub(crate) fn labels_of(
    settings: &Settings,
    cluster: &Cluster,
    flags: &[String],
) -> Result<Labels> {
    let all = &settings.clusters;
    let labeled = Labeled {
        clusters: all
            .iter()
            .map(|one| (one.name.as_str(), one.labels.as_slice()))
            .collect(),
        is_named: settings.is_named,
    };
    let pairs = all.iter().zip(labeled.pairs(flags)?);
    let own = pairs
        .filter(|(one, _)| one.name == cluster.name)
        .flat_map(|(_, pairs)| pairs);
    Ok(Labels::new(own)?)
}

fn parsed(text: &str) -> Result<Pair> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err(Failure::usage(format!(
            "--label {text}: want NAME=VALUE, such as env=production"
        ))),
    }
}
