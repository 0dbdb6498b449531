//! The faults that the sandbox can inject.

use tallyfold::{Code, Error, Result};

use crate::endpoint::SandboxEndpoint;

tallyfold::names! {
    /// What goes wrong.
    #[non_exhaustive]
    pub enum FaultKind {
        /// The sandbox only responds with a status, and does nothing else.
        Status = "status",
        /// The response is delayed.
        Delay = "delay",
        /// The connection closes before the end of the body.
        Truncate = "truncate",
        /// The response has another content type.
        ContentType = "content_type",
        /// Every token is revoked before the request is handled; not for token endpoints.
        RevokeToken = "revoke_token",
        /// `totalDelivered` is wrong; for the analytics endpoints only.
        WrongTotal = "wrong_total",
        /// The response has another body.
        Body = "body",
        /// The `Date` of the response is behind, as if the client's clock were ahead.
        Date = "date",
    }
}

tallyfold::options! {
    /// The options of a fault: its kind, when it happens, and the fields of its kind.
    #[derive(Clone, Debug)]
    pub struct FaultOptions {
        /// What goes wrong.
        kind: FaultKind,
        /// The endpoint; by default, all endpoints for which the kind makes sense.
        endpoint: Option<SandboxEndpoint> = None,
        /// `k` for every `k`-th matching request; by default, the next one only.
        every: Option<u64> = None,
        /// The status of the response, for `status`: from 200 to 599.
        status: Option<u16> = None,
        /// The `Retry-After` header of the response, for `status`; by default, there is none.
        retry_after: Option<String> = None,
        /// For `delay`, how long to wait, at most an hour. For `date`, how far `Date` is behind.
        milliseconds: Option<u32> = None,
        /// After how many bytes of the body the connection closes, for `truncate`.
        bytes: Option<u64> = None,
        /// The content type of the response, for `content_type`.
        content_type: Option<String> = None,
        /// The body of the response, for `body`.
        body: Option<String> = None,
        /// What is added to the total, for `wrong_total`: 1 or more.
        amount: Option<u64> = None,
    }
}

/// A fault of the next matching request, or of every k-th one.
///
/// Faults of different kinds can affect the same response. A response has at most one fault of each kind: a second fault
/// for the next request waits for the request after it, and a second fault for every k-th request is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub effect: FaultEffect,
    /// Which requests match; `None` for all endpoints for which the effect makes sense.
    pub endpoint: Option<SandboxEndpoint>,
    /// `None` for the next matching request only, `Some(k)` for every k-th one from now on.
    pub every: Option<u64>,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultEffect {
    /// See [`FaultKind::Status`].
    Status {
        /// From 200 to 599.
        status: u16,
        /// The value of a `Retry-After` header.
        retry_after: Option<String>,
    },
    /// See [`FaultKind::Delay`].
    Delay {
        /// How long to wait; at most an hour.
        milliseconds: u32,
    },
    /// See [`FaultKind::Truncate`].
    Truncate {
        /// How many bytes of the body are sent.
        bytes: u64,
    },
    /// See [`FaultKind::ContentType`].
    ContentType {
        /// The value of the header.
        content_type: String,
    },
    /// See [`FaultKind::Body`].
    Body {
        /// The body.
        body: String,
    },
    /// See [`FaultKind::Date`].
    Date {
        /// How far `Date` is behind.
        milliseconds: u32,
    },
    /// See [`FaultKind::RevokeToken`].
    RevokeToken,
    /// See [`FaultKind::WrongTotal`].
    WrongTotal {
        /// What is added to the total: 1 or more.
        amount: u64,
    },
}

impl FaultOptions {
    /// Converts the options to a fault.
    ///
    /// # Errors
    /// `invalid_argument` with the field's name if a field of the kind is missing, or a field of another kind is
    /// given.
    pub fn fault(mut self) -> Result<Fault> {
        let kind = self.kind;
        let effect = self.take_effect().map_err(|field| {
            refused(field, format!("a {kind} fault needs {field}, which says how"))
        })?;
        if let Some(field) = self.left_over() {
            return Err(refused(field, format!("a {kind} fault has no {field}")));
        }
        Ok(Fault { effect, endpoint: self.endpoint, every: self.every })
    }

