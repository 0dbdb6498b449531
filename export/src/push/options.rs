//! Where an export is sent, and what happens when something fails.

use tallyfold::arguments::{Kind, Parameter, Value};
use tallyfold::{Headers, Patience, Result};

tallyfold::names! {
    /// What happens to a message of which nobody knows whether it was taken.
    pub enum Guarantee {
        /// It is sent again, and may be counted twice.
        AtLeastOnce = "at_least_once",
        /// It is not sent again, and may be lost.
        AtMostOnce = "at_most_once",
    }
}

/// How long to wait for a receiver, all in all.
const PATIENCE_MS: u64 = 900_000;

tallyfold::options! {
    /// Where an export is sent, and what happens when something fails.
    #[derive(Clone, Debug)]
    pub struct PushOptions {
        /// The whole address that messages are sent to, with its path: `https://…/api/v1/write`, or `udp://host:8125` for
        /// StatsD and DogStatsD.
        url: String [Address],
        /// Headers of each request, such as `authorization`. No message quotes their values.
        headers: TargetHeaders = TargetHeaders::default(),
        /// Whether headers, or a password in the address, may be sent by plain http to another machine, where the network can read them.
        allow_http: bool = false,
        /// What happens to a message of which nobody knows whether it was taken, because the connection broke. Prometheus,
        /// VictoriaMetrics and InfluxDB take a message again without harm: it is sent again, and this option is refused.
        /// For other receivers the default is `at_most_once`: a gap is reported, but a count that was added twice
        /// looks like any other.
        guarantee: Option<Guarantee> = None,
        /// How long to wait for a receiver that fails or asks for pauses, all in all.
        patience_ms: Patience = Patience::Milliseconds(PATIENCE_MS),
        /// How many samples an earlier push of the same export has finished: this one goes on after them.
        finished: u64 [Host] = 0,
        /// The seed of the random part of waits.
        seed: u64 [Host] = 0,
    }
}

/// Headers for another system. Unlike those of a client, `authorization` is the caller's.
#[derive(Clone, Debug, Default)]
pub struct TargetHeaders(pub(crate) Headers);

impl TargetHeaders {
    /// Takes names and values in turn.
    ///
    /// # Errors
    /// `invalid_argument` for a header that the HTTP stack sets, and for what can't be sent. No message quotes any of it.
    pub fn new(flat: Vec<String>) -> Result<Self> {
        Headers::with_authorization(flat).map(Self)
    }
}

impl Parameter for TargetHeaders {
    const KIND: Kind = Kind::Mapping;

    fn from_value(value: Value) -> Result<Self> {
        Self::new(Vec::from_value(value)?)
    }
}
