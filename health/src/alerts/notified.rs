//! What each receiver was notified of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tallyfold::Result;
use tallyfold::keeper::DocumentKind;

use super::alert::Alerts;

/// The kind of the stored document.
const KIND: DocumentKind = DocumentKind {
    format: "tallyfold-notified/1",
    what: "state of notifications",
};

/// The alerts that each receiver was notified of, except for alerts whose end it was notified of, too.
///
/// [`Notified::to_json`] and [`Notified::from_json`] write and read it between runs. Its size grows only with the alerts
/// that fire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Notified {
    /// The alerts that each receiver knows, by the key of the receiver.
    pub(crate) receivers: BTreeMap<String, Alerts>,
}

/// The fields of the document.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    receivers: Notified,
}

impl Notified {
    /// Reads what [`Notified::to_json`] wrote.
    ///
    /// # Errors
    /// `invalid_checkpoint` if the document has another kind, is truncated or was changed.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let fields = KIND.read(json)?;
        let fields: Fields = serde_json::from_slice(&fields).map_err(|error| KIND.wrong(error))?;
        Ok(fields.receivers)
    }

    /// Returns the state as a document with a checksum.
    #[must_use]
    pub fn to_json(&self) -> String {
        let fields = Fields {
            receivers: self.clone(),
        };
        // Writing maps of texts as JSON can't fail.
        KIND.write(&serde_json::to_string(&fields).unwrap_or_default())
    }
}
