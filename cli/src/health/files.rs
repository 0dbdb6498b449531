//! Finds the files of `check`, and reads the rules and the state. The state, which a run saves for the next run, contains what
//! each receiver was notified of.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tallyfold::Spelling;
use tallyfold::keeper::DocumentKind;
use tallyfold_health::{Notified, Rules, State};

use crate::config::settings::{CheckPlaces, Cluster};
use crate::failure::{Failure, Result};
use crate::files::{hex, read_text};
use crate::host::state::StateFile;

/// The rules file to use if it exists, and if neither a flag nor the configuration names another file.
const USUAL: &str = "health.toml";

/// Where a check finds its rules and keeps its files.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The file with the rules; `None` for the standard rules.
    pub(crate) rules: Option<PathBuf>,
    /// The file with the state that a run saves for the next run.
    pub(crate) state: PathBuf,
    /// The folder with the counts that rules look back on.
    pub(crate) history: PathBuf,
}

/// Returns the places that the flags name. A place that no flag names comes from the configuration. By default, state and
/// history are next to the rules.
pub(crate) fn places(
    (rules, state, history): (&Option<PathBuf>, &Option<PathBuf>, &Option<PathBuf>),
    written: &CheckPlaces,
) -> Places {
    let named = rules.clone().or_else(|| written.rules.clone());
    let usual = PathBuf::from(USUAL);
    let base = named.clone().unwrap_or_else(|| usual.clone());
    let or = |flag: &Option<PathBuf>, key: &Option<PathBuf>, end: &str| {
        let given = flag.clone().or_else(|| key.clone());
        given.unwrap_or_else(|| base.with_extension(end))
    };
    Places {
        state: or(state, &written.state, "state"),
        history: or(history, &written.history, "history"),
        rules: named.or_else(|| usual.exists().then_some(usual)),
    }
}

/// Returns the places that the configuration names. By default, state and history are in `folder`.
pub(crate) fn places_below(written: &CheckPlaces, folder: &Path) -> Places {
    let or = |named: &Option<PathBuf>, end| named.clone().unwrap_or_else(|| folder.join(end));
    Places {
        state: or(&written.state, "check"),
        history: or(&written.history, "history"),
        ..places((&None, &None, &None), written)
    }
}

/// Reads the rules file; without one, returns the standard rules.
///
/// # Errors
/// For a file that can't be read, and for mistakes in the file; the error names the line and the key.
pub(crate) fn rules(path: Option<&Path>) -> Result<Rules> {
    let Some(path) = path else {
        return Ok(Rules::standard()?);
    };
    let text = read_text(path, "a rules file")?;
    let as_failure = |error: tallyfold::Error| {
        let wrong = error.text_in(Spelling::Flag);
        Failure::usage(format!("{}: {wrong}", path.display()))
    };
    Rules::parse(&text).map_err(as_failure)
}

/// Returns the fingerprint of the service's address. The name of each history's folder contains this fingerprint. A state stores
/// it only if the client's identity is unknown.
///
/// # Errors
/// For an address that can't be read from its source.
pub(crate) fn service(cluster: &Cluster) -> Result<String> {
    let address = cluster.client.get("cluster_endpoint");
    let address = address.or_else(|| cluster.client.get("base_url"));
    let secret = address.map(|setting| setting.secret()).transpose()?.flatten();
    let text = secret.as_ref().map_or("", |secret| secret.expose());
    Ok(fingerprint(text.trim_end_matches('/')))
}

/// Returns a short fingerprint that identifies a text.
pub(crate) fn fingerprint(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    hex(&digest[..4])
}

const KIND: DocumentKind =
    DocumentKind { format: "tallyfold-check/1", what: "state of tallyfold check" };

/// The state that a run saves for the next run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    /// The identity of the client whose counts were checked; if it is unknown, the fingerprint of the service's address.
    service: String,
    pub(crate) rules: State,
    /// What each receiver was notified of.
    pub(crate) notified: Notified,
}

/// The fields of the stored document.
#[derive(Serialize, Deserialize)]
struct Fields {
    service: String,
    /// The state of the rules, which is a document of its own; empty before the first run.
    rules: String,
    #[serde(rename = "told")]
    notified: Notified,
}

impl Memory {
    /// Reads the state from a file. If the file does not exist, the state is empty.
    ///
    /// # Errors
    /// For a file that can't be read, that is damaged, or that belongs to another cluster or client.
    pub(crate) fn read(file: &StateFile, service: &str, fingerprint: &str) -> Result<Self> {
        match file.read()? {
            None => Ok(Self {
                service: service.to_owned(),
                rules: State::default(),
                notified: Notified::default(),
            }),
            Some(bytes) => {
                let parsed = Self::parse(&bytes, Some((service, fingerprint)));
                parsed.map_err(|error| file.as_failure(error))
            }
        }
    }

    /// Reads the state from a document. The state must belong to one of the two texts in `of`: the client's identity, or the
    /// fingerprint of the service's address. If `of` is `None`, the state may belong to any client.
    ///
    /// # Errors
    /// `invalid_checkpoint` for a document that is damaged, or that belongs to another cluster or client.
    pub(crate) fn parse(bytes: &[u8], of: Option<(&str, &str)>) -> tallyfold::Result<Self> {
        let fields = KIND.read(bytes)?;
        let fields: Fields = serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        if let Some((service, fingerprint)) = of
            && ![service, fingerprint].contains(&fields.service.as_str())
        {
            return Err(KIND.wrong(format_args!(
                "it belongs to {:?}, not to {service:?}; to continue with it, pass --identity {:?}",
                fields.service, fields.service
            )));
        }
        Ok(Self {
            service: of.map_or(fields.service, |(service, _)| service.to_owned()),
            rules: match fields.rules.is_empty() {
                true => State::default(),
                false => State::from_json(fields.rules.as_bytes())?,
            },
            notified: fields.notified,
        })
    }

    /// Returns the document.
    pub(crate) fn to_json(&self) -> String {
        let fields = Fields {
            service: self.service.clone(),
            rules: String::from_utf8(self.rules.to_json()).unwrap_or_default(),
            notified: self.notified.clone(),
        };
        // The fields can always be written as JSON, so the default is never used.
        KIND.write(&serde_json::to_string(&fields).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a stored state. This format must stay readable.
    const WRITTEN: &str = r#"{"service":"a1","rules":"","told":{"webhook:chat":{"id":{"rule":"r","severity":"critical","labels":{"integration":"\"é\""},"sentence":"s","query":"q","since":"2026-01-01T00:00:00Z","finding":"{}","incident":"{}"}}}}"#;

    #[test]
    fn a_stored_state_is_read_back_and_any_damage_is_reported() {
        let written = KIND.write(WRITTEN);
        let memory = Memory::parse(written.as_bytes(), Some(("eu", "a1"))).unwrap();
        assert!(memory.rules == State::default() && memory.notified != Notified::default());
        let json = memory.to_json();
        let read = Memory::parse(json.as_bytes(), Some(("eu", "a1"))).unwrap();
        assert_eq!(read, memory);
        assert_eq!(read.to_json(), json);
        for at in 0..json.len() {
            let mut damaged = json.clone().into_bytes();
            damaged[at] ^= 1;
            assert!(Memory::parse(&damaged, Some(("eu", "a1"))).is_err(), "byte {at}");
        }
        let other = Memory::parse(json.as_bytes(), Some(("us", "b2"))).unwrap_err();
        assert!(
            other.message().contains(
                "it belongs to \"eu\", not to \"us\"; to continue with it, pass --identity \"eu\""
            ),
            "{other}"
        );
    }
}
