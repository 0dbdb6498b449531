//! The endpoint of a call without its types: it hides the types of the API and of the response, so
//! that the code that drives a call is compiled once for all endpoints.

use std::sync::Arc;

use super::options::{ApiConfig, TokenConfig, TokenSource};
use crate::access::api::{Api, Audience};
use crate::access::slot::{Acquired, FetchHistory};
use crate::access::tokens::Tokens;
use crate::code::Code;
use crate::endpoint::Target;
use crate::endpoint::contract::{Body, Endpoint, Output, Token};
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::time::now::Now;
use crate::time::window::Window;
use crate::wire::request::Request;

/// A request that contains a token of its API, unless it needs none.
pub(super) struct AuthorizedRequest {
    pub(super) request: Request,
    /// The generation of that token; 0 if the request has none.
    pub(super) generation: u64,
    pub(super) token: Option<Secret>,
}

/// What a call does once it has a token.
pub(super) enum Ready {
    /// A request to send.
    Send(AuthorizedRequest),
    /// The output of a call for the token itself.
    Done(Output),
}

/// An endpoint with the API that it belongs to.
pub(super) trait AnyEndpoint: Send {
    fn api(&self) -> Api;
    fn target(&self) -> Target;
    fn window(&self) -> Option<Window>;
    /// Where its tokens come from.
    fn tokens(&self) -> &TokenConfig;
    /// What the call does with a token of the endpoint's API, or how to get one.
    fn acquire(&self, tokens: &mut Tokens, now: Now, history: FetchHistory) -> Acquired<Ready>;
    fn body(&self) -> Box<dyn Body>;
}

/// The implementation of [`AnyEndpoint`], which knows the types.
pub(super) struct Typed<E: Endpoint> {
    pub(super) target: Target,
    pub(super) api: Arc<ApiConfig<E::Audience>>,
    pub(super) endpoint: E,
}

impl<E: Endpoint> AnyEndpoint for Typed<E> {
    fn api(&self) -> Api {
        E::Audience::API
    }

    fn target(&self) -> Target {
        self.target
    }

    fn window(&self) -> Option<Window> {
        self.endpoint.window()
    }

    fn tokens(&self) -> &TokenConfig {
        &self.api.tokens
    }

    fn acquire(&self, tokens: &mut Tokens, now: Now, history: FetchHistory) -> Acquired<Ready> {
        if matches!(self.api.tokens.source, TokenSource::None) {
            return Acquired::Use(Ready::Send(AuthorizedRequest {
                request: self.endpoint.request(&self.api.base, None),
                generation: 0,
                token: None,
            }));
        }
        tokens.acquire::<E::Audience>(now, history).map(|token| {
            Ready::Send(AuthorizedRequest {
                request: self.endpoint.request(&self.api.base, Some(&token)),
                generation: token.generation(),
                token: Some(token.value().clone()),
            })
        })
    }

    fn body(&self) -> Box<dyn Body> {
        Box::new(self.endpoint.body())
    }
}

/// A call for the token itself. Nothing is sent to the API.
pub(super) struct TokenOnly {
    pub(super) api: Api,
    pub(super) tokens: Arc<TokenConfig>,
}

impl AnyEndpoint for TokenOnly {
    fn api(&self) -> Api {
        self.api
    }

    fn target(&self) -> Target {
        Target::Token
    }

    fn window(&self) -> Option<Window> {
        None
    }

    fn tokens(&self) -> &TokenConfig {
        &self.tokens
    }

    fn acquire(&self, tokens: &mut Tokens, now: Now, history: FetchHistory) -> Acquired<Ready> {
        tokens.given_out(self.api, now, history).map(|token| {
            Ready::Done(Output::Token(Token {
                value: token.value().clone(),
                expires_in_s: token.rest_s(now),
            }))
        })
    }

    fn body(&self) -> Box<dyn Body> {
        Box::new(NoBody)
    }
}

/// The body of a request that is never sent.
struct NoBody;

impl Body for NoBody {
    fn push(&mut self, _: &[u8]) -> Result<()> {
        self.finish().map(drop)
    }

    fn finish(&mut self) -> Result<Output> {
        Err(Error::new(Code::OutOfOrder, "nothing was sent"))
    }
}
