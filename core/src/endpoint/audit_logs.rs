//! List audit logs (service reference 4.2).

use super::{Body, Endpoint, Output, Target};
use crate::error::{Code, Error, Result};
use crate::http::{BaseAddress, Request};
use crate::json::{Event, Lexer, Limits, Place, Rare, Visitor};
use crate::token::{AccessToken, Orchestration};
use crate::window::Window;

const PATH: &str = "/api/v1/audit-logs";

/// A page of audit logs is held whole, as its shape is not shown; so it has a limit of its own.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A checked query of the audit-log listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditLogsQuery {
    page: Option<i64>,
    per_page: Option<i64>,
    limits: Limits,
}

impl AuditLogsQuery {
    /// Checks what a caller asks for. That both start at 1 is an assumption.
    pub(crate) fn new(page: Option<i64>, per_page: Option<i64>, limits: Limits) -> Result<Self> {
        for (name, value) in [("page", page), ("per_page", per_page)] {
            if value.is_some_and(|value| value < 1) {
                return Err(Error::argument(name, Code::InvalidPage, "want 1 or more"));
            }
        }
        let limits = Limits {
            body_bytes: limits.body_bytes.min(MOST_BYTES),
            ..limits
        };
        Ok(Self {
            page,
            per_page,
            limits,
        })
    }
}

impl Endpoint for AuditLogsQuery {
    type Audience = Orchestration;
    type Body = AuditLogsBody;

    fn target(&self) -> Target {
        Target::AuditLogs
    }

    fn window(&self) -> Option<Window> {
        None
    }

    fn request(&self, base_url: &BaseAddress, token: &AccessToken<Orchestration>) -> Request {
        let query: Vec<String> = [("page", self.page), ("perPage", self.per_page)]
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
            .collect();
        let mut url = base_url.join(PATH);
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query.join("&"));
        }
        Request::get(url).bearing(token.value())
    }

    fn body(&self) -> AuditLogsBody {
        AuditLogsBody {
            lexer: Lexer::new(self.limits),
            bytes: Vec::new(),
        }
    }
}

/// Keeps the bytes of one JSON document and checks them on their way.
#[derive(Debug)]
pub(crate) struct AuditLogsBody {
    lexer: Lexer,
    bytes: Vec<u8>,
}

/// Takes any shape.
struct AnyShape;

impl Visitor for AnyShape {
    fn event(&mut self, _: Event<'_>, _: &Place<'_>) -> Result<()> {
        Ok(())
    }
}

impl Body for AuditLogsBody {
    fn push(&mut self, chunk: &[u8]) -> Result<()> {
        self.lexer.push(chunk, &mut Rare(&mut AnyShape))?;
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    fn finish(&mut self) -> Result<Output> {
        self.lexer.finish(&mut Rare(&mut AnyShape))?;
        Ok(Output::Json(std::mem::take(&mut self.bytes)))
    }
}
