//! The text of a configuration, and errors in it.

use std::path::Path;
use std::sync::Arc;

use tallyfold::arguments::toml::{Place, Wrong};

use crate::arguments::given::Origin;
use crate::failure::{Failure, Result};

/// Decodes the bytes of a file as text.
///
/// # Errors
/// At the first byte that is not UTF-8.
pub(crate) fn text_of<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str> {
    // Windows editors put a byte order mark at the beginning.
    let (skipped, bytes) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => (3, rest),
        None => (0, bytes),
    };
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = skipped + error.valid_up_to();
        let path = path.display();
        Failure::usage(format!("{path}: byte {offset}: want UTF-8 text"))
    })
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        Self::usage(wrong.to_string())
    }
}

impl From<Place> for Origin {
    fn from(place: Place) -> Self {
        Self::File {
            path: place.file.unwrap_or_else(|| Arc::from(Path::new(""))),
            line: place.line,
            column: place.column,
            key: place.key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_refused_at_its_byte() {
        let path = Path::new("t.toml");
        let failure = text_of(path, b"a = \"\xff\"").unwrap_err();
        assert_eq!(failure.text, "t.toml: byte 5: want UTF-8 text");
        let failure = text_of(path, b"\xef\xbb\xbf\xff").unwrap_err();
        assert_eq!(failure.text, "t.toml: byte 3: want UTF-8 text");
        assert_eq!(text_of(path, b"\xef\xbb\xbfa = 1").unwrap(), "a = 1");
    }
}
