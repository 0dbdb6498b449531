//! What can be made to go wrong, and when it does.

use std::borrow::Cow;
use std::mem::discriminant;

use super::response::SandboxResponse;
use super::routes::{SandboxEndpoint, Task};
use crate::error::{Code, Error, Result};
use crate::tree::Tree;

/// One thing to go wrong: for the next matching request, or for every k-th one.
///
/// Faults of different kinds meet in one response. Of two faults of the same kind for the next
/// request, the later one waits for the request after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub effect: FaultEffect,
    /// Which requests match; `None` for all that the effect makes sense for.
    pub endpoint: Option<SandboxEndpoint>,
    /// `None` for the next matching request only, `Some(k)` for every k-th one from now on.
    pub every: Option<u64>,
}

/// What goes wrong; in JSON, `kind` is the name in `snake_case`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// Nothing is done, and a status is answered.
    Status {
        /// From 200 to 599.
        status: u16,
        /// The value of a `Retry-After` header.
        retry_after: Option<String>,
    },
    /// The response waits.
    Delay {
        /// For how long.
        milliseconds: u64,
    },
    /// The connection closes before the end of the body.
    Truncate {
        /// How many bytes of the body are sent.
        bytes: usize,
    },
    /// The response says that it is something else.
    ContentType {
        /// The value of the header.
        content_type: String,
    },
    /// The response has another body.
    Body {
        /// The body.
        body: String,
    },
    /// Every token is revoked before the request is looked at; not for token endpoints.
    RevokeToken,
    /// `totalDelivered` is wrong; for the analytics endpoints only.
    WrongTotal {
        /// By how much, from 1.
        amount: u64,
    },
}

impl Fault {
    /// Reads a fault such as `{"kind": "status", "status": 503, "endpoint": "event_delivery"}`.
    ///
    /// `endpoint`, `every` and the `retry_after` of a status may be absent; what is `null` counts as
    /// absent.
    ///
    /// # Errors
    /// `invalid_argument` for the argument `fault`.
    pub fn from_json(text: &str) -> Result<Self> {
        let tree: Tree<'_> = serde_json::from_slice(text.as_bytes())
            .map_err(|error| refusal(format!("not a fault: {error}")))?;
        let mut fields = FaultFields::of(tree)?;
        let endpoint = fields.text("endpoint")?.map(|name| {
            SandboxEndpoint::from_name(&name).ok_or_else(|| {
                let names = SandboxEndpoint::ALL.map(SandboxEndpoint::as_str).join(", ");
                refusal(format!("want an endpoint of {names}, or none for all"))
            })
        });
        let fault = Self {
            endpoint: endpoint.transpose()?,
            every: fields.whole("every")?,
            effect: fields.into_effect()?,
        };
        fault.check()?;
        Ok(fault)
    }

    pub(super) fn check(&self) -> Result<()> {
        let problem = match (&self.effect, self.endpoint) {
            (FaultEffect::Status { status, .. }, _) if !(200..600).contains(status) => {
                "want a status from 200 to 599"
            }
            (
                FaultEffect::Status {
                    retry_after: Some(text),
                    ..
                },
                _,
            ) if !fits_header(text) => "want a retry_after of printable ASCII characters",
            (FaultEffect::Delay { milliseconds }, _) if *milliseconds > LONGEST_DELAY_MS => {
                "want a delay of at most an hour"
            }
            (FaultEffect::ContentType { content_type }, _) if !fits_header(content_type) => {
                "want a content type of printable ASCII characters"
            }
            (FaultEffect::WrongTotal { amount: 0 }, _) => "want an amount from 1: 0 off is right",
            (effect, Some(endpoint)) if !effect.fits(endpoint) => {
                "this fault never happens at that endpoint"
            }
            _ if self.every == Some(0) => "want every from 1, or none for once",
            _ => return Ok(()),
        };
        Err(refusal(problem.to_owned()))
    }
}

impl FaultEffect {
    fn fits(&self, endpoint: SandboxEndpoint) -> bool {
        let (_, _, task) = endpoint.route();
        match self {
            Self::RevokeToken => !matches!(task, Task::Mint(_)),
            Self::WrongTotal { .. } => matches!(task, Task::Count(_)),
            _ => true,
        }
    }
}

/// A fault as it is written: the fields of every kind, of which each kind has its own.
struct FaultFields<'a>(Vec<(Cow<'a, str>, Tree<'a>)>);

impl<'a> FaultFields<'a> {
    fn of(tree: Tree<'a>) -> Result<Self> {
        match tree {
            Tree::Object(mut fields) => {
                fields.retain(|(_, value)| *value != Tree::Null);
                Ok(Self(fields))
            }
            _ => Err(refusal("not a fault: want an object".to_owned())),
        }
    }

