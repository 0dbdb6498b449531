//! The labels of exported counts.

use tallyfold_export::Labels;

use super::report::Report;
use crate::config::settings::{Labeled, Pair};
use crate::failure::Result;

/// The labels of each part, as [`Labeled::pairs`] says.
///
/// # Errors
/// For labels that are none, and for one that has the name of the cluster's.
pub(crate) fn labels(report: &Report, given: &[String]) -> Result<Vec<Labels>> {
    let parts = pairs(report, given)?.into_iter();
    parts.map(|pairs| Ok(Labels::new(pairs)?)).collect()
}

/// The same as names and values.
///
/// # Errors
/// The same.
pub(crate) fn pairs(report: &Report, given: &[String]) -> Result<Vec<Vec<Pair>>> {
    let parts = report.parts.iter();
    let labeled = Labeled {
        clusters: parts
            .map(|part| (part.cluster.as_str(), part.labels.as_slice()))
            .collect(),
        is_named: report.is_named,
    };
    labeled.pairs(given)
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
