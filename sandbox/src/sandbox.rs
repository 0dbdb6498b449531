//! The simulated service.

use std::fmt;

use tallyfold::{Code, Error, Now, Result};

use crate::endpoint::tokens::Tokens;
use crate::endpoint::{Asked, Route, SandboxEndpoint, SandboxStats};
use crate::event::SandboxEvent;
use crate::events::Events;
use crate::fault::Fault;
use crate::faults::Faults;
use crate::options::SandboxOptions;
use crate::response::SandboxResponse;
use crate::{fault_json, instant};

/// A simulated service without a network. It takes requests and returns responses; the time is an argument.
///
/// ```
/// use tallyfold::Now;
/// use tallyfold_sandbox::{Sandbox, SandboxOptions};
///
/// let mut sandbox = Sandbox::new(SandboxOptions::default())?;
///
/// let now = Now { monotonic_ms: 0, unix_ms: 1_767_225_600_000 };
/// let target = "/v1.1/analytics/event_delivery";
/// let response = sandbox.handle("POST", target, &[], b"{}", now);
/// assert_eq!(response.status, 401);
/// # Ok::<(), tallyfold::Error>(())
/// ```
pub struct Sandbox {
    options: SandboxOptions,
    tokens: Tokens,
    events: Events,
    faults: Faults,
    stats: SandboxStats,
}

impl Sandbox {
    /// Creates a sandbox.
    ///
    /// # Errors
    /// `invalid_argument` for an empty text, for two equal audiences, and for a token lifetime of 0.
    pub fn new(options: SandboxOptions) -> Result<Self> {
        options.check()?;
        Ok(Self {
            events: Events::new(&options),
            options,
            tokens: Tokens::default(),
            faults: Faults::default(),
            stats: SandboxStats::default(),
        })
    }

    /// Stores events.
    ///
    /// # Errors
    /// `invalid_timestamp`.
    pub fn record(&mut self, event: &SandboxEvent) -> Result<()> {
        let timestamp = instant::named_by(&event.timestamp).ok_or_else(|| {
            let message = "want a date and time with Z or an offset from UTC, such as \
                           2026-01-31T09:15:00Z or 2026-01-31T10:15:00+01:00";
            Error::argument("timestamp", Code::InvalidTimestamp, message)
        })?;
        let SandboxEvent { event_name, write_key, integration, reason, .. } = event;
        let values = [event_name.as_str(), write_key, integration, reason];
        self.events.record(timestamp, event.outcome, values, event.count);
        Ok(())
    }

    /// Responds to a request. `target` is the path, followed by `?` and the query if there is one.
    pub fn handle(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        now: Now,
    ) -> SandboxResponse {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some(endpoint) = SandboxEndpoint::at(path) else {
            return SandboxResponse::refusal(404, "not_found", "there is no such path");
        };
        let route = endpoint.route();
        if method != route.method {
            let message = "this path has another method";
            return SandboxResponse::refusal(405, "method_not_allowed", message)
                .with_header("allow", route.method);
        }
        self.stats.add(endpoint);
        self.events.pass(now.unix_ms);
        let due = self.faults.due(endpoint);
        if due.revokes_tokens() {
            self.revoke_tokens();
        }
        let refusal = due.answer().or_else(|| self.refuse(route, headers, now));
        let response = refusal.unwrap_or_else(|| {
            (route.answer)(Asked {
                query,
                body,
                now,
                excess: due.excess(),
                options: &self.options,
                tokens: &mut self.tokens,
                events: &mut self.events,
            })
        });
        due.apply(response, now)
    }

    /// The response to a request whose headers are invalid; `None` if they are valid.
    fn refuse(&self, route: &Route, headers: &[(&str, &str)], now: Now) -> Option<SandboxResponse> {
        let lifetime_s = self.options.token_lifetime_s;
        let authorization = header(headers, "authorization");
        let is_admitted = |api| self.tokens.admit(api, authorization, now, lifetime_s);
        if !route.token.is_none_or(is_admitted) {
            let message = "the access token is missing, expired, or of another audience";
            return Some(SandboxResponse::refusal(401, "unauthorized", message));
        }
        if route.method == "POST" && !says_json(headers) {
            let message = "want content-type: application/json";
            return Some(SandboxResponse::refusal(415, "unsupported_media_type", message));
        }
        None
    }

    /// Adds a fault.
    ///
    /// # Errors
    /// `invalid_argument` for a fault that can't happen.
    pub fn inject(&mut self, fault: Fault) -> Result<()> {
        fault.check()?;
        self.faults.add(fault);
        Ok(())
    }

    /// Like [`Sandbox::inject`], from JSON with the names of [`FaultOptions`](crate::FaultOptions), such as `{"kind":
    /// "status", "status": 503, "endpoint": "event_delivery"}`. A field that is `null` counts as absent.
    ///
    /// # Errors
    /// `invalid_argument` for JSON that is not a fault, or a fault that can't happen.
    pub fn inject_json(&mut self, fault: &str) -> Result<()> {
        // The caller has passed a single text, and not its fields.
        let of_text = |error: Error| error.with_argument("fault");
        self.inject(fault_json::parse(fault)?).map_err(of_text)
    }

    /// Makes all tokens invalid that were issued so far.
    pub fn revoke_tokens(&mut self) {
        self.tokens.revoke();
    }

    /// How many requests each endpoint has received.
    #[must_use]
    pub fn stats(&self) -> SandboxStats {
        self.stats
    }
}

/// Neither the client secret nor a token is printed.
impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("options", &self.options)
            .field("recorded", &self.events.recorded())
            .field("faults", &self.faults.len())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

fn header<'a>(headers: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

fn says_json(headers: &[(&str, &str)]) -> bool {
    let media_type = header(headers, "content-type").and_then(|value| value.split(';').next());
    media_type.is_some_and(|text| text.trim().eq_ignore_ascii_case("application/json"))
}
