//! The life of access tokens: one slot per API, one request at a time, no token past its life.
//!
//! A token belongs to an origin, an audience and a client. A slot holds the tokens of one such
//! triple, and the type of a token says which API it is for: a request to the Orchestration API is
//! built from an `AccessToken<Orchestration>`, and there is no way to make one of a Control token.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::{Code, Error, Result};
use crate::secret::Secret;
use crate::time::Now;

/// The longest life of a token (service reference 8): a longer `expires_in` counts as this.
pub(crate) const LONGEST_LIFETIME_S: u64 = 86_400;

/// How long a token counts as alive when nobody says: well below the documented 24 hours.
pub(crate) const DEFAULT_LIFETIME_S: u64 = 3_600;

/// A refresh is tried this long before the end, or a tenth of the life before, if that is less.
const LONGEST_MARGIN_MS: u64 = 300_000;

/// After a failed refresh the old token serves this long before the next try.
const REFRESH_PAUSE_MS: u64 = 30_000;

/// One of the two APIs, each with its own audience and tokens (service reference 5.1, point 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// The Control API, whose token the Event Metrics API takes.
    Control,
    /// The Orchestration API.
    Orchestration,
}

impl Api {
    /// `control` or `orchestration`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Orchestration => "orchestration",
        }
    }
}

/// A type per API, so that a token of one can't be used for the other.
pub(crate) trait Audience: Send + Sync + Sized + 'static {
    const API: Api;
    fn slot(tokens: &mut Tokens) -> &mut TokenSlot<Self>;
}

/// The Control API, as a type.
#[derive(Debug)]
pub(crate) struct Control;

/// The Orchestration API, as a type.
#[derive(Debug)]
pub(crate) struct Orchestration;

impl Audience for Control {
    const API: Api = Api::Control;
    fn slot(tokens: &mut Tokens) -> &mut TokenSlot<Self> {
        &mut tokens.control
    }
}

impl Audience for Orchestration {
    const API: Api = Api::Orchestration;
    fn slot(tokens: &mut Tokens) -> &mut TokenSlot<Self> {
        &mut tokens.orchestration
    }
}

/// Both slots of a client.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    control: TokenSlot<Control>,
    orchestration: TokenSlot<Orchestration>,
}

/// A token with the API that it is for, and its life.
pub(crate) struct AccessToken<A> {
    value: Secret,
    /// Counts the tokens of a slot, so that a rejected one is not mistaken for its successor.
    generation: u64,
    /// When it was asked for: its life counts from there, because the service's clock started at
    /// some moment after.
    asked_at: Now,
    lifetime_ms: u64,
    audience: PhantomData<A>,
}

impl<A> AccessToken<A> {
    pub(crate) fn value(&self) -> &Secret {
        &self.value
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    fn is_alive(&self, now: Now) -> bool {
        now.since(self.asked_at) < self.lifetime_ms
    }

    fn is_due(&self, now: Now) -> bool {
        let margin = LONGEST_MARGIN_MS.min(self.lifetime_ms / 10);
        now.since(self.asked_at) >= self.lifetime_ms - margin
    }
}

impl<A> fmt::Debug for AccessToken<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken")
            .field("generation", &self.generation)
            .field("asked_at", &self.asked_at)
            .field("lifetime_ms", &self.lifetime_ms)
            .finish_non_exhaustive()
    }
}

/// What a token endpoint, or the host, gave: a token and its lifetime.
#[derive(Debug)]
pub(crate) struct Grant {
    value: Secret,
    lifetime_ms: u64,
}

impl Grant {
    /// Checks a token, which goes into a header, and takes its lifetime.
    pub(crate) fn new(value: Secret, lifetime: Lifetime) -> Result<Self> {
        let fits_header = |byte: u8| matches!(byte, 0x21..=0x7E);
        if value.is_empty() || !value.expose().bytes().all(fits_header) {
            let message = "the token is empty or has characters that no header can hold";
            return Err(Error::new(Code::InvalidTokenResponse, message));
        }
        Ok(Self {
            value,
            lifetime_ms: lifetime.0,
        })
    }
}

/// A token's lifetime in milliseconds: at least a second, at most the documented 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime(u64);

impl Lifetime {
    pub(crate) fn from_seconds(seconds: u64) -> Option<Self> {
        (seconds > 0).then(|| Self(seconds.min(LONGEST_LIFETIME_S) * 1000))
    }

