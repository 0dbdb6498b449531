//! The tokens of a client, by API.

use std::sync::Arc;

use super::api::{Api, Audience};
use super::slot::{Acquired, FetchHistory, TokenSlot};
use super::token::{AccessToken, Token};
use crate::time::now::Now;

/// The tokens of a client, by API.
#[derive(Debug, Default)]
pub(crate) struct Tokens([TokenSlot; 2]);

impl Tokens {
    /// A token of that API, or how to get one. Only the token that [`Tokens::given_out`] returns
    /// has a type without the API.
    pub(crate) fn acquire<A: Audience>(
        &mut self,
        now: Now,
        history: FetchHistory,
    ) -> Acquired<AccessToken<A>> {
        self.slot(A::API).acquire(now, history).map(AccessToken::new)
    }

    /// The token itself, for a caller who requests it, or how to get one.
    pub(crate) fn given_out(
        &mut self,
        api: Api,
        now: Now,
        history: FetchHistory,
    ) -> Acquired<Arc<Token>> {
        self.slot(api).acquire(now, history)
    }

    /// The slot that keeps the tokens of that API. Only this module can get a token from it.
    pub(crate) fn slot(&mut self, api: Api) -> &mut TokenSlot {
        &mut self.0[api as usize]
    }

    /// A number that grows whenever calls that wait for a token should try again.
    pub(crate) fn epoch(&self) -> u64 {
        self.0.iter().map(TokenSlot::ended_fetches).sum()
    }
}
