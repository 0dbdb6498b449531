//! When the counts of a window no longer change.

use crate::time::now::Now;
use crate::time::window::Window;

/// How long after its end a window's counts may still change, unless the caller knows better: an hour.
pub(crate) const SETTLE_MS: u64 = 3_600_000;

/// Whether a window was old enough at both times. A wall clock may be set back between the two, and
/// the earlier one is the safe one to believe.
pub(crate) fn is_settled(window: Window, settle_ms: u64, times: [Now; 2]) -> bool {
    let settled_ms = window.end().unix_ms().saturating_add_unsigned(settle_ms);
    times.into_iter().all(|time| time.unix_ms >= settled_ms)
}
