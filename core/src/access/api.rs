//! The two APIs, each with tokens of its own.

crate::names! {
    /// One of the two APIs, each with its own audience and tokens (service reference 5.1, point 5).
    pub enum Api {
        /// The Control API, whose token the Event Metrics API takes.
        Control = "control",
        /// The Orchestration API.
        Orchestration = "orchestration",
    }
}

/// A type per API, so that a token of one can't be used for the other.
pub(crate) trait Audience: Send + Sync + 'static {
    const API: Api;
}

/// The Control API, as a type.
#[derive(Debug)]
pub(crate) struct Control;

/// The Orchestration API, as a type.
#[derive(Debug)]
pub(crate) struct Orchestration;

impl Audience for Control {
    const API: Api = Api::Control;
}

impl Audience for Orchestration {
    const API: Api = Api::Orchestration;
}
