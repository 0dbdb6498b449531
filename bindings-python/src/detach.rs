//! Releases the interpreter during long work, so that other threads can run Python.

use std::sync::{Mutex, PoisonError, TryLockError};

use pyo3::prelude::*;

/// Work on this many bytes takes a tenth of a millisecond, but getting the interpreter back from a
/// busy thread may take 5 ms. So a thread keeps the interpreter for work on this many bytes or
/// fewer. Python's HTTP stacks read no more than this at once.
const FEW_BYTES: usize = 64 * 1024;

/// The size to pass for work that does not depend on any input.
pub(crate) const BRIEF: usize = 0;

/// Runs `action`, which works on this many bytes. Releases the interpreter if they are more than
/// [`FEW_BYTES`].
pub(crate) fn detached<R: Send>(
    py: Python<'_>,
    bytes: usize,
    action: impl FnOnce() -> R + Send,
) -> R {
    if bytes <= FEW_BYTES { action() } else { py.detach(action) }
}

/// Runs `action` like `detached`, on the value that the mutex guards.
///
/// A thread that must wait for the lock first releases the interpreter, and releases the lock
/// before it takes the interpreter again. So it never blocks the thread that holds the lock.
pub(crate) fn locked<T: Send, R: Send>(
    py: Python<'_>,
    mutex: &Mutex<T>,
    bytes: usize,
    action: impl FnOnce(&mut T) -> R + Send,
) -> R {
    // A value of the core stays usable after a panic: it repeats its first error.
    let free = || match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    if bytes <= FEW_BYTES
        && let Some(mut guard) = free()
    {
        return action(&mut guard);
    }
    py.detach(|| action(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner)))
}
