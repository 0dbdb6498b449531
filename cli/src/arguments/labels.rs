//! Labels that counts get which leave for another system.

use tallyfold_export::Labels;

use crate::config::settings::{Cluster, Settings};
use crate::failure::{Failure, Result};

/// The labels of a cluster's counts: its name, if it has one, those of its section, and over both those of `--label`.
///
/// # Errors
/// For a flag that is no label, and names that can't be used.
pub(crate) fn labels_of(
    settings: &Settings,
    cluster: &Cluster,
    flags: &[String],
) -> Result<Labels> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| match pairs.iter_mut().find(|(other, _)| other == name)
    {
        Some((_, old)) => value.clone_into(old),
        None => pairs.push((name.to_owned(), value.to_owned())),
    };
    if settings.is_named {
        set("cluster", &cluster.name);
    }
    for (name, value) in &cluster.labels {
        set(name, value);
    }
    for flag in flags {
        let wanted = || {
            Failure::usage(format!(
                "--label {flag}: want NAME=VALUE, such as env=production"
            ))
        };
        let (name, value) = flag.split_once('=').ok_or_else(wanted)?;
        set(name.trim(), value);
    }
    Labels::new(pairs).map_err(|error| Failure::usage(format!("--label: {}", error.message())))
}
