//! Access tokens, and how long they live.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::time::now::Now;

/// The longest lifetime of a token (service reference 8): a longer `expires_in` counts as this.
pub(crate) const LONGEST_LIFETIME_S: u64 = 86_400;

/// The assumed lifetime of a token if none is given: well below the documented 24 hours.
pub(crate) const DEFAULT_LIFETIME_S: u64 = 3_600;

/// A token is renewed this long before its end, or a tenth of its lifetime before, if that is less.
const LONGEST_MARGIN_MS: u64 = 300_000;

/// A token with the API that it is for.
#[derive(Debug)]
pub(crate) struct AccessToken<A> {
    token: Arc<Token>,
    audience: PhantomData<A>,
}

impl<A> AccessToken<A> {
    pub(super) fn new(token: Arc<Token>) -> Self {
        Self { token, audience: PhantomData }
    }

    pub(crate) fn value(&self) -> &Secret {
        &self.token.value
    }

    pub(crate) fn generation(&self) -> u64 {
        self.token.generation
    }
}

/// A token and its lifetime.
pub(crate) struct Token {
    value: Secret,
    /// The number of the token in its slot, so that a rejected token is not mistaken for its
    /// successor.
    pub(super) generation: u64,
    /// When it was requested. Its lifetime is counted from then, because the service began to count
    /// at some later moment.
    asked_at: Now,
    lifetime_ms: u64,
}

impl Token {
    /// A token that was requested at `asked_at`.
    pub(super) fn new(grant: Grant, generation: u64, asked_at: Now) -> Self {
        Self { value: grant.value, generation, asked_at, lifetime_ms: grant.lifetime_ms }
    }

    pub(crate) fn value(&self) -> &Secret {
        &self.value
    }

    /// The whole seconds that are left of its lifetime, at least 1.
    pub(crate) fn rest_s(&self, now: Now) -> u32 {
        let age_ms = now.since(self.asked_at);
        let rest_s = self.lifetime_ms.saturating_sub(age_ms) / 1000;
        // A lifetime is a day at most.
        (rest_s as u32).max(1)
    }

    pub(super) fn is_alive(&self, now: Now) -> bool {
        now.since(self.asked_at) < self.lifetime_ms
    }

    pub(super) fn is_due(&self, now: Now) -> bool {
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

/// A token and its lifetime, from a token endpoint or from the host.
#[derive(Debug)]
pub(crate) struct Grant {
    value: Secret,
    lifetime_ms: u64,
}

impl Grant {
    /// Checks that a token can be sent in a header, and keeps its lifetime.
    pub(crate) fn new(value: Secret, lifetime: Lifetime) -> Result<Self> {
        let fits_header = |byte: u8| matches!(byte, 0x21..=0x7E);
        if value.is_empty() || !value.expose().bytes().all(fits_header) {
            let message = "the token is empty or has characters that a header can't hold";
            return Err(Error::new(Code::InvalidTokenResponse, message));
        }
        Ok(Self { value, lifetime_ms: lifetime.0 })
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
