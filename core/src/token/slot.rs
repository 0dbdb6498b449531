//! One slot per API: its current token, the one flight under way to get another, and how the
//! latest one has ended.

use std::sync::Arc;

use super::{Grant, Token};
use crate::error::{Error, Result};
use crate::time::Now;

/// After a failed refresh the old token serves this long before the next try.
const REFRESH_PAUSE_MS: u64 = 30_000;

/// Those who waited for a token request share its failure for this long.
const FAILURE_SHARED_MS: u64 = 60_000;

/// One try to get a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) struct Flight(u64);

/// What a call has been through in its wish for a token.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wish {
    /// The latest flight that it led or waited for.
    flight: Option<Flight>,
    /// How many flights it led or waited for.
    flights: u32,
    /// The failed flight after which it has waited, to try again.
    waited_after: Option<Flight>,
}

impl Wish {
    /// The wish of a call that waits a while after a failed flight.
    pub(crate) fn again_after(flight: Flight) -> Self {
        Self {
            waited_after: Some(flight),
            ..Self::default()
        }
    }

    /// Whether that failure is this call's too: it took part in the flight, or would have if it had
    /// not been waiting for its turn to try again.
    fn shares(&self, failed: Flight) -> bool {
        self.flight == Some(failed) || self.waited_after.is_some_and(|earlier| earlier < failed)
    }

    /// Counts a flight, unless it is still the same one.
    pub(crate) fn go_through(&mut self, flight: Flight) {
        if self.flight != Some(flight) {
            self.flight = Some(flight);
            self.flights += 1;
        }
    }
}

/// A call goes through no more flights than these before it takes what the last one brought,
/// even if the clock says that it is over: the service is the judge, and nothing goes in circles.
const MOST_FLIGHTS: u32 = 2;

/// What a call that needs a token is to do.
#[derive(Debug)]
pub(crate) enum Acquired<T> {
    /// Use this token.
    Use(T),
    /// Use this token, or [take off](TokenSlot::take_off) to replace it before its end.
    Renew(T),
    /// [Take off](TokenSlot::take_off) to get a token.
    Fetch,
    /// Another call is getting one. Ask again when it has ended.
    Wait(Flight),
    /// Another call has failed to get one.
    Failed {
        /// In that flight.
        flight: Flight,
        /// For that reason.
        error: Error,
    },
}

impl<T> Acquired<T> {
    /// The same with what is made of the token.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Acquired<U> {
        match self {
            Self::Use(token) => Acquired::Use(make(token)),
            Self::Renew(token) => Acquired::Renew(make(token)),
            Self::Fetch => Acquired::Fetch,
            Self::Wait(flight) => Acquired::Wait(flight),
            Self::Failed { flight, error } => Acquired::Failed { flight, error },
        }
    }
}

/// The tokens of one API in the name of one client.
#[derive(Debug)]
pub(crate) struct TokenSlot {
    current: Option<Arc<Token>>,
    flight: Option<Flight>,
    flights: u64,
    generations: u64,
    /// The end of the latest flight, for those that waited for it.
    latest: Option<(Flight, Ending)>,
    refresh: Refresh,
    /// The first generation that was rejected since a token was last accepted.
    rejected_from: Option<u64>,
}

#[derive(Clone, Debug)]
enum Ending {
    Gained { generation: u64 },
    Failed { asked_at: Now, error: Error },
    Abandoned,
}

/// Whether a token that still serves may be renewed.
#[derive(Clone, Copy, Debug)]
enum Refresh {
    Allowed,
    /// The last try has failed, and nobody has said yet what time it is.
    JustFailed,
    PausedSince(Now),
}

impl Default for TokenSlot {
    fn default() -> Self {
        Self {
            current: None,
            flight: None,
            flights: 0,
            generations: 0,
            latest: None,
            refresh: Refresh::Allowed,
            rejected_from: None,
        }
    }
}

