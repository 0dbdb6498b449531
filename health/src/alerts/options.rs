//! Where alerts are sent, and what is added to them.

use std::fmt;

use tallyfold::arguments::{Kind, Parameter, Value};
use tallyfold::sending::TargetHeaders;
use tallyfold::{Patience, Result, Secret};

tallyfold::options! {
    /// A receiver of alerts.
    #[derive(Clone)]
    pub struct ReceiverOptions {
        /// The name under which the state remembers what the receiver was notified of.
        ///
        /// With another name, the receiver is notified of all firing alerts again.
        name: String,
        /// The whole address. An Alertmanager's address may omit `/api/v2/alerts`. PagerDuty and Opsgenie have default addresses.
        ///
        /// The address of a chat tool is often a secret: no message shows more of it than its host.
        url: Option<String> [Address] = None,
        /// Headers of each request, such as `authorization`.
        ///
        /// No message quotes their values.
        headers: TargetHeaders = TargetHeaders::default(),
        /// Allows messages to be sent by plain http to another machine.
        ///
        /// Others on the network can then read them.
        allow_http: bool = false,
        /// The message of a webhook: JSON with placeholders such as `{{sentence}}`.
        template: Option<String> = None,
        /// The integration key of a PagerDuty service (Events API v2).
        ///
        /// No message quotes it.
        routing_key: Option<Secret> = None,
    }
}

/// Without the address, which may be a secret.
impl fmt::Debug for ReceiverOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverOptions").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long to retry a message, by default.
const PATIENCE_MS: u64 = 5_000;

/// How long an Alertmanager keeps an alert, by default.
const ALERT_FOR_MS: u64 = 7_200_000;

tallyfold::options! {
    /// What is added to alerts, and how they are sent.
    #[derive(Clone, Debug)]
    pub struct NotifyOptions: Default {
        /// The name of the cluster, which becomes a label of each alert.
        cluster: Option<String> = None,
        /// More labels of each alert.
        labels: AlertLabels = AlertLabels::default(),
        /// How long an Alertmanager keeps an alert that no later call sends again.
        ///
        /// It should be longer than a few intervals between calls.
        alert_for_ms: u64 [Milliseconds] = ALERT_FOR_MS,
        /// How long to keep retrying when a receiver fails.
        ///
        /// A later call sends the messages that were not accepted.
        patience_ms: Patience = Patience::Milliseconds(PATIENCE_MS),
        /// The seed of the random part of waits.
        seed: u64 [Host] = 0,
    }
}

/// Labels of alerts by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertLabels(pub Vec<(String, String)>);

impl Parameter for AlertLabels {
    const KIND: Kind = Kind::Mapping;

    fn from_value(value: Value) -> Result<Self> {
        let flat: Vec<String> = Vec::from_value(value)?;
        let mut flat = flat.into_iter();
        let pairs = std::iter::from_fn(|| Some((flat.next()?, flat.next()?)));
        Ok(Self(pairs.collect()))
    }
}
