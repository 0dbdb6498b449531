//! Documents that carry the checksum of their own bytes.

use crate::checksum::checksum;

/// What stands before the checksum. It is the second field of a document, after one with a fixed value.
const BEFORE: &[u8] = b"\"digest\":\"";

/// Puts the checksum of all other bytes into a document whose `digest` is empty.
#[must_use]
pub fn seal(mut json: String) -> String {
    if let Some(at) = after(json.as_bytes()) {
        let digest = checksum(&[&json.as_bytes()[..at - 1], &json.as_bytes()[at + 1..]]);
        json.insert_str(at, &digest);
    }
    json
}

/// Whether a document is as it was sealed, byte for byte.
#[must_use]
pub fn is_sealed(json: &[u8]) -> bool {
    let parts = after(json).and_then(|at| {
        let length = json[at..].iter().position(|byte| *byte == b'"')?;
        let digest = &json[at..at + length];
        Some((&json[..at - 1], digest, &json[at + length + 1..]))
    });
    parts.is_some_and(|(before, digest, rest)| checksum(&[before, rest]).as_bytes() == digest)
}

/// Where the checksum stands, or is to stand, between its quotes, which it does not cover.
fn after(json: &[u8]) -> Option<usize> {
    let mut places = json.windows(BEFORE.len());
    Some(places.position(|of| of == BEFORE)? + BEFORE.len())
}

#[cfg(test)]
mod tests {
    use super::{is_sealed, seal};

    #[test]
    fn any_changed_byte_is_found() {
        let sealed = seal(r#"{"format":"x/1","digest":"","values":["a","b"]}"#.to_owned());
        assert!(is_sealed(sealed.as_bytes()));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] ^= 1;
            assert!(!is_sealed(&changed), "byte {at}");
        }
        for cut in 0..sealed.len() {
            assert!(!is_sealed(&sealed.as_bytes()[..cut]), "{cut} bytes");
        }
        assert!(!is_sealed(b"{}"));
    }
}
