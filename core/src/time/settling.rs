//! Decides when the counts of a window are final.

use crate::time::now::Now;
use crate::time::window::Window;

/// The default time after its end during which a window's counts may still change: an hour.
pub(crate) const SETTLE_MS: u64 = 3_600_000;

/// Whether a window was old enough at both times. The wall clock may be set back between them, so
/// the earlier time decides.
pub(crate) fn is_settled(window: Window, settle_ms: u64, times: [Now; 2]) -> bool {
    let settled_ms = window.end().unix_ms().saturating_add_unsigned(settle_ms);
    times.into_iter().all(|time| time.unix_ms >= settled_ms)
}
