//! The labels of exported counts.

use tallyfold_export::Labels;

use super::report::Report;
use crate::failure::{Failure, Result};

/// The label that says which cluster counts are of.
const CLUSTER: &str = "cluster";

/// The labels of each part: the cluster, if clusters have names; the cluster's own; those of `--label`, which replace others
/// of the same name.
///
/// All parts get the same names in the same order, so that rows of several clusters have the same columns. Where a
/// cluster has no such label, its value is empty.
///
/// # Errors
/// For labels that are none, and for one that has the name of the cluster's.
pub(crate) fn labels(report: &Report, given: &[String]) -> Result<Vec<Labels>> {
    let parts = all(report, given)?.into_iter();
    parts.map(|pairs| Ok(Labels::new(pairs)?)).collect()
}

/// The same as names and values.
///
/// # Errors
/// The same.
pub(crate) fn pairs(report: &Report, given: &[String]) -> Result<Vec<Vec<(String, String)>>> {
    labels(report, given)?;
    all(report, given)
}

fn all(report: &Report, given: &[String]) -> Result<Vec<Vec<(String, String)>>> {
    let given: Vec<(String, String)> = given
        .iter()
        .map(|text| parsed(text))
        .collect::<Result<_>>()?;
    let own = report.parts.iter().flat_map(|part| &part.labels);
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in own.chain(&given) {
        if report.is_named && name == CLUSTER {
            return Err(Failure::usage(
                "the label cluster is the name of the cluster: want another name for a label",
            ));
        }
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let parts = report.parts.iter().map(|part| {
        let value = |name: &str| {
            let mut of = given.iter().rev().chain(&part.labels);
            of.find(|(other, _)| other == name)
                .map_or_else(String::new, |(_, value)| value.clone())
        };
        let cluster = report
            .is_named
            .then(|| (CLUSTER.to_owned(), part.cluster.clone()));
        let others = names.iter().map(|name| ((*name).to_owned(), value(name)));
        cluster.into_iter().chain(others).collect()
    });
    Ok(parts.collect())
}

fn parsed(text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::usage(format!(
            "--label {text}: want NAME=VALUE, such as env=production"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report::Counted;
    use crate::output::testing::{ROWS, report_of, table};

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    fn clusters() -> Report {
        let mut report = report_of(vec![
            ("eu", Counted::Table(table(ROWS))),
            ("us", Counted::Table(table(ROWS))),
        ]);
        report.is_named = true;
        report.parts[0].labels = vec![pair("region", "west"), pair("env", "test")];
        report
    }

    #[test]
    fn all_clusters_have_the_same_names() {
        let labels = labels(&clusters(), &["env=production".to_owned()]).unwrap();
        let wanted = |cluster: &str, region: &str| {
            Labels::new([
                pair("cluster", cluster),
                pair("region", region),
                pair("env", "production"),
            ])
            .unwrap()
        };
        assert_eq!(labels, [wanted("eu", "west"), wanted("us", "")]);
    }

    #[test]
    fn wrong_labels_are_refused() {
        let report = clusters();
        for (label, part) in [
            ("env", "NAME=VALUE"),
            ("=x", "NAME=VALUE"),
            ("cluster=x", "name of the cluster"),
            ("1a=x", "no name of a label"),
        ] {
            let failure = labels(&report, &[label.to_owned()]).unwrap_err();
            assert!(failure.text.contains(part), "{}", failure.text);
        }
    }

    #[test]
    fn without_names_the_label_is_free() {
        let mut report = clusters();
        report.is_named = false;
        assert!(labels(&report, &["cluster=x".to_owned()]).is_ok());
    }
}
