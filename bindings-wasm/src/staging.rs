//! The buffer for chunks. The host writes each chunk into the same piece of memory, so that no memory is allocated and
//! freed for each chunk.

use std::cell::RefCell;

use wasm_bindgen::prelude::wasm_bindgen;

const BYTES: usize = 64 * 1024;

thread_local! {
    static STAGING: RefCell<Box<[u8]>> = RefCell::new(vec![0; BYTES].into());
}

/// The address of the buffer of 65,536 bytes. A function that takes the length of a chunk reads the chunk from there.
#[wasm_bindgen]
#[must_use]
pub fn staging() -> *mut u8 {
    STAGING.with_borrow_mut(|staging| staging.as_mut_ptr())
}

/// Reads a chunk that the host has written.
pub(crate) fn staged<T>(length: usize, read: impl FnOnce(&[u8]) -> T) -> T {
    STAGING.with_borrow(|staging| read(&staging[..length]))
}
