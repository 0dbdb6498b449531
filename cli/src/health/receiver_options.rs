//! Where alerts are sent, as flags and the configuration say it.

use tallyfold::arguments::{Kind, Parameter, Value};
use tallyfold::{Headers, Result};

tallyfold::options! {
    /// A receiver of alerts.
    #[derive(Clone, Debug)]
    pub(crate) struct ReceiverOptions {
        /// The whole address; of an Alertmanager without `/api/v2/alerts`. The address of a chat tool is often a secret: then
        /// write where it is, such as `{ env = "NAME" }`.
        url: String [Address],
        /// Headers of each request, such as `authorization`. No message quotes their values.
        headers: SentHeaders = SentHeaders::default(),
        /// Whether all may be sent by plain http to another machine, where the network can read it.
        allow_http: bool = false,
    }
}

/// Headers for a receiver. Unlike those of a client, `authorization` is the caller's.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentHeaders(pub(crate) Headers);

impl Parameter for SentHeaders {
    const KIND: Kind = Kind::Mapping;

    fn from_value(value: Value) -> Result<Self> {
        Headers::with_authorization(Vec::from_value(value)?).map(Self)
    }
}
