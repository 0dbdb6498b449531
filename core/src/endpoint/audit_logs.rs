//! List audit logs (service reference 4.2).
//!
//! `GET {base_url}/api/v1/audit-logs?page=…&perPage=…` with an Orchestration API token. The
//! reference does not show the response, so the call only checks that it is one JSON document, and
//! returns it unchanged.

use super::contract::{Client, Endpoint, Json};
use super::json::JsonBody;
use crate::access::api::Orchestration;
use crate::access::token::AccessToken;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::patience::Patience;
use crate::time::window::Window;
use crate::wire::address::BaseAddress;
use crate::wire::limits::Limits;
use crate::wire::request::Request;

pub(crate) const PATH: &str = "/api/v1/audit-logs";

crate::options! {
    /// Which page of the audit logs to list (service reference 4.2).
    #[derive(Clone, Copy, Debug)]
    pub struct AuditLogsOptions: Default {
        /// The number of the page, at least 1.
        page: Option<i64> = None,
        /// How many records a page has, at least 1.
        per_page: Option<i64> = None,
        /// How long the whole call may take, including retries and waits, counted from its start.
        ///
        /// After that, it fails with `deadline_exceeded`.
        deadline_ms: Patience = Patience::Endless,
    }
}

/// A checked query of the audit-log listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditLogsQuery {
    options: AuditLogsOptions,
    limits: Limits,
}

/// Checks a caller's options. It is an assumption that both numbers must be at least 1.
pub(crate) fn query(options: &AuditLogsOptions, client: &Client<'_>) -> Result<AuditLogsQuery> {
    for (name, value) in [("page", options.page), ("per_page", options.per_page)] {
        if value.is_some_and(|value| value < 1) {
            return Err(Error::argument(name, Code::InvalidPage, "want 1 or more"));
        }
    }
    Ok(AuditLogsQuery { options: *options, limits: client.reading.limits })
}

impl Endpoint for AuditLogsQuery {
    type Audience = Orchestration;
    type Body = JsonBody;
    type Output = Json;

    fn window(&self) -> Option<Window> {
        None
    }

    fn request(
        &self,
        base_url: &BaseAddress,
        token: Option<&AccessToken<Orchestration>>,
    ) -> Request {
        let query: Vec<String> = [("page", self.options.page), ("perPage", self.options.per_page)]
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

    fn body(&self) -> JsonBody {
        JsonBody::new(self.limits)
    }
}
