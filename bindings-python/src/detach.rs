//! Work without the interpreter, so that other threads can run Python meanwhile.

use std::sync::{Mutex, PoisonError, TryLockError};

use pyo3::prelude::*;

/// Work on so few bytes takes a tenth of a millisecond. A busy thread may take 5 ms to give the
/// interpreter back, so it is not given away for that. Python's HTTP stacks read no more at once.
const FEW_BYTES: usize = 64 * 1024;

/// The size of work that does not grow with any input.
pub(crate) const BRIEF: usize = 0;

/// Runs `action`, which works on so many bytes, without the interpreter unless they are few.
pub(crate) fn detached<R: Send>(
    py: Python<'_>,
    bytes: usize,
    action: impl FnOnce() -> R + Send,
) -> R {
    if bytes <= FEW_BYTES {
        action()
    } else {
        py.detach(action)
    }
}

/// Runs `action` on what the mutex guards, as `detached` does.
///
/// A thread that has to wait for the lock gives the interpreter away first, and gives the lock back
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
