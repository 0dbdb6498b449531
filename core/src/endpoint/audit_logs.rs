//! List audit logs (service reference 4.2).
//!
//! `GET {base_url}/api/v1/audit-logs?page=…&perPage=…` with an Orchestration API token. The
//! reference does not show the response, so it is only checked to be one JSON document, and given
//! to the caller unchanged.

use super::contract::{AuditLogs, Body, Endpoint, Output};
use super::target::Target;
use crate::access::api::Orchestration;
use crate::access::token::AccessToken;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::patience::Patience;
use crate::time::window::Window;
use crate::wire::address::BaseAddress;
use crate::wire::json::double::is_beyond_double;
use crate::wire::json::event::{Event, Visitor};
use crate::wire::json::lexer::Lexer;
use crate::wire::json::path::{Place, Shown};
use crate::wire::limits::Limits;
use crate::wire::request::Request;

pub(crate) const PATH: &str = "/api/v1/audit-logs";

/// A page of audit logs is held in memory as a whole, because its shape is not known; so it has its
/// own limit.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

crate::options! {
    /// Which page of the audit logs to list.
    #[derive(Clone, Copy, Debug)]
    pub struct AuditLogsOptions: Default {
        /// The number of the page, at least 1.
        page: Option<i64> = None,
        /// How many records a page has, at least 1.
        per_page: Option<i64> = None,
        /// How long the call may take with all its requests and waits, counted from its first step.
        ///
        /// It then ends with `deadline_exceeded`.
        deadline_ms: Patience = Patience::Endless,
    }
}

/// A checked query of the audit-log listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditLogsQuery {
    options: AuditLogsOptions,
    limits: Limits,
}

impl AuditLogsQuery {
    /// Checks a caller's options. It is an assumption that both start at 1.
    pub(crate) fn new(options: AuditLogsOptions, limits: Limits) -> Result<Self> {
        for (name, value) in [("page", options.page), ("per_page", options.per_page)] {
            if value.is_some_and(|value| value < 1) {
                return Err(Error::argument(name, Code::InvalidPage, "want 1 or more"));
            }
        }
        let limits = Limits {
            body_bytes: limits.body_bytes.min(MOST_BYTES),
            ..limits
        };
        Ok(Self { options, limits })
    }
}

impl Endpoint for AuditLogsQuery {
    type Audience = Orchestration;
    type Body = AuditLogsBody;
    type Output = AuditLogs;

    fn target(&self) -> Target {
        Target::AuditLogs
    }

    fn window(&self) -> Option<Window> {
        None
    }

    fn request(
        &self,
        base_url: &BaseAddress,
        token: Option<&AccessToken<Orchestration>>,
    ) -> Request {
        let query: Vec<String> = [
            ("page", self.options.page),
            ("perPage", self.options.per_page),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
        .collect();
        let mut url = base_url.join(PATH);
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query.join("&"));
        }
        Request::get(url).bearing(token.map(AccessToken::value))
    }

    fn body(&self) -> AuditLogsBody {
        AuditLogsBody {
            // The reference names no field of it.
            lexer: Lexer::new(self.limits, Shown::Named(|_| false)),
            bytes: Vec::new(),
        }
    }
}

/// Keeps the bytes of one JSON document and checks them as they arrive.
#[derive(Debug)]
pub(crate) struct AuditLogsBody {
    lexer: Lexer,
    bytes: Vec<u8>,
}

/// Takes any shape, of numbers that every host can hold.
struct AnyShape;

impl Visitor for AnyShape {
    fn event(&mut self, event: Event<'_>, place: &Place<'_>) -> Result<()> {
        match event {
            Event::Number(text) if is_beyond_double(text) => {
                let message = "a number is above the largest that a 64-bit float holds";
                Err(place.error(Code::InvalidJson, message))
            }
            _ => Ok(()),
        }
    }
}

impl Body for AuditLogsBody {
    fn push(&mut self, chunk: &[u8]) -> Result<()> {
        self.lexer.push(chunk, &mut AnyShape)?;
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    fn finish(&mut self) -> Result<Output> {
        self.lexer.finish(&mut AnyShape)?;
        Ok(Output::AuditLogs(AuditLogs(std::mem::take(
            &mut self.bytes,
        ))))
    }
}