    fn take(&mut self, name: &str) -> Option<Tree<'a>> {
        let place = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.swap_remove(place).1)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let text = value.into_text().map(Cow::into_owned);
        text.map(Some).ok_or_else(|| wrong_type(name, "a string"))
    }

    fn whole(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let whole = value.into_whole();
        whole
            .map(Some)
            .ok_or_else(|| wrong_type(name, "a whole number"))
    }

    fn into_effect(mut self) -> Result<FaultEffect> {
        let kind = self.text("kind")?.unwrap_or_default();
        let effect = self.effect(&kind)?;
        match effect {
            Some(effect) if self.0.is_empty() => Ok(effect),
            Some(_) => Err(refusal(format!(
                "a {kind} fault has a field of another kind"
            ))),
            None => Err(refusal(format!(
                "a {kind} fault lacks the field that says how"
            ))),
        }
    }

    /// What a kind of fault does, if its field is there.
    fn effect(&mut self, kind: &str) -> Result<Option<FaultEffect>> {
        Ok(match kind {
            "status" => {
                let retry_after = self.text("retry_after")?;
                // No status is as large, and it is checked with the others.
                let status = self.whole("status")?;
                status.map(|status| FaultEffect::Status {
                    status: u16::try_from(status).unwrap_or(u16::MAX),
                    retry_after,
                })
            }
            "delay" => {
                let milliseconds = self.whole("milliseconds")?;
                milliseconds.map(|milliseconds| FaultEffect::Delay { milliseconds })
            }
            "truncate" => {
                // A body that is never as long is not cut.
                let bytes = self.whole("bytes")?;
                bytes.map(|bytes| FaultEffect::Truncate {
                    bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
                })
            }
            "content_type" => {
                let content_type = self.text("content_type")?;
                content_type.map(|content_type| FaultEffect::ContentType { content_type })
            }
            "body" => self.text("body")?.map(|body| FaultEffect::Body { body }),
            "revoke_token" => Some(FaultEffect::RevokeToken),
            "wrong_total" => {
                let amount = self.whole("amount")?;
                amount.map(|amount| FaultEffect::WrongTotal { amount })
            }
            _ => {
                let message = "want a kind of status, delay, truncate, content_type, body, \
                               revoke_token, wrong_total";
                return Err(refusal(message.to_owned()));
            }
        })
    }
}

fn wrong_type(name: &str, want: &str) -> Error {
    refusal(format!("not a fault: {name}: want {want}"))
}

/// Longer waits are not what a test of patience needs, and not every host's timer holds them.
const LONGEST_DELAY_MS: u64 = 3_600_000;

fn fits_header(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn refusal(message: String) -> Error {
    Error::argument("fault", Code::InvalidArgument, message)
}

/// The faults that are still to come, each with how many requests it has matched.
#[derive(Default)]
pub(super) struct Faults(Vec<(Fault, u64)>);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push((fault, 0));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What happens to this request.
    pub(super) fn due(&mut self, endpoint: SandboxEndpoint) -> Due {
        let mut due = Due(Vec::new());
        self.0.retain_mut(|(fault, matched)| {
            let elsewhere = fault.endpoint.is_some_and(|only| only != endpoint);
            if elsewhere || !fault.effect.fits(endpoint) {
                return true;
            }
            *matched += 1;
            match fault.every {
                None => !due.take(&fault.effect),
                Some(every) => {
                    if *matched % every == 0 {
                        due.take(&fault.effect);
                    }
                    true
                }
            }
        });
        due
    }
}

/// What happens to one request: at most one fault of each kind.
pub(super) struct Due(Vec<FaultEffect>);

impl Due {
    /// Whether the request had no fault of this kind yet.
    fn take(&mut self, effect: &FaultEffect) -> bool {
        let free = self
            .0
            .iter()
            .all(|other| discriminant(other) != discriminant(effect));
        if free {
            self.0.push(effect.clone());
        }
        free
    }

    pub(super) fn revokes_tokens(&self) -> bool {
        self.0.contains(&FaultEffect::RevokeToken)
    }

    /// What is added to `totalDelivered`.
    pub(super) fn excess(&self) -> u64 {
        let amount = |effect: &FaultEffect| match effect {
            FaultEffect::WrongTotal { amount } => Some(*amount),
            _ => None,
        };
        self.0.iter().find_map(amount).unwrap_or(0)
    }

    /// The whole answer, where nothing is to be done.
    pub(super) fn answer(&self) -> Option<SandboxResponse> {
        let (status, retry_after) = self.0.iter().find_map(|effect| match effect {
            FaultEffect::Status {
                status,
                retry_after,
            } => Some((*status, retry_after)),
            _ => None,
        })?;
        let mut response =
            SandboxResponse::refusal(status, "injected_fault", "a fault of the test");
        if matches!(status, 301 | 302 | 303 | 307 | 308) {
            response = response.with_header("location", "/moved");
        }
        if let Some(text) = retry_after {
            response = response.with_header("retry-after", text);
        }
        // HTTP gives these no body, and hosts refuse to build one.
        if matches!(status, 204 | 205 | 304) {
            response.body.clear();
        }
        Some(response)
    }

    /// What happens to the finished answer. The cut is in the body as it is sent.
    pub(super) fn apply(self, mut response: SandboxResponse) -> SandboxResponse {
        for effect in self.0 {
            match effect {
                FaultEffect::Delay { milliseconds } => response.delay_ms = milliseconds,
                FaultEffect::Truncate { bytes } => response.cut_at = Some(bytes),
                FaultEffect::ContentType { content_type } => {
                    response = response.with_header("content-type", &content_type);
                }
                FaultEffect::Body { body } => response.body = body.into_bytes(),
                _ => {}
            }
        }
        response.cut_at = response.cut_at.filter(|bytes| *bytes < response.body.len());
        response
    }
}
