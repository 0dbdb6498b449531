//! What a call requests from its host, and how the host reports a failure.

use crate::access::api::Api;
use crate::wire::request::Request;

/// What the host must do next. A host must handle every step, so a new kind of step breaks its build, on purpose.
#[derive(Clone, Debug)]
#[must_use = "the host must carry out the step"]
pub enum Step {
    /// Send this request without following redirects. Report the response with
    /// [`Call::head`](crate::Call::head), [`Call::chunk`](crate::Call::chunk) and
    /// [`Call::end`](crate::Call::end), or a failure with [`Call::failed`](crate::Call::failed).
    Send(Request),
    /// Get a token for that API from the host's own source. Report it with
    /// [`Call::token`](crate::Call::token), or a failure with
    /// [`Call::token_failed`](crate::Call::token_failed).
    ProvideToken {
        /// The API that the token must be for.
        api: Api,
    },
    /// Another call of this client is getting the token. Call `step` again once
    /// [`Machine::token_epoch`](crate::Machine::token_epoch) is no longer `epoch`.
    Blocked {
        /// The current epoch.
        epoch: u64,
    },
    /// Wait this long, or less, and call `step` again: a retry is due later, or the service has requested a
    /// pause. If it is called too early, it returns the remaining wait.
    Wait {
        /// Milliseconds on the monotonic clock, at most 2^31 - 1.
        ms: u32,
    },
    /// The call is complete: take its output.
    Done,
}

crate::names! {
    /// How an exchange failed in the host.
    #[non_exhaustive]
    pub enum HostFailure {
        /// There was no connection, or it broke.
        Network = "network",
        /// A connection that had served an earlier request could not be used for this request: the server had
        /// closed it in between, or bytes that were not requested arrived on it. The call sends its request again at once.
        Stale = "stale",
        /// The browser hid the reason from the page. The detail is the page's origin.
        Hidden = "hidden",
        /// The host's time limit passed.
        Timeout = "timeout",
        /// Nothing of the request was sent: there was no connection yet. The detail `ETIMEDOUT` means that the time limit
        /// passed while the host connected.
        NotSent = "not_sent",
    }
}