    /// Parses seconds as they are written, in JSON or by the host: digits of a whole number, at
    /// least 1 and below 2^64.
    pub(crate) fn parse(seconds: &str) -> Result<Self> {
        let whole = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = if whole { seconds.parse().ok() } else { None };
        seconds.and_then(Self::from_seconds).ok_or_else(|| {
            let message = "a token's lifetime is not a positive whole number of seconds";
            Error::new(Code::InvalidTokenLifetime, message)
        })
    }
}

/// One try to get a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight(u64);

/// What a call that needs a token is to do.
#[derive(Debug)]
pub(crate) enum Acquired<A> {
    /// Use this token.
    Use(Arc<AccessToken<A>>),
    /// Get a token; all others wait for it.
    Fetch(Flight),
    /// Another call is getting one. Ask again when it has ended.
    Wait(Flight),
}

/// The tokens of one API in the name of one client.
#[derive(Debug)]
pub(crate) struct TokenSlot<A> {
    current: Option<Arc<AccessToken<A>>>,
    flight: Option<Flight>,
    flights: u64,
    generations: u64,
    /// The end of the latest flight, for those that waited for it.
    latest: Option<(Flight, Ending)>,
    refresh_failed_at: Option<Now>,
}

#[derive(Clone, Debug)]
enum Ending {
    Gained { generation: u64 },
    Failed(Error),
    Abandoned,
}

impl<A> Default for TokenSlot<A> {
    fn default() -> Self {
        Self {
            current: None,
            flight: None,
            flights: 0,
            generations: 0,
            latest: None,
            refresh_failed_at: None,
        }
    }
}

impl<A> TokenSlot<A> {
    /// A token, or how to get one. `waited_for` is the flight that this call was told to wait for.
    ///
    /// A token that was just waited for is used even if the clock says that its life is over:
    /// the service is the judge, and a call never asks again and again.
    pub(crate) fn acquire(&mut self, now: Now, waited_for: Option<Flight>) -> Result<Acquired<A>> {
        if let (Some(flight), Some((latest, ending))) = (waited_for, &self.latest) {
            match (ending, &self.current) {
                (Ending::Failed(error), _) if *latest == flight => return Err(error.clone()),
                (Ending::Gained { generation }, Some(current))
                    if *latest == flight && current.generation == *generation =>
                {
                    return Ok(Acquired::Use(Arc::clone(current)));
                }
                _ => {}
            }
        }
        self.current.take_if(|current| !current.is_alive(now));
        match (&self.current, self.flight) {
            (Some(current), flight) => {
                let paused = |failed: Now| now.since(failed) < REFRESH_PAUSE_MS;
                let may_refresh = flight.is_none() && !self.refresh_failed_at.is_some_and(paused);
                if current.is_due(now) && may_refresh {
                    Ok(Acquired::Fetch(self.take_off()))
                } else {
                    Ok(Acquired::Use(Arc::clone(current)))
                }
            }
            (None, Some(flight)) => Ok(Acquired::Wait(flight)),
            (None, None) => Ok(Acquired::Fetch(self.take_off())),
        }
    }

    fn take_off(&mut self) -> Flight {
        self.flights += 1;
        let flight = Flight(self.flights);
        self.flight = Some(flight);
        flight
    }

    /// The flight brought a token that was asked for at `asked_at`.
    pub(crate) fn gained(
        &mut self,
        flight: Flight,
        grant: Grant,
        asked_at: Now,
    ) -> Arc<AccessToken<A>> {
        self.generations += 1;
        let token = Arc::new(AccessToken {
            value: grant.value,
            generation: self.generations,
            asked_at,
            lifetime_ms: grant.lifetime_ms,
            audience: PhantomData,
        });
        self.current = Some(Arc::clone(&token));
        self.refresh_failed_at = None;
        self.end(
            flight,
            Ending::Gained {
                generation: self.generations,
            },
        );
        token
    }

    /// The flight failed. Gives the token that still serves, if there is one, and the error if not.
    pub(crate) fn failed(
        &mut self,
        flight: Flight,
        asked_at: Now,
        error: Error,
    ) -> Result<Arc<AccessToken<A>>> {
        self.refresh_failed_at = Some(asked_at);
        self.end(flight, Ending::Failed(error.clone()));
        self.current.clone().ok_or(error)
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
    pub(crate) fn endings(&self) -> u64 {
        self.flights - u64::from(self.flight.is_some())
    }

    /// The service answered 401 to the token of that generation. A newer one stays.
    pub(crate) fn reject(&mut self, generation: u64) {
        self.current
            .take_if(|current| current.generation == generation);
    }
}

impl Tokens {
    /// Grows whenever a call that waits for a token should ask again.
    pub(crate) fn epoch(&self) -> u64 {
        self.control.endings() + self.orchestration.endings()
    }
}