    /// Takes the effect of the kind. If a required field is missing, returns its name as the error.
    fn take_effect(&mut self) -> Result<FaultEffect, &'static str> {
        Ok(match self.kind {
            FaultKind::Status => FaultEffect::Status {
                status: self.status.take().ok_or("status")?,
                retry_after: self.retry_after.take(),
            },
            FaultKind::Delay => {
                FaultEffect::Delay { milliseconds: self.milliseconds.take().ok_or("milliseconds")? }
            }
            FaultKind::Truncate => {
                FaultEffect::Truncate { bytes: self.bytes.take().ok_or("bytes")? }
            }
            FaultKind::ContentType => FaultEffect::ContentType {
                content_type: self.content_type.take().ok_or("content_type")?,
            },
            FaultKind::Body => FaultEffect::Body { body: self.body.take().ok_or("body")? },
            FaultKind::Date => {
                FaultEffect::Date { milliseconds: self.milliseconds.take().ok_or("milliseconds")? }
            }
            FaultKind::RevokeToken => FaultEffect::RevokeToken,
            FaultKind::WrongTotal => {
                FaultEffect::WrongTotal { amount: self.amount.take().ok_or("amount")? }
            }
        })
    }

    /// The name of a field that the effect did not take, because it belongs to another kind.
    fn left_over(&self) -> Option<&'static str> {
        let fields = [
            ("status", self.status.is_some()),
            ("retry_after", self.retry_after.is_some()),
            ("milliseconds", self.milliseconds.is_some()),
            ("bytes", self.bytes.is_some()),
            ("content_type", self.content_type.is_some()),
            ("body", self.body.is_some()),
            ("amount", self.amount.is_some()),
        ];
        let given = fields.into_iter().find(|(_, is_given)| *is_given);
        given.map(|(field, _)| field)
    }
}

impl Fault {
    pub(crate) fn check(&self) -> Result<()> {
        let (field, problem) = match (&self.effect, self.endpoint) {
            (FaultEffect::Status { status, .. }, _) if !(200..600).contains(status) => {
                ("status", "want a status from 200 to 599")
            }
            (FaultEffect::Status { retry_after: Some(text), .. }, _) if !fits_header(text) => {
                ("retry_after", "want a retry_after of printable ASCII characters")
            }
            (FaultEffect::Delay { milliseconds }, _) if *milliseconds > LONGEST_DELAY_MS => {
                ("milliseconds", "want a delay of at most an hour")
            }
            (FaultEffect::ContentType { content_type }, _) if !fits_header(content_type) => {
                ("content_type", "want a content type of printable ASCII characters")
            }
            (FaultEffect::WrongTotal { amount: 0 }, _) => {
                ("amount", "want an amount of 1 or more: adding 0 makes nothing wrong")
            }
            (effect, Some(endpoint)) if !effect.fits(endpoint) => {
                ("endpoint", "this fault never happens at that endpoint")
            }
            _ if self.every == Some(0) => {
                ("every", "want every to be 1 or more, or nothing for a single fault")
            }
            _ => return Ok(()),
        };
        Err(refused(field, problem.to_owned()))
    }
}

impl FaultEffect {
    pub(crate) fn fits(&self, endpoint: SandboxEndpoint) -> bool {
        match self {
            Self::RevokeToken => endpoint.route().token.is_some(),
            Self::WrongTotal { .. } => endpoint.route().has_total,
            _ => true,
        }
    }
}

/// No test needs longer waits, and not every runtime's timer supports them.
const LONGEST_DELAY_MS: u32 = 3_600_000;

fn fits_header(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn refused(field: &'static str, message: String) -> Error {
    Error::argument(field, Code::InvalidArgument, message)
}
