//! The probe that comes before a collect's windows, if it is wanted.

use super::{Collect, CollectStep, Settled, is_settled};
use crate::client::call::Call;
use crate::client::probe::{AdditivityVerdict, Probe};
use crate::client::question::unknown_task;
use crate::error::{Code, Error, Result};
use crate::time::Now;
use crate::window::Window;

/// Where the probe is.
pub(super) enum Probing {
    Wanted,
    UnderWay { probe: Box<Probe>, asked_at: Now },
    Over,
}

impl Collect {
    /// The step of a probe that is not over, which comes before all windows.
    pub(super) fn next_of_probe(&mut self, now: Now) -> Option<CollectStep> {
        if matches!(self.probing, Probing::Wanted) {
            self.probing = Probing::Over;
            // Late events between the readings would look like events that are counted twice.
            let is_old = |window| is_settled(window, self.settle_ms, [now; 2]);
            let [one, other] = self.queue.take_pair(&self.store, is_old)?;
            let whole = Window::new(one.start(), other.end()).ok()?;
            let probe = Probe::new(self.question.clone(), [one, other], whole);
            self.probing = Probing::UnderWay {
                probe: Box::new(probe),
                asked_at: now,
            };
        }
        match &mut self.probing {
            Probing::UnderWay { probe, .. } => Some(probe.step()),
            _ => None,
        }
    }

    pub(super) fn settle_probe(&mut self, task: u64, call: &mut Call, now: Now) -> Result<Settled> {
        let Probing::UnderWay { probe, asked_at } = &mut self.probing else {
            return Err(unknown_task());
        };
        let asked_at = *asked_at;
        let settled = match probe.settle(task, call) {
            Err(error) if error.code() == Code::OutOfOrder => return Err(error),
            Err(error) => Err(error),
            Ok(()) if !probe.has_ended() => return Ok(Settled::Probed),
            Ok(()) => check_additive(probe),
        };
        let windows = probe.half_windows();
        let tables = probe.halves().to_vec();
        self.probing = Probing::Over;
        match settled {
            // The halves are windows of the plan, which need not be read again.
            Ok(()) => {
                for (window, table) in windows.into_iter().zip(tables) {
                    self.keep(window, table, [asked_at, now]);
                }
            }
            Err(error) => {
                self.queue.put_first(windows);
                self.cause = Some(error);
            }
        }
        Ok(Settled::Probed)
    }
}

fn check_additive(probe: &Probe) -> Result<()> {
    let found = probe.finish()?;
    if matches!(
        found.verdict,
        AdditivityVerdict::Additive | AdditivityVerdict::Unknown
    ) {
        return Ok(());
    }
    let delta = found.difference.total_delta();
    let message = format!(
        "the counts of {:?} and of its two windows differ ({}): the windows' sum has \
         {:+} success, {:+} errors, {:+} filtered",
        found.whole.coverage(),
        found.verdict.as_str(),
        delta.success,
        delta.errors,
        delta.filtered
    );
    Err(Error::new(Code::WindowsNotAdditive, message))
}
