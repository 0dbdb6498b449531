//! The results of single windows and of a whole collect.

use std::fmt;

use serde::Serialize;

use crate::code::Code;
use crate::counts::table::CountTable;
use crate::error::Error;
use crate::spelling::Spelling;
use crate::time::window::Window;

/// The outcome for a window whose call was settled. A host must report every outcome, so a new kind breaks its build,
/// on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Its counts are kept.
    Kept {
        /// Whether the window was read so early, before the end of the settle time, that its counts
        /// may still change.
        provisional: bool,
    },
    /// The response was too large or too slow: the two halves of the window are read next.
    Halved,
    /// The window has failed, with the call's final error.
    Failed(Error),
    /// Its call was closed or not driven to its end: the window will be read again.
    GivenBack,
    /// The memory limit left too little room for its table. If other tables were read at the same time, the
    /// window will be read again, alone; otherwise the collect ends with `memory_limit`.
    TooLarge,
    /// The service counts as down: the window will be read again once the service is back, after the
    /// other windows.
    Postponed,
    /// The call was one of the probe's, or one that only tested whether the service is back.
    Probed,
}

/// How far a collect is, in windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Progress {
    /// All windows: it grows by 1 when a window is halved.
    pub planned: u32,
    /// The windows whose counts are known, also from `have` or a checkpoint.
    pub done: u32,
    /// The windows that have failed.
    pub failed: u32,
    /// The windows whose calls have been given to workers and are not settled.
    pub under_way: u32,
    /// While the collect waits for a service that is down: how many milliseconds it waits before
    /// the next try, counted from when a window was last settled. Otherwise it is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_ms: Option<u32>,
}

/// Why windows of a collect are missing, and the counts of the others.
///
/// To resume, collect again with `partial` as [`CollectOptions::have`](crate::CollectOptions::have):
/// only the gaps are read then.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectError {
    /// The error that ended the collect early; otherwise the error of the first window that failed;
    /// otherwise `out_of_order`, because the collect was not driven to its end.
    pub error: Error,
    /// The counts of all windows that were read; `None` if no window was read.
    pub partial: Option<CountTable>,
    /// The time of the range (or part) that the partial table does not cover.
    pub gaps: Vec<Window>,
    /// Each window that has failed, with its error, in the order of time.
    pub failures: Vec<(Window, Error)>,
}

impl CollectError {
    /// The whole text, with the names of arguments spelled for that host.
    pub fn text_in(&self, spelling: Spelling) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            write!(f, "{}", self.error.text_in(spelling))?;
            self.write_gaps(f)
        })
    }

    fn write_gaps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The error itself mentions the failed windows.
        if let Some(first) = self.gaps.first().filter(|_| self.failures.is_empty()) {
            let more = self.gaps.len() - 1;
            write!(f, "; not covered: {first:?}")?;
            if more > 0 {
                write!(f, " and {more} more")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for CollectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text_in(Spelling::Rust).fmt(f)
    }
}

impl std::error::Error for CollectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The error that ends a collect, with the number of failed windows.
pub(super) fn with_progress(
    error: Error,
    failures: &[(Window, Error)],
    progress: Progress,
) -> Error {
    let Some((window, first)) = failures.first() else {
        return error;
    };
    let Progress { planned, done, .. } = progress;
    let failed = failures.len();
    let begin = match *first == error {
        true => format!("{failed} of {planned} windows failed; first: {window:?}: "),
        false => format!("{failed} of {planned} windows failed, and then: "),
    };
    let mut error = error.beginning(begin);
    error.add(match done {
        0 => "; none was read".to_owned(),
        _ if done as usize + failed == planned as usize => "; `partial` has the rest".to_owned(),
        _ => format!("; `partial` has the {done} that were read"),
    });
    error
}

/// Whether a shorter window may succeed, because the response was too large or too slow.
pub(super) fn is_too_much(error: &Error) -> bool {
    match error.code() {
        Code::BodyLimit | Code::GroupLimit | Code::TimedOut => true,
        Code::ServerError | Code::UnexpectedStatus => matches!(error.status(), Some(408 | 504)),
        _ => false,
    }
}
