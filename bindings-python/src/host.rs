//! Reads what a host passes to a machine: bytes, clocks, headers and failures. Also makes random seeds.

use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyString;
use tallyfold::sending::UNCONNECTED;
use tallyfold::{HostFailure, Now};

use crate::error::{Failure, Result};

/// Makes a number that can't be guessed, and that differs between processes.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(())
}

/// Returns how an exchange failed, and the detail to report.
pub(crate) fn failure(detail: &str, timed_out: bool, not_sent: bool) -> (HostFailure, &str) {
    match (not_sent, timed_out) {
        (true, true) => (HostFailure::NotSent, UNCONNECTED),
        (true, false) => (HostFailure::NotSent, detail),
        (false, true) => (HostFailure::Timeout, detail),
        (false, false) => (HostFailure::Network, detail),
    }
}

/// A pair `(monotonic_ms, unix_ms)`.
pub(crate) struct Clocks(pub(crate) Now);

impl Clocks {
    pub(crate) fn of(name: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        let wanted = "want a pair (monotonic_ms, unix_ms) of ints, such as Now.read()";
        let refused = |_| Failure::wrong_type(name, wanted, value);
        let (monotonic_ms, unix_ms) = value.extract().map_err(refused)?;
        Ok(Self(Now { monotonic_ms, unix_ms }))
    }
}

/// Reads names and values of headers.
pub(crate) fn pairs(name: &str, value: &Bound<'_, PyAny>) -> Result<Vec<(String, String)>> {
    let refused = |_| Failure::wrong_type(name, "want pairs of str", value);
    value.extract().map_err(refused)
}

/// Borrows names and values of headers, as the core accepts them.
pub(crate) fn headers(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// The bytes of any bytes-like object. A `bytes` object can't change, so its bytes are borrowed. Other
/// objects are copied, because another thread may change them.
pub(crate) enum Chunk {
    Shared(PyBackedBytes),
    Copied(Vec<u8>),
}

impl Chunk {
    pub(crate) fn of(name: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        if let Ok(bytes) = value.extract() {
            return Ok(Self::Shared(bytes));
        }
        let buffer = PyBuffer::get(value);
        let buffer = buffer.map_err(|_| Failure::wrong_type(name, "want bytes", value))?;
        Ok(Self::Copied(buffer.to_vec(value.py())?))
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

/// A document as `str` or as bytes.
pub(crate) enum TextOrBytes {
    Text(PyBackedStr),
    Bytes(Chunk),
}

impl TextOrBytes {
    pub(crate) fn of(name: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        let Ok(text) = value.cast::<PyString>() else {
            let wrong = |_| Failure::wrong_type(name, "want str or bytes", value);
            return Chunk::of(name, value).map(Self::Bytes).map_err(wrong);
        };
        if let Ok(text) = text.extract() {
            return Ok(Self::Text(text));
        }
        // Passes the text as bytes, so that the core refuses the lone surrogate and reports its offset.
        let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
        Chunk::of(name, &bytes).map(Self::Bytes)
    }
}

impl Deref for TextOrBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}
