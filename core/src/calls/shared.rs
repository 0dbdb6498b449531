//! What the calls of one client share.

use std::sync::{Arc, Mutex, PoisonError};

use super::options::Config;
use super::pace::Pace;
use crate::access::api::Api;
use crate::access::slot::TokenSlot;
use crate::access::tokens::Tokens;

/// What the calls of one client share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    common: Mutex<Common>,
}

/// The state that each call may change.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) tokens: Tokens,
    pub(super) pace: Pace,
}

impl Shared {
    pub(super) fn new(config: Config) -> Arc<Self> {
        let common =
            Mutex::new(Common { tokens: Tokens::default(), pace: Pace::new(config.policy) });
        Arc::new(Self { config, common })
    }

    /// Runs an action under the lock.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Common) -> T) -> T {
        // The state is consistent after each method, so it can still be used after a panic in
        // another thread.
        act(&mut self.common.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn with_slot<T>(&self, api: Api, act: impl FnOnce(&mut TokenSlot) -> T) -> T {
        self.with(|common| act(common.tokens.slot(api)))
    }
}
