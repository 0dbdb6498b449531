//! Responses as a store of the user keeps them: with a checksum, so that a response that was cut, changed or stored
//! under another key is not used.

use crate::checksum::checksum;

/// How many bytes come before the response.
const HEAD: usize = "01234567 ".len();

/// The bytes to store under a key.
#[must_use]
pub fn sealed(key: &str, body: &[u8]) -> Vec<u8> {
    let head = checksum(&[key.as_bytes(), body]) + " ";
    [head.as_bytes(), body].concat()
}

/// The response in bytes that were stored under that key; `None` if they were changed, or stored under another key.
#[must_use]
pub fn unsealed<'a>(key: &str, kept: &'a [u8]) -> Option<&'a [u8]> {
    let (head, body) = kept.split_at_checked(HEAD)?;
    let expected = checksum(&[key.as_bytes(), body]) + " ";
    (head == expected.as_bytes()).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_back_only_if_it_is_whole_and_under_its_key() {
        let kept = sealed("key", b"{}");
        assert_eq!(unsealed("key", &kept), Some(&b"{}"[..]));
        assert_eq!(unsealed("yek", &kept), None);
        for end in 0..kept.len() {
            assert_eq!(unsealed("key", &kept[..end]), None);
        }
        assert_eq!(unsealed("key", &[&kept[..], b" "].concat()), None);
    }
}
