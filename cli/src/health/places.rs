//! Where `check` finds its rules and keeps its files.

use std::path::{Path, PathBuf};

use tallyfold::Spelling;
use tallyfold_health::Rules;

use super::notify::fingerprint;
use crate::config::settings::{CheckPlaces, Cluster};
use crate::failure::{Failure, Result};

/// The rules file that is used if it exists and no other file is named.
const USUAL: &str = "health.toml";

/// The largest size of a rules file.
const MOST_BYTES: u64 = 1 << 20;

/// Where a check finds its rules and keeps its files.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The file with the rules; `None` for the standard rules.
    pub(crate) rules: Option<PathBuf>,
    /// What a run leaves for the next one.
    pub(crate) state: PathBuf,
    /// The counts that rules look back on.
    pub(crate) history: PathBuf,
}

/// The places that the flags name, or else the configuration. By default, state and history are next to the rules.
pub(crate) fn places(
    (rules, state, history): (&Option<PathBuf>, &Option<PathBuf>, &Option<PathBuf>),
    written: &CheckPlaces,
) -> Places {
    let named = rules.clone().or_else(|| written.rules.clone());
    let usual = PathBuf::from(USUAL);
    let beside = named.clone().unwrap_or_else(|| usual.clone());
    let or = |flag: &Option<PathBuf>, key: &Option<PathBuf>, end: &str| {
        let given = flag.clone().or_else(|| key.clone());
        given.unwrap_or_else(|| beside.with_extension(end))
    };
    Places {
        state: or(state, &written.state, "state"),
        history: or(history, &written.history, "history"),
        rules: named.or_else(|| usual.exists().then_some(usual)),
    }
}

/// Reads the rules file; without one, returns the standard rules.
///
/// # Errors
/// For a file that can't be read, and for mistakes in it, with line and key.
pub(crate) fn rules(path: Option<&Path>) -> Result<Rules> {
    let Some(path) = path else {
        return Ok(Rules::standard()?);
    };
    let as_failure = |error| Failure::file("read", path, &error);
    if std::fs::metadata(path).map_err(as_failure)?.len() > MOST_BYTES {
        let text = format!("{}: this is too large to be a rules file", path.display());
        return Err(Failure::usage(text));
    }
    let text = std::fs::read_to_string(path).map_err(as_failure)?;
    let as_failure =
        |wrong: &dyn std::fmt::Display| Failure::usage(format!("{}: {wrong}", path.display()));
    Rules::parse(&text).map_err(|error| as_failure(&error.text_in(Spelling::Flag)))
}

/// Identifies the service of a cluster by a fingerprint of its address.
///
/// # Errors
/// For an address that can't be read from its source.
pub(crate) fn service(cluster: &Cluster) -> Result<String> {
    let address = cluster.client.get("cluster_endpoint");
    let address = address.or_else(|| cluster.client.get("base_url"));
    let secret = address
        .map(|setting| setting.secret())
        .transpose()?
        .flatten();
    let text = secret.as_ref().map_or("", |secret| secret.expose());
    Ok(fingerprint(text.trim_end_matches('/')))
}
