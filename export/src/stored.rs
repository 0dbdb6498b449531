//! Documents that a host stores between two runs: JSON with a checksum.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tallyfold::{Code, Error, Result, is_sealed, seal};

/// The document of a value. Its first two fields are `format` and `digest`, which is empty.
pub(crate) fn write(value: &impl Serialize) -> String {
    // Structs of texts and numbers can be written.
    seal(serde_json::to_string(value).unwrap_or_default())
}

/// Reads a document of that format.
///
/// # Errors
/// `invalid_checkpoint` for one that is torn or was changed.
pub(crate) fn read<T: DeserializeOwned>(json: &[u8], format: &str) -> Result<T> {
    let begin = format!("{{\"format\":\"{format}\",\"digest\":\"");
    if !json.starts_with(begin.as_bytes()) {
        return Err(invalid(format!(
            "this is no document of the format {format}"
        )));
    }
    if !is_sealed(json) {
        let message = "this was damaged or changed since it was written: its checksum is another";
        return Err(invalid(message.to_owned()));
    }
    serde_json::from_slice(json).map_err(|error| invalid(error.to_string()))
}

/// The error for a document that can't be used.
pub(crate) fn invalid(message: String) -> Error {
    Error::new(Code::InvalidCheckpoint, message)
}