impl TokenSlot {
    /// A token, or how to get one.
    pub(super) fn acquire(&mut self, now: Now, wish: Wish) -> Acquired<Arc<Token>> {
        if matches!(self.refresh, Refresh::JustFailed) {
            self.refresh = Refresh::PausedSince(now);
        }
        if let Some(token) = self.just_gained(wish) {
            return Acquired::Use(token);
        }
        self.current.take_if(|current| !current.is_alive(now));
        if let Some(current) = &self.current {
            let current = Arc::clone(current);
            let renew = current.is_due(now) && self.may_refresh(now);
            return if renew {
                Acquired::Renew(current)
            } else {
                Acquired::Use(current)
            };
        }
        match (self.flight, &self.latest) {
            (Some(flight), _) => Acquired::Wait(flight),
            (None, Some((flight, Ending::Failed { asked_at, error })))
                if wish.shares(*flight) && now.since(*asked_at) < FAILURE_SHARED_MS =>
            {
                let (flight, error) = (*flight, error.clone());
                Acquired::Failed { flight, error }
            }
            (None, _) => Acquired::Fetch,
        }
    }

    /// The token that this call's last flight brought, if it may not go through another one.
    fn just_gained(&self, wish: Wish) -> Option<Arc<Token>> {
        let (latest, Ending::Gained { generation }) = self.latest.as_ref()? else {
            return None;
        };
        let current = self.current.as_ref()?;
        let brought = wish.flight == Some(*latest) && current.generation == *generation;
        (brought && wish.flights >= MOST_FLIGHTS).then(|| Arc::clone(current))
    }

    fn may_refresh(&self, now: Now) -> bool {
        let paused = match self.refresh {
            Refresh::Allowed => false,
            Refresh::JustFailed => true,
            Refresh::PausedSince(then) => now.since(then) < REFRESH_PAUSE_MS,
        };
        self.flight.is_none() && !paused
    }

    /// Begins a flight, for which all others wait.
    pub(crate) fn take_off(&mut self) -> Flight {
        self.flights += 1;
        let flight = Flight(self.flights);
        self.flight = Some(flight);
        flight
    }

    /// The flight brought a token that was asked for at `asked_at`.
    pub(crate) fn gained(&mut self, flight: Flight, grant: Grant, asked_at: Now) {
        self.generations += 1;
        self.current = Some(Arc::new(Token {
            value: grant.value,
            generation: self.generations,
            asked_at,
            lifetime_ms: grant.lifetime_ms,
        }));
        self.refresh = Refresh::Allowed;
        let generation = self.generations;
        self.end(flight, Ending::Gained { generation });
    }

    /// The flight failed. If there is an older token, it may still serve; if not, that is the end.
    pub(crate) fn failed(&mut self, flight: Flight, asked_at: Now, error: Error) -> Result<()> {
        self.refresh = Refresh::JustFailed;
        let ending = Ending::Failed {
            asked_at,
            error: error.clone(),
        };
        self.end(flight, ending);
        if self.current.is_some() {
            Ok(())
        } else {
            Err(error)
        }
    }

    /// The call that led the flight was given up; the next one that asks leads a new one.
    pub(crate) fn abandoned(&mut self, flight: Flight) {
        self.end(flight, Ending::Abandoned);
    }

    fn end(&mut self, flight: Flight, ending: Ending) {
        if self.flight == Some(flight) {
            self.flight = None;
            self.latest = Some((flight, ending));
        }
    }

    /// How many flights have ended: it grows when those that wait should ask again.
    pub(super) fn endings(&self) -> u64 {
        self.flights - u64::from(self.flight.is_some())
    }

    /// The service took a token for good.
    pub(crate) fn accepted(&mut self) {
        self.rejected_from = None;
    }

    /// The service answered 401 to the token of that generation. It is dropped; a newer one stays.
    /// Gives whether a new one is worth a try: not if this one was itself the answer to a 401.
    pub(crate) fn reject(&mut self, generation: u64) -> bool {
        self.current
            .take_if(|current| current.generation == generation);
        generation <= *self.rejected_from.get_or_insert(generation)
    }
}
