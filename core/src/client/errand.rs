//! What a call is sent for. The types of its API and endpoint end here, so that the order of
//! things in a call is compiled once for all of them.

use std::sync::Arc;

use super::options::{ApiConfig, TokenSource};
use crate::endpoint::{Body, Endpoint, Target};
use crate::http::Request;
use crate::time::Now;
use crate::token::{Acquired, Api, Audience, Lifetime, Tokens, Wish};
use crate::window::Window;

/// A request that bears a token of its API.
pub(super) struct Bearing {
    pub(super) request: Request,
    /// Of the token.
    pub(super) generation: u64,
}

/// An endpoint with the API that it belongs to.
pub(super) trait Errand: Send {
    fn api(&self) -> Api;
    fn target(&self) -> Target;
    fn window(&self) -> Option<Window>;
    /// Where the tokens come from.
    fn source(&self) -> &TokenSource;
    /// The lifetime of tokens that come without one.
    fn default_lifetime(&self) -> Lifetime;
    /// The request with a token of the endpoint's own API, or how to get one.
    fn acquire(&self, tokens: &mut Tokens, now: Now, wish: Wish) -> Acquired<Bearing>;
    fn body(&self) -> Box<dyn Body>;
}

/// An [`Errand`] of whatever endpoint.
pub(super) struct Typed<E: Endpoint> {
    pub(super) api: Arc<ApiConfig<E::Audience>>,
    pub(super) endpoint: E,
}

impl<E: Endpoint> Errand for Typed<E> {
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

    fn acquire(&self, tokens: &mut Tokens, now: Now, wish: Wish) -> Acquired<Bearing> {
        tokens
            .acquire::<E::Audience>(now, wish)
            .map(|token| Bearing {
                request: self.endpoint.request(&self.api.base, &token),
                generation: token.generation(),
            })
    }

    fn body(&self) -> Box<dyn Body> {
        Box::new(self.endpoint.body())
    }
}
