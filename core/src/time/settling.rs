//! Decides when the counts of a window are final: when its settle time has passed by this machine's clock and by the
//! service's clock, if a response shows that. So the clock that is behind decides. A `Date` has whole seconds, so a
//! window settles only when even the first moment of that second is late enough.

use serde::{Serialize, Serializer};

use crate::time::now::Now;
use crate::time::window::Window;

/// The default settle time: a window's counts may still change for an hour after its end.
pub(crate) const SETTLE_MS: u64 = 3_600_000;

/// A `Date` has whole seconds.
pub(crate) const PRECISION_MS: u64 = 1_000;

/// A difference between two clocks is reported only if it is larger than this.
const AGREE_MS: i64 = 60_000;

/// If two clocks differ by more than this, somebody must correct one of them.
pub(crate) const ALARMING_MS: i64 = 300_000;

/// Whether a window was old enough at both times by the wall clock, and by the service's clock if that is known. The
/// wall clock may be set back between the two times, or be wrong.
pub(crate) fn is_settled(
    window: Window,
    settle_ms: u64,
    times: [Now; 2],
    service: Option<ServiceTime>,
) -> bool {
    let settled_ms = window.end().unix_ms().saturating_add_unsigned(settle_ms);
    times.into_iter().all(|time| time.unix_ms >= settled_ms)
        && service.is_none_or(|service| service.sent_ms >= settled_ms)
}

/// The service's clock, as the `Date` of a response shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceTime {
    /// The `Date`.
    pub(crate) sent_ms: i64,
    /// When the response was requested.
    pub(crate) asked_at: Now,
}

impl ServiceTime {
    /// Whether the service's clock may have reached `unix_ms` when the service sent the response.
    pub(crate) fn may_have_come_to(self, unix_ms: i64) -> bool {
        self.latest().sent_ms >= unix_ms
    }

    /// Returns a later time, with the wall clock set back to the service's clock if it is ahead of it.
    pub(crate) fn holds_back(self, now: Now) -> Now {
        let latest_ms = self.latest().sent_ms.saturating_add_unsigned(self.age_ms(now));
        Now { unix_ms: now.unix_ms.min(latest_ms), ..now }
    }

    /// How long ago the response was requested, by the monotonic clock.
    pub(crate) fn age_ms(self, now: Now) -> u64 {
        now.monotonic_ms.saturating_sub(self.asked_at.monotonic_ms)
    }

    /// The same with the latest time that the `Date` can stand for.
    pub(crate) fn latest(self) -> Self {
        Self { sent_ms: self.sent_ms.saturating_add_unsigned(PRECISION_MS), ..self }
    }

    /// How the wall clock differs from the service's clock, if the difference is worth a note. A `Date` that is at most
    /// `longest_ms` ahead of the wall clock is not, because the service may have sent the response that late.
    pub(crate) fn difference(self, longest_ms: u64) -> Option<ClockDifference> {
        let ahead_ms = self.asked_at.unix_ms.saturating_sub(self.sent_ms);
        let is_late = ahead_ms < 0 && ahead_ms.unsigned_abs() <= longest_ms;
        if ahead_ms.saturating_abs() <= AGREE_MS || is_late {
            return None;
        }
        let (side, so) = match ahead_ms > 0 {
            true => ("ahead of", "windows settle by the service's clock"),
            false => ("behind", "windows are read and settle that much later"),
        };
        let minutes = ahead_ms.unsigned_abs() / 60_000;
        Some(ClockDifference {
            ahead_ms,
            is_alarming: ahead_ms.saturating_abs() > ALARMING_MS,
            message: format!(
                "this machine's clock is {minutes} min {side} the service's (Date): {so}; set the clock that is wrong"
            ),
        })
    }
}

/// The difference between the wall clock and the service's clock, as the last `Date` shows it. Only responses with counts change
/// it: the `Date` of another response may be a proxy's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServiceClock {
    /// By how much the wall clock was ahead; `None` before the first `Date`.
    ahead_ms: Option<u64>,
}

impl ServiceClock {
    /// Returns the service's clock for counts that have just come. Without a `Date` in their response, the wall clock is assumed to
    /// be as wrong as it was at the last `Date`.
    pub(crate) fn show(&mut self, response: Option<ServiceTime>, now: Now) -> Option<ServiceTime> {
        if let Some(service) = response {
            let ahead_ms = now.unix_ms.saturating_sub(service.sent_ms);
            self.ahead_ms = Some(u64::try_from(ahead_ms).unwrap_or(0));
            return response;
        }
        self.ahead_ms.map(|ahead_ms| ServiceTime {
            sent_ms: now.unix_ms.saturating_sub_unsigned(ahead_ms),
            asked_at: now,
        })
    }
}

/// How the caller's wall clock differs from the service's `Date`. No window settles before its time by either of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct ClockDifference {
    /// By how much the caller's clock is ahead; a negative number if it is behind.
    #[serde(serialize_with = "as_float")]
    #[cfg_attr(feature = "surface", schemars(with = "f64"))]
    pub ahead_ms: i64,
    /// Whether they differ by more than five minutes: a warning, and otherwise a note.
    pub is_alarming: bool,
    /// A sentence about it.
    pub message: String,
}

/// A time in milliseconds is a plain number in every language, not one of 64 bits.
fn as_float<S: Serializer>(ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ms as f64)
}
