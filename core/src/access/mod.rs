//! Access tokens: one slot per API, one token request at a time, and no expired token, except for a
//! call that has taken part in two fetches.
//!
//! A token belongs to an origin, an audience and a client. A slot holds the tokens of one such
//! triple. The type of a token names its API: a request to the Orchestration API is built from an
//! `AccessToken<Orchestration>`, and a Control token can't be turned into one.

pub(crate) mod api;
pub(crate) mod slot;
pub(crate) mod token;
pub(crate) mod tokens;
