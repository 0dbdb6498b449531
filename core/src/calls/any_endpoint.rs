//! The endpoint of a call without its types: it hides the types of the API and of the response, so
//! that the code that drives a call is compiled once for all endpoints.

use std::sync::Arc;

use super::options::{ApiConfig, TokenSource};
use crate::access::api::{Api, Audience};
use crate::access::slot::{Acquired, FetchHistory};
use crate::access::token::Lifetime;
use crate::access::tokens::Tokens;
use crate::endpoint::contract::{Body, Endpoint};
use crate::endpoint::target::Target;
use crate::secret::Secret;
use crate::time::now::Now;
use crate::time::window::Window;
use crate::wire::request::Request;

/// A request that contains a token of its API.
pub(super) struct AuthorizedRequest {
    pub(super) request: Request,
    /// The generation of that token.
    pub(super) generation: u64,
    pub(super) token: Secret,
}

/// An endpoint with the API that it belongs to.
pub(super) trait AnyEndpoint: Send {
    fn api(&self) -> Api;
    fn target(&self) -> Target;
    fn window(&self) -> Option<Window>;
    /// Where the tokens come from.
    fn source(&self) -> &TokenSource;
    /// The lifetime of tokens for which none is given.
    fn default_lifetime(&self) -> Lifetime;
    /// The request with a token of the endpoint's own API, or how to get one.
    fn acquire(
        &self,
        tokens: &mut Tokens,
        now: Now,
        history: FetchHistory,
    ) -> Acquired<AuthorizedRequest>;
    fn body(&self) -> Box<dyn Body>;
}

/// The implementation of [`AnyEndpoint`], which knows the types.
pub(super) struct Typed<E: Endpoint> {
    pub(super) api: Arc<ApiConfig<E::Audience>>,
    pub(super) endpoint: E,
}

impl<E: Endpoint> AnyEndpoint for Typed<E> {
    fn api(&self) -> Api {
        E::Audience::API
    }

    fn target(&self) -> Target {
        self.endpoint.target()
    }

    fn window(&self) -> Option<Window> {
        self.endpoint.window()
    }

    fn source(&self) -> &TokenSource {
        &self.api.tokens
    }

    fn default_lifetime(&self) -> Lifetime {
        self.api.default_lifetime
    }

    fn acquire(
        &self,
        tokens: &mut Tokens,
        now: Now,
        history: FetchHistory,
    ) -> Acquired<AuthorizedRequest> {
        tokens
            .acquire::<E::Audience>(now, history)
            .map(|token| AuthorizedRequest {
                request: self.endpoint.request(&self.api.base, &token),
                generation: token.generation(),
                token: token.value().clone(),
            })
    }

    fn body(&self) -> Box<dyn Body> {
        Box::new(self.endpoint.body())
    }
}
