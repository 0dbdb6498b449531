//! What a call asks of its host, and how the host says that it failed.

use crate::access::api::Api;
use crate::wire::request::Request;

/// What the host is to do next.
#[derive(Clone, Debug)]
#[must_use = "a step is for the host to take"]
pub enum Step {
    /// Send this request, following no redirect. Hand the response in with [`Call::head`](crate::Call::head),
    /// [`Call::chunk`](crate::Call::chunk) and [`Call::end`](crate::Call::end), or say
    /// [`Call::failed`](crate::Call::failed).
    Send(Request),
    /// Get a token for that API from where the host has its tokens. Hand it in with
    /// [`Call::token`](crate::Call::token), or say [`Call::token_failed`](crate::Call::token_failed).
    ProvideToken {
        /// The API that the token must be for.
        api: Api,
    },
    /// Another call of this client is getting the token. Ask again once
    /// [`Machine::token_epoch`](crate::Machine::token_epoch) is no longer `epoch`.
    Blocked {
        /// The epoch to wait past.
        epoch: u64,
    },
    /// Wait so long, or less, and ask again: something is to be tried again, or the service has asked to be
    /// left alone for a while. Asked too early, the call gives the rest.
    Wait {
        /// Milliseconds on the monotonic clock, at most 2^31 - 1.
        ms: u32,
    },
    /// The output is there.
    Done,
}

crate::names! {
    /// How an exchange broke in the host's hands.
    pub enum HostFailure {
        /// No connection, or a broken one.
        Network = "network",
        /// The host's time limit passed.
        Timeout = "timeout",
    }
}
