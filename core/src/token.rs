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

/// Those who waited for a token request share its failure for this long.
const FAILURE_SHARED_MS: u64 = 60_000;

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
pub(crate) trait Audience: Send + Sync + 'static {
    const API: Api;
}

/// The Control API, as a type.
#[derive(Debug)]
pub(crate) struct Control;

/// The Orchestration API, as a type.
#[derive(Debug)]
pub(crate) struct Orchestration;

impl Audience for Control {
    const API: Api = Api::Control;
}

impl Audience for Orchestration {
    const API: Api = Api::Orchestration;
}

/// The slots of a client, by API.
#[derive(Debug, Default)]
pub(crate) struct Tokens([TokenSlot; 2]);

impl Tokens {
    /// A token of that API, or how to get one: the only way to a token.
    pub(crate) fn acquire<A: Audience>(
        &mut self,
        now: Now,
        wish: Wish,
    ) -> Acquired<AccessToken<A>> {
        self.slot(A::API)
            .acquire(now, wish)
            .map(|token| AccessToken {
                token,
                audience: PhantomData,
            })
    }

    /// Where the tokens of that API are kept; it gives none.
    pub(crate) fn slot(&mut self, api: Api) -> &mut TokenSlot {
        &mut self.0[api as usize]
    }

    /// Grows whenever a call that waits for a token should ask again.
    pub(crate) fn epoch(&self) -> u64 {
        self.0.iter().map(TokenSlot::endings).sum()
    }
}

/// A token with the API that it is for.
#[derive(Debug)]
pub(crate) struct AccessToken<A> {
    token: Arc<Token>,
    audience: PhantomData<A>,
}

impl<A> AccessToken<A> {
    pub(crate) fn value(&self) -> &Secret {
        &self.token.value
    }

    pub(crate) fn generation(&self) -> u64 {
        self.token.generation
    }
}

/// A token and its life.
struct Token {
    value: Secret,
    /// Counts the tokens of a slot, so that a rejected one is not mistaken for its successor.
    generation: u64,
    /// When it was asked for: its life counts from there, because the service's clock started at
    /// some moment after.
    asked_at: Now,
    lifetime_ms: u64,
}

impl Token {
    fn is_alive(&self, now: Now) -> bool {
        now.since(self.asked_at) < self.lifetime_ms
    }

    fn is_due(&self, now: Now) -> bool {
        let margin = LONGEST_MARGIN_MS.min(self.lifetime_ms / 10);
        now.since(self.asked_at) >= self.lifetime_ms - margin
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
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
    fn acquire(&mut self, now: Now, wish: Wish) -> Acquired<Arc<Token>> {
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
    fn endings(&self) -> u64 {
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
