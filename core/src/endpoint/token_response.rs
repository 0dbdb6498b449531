//! Reads the access token object (service reference 2.1); errors quote nothing from it.

use serde::Serialize;

use crate::access::token::{Grant, Lifetime};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::wire::json::event::{Event, Skip, Visitor};
use crate::wire::json::lexer::Lexer;
use crate::wire::json::path::{Place, Shown};
use crate::wire::json::writer::json_of;
use crate::wire::limits::Limits;

/// The limits of a token response. A response beyond them is refused.
const LIMITS: Limits = Limits {
    depth: 8,
    string_bytes: 16 * 1024,
    keys: 100,
    body_bytes: 64 * 1024,
    groups: 0,
    table_bytes: 0,
};

/// The JSON of a token request.
pub(super) fn request_body(fields: &impl Serialize) -> Secret {
    Secret::from(json_of(fields))
}

/// Reads one access token object.
pub(crate) struct TokenResponse {
    lexer: Lexer,
    shape: TokenShape,
}

struct TokenShape {
    at: At,
    access_token: Option<Secret>,
    lifetime: Lifetime,
}

#[derive(Clone, Copy, Debug)]
enum At {
    Root,
    Key,
    AccessToken,
    ExpiresIn,
    TokenType,
    Unknown(Skip),
}

impl TokenResponse {
    /// `default_lifetime` is used if the response has no `expires_in`.
    pub(crate) fn new(default_lifetime: Lifetime) -> Self {
        let is_named = |key: &str| ["access_token", "expires_in", "token_type"].contains(&key);
        let shape = TokenShape { at: At::Root, access_token: None, lifetime: default_lifetime };
        Self { lexer: Lexer::of_secret(LIMITS, Shown::Named(is_named)), shape }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<()> {
        self.lexer.push(chunk, &mut self.shape)
    }

    pub(crate) fn finish(&mut self) -> Result<Grant> {
        self.lexer.finish(&mut self.shape)?;
        let token = self.shape.access_token.take().ok_or_else(|| {
            let message = "the token response has no access_token";
            Error::new(Code::InvalidTokenResponse, message).with_path("$".to_owned())
        })?;
        Grant::new(token, self.shape.lifetime)
    }
}

impl Drop for TokenResponse {
    fn drop(&mut self) {
        self.lexer.wipe();
    }
}

impl Visitor for TokenShape {
    fn event(&mut self, event: Event<'_>, place: &Place<'_>) -> Result<()> {
        let wrong = |message: &str| Err(place.error(Code::InvalidTokenResponse, message));
        self.at = match (self.at, event) {
            (At::Root, Event::BeginObject) => At::Key,
            (At::Root, _) => return wrong("want an access token object"),

            (At::Key, Event::Key("access_token")) => At::AccessToken,
            (At::Key, Event::Key("expires_in")) => At::ExpiresIn,
            (At::Key, Event::Key("token_type")) => At::TokenType,
            (At::Key, Event::Key(_)) => At::Unknown(Skip::default()),
            (At::Key, _) => At::Key,

            (At::AccessToken, Event::String(token)) => {
                self.access_token = Some(Secret::from(token.to_owned()));
                At::Key
            }
            (At::AccessToken, _) => return wrong("want a string"),

            (At::ExpiresIn, Event::Number(seconds)) => {
                self.lifetime = Lifetime::parse(seconds).map_err(|error| place.locate(error))?;
                At::Key
            }
            (At::ExpiresIn, _) => {
                let message = "want a positive whole number of seconds";
                return Err(place.error(Code::InvalidTokenLifetime, message));
            }

            (At::TokenType, Event::String(kind)) if kind.eq_ignore_ascii_case("Bearer") => At::Key,
            (At::TokenType, _) => return wrong("want Bearer"),

            (At::Unknown(mut skip), _) => {
                if skip.is_over(&event) {
                    At::Key
                } else {
                    At::Unknown(skip)
                }
            }
        };
        Ok(())
    }
}
