//! What became of a push.

use serde::Serialize;

/// What became of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct PushReport {
    /// Messages that were taken.
    pub messages: u64,
    /// Samples in them: the counts of a group in a window are one sample.
    pub samples: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Messages that were sent again.
    pub retries: u64,
    /// Samples of which nobody knows whether they were taken, and which are not sent again: only if each is to be sent at
    /// most once.
    pub unsure: u64,
    /// What the receiver rejected in messages that it took otherwise. This is not sent again.
    pub rejected: Vec<Rejected>,
}

/// What a receiver rejected in a message that it took otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Rejected {
    /// How many data points, if the receiver says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<u64>,
    /// What it says, as one line; empty if it says nothing.
    pub message: String,
}
