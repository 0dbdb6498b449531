//! The patience of the long range that a call belongs to.

/// The patience of the long range that a call belongs to. When the service is down, the range tries again, not the
/// call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patient {
    /// The longest `Retry-After` that the range waits for.
    pub(crate) longest_wait_ms: u64,
    /// How many further calls the range will make.
    pub(crate) calls_left: u32,
    /// The number of this call among the calls that test whether the service is back; 0 while it counts as up.
    pub(crate) tries: u32,
    /// Whether it repeats a failed call of the range. Such a call earns nothing for the retry budget.
    pub(crate) repeats: bool,
}

/// A temporary failure that ended a patient call. The range reads the call's window again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setback {
    /// The number of the failure among all temporary failures of the client.
    pub(crate) number: u64,
    /// The wait before the next try.
    pub(crate) wait_ms: u64,
    /// The part of it that the service has requested.
    pub(crate) floor_ms: u64,
    /// Whether the service counts as down, because several requests in a row have failed.
    pub(crate) is_down: bool,
}
