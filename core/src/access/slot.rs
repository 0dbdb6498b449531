//! The token of one API: the current token, the fetch of the next one, and the result of the latest
//! fetch.

use std::sync::Arc;

use super::token::{Grant, Token};
use crate::error::{Error, Result};
use crate::time::now::Now;

/// After a failed renewal, calls use the old token for this long before the next attempt.
const RENEWAL_PAUSE_MS: u64 = 30_000;

/// For this long, a failed token request also fails the calls that waited for it.
const FAILURE_SHARED_MS: u64 = 60_000;

/// A call takes part in at most this many fetches. Then it uses the last token even if it has
/// expired by the clock: the service decides, and no call fetches forever.
const MOST_FETCHES: u32 = 2;

/// The number of rejected tokens in a row, none of them ever accepted, after which a 401 is final:
/// they are probably for another audience.
const MOST_REJECTED: u32 = 2;

/// The same if the service has accepted an earlier token: each rejected token may have been revoked before its first
/// use.
const MOST_REJECTED_AFTER_ACCEPTED: u32 = 3;

/// The number of a token fetch. Fetches are numbered in the order in which they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) struct FetchId(u64);

/// The token fetches that a call has taken part in since its last request to the API.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FetchHistory {
    /// The latest fetch that it did itself or waited for.
    latest: Option<FetchId>,
    /// How many fetches it did itself or waited for.
    count: u32,
    /// The failed fetch that it will retry after a wait.
    retried: Option<FetchId>,
}

impl FetchHistory {
    /// The history of a call that will retry a failed fetch after a wait.
    pub(crate) fn retrying(failed: FetchId) -> Self {
        Self { retried: Some(failed), ..Self::default() }
    }

    /// Whether the failure of a fetch also fails this call: it took part in the fetch, or would
    /// have if it had not been waiting before a retry.
    fn shares(&self, failed: FetchId) -> bool {
        self.latest == Some(failed) || self.retried.is_some_and(|earlier| earlier < failed)
    }

    /// Counts a fetch, unless it was counted before.
    pub(crate) fn take_part(&mut self, fetch: FetchId) {
        if self.latest != Some(fetch) {
            self.latest = Some(fetch);
            self.count += 1;
        }
    }
}

/// What a call that needs a token must do.
#[derive(Debug)]
pub(crate) enum Acquired<T> {
    /// Use this token.
    Use(T),
    /// Use this token, or [begin a fetch](TokenSlot::begin_fetch) to replace it before it expires.
    Renew(T),
    /// [Begin a fetch](TokenSlot::begin_fetch) to get a token.
    Fetch,
    /// Another call is fetching a token. Try again when that fetch has ended.
    Wait(FetchId),
    /// Another call has failed to fetch a token.
    Failed {
        /// The failed fetch.
        fetch: FetchId,
        /// Its error.
        error: Error,
    },
}

impl<T> Acquired<T> {
    /// The same, with `make` applied to the token.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Acquired<U> {
        match self {
            Self::Use(token) => Acquired::Use(make(token)),
            Self::Renew(token) => Acquired::Renew(make(token)),
            Self::Fetch => Acquired::Fetch,
            Self::Wait(fetch) => Acquired::Wait(fetch),
            Self::Failed { fetch, error } => Acquired::Failed { fetch, error },
        }
    }
}

/// The tokens of one API for one client.
#[derive(Debug)]
pub(crate) struct TokenSlot {
    current: Option<Arc<Token>>,
    fetch: Option<FetchId>,
    fetches: u64,
    generations: u64,
    /// The result of the latest fetch, for the calls that waited for it.
    latest: Option<(FetchId, Ending)>,
    renewal: Renewal,
    /// The newest generation that the service has accepted; 0 for none.
    accepted: u64,
    /// The newest generation that the service has rejected; 0 for none.
    rejected: u64,
    /// How many tokens newer than the accepted one the service has rejected.
    rejected_in_a_row: u32,
}

/// The result of a fetch.
#[derive(Clone, Debug)]
enum Ending {
    Succeeded { generation: u64 },
    Failed { asked_at: Now, error: Error },
    Abandoned,
}

/// Whether a token that is still valid may be renewed.
#[derive(Clone, Copy, Debug)]
enum Renewal {
    Allowed,
    /// The last attempt failed, and no call has reported the time since then.
    JustFailed,
    PausedSince(Now),
}

impl Default for TokenSlot {
    fn default() -> Self {
        Self {
            current: None,
            fetch: None,
            fetches: 0,
            generations: 0,
            latest: None,
            renewal: Renewal::Allowed,
            accepted: 0,
            rejected: 0,
            rejected_in_a_row: 0,
        }
    }
}

