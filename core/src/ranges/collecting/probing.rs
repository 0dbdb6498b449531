//! The probe that a collect makes before it reads its windows, if the caller wants one.

use super::ledger::Ledger;
use crate::calls::call::Call;
use crate::code::Code;
use crate::counts::table::CountTable;
use crate::error::{Error, Result};
use crate::ranges::probe::{AdditivityVerdict, Probe};
use crate::ranges::step::CollectStep;
use crate::ranges::window_query::{WindowQuery, unknown_task};
use crate::time::now::Now;
use crate::time::settling::is_settled;
use crate::time::window::{Window, spans};

/// The state of the probe.
pub(super) enum Probing {
    Wanted,
    UnderWay { probe: Box<Probe>, asked_at: Now },
    Over,
}

/// The result of a probe.
pub(super) enum Probed {
    /// The counts add up. This has the counts of the two windows, and the time of the first request.
    Read { tables: Vec<(Window, CountTable)>, asked_at: Now },
    /// They don't add up, or a call failed. The two windows must still be read, or the call is
    /// [made again](Probing::try_again).
    Failed { windows: [Window; 2], error: Error },
}

impl Probing {
    /// How many windows the probe is reading.
    pub(super) fn under_way(&self) -> u64 {
        if matches!(self, Self::UnderWay { .. }) { 2 } else { 0 }
    }

    /// The next step of the probe; `None` once it is over.
    pub(super) fn next(
        &mut self,
        ledger: &mut Ledger,
        query: &WindowQuery,
        settle_ms: u64,
        now: Now,
    ) -> Option<CollectStep> {
        if matches!(self, Self::Wanted) {
            *self = Self::Over;
            // Late events that arrive between the readings would look like events counted twice.
            let is_old = |window| is_settled(window, settle_ms, [now; 2], None);
            let [one, other] = ledger.take_pair(is_old)?;
            let whole = Window::new(one.start(), other.end()).ok()?;
            let probe = Box::new(Probe::new(query.clone(), [one, other], whole));
            *self = Self::UnderWay { probe, asked_at: now };
        }
        match self {
            Self::UnderWay { probe, .. } => Some(probe.step()),
            _ => None,
        }
    }

    /// Makes the call that has failed again.
    pub(super) fn try_again(&mut self) {
        if let Self::UnderWay { probe, .. } = self {
            probe.forget_failure();
        }
    }

    /// Takes the result of one of the probe's calls. Returns `None` if the probe must make more
    /// calls.
    pub(super) fn settle(&mut self, task: u32, call: &mut Call) -> Result<Option<Probed>> {
        let Self::UnderWay { probe, asked_at } = self else {
            return Err(unknown_task());
        };
        let outcome = match probe.settle(task, call) {
            Err(error) if error.code() == Code::OutOfOrder => return Err(error),
            Err(error) => Err(error),
            Ok(()) if !probe.has_ended() => return Ok(None),
            Ok(()) => check_additive(probe),
        };
        let windows = probe.half_windows();
        let probed = match outcome {
            // The halves are windows of the plan, so the collect need not read them again.
            Ok(()) => Probed::Read {
                tables: windows.into_iter().zip(probe.halves().to_vec()).collect(),
                asked_at: *asked_at,
            },
            Err(error) => return Ok(Some(Probed::Failed { windows, error })),
        };
        *self = Self::Over;
        Ok(Some(probed))
    }
}

fn check_additive(probe: &Probe) -> Result<()> {
    let found = probe.finish()?;
    if matches!(found.verdict, AdditivityVerdict::Additive | AdditivityVerdict::Unknown) {
        return Ok(());
    }
    let [success, errors, filtered] = found.difference.total_delta().digits();
    let message = format!(
        "the counts of {} and of its two windows differ ({}): the sum of the windows minus the \
         whole is {success} success, {errors} errors, {filtered} filtered",
        spans(&found.whole.coverage()),
        found.verdict,
    );
    Err(Error::new(Code::WindowsNotAdditive, message))
}
