//! What both forms of the OpenTelemetry protocol have in common.
//!
//! - Each count is a metric of its own, a sum with delta temporality. Its points have the exact start and end of their
//!   windows, and whole numbers: a count above 2^63 - 1 is refused.
//! - A sum of counts is monotonic. The changes of a revision may be below 0, and so their sum is not.
//! - All labels are attributes of the points. Those of the resource would be lost in systems that keep only some of
//!   them, or put them into a metric of their own, as Prometheus does.
//! - The resource has a `service.name`, which receivers expect. It names the sender: `tallyfold`.

use tallyfold::{Code, Error, Result, Window};

use crate::context::Context;
use tallyfold::sending::Partly;

/// The name of the service, and of the scope of all metrics.
pub(crate) const SENDER: &str = "tallyfold";

/// The version of the scope.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The unit of all counts: a word in braces is a unit without dimension.
pub(crate) const UNIT: &str = "{event}";

/// `AGGREGATION_TEMPORALITY_DELTA`: a point has what was counted since the last one.
pub(crate) const DELTA: i32 = 1;

/// Whether the sum of all points never falls.
pub(crate) fn is_monotonic(context: &Context) -> bool {
    context.revision.is_none()
}

/// The start and the end of a window, in nanoseconds since 1970.
pub(crate) fn times(window: Window) -> [u64; 2] {
    // What is no such number was refused by `check_times`.
    [window.start(), window.end()].map(|time| time.unix_ns() as u64)
}

/// Refuses windows that begin before 1970, or end after the year 2554: times are unsigned 64-bit integers.
pub(crate) fn check_times(context: &Context) -> Result<()> {
    let is_beyond = |window: &&Window| {
        let mut times = [window.start(), window.end()].into_iter();
        times.any(|time| u64::try_from(time.unix_ns()).is_err())
    };
    let Some(window) = context.windows.iter().find(is_beyond) else {
        return Ok(());
    };
    let message = format!(
        "the window {window:?} can't be written: OTLP has times from 1970 to the year 2554"
    );
    Err(Error::new(Code::UnsupportedByFormat, message))
}

/// OTLP names the statuses after which a message is sent again (and 429); after any other one it is not.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 502..=504)
}

/// What a receiver says of points that it rejected. With none, but a message, it is a warning.
pub(crate) fn rejected(points: i64, message: &str) -> Option<Partly> {
    let is_said = points > 0 || !message.is_empty();
    is_said.then(|| Partly {
        points: u64::try_from(points).ok(),
        said: message.to_owned(),
    })
}