impl TokenSlot {
    /// A token, or how to get one.
    pub(super) fn acquire(&mut self, now: Now, history: FetchHistory) -> Acquired<Arc<Token>> {
        if matches!(self.renewal, Renewal::JustFailed) {
            self.renewal = Renewal::PausedSince(now);
        }
        if let Some(token) = self.just_fetched(history) {
            return Acquired::Use(token);
        }
        self.current.take_if(|current| !current.is_alive(now));
        if let Some(current) = &self.current {
            let current = Arc::clone(current);
            let renew = current.is_due(now) && self.may_renew(now);
            return if renew { Acquired::Renew(current) } else { Acquired::Use(current) };
        }
        match (self.fetch, &self.latest) {
            (Some(fetch), _) => Acquired::Wait(fetch),
            (None, Some((fetch, Ending::Failed { asked_at, error })))
                if history.shares(*fetch) && now.since(*asked_at) < FAILURE_SHARED_MS =>
            {
                let (fetch, error) = (*fetch, error.clone());
                Acquired::Failed { fetch, error }
            }
            (None, _) => Acquired::Fetch,
        }
    }

    /// The token of this call's last fetch, if the call may not take part in another fetch.
    fn just_fetched(&self, history: FetchHistory) -> Option<Arc<Token>> {
        let (latest, Ending::Succeeded { generation }) = self.latest.as_ref()? else {
            return None;
        };
        let current = self.current.as_ref()?;
        let brought = history.latest == Some(*latest) && current.generation == *generation;
        (brought && history.count >= MOST_FETCHES).then(|| Arc::clone(current))
    }

    fn may_renew(&self, now: Now) -> bool {
        let paused = match self.renewal {
            Renewal::Allowed => false,
            Renewal::JustFailed => true,
            Renewal::PausedSince(then) => now.since(then) < RENEWAL_PAUSE_MS,
        };
        self.fetch.is_none() && !paused
    }

    /// Begins a fetch. All other calls wait for it.
    pub(crate) fn begin_fetch(&mut self) -> FetchId {
        self.fetches += 1;
        let fetch = FetchId(self.fetches);
        self.fetch = Some(fetch);
        fetch
    }

    /// Records the token of a successful fetch, which was requested at `asked_at`.
    pub(crate) fn fetch_succeeded(&mut self, fetch: FetchId, grant: Grant, asked_at: Now) {
        self.generations += 1;
        let generation = self.generations;
        self.current = Some(Arc::new(Token::new(grant, generation, asked_at)));
        self.renewal = Renewal::Allowed;
        self.end(fetch, Ending::Succeeded { generation });
    }

    /// Records that the fetch failed. If there is an older token, which may still be valid, this is
    /// not an error. Otherwise, returns the error of the fetch.
    pub(crate) fn fetch_failed(
        &mut self,
        fetch: FetchId,
        asked_at: Now,
        error: Error,
    ) -> Result<()> {
        self.renewal = Renewal::JustFailed;
        let ending = Ending::Failed { asked_at, error: error.clone() };
        self.end(fetch, ending);
        if self.current.is_some() { Ok(()) } else { Err(error) }
    }

    /// Records that the call that did the fetch was closed. The next call that needs a token begins a
    /// new fetch.
    pub(crate) fn fetch_abandoned(&mut self, fetch: FetchId) {
        self.end(fetch, Ending::Abandoned);
    }

    /// Gives up the fetch under way, whichever call does it. The next call that needs a token begins a new fetch. If
    /// the old fetch still returns a token, the token is used.
    pub(crate) fn give_up_fetch(&mut self) {
        if let Some(fetch) = self.fetch {
            self.fetch_abandoned(fetch);
        }
    }

    fn end(&mut self, fetch: FetchId, ending: Ending) {
        if self.fetch == Some(fetch) {
            self.fetch = None;
            self.latest = Some((fetch, ending));
        }
    }

    /// How many fetches have ended. When this number grows, waiting calls should try again.
    pub(super) fn ended_fetches(&self) -> u64 {
        self.fetches - u64::from(self.fetch.is_some())
    }

    /// Records that the service accepted the token of that generation.
    pub(crate) fn accepted(&mut self, generation: u64) {
        if generation > self.accepted {
            self.accepted = generation;
            self.rejected_in_a_row = 0;
        }
    }

    /// Records that the service responded with 401 to the token of that generation, and drops this token. A newer
    /// token stays.
    ///
    /// Returns whether the request may be sent again with a newer token:
    /// - It may if the service has accepted this token or a newer one, because this token was then revoked or has
    ///   expired.
    /// - It may if a newer token has already been rejected, because this response then shows nothing new.
    /// - Otherwise, it may until too many tokens in a row were rejected.
    pub(crate) fn rejected(&mut self, generation: u64) -> bool {
        self.current.take_if(|current| current.generation == generation);
        if generation <= self.accepted || generation < self.rejected {
            return true;
        }
        if generation > self.rejected {
            self.rejected = generation;
            self.rejected_in_a_row += 1;
        }
        let most = match self.accepted {
            0 => MOST_REJECTED,
            _ => MOST_REJECTED_AFTER_ACCEPTED,
        };
        self.rejected_in_a_row < most
    }
}
