//! [`tallyfold::sending`]: the steps that send exports and alerts.

use serde::Serialize;
use tallyfold::sending::PushStep;
use wasm_bindgen::JsValue;

/// [`PushStep`].
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Step {
    Send {
        message: Message,
    },
    Wait {
        ms: u32,
    },
    #[serde(rename_all = "camelCase")]
    Finished {
        samples: u64,
        in_doubt: u64,
    },
    Done,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    url: String,
    /// Alternating names and values.
    headers: Vec<String>,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    body: JsValue,
    is_datagram: bool,
}

impl From<PushStep<'_>> for Step {
    fn from(step: PushStep<'_>) -> Self {
        match step {
            PushStep::Send(message) => Self::Send {
                message: Message {
                    url: message.url.to_owned(),
                    headers: message
                        .headers()
                        .flat_map(|(name, value)| [name.to_owned(), value.to_owned()])
                        .collect(),
                    body: js_sys::Uint8Array::from(message.body).into(),
                    is_datagram: message.is_datagram(),
                },
            },
            PushStep::Wait { ms } => Self::Wait { ms },
            PushStep::Finished { samples, in_doubt } => Self::Finished { samples, in_doubt },
            PushStep::Done => Self::Done,
        }
    }
}
