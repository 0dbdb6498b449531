//! Where chunks are handed over: the host writes them into one piece of memory, which stays where it
//! is, so that none is asked for and given back per chunk.

use std::cell::RefCell;

use wasm_bindgen::prelude::wasm_bindgen;

const BYTES: usize = 64 * 1024;

thread_local! {
    static STAGING: RefCell<Box<[u8]>> = RefCell::new(vec![0; BYTES].into());
}

/// The address of 65,536 bytes, which are read by whatever takes a chunk by its length.
#[wasm_bindgen]
#[must_use]
pub fn staging() -> *mut u8 {
    STAGING.with_borrow_mut(|staging| staging.as_mut_ptr())
}

/// Reads a chunk that the host has written.
pub(crate) fn staged<T>(length: usize, read: impl FnOnce(&[u8]) -> T) -> T {
    STAGING.with_borrow(|staging| read(&staging[..length]))
}
