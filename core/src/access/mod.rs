//! Access tokens: one slot per API, one token request at a time, no token past its life.
//!
//! A token belongs to an origin, an audience and a client. A slot holds the tokens of one such
//! triple, and the type of a token says which API it is for: a request to the Orchestration API is
//! built from an `AccessToken<Orchestration>`, and a Control token can't be turned into one.

pub(crate) mod api;
pub(crate) mod slot;
pub(crate) mod token;
pub(crate) mod tokens;
