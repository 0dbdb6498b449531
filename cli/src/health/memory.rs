//! What a run of `check` leaves for the next one: the state of the rules, and what each receiver was notified of.

use serde::{Deserialize, Serialize};
use tallyfold::keeper::DocumentKind;
use tallyfold_health::{Notified, State};

use crate::failure::Result;
use crate::host::files::StateFile;

const KIND: DocumentKind = DocumentKind {
    format: "tallyfold-check/1",
    what: "state of tallyfold check",
};

/// What a run leaves for the next one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    /// The service that it belongs to.
    service: String,
    /// The state of the rules.
    pub(crate) rules: State,
    /// What each receiver was notified of.
    pub(crate) notified: Notified,
}

/// The fields of the document.
#[derive(Serialize, Deserialize)]
struct Fields {
    service: String,
    /// The state of the rules, which is a document of its own; empty before the first run.
    rules: String,
    #[serde(rename = "told")]
    notified: Notified,
}

impl Memory {
    /// Reads a file; without one, nothing is remembered.
    ///
    /// # Errors
    /// For a file that can't be read, that is damaged, or that belongs to another service.
    pub(crate) fn read(file: &StateFile, service: &str) -> Result<Self> {
        match file.read()? {
            None => Ok(Self {
                service: service.to_owned(),
                rules: State::default(),
                notified: Notified::default(),
            }),
            Some(bytes) => Self::parse(&bytes, service).map_err(|error| file.as_failure(error)),
        }
    }

    fn parse(bytes: &[u8], service: &str) -> tallyfold::Result<Self> {
        let fields = KIND.read(bytes)?;
        let fields: Fields = serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        if fields.service != service {
            return Err(KIND.wrong("it is of another service"));
        }
        Ok(Self {
            service: fields.service,
            rules: match fields.rules.is_empty() {
                true => State::default(),
                false => State::from_json(fields.rules.as_bytes())?,
            },
            notified: fields.notified,
        })
    }

    /// The document.
    pub(crate) fn to_json(&self) -> String {
        let fields = Fields {
            service: self.service.clone(),
            rules: String::from_utf8(self.rules.to_json()).unwrap_or_default(),
            notified: self.notified.clone(),
        };
        // The fields are plain texts by name, so this can't fail.
        KIND.write(&serde_json::to_string(&fields).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a state as version 0.1 wrote them.
    const WRITTEN: &str = r#"{"service":"a1","rules":"","told":{"webhook:chat":{"id":{"rule":"r","severity":"critical","labels":{"integration":"\"é\""},"sentence":"s","query":"q","since":"2026-01-01T00:00:00Z","finding":"{}"}}}}"#;

    #[test]
    fn what_was_written_is_read_back_and_any_damage_is_found() {
        let written = KIND.write(WRITTEN);
        let memory = Memory::parse(written.as_bytes(), "a1").unwrap();
        assert!(memory.rules == State::default() && memory.notified != Notified::default());
        let json = memory.to_json();
        let read = Memory::parse(json.as_bytes(), "a1").unwrap();
        assert_eq!(read, memory);
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
