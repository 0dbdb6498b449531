//! What a run of `check` leaves to the next one: the state of the rules, and what each receiver was told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tallyfold::keeper::DocumentKind;

use super::alert::Alerts;
use crate::failure::Result;
use crate::host::files::StateFile;

const KIND: DocumentKind = DocumentKind {
    format: "tallyfold-check/1",
    what: "state of tallyfold check",
};

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// The service that it belongs to.
    service: String,
    /// The state of the rules, which is a document of its own; empty before the first run.
    pub(crate) rules: String,
    /// For each receiver, by its name, the alerts that it was told of and whose end it was not told.
    pub(crate) told: BTreeMap<String, Alerts>,
}

impl Memory {
    /// Reads a file; without one, nothing is remembered.
    ///
    /// # Errors
    /// For a file that can't be read, that is damaged, or that is of another service.
    pub(crate) fn read(file: &StateFile, service: &str) -> Result<Self> {
        match file.read()? {
            None => Ok(Self::new(service)),
            Some(bytes) => Self::parse(&bytes, service).map_err(|error| file.told(error)),
        }
    }

    fn new(service: &str) -> Self {
        Self {
            service: service.to_owned(),
            rules: String::new(),
            told: BTreeMap::new(),
        }
    }

    fn parse(bytes: &[u8], service: &str) -> tallyfold::Result<Self> {
        let fields = KIND.read(bytes)?;
        let memory: Self = serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        if memory.service != service {
            return Err(KIND.wrong("it is of another service"));
        }
        Ok(memory)
    }

    /// The document.
    pub(crate) fn to_json(&self) -> String {
        // Plain texts by names, so this can't fail.
        KIND.write(&serde_json::to_string(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::alert::Alert;

    #[test]
    fn what_was_written_is_read_back_and_any_damage_is_found() {
        let mut memory = Memory::new("a1");
        memory.rules = r#"{"format":"x","digest":"1"}"#.to_owned();
        let alert = Alert {
            rule: "r".to_owned(),
            severity: "critical".to_owned(),
            labels: BTreeMap::from([("integration".to_owned(), "\"é\"".to_owned())]),
            sentence: "s".to_owned(),
            query: "q".to_owned(),
            since: "2026-01-01T00:00:00Z".to_owned(),
            finding: "{}".to_owned(),
        };
        let alerts = Alerts::from([("id".to_owned(), alert)]);
        memory.told.insert("webhook:chat".to_owned(), alerts);
        let json = memory.to_json();
        let read = Memory::parse(json.as_bytes(), "a1").unwrap();
        assert_eq!((&read.rules, &read.told), (&memory.rules, &memory.told));
        assert_eq!(read.to_json(), json);
        for at in 0..json.len() {
            let mut damaged = json.clone().into_bytes();
            damaged[at] ^= 1;
            assert!(Memory::parse(&damaged, "a1").is_err(), "byte {at}");
        }
        let other = Memory::parse(json.as_bytes(), "b2").unwrap_err();
        assert!(other.message().contains("another service"), "{other}");
    }
}
