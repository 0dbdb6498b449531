//! The service itself, replicated as a value: what examples, tests and demos run on when there is
//! no cluster.
//!
//! It writes its responses with serde_json from structs of its own and imports nothing of the
//! client's side, so that the two can't share one misreading.
//!
//! What the service reference does not show, the sandbox has to assume. Each assumption has a name:
//!
//! - `error_body`: errors are JSON, `{"error": word, "message": sentence}`.
//! - `metrics_401`: the analytics endpoints answer 401 under the same conditions as the
//!   Orchestration API (reference 7 speaks of the latter only).
//! - `token_refusal_status`: 401 for a client id, secret or audience that is not the one issued,
//!   400 for a malformed token request.
//! - `invalid_query_status`: 400 for a wrong `start`, `end` or `dimensions`, 415 for a body that
//!   does not say it is JSON, 404 for an unknown path, 405 for a wrong method.
//! - `strict_requests`: a field or parameter that the reference does not list is refused with 400.
//! - `half_open_window`: an event at `start` counts, an event at `end` does not; it does with
//!   `closed_windows`.
//! - `ingestion_counts`: event_ingestion answers as event_delivery does, from the same events.
//! - `reason_of_delivered`: only filtered events have a reason, the others have `""`.
//! - `reason_values`: what a reason's text looks like.
//! - `entries`: combinations without events are left out; entries come in no promised order.
//! - `echoed_window`: `start` and `end` name the instants of the request, not its text.
//! - `longest_window`: seeded traffic is given for at most 400 days at once.
//! - `audit_log_shape`, `audit_log_paging`: everything about the audit-log listing.

mod analytics;
mod audit_logs;
mod events;
mod faults;
mod response;
mod routes;
mod tokens;
mod traffic;
mod vocabulary;

use std::fmt;

use events::{Events, Outcome};
use faults::Faults;
use routes::{Api, Task};
use tokens::Tokens;

pub use faults::{Fault, FaultEffect};
pub use response::SandboxResponse;
pub use routes::{SandboxEndpoint, SandboxStats};

use crate::error::{Code, Error, Result};
use crate::secret::Secret;
use crate::time::{Now, Timestamp};

/// How a sandbox is made. The default has the demo credentials and no seeded traffic.
#[derive(Clone, Debug)]
pub struct SandboxOptions {
    /// `Some` for believable traffic at any time: the same seed gives the same counts.
    pub seed: Option<u64>,
    /// The client id that both token endpoints know.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// The audience identifier of the Control API.
    pub control_audience: String,
    /// The audience identifier of the Orchestration API; another one, as tokens have one audience.
    pub orchestration_audience: String,
    /// How long a token is valid, in seconds.
    pub token_lifetime_s: u64,
    /// Whether an event at the `end` of a window counts in it too: the service that `half_open_window`
    /// does not hold for, on which adjacent windows count some events twice.
    pub closed_windows: bool,
}

impl SandboxOptions {
    /// The client id of the demo credentials.
    pub const DEMO_CLIENT_ID: &str = "sandbox-client";
    /// The secret of the demo credentials, which is public and opens nothing but a sandbox.
    pub const DEMO_CLIENT_SECRET: &str = "sandbox-secret";
    /// The audience identifier of the sandbox's Control API.
    pub const DEMO_CONTROL_AUDIENCE: &str = "sandbox-control";
    /// The audience identifier of the sandbox's Orchestration API.
    pub const DEMO_ORCHESTRATION_AUDIENCE: &str = "sandbox-orchestration";
    /// 24 hours (service reference 8).
    pub const TOKEN_LIFETIME_S: u64 = 86_400;

    fn check(&self) -> Result<()> {
        let texts = [
            ("client_id", self.client_id.as_str()),
            ("client_secret", self.client_secret.expose()),
            ("control_audience", &self.control_audience),
            ("orchestration_audience", &self.orchestration_audience),
        ];
        if let Some((name, _)) = texts.into_iter().find(|(_, text)| text.is_empty()) {
            return Err(Error::argument(
                name,
                Code::InvalidArgument,
                "want a text that is not empty",
            ));
        }
        if self.control_audience == self.orchestration_audience {
            let message = "want another one than control_audience: a token has a single audience";
            return Err(Error::argument(
                "orchestration_audience",
                Code::InvalidArgument,
                message,
            ));
        }
        if self.token_lifetime_s == 0 {
            let message = "want a number of seconds from 1";
            return Err(Error::argument(
                "token_lifetime",
                Code::InvalidArgument,
                message,
            ));
        }
        Ok(())
    }

    fn audience(&self, api: Api) -> &str {
        match api {
            Api::Control => &self.control_audience,
            Api::Orchestration => &self.orchestration_audience,
        }
    }
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            seed: None,
            client_id: Self::DEMO_CLIENT_ID.to_owned(),
            client_secret: Secret::from(Self::DEMO_CLIENT_SECRET.to_owned()),
            control_audience: Self::DEMO_CONTROL_AUDIENCE.to_owned(),
            orchestration_audience: Self::DEMO_ORCHESTRATION_AUDIENCE.to_owned(),
            token_lifetime_s: Self::TOKEN_LIFETIME_S,
            closed_windows: false,
        }
    }
}

/// The service, without a network: requests in, responses out, time as an argument.
///
/// ```
/// use tallyfold::{Now, Sandbox, SandboxOptions};
///
/// let mut sandbox = Sandbox::new(SandboxOptions::default())?;
/// sandbox.record("2026-01-01T00:00:00Z", "success", "Order Created", "web", "CRM", "", 3)?;
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
    /// Makes a sandbox.
    ///
    /// # Errors
    /// `invalid_argument` for an empty text, for two audiences that are the same, and for a token
    /// lifetime of 0.
    pub fn new(options: SandboxOptions) -> Result<Self> {
        options.check()?;
        Ok(Self {
            events: Events::new(options.seed, options.closed_windows),
            options,
            tokens: Tokens::default(),
            faults: Faults::default(),
            stats: SandboxStats::default(),
        })
    }

    /// Adds `count` events of one moment; `outcome` is `success`, `errors` or `filtered`.
    ///
    /// # Errors
    /// `invalid_timestamp`, and `invalid_argument` for another outcome.
    #[expect(clippy::too_many_arguments, reason = "the bindings pass them by name")]
    pub fn record(
        &mut self,
        timestamp: &str,
        outcome: &str,
        event_name: &str,
        write_key: &str,
        integration: &str,
        reason: &str,
        count: u64,
    ) -> Result<()> {
        let timestamp =
            Timestamp::parse(timestamp).map_err(|error| error.with_argument("timestamp"))?;
        let outcome = Outcome::from_name(outcome).ok_or_else(|| {
            let message = "want success, errors or filtered";
            Error::argument("outcome", Code::InvalidArgument, message)
        })?;
        self.events.record(
            timestamp,
            outcome,
            [event_name, write_key, integration, reason],
            count,
        );
        Ok(())
    }

    /// Answers a request; `target` is the path, with the query after a `?`.
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
        let (expected, _, task) = endpoint.route();
        if method != expected {
            let message = "this path has another method";
            return SandboxResponse::refusal(405, "method_not_allowed", message)
                .with_header("allow", expected);
        }
        self.stats.add(endpoint);
        let due = self.faults.due(endpoint);
        if due.revokes_tokens() {
            self.revoke_tokens();
        }
        let refusal = due.answer().or_else(|| self.refuse(task, headers, now));
        let response = refusal.unwrap_or_else(|| match task {
            Task::Mint(api) => self.tokens.mint(api, body, &self.options, now),
            Task::Count(metric) => analytics::answer(metric, body, &mut self.events, due.excess()),
            Task::ListAuditLogs => audit_logs::answer(query),
        });
        due.apply(response)
    }

    /// The answer to a request that has not the right headers.
    fn refuse(&self, task: Task, headers: &[(&str, &str)], now: Now) -> Option<SandboxResponse> {
        let (needed, has_body) = match task {
            Task::Mint(_) => (None, true),
            Task::Count(_) => (Some(Api::Control), true),
            Task::ListAuditLogs => (Some(Api::Orchestration), false),
        };
        let lifetime_s = self.options.token_lifetime_s;
        let authorization = header(headers, "authorization");
        if needed.is_some_and(|api| !self.tokens.admit(api, authorization, now, lifetime_s)) {
            let message = "the access token is missing, expired, or of another audience";
            return Some(SandboxResponse::refusal(401, "unauthorized", message));
        }
        if has_body && !says_json(headers) {
            let message = "want content-type: application/json";
            return Some(SandboxResponse::refusal(
                415,
                "unsupported_media_type",
                message,
            ));
        }
        None
    }

    /// Makes something go wrong.
    ///
    /// # Errors
    /// `invalid_argument` for a fault that can't happen.
    pub fn inject(&mut self, fault: Fault) -> Result<()> {
        fault.check()?;
        self.faults.add(fault);
        Ok(())
    }

    /// The same, from the JSON that [`Fault::from_json`] reads.
    ///
    /// # Errors
    /// `invalid_argument` for what is no fault, or one that can't happen.
    pub fn inject_json(&mut self, fault: &str) -> Result<()> {
        self.inject(Fault::from_json(fault)?)
    }

    /// Makes every token invalid that is out.
    pub fn revoke_tokens(&mut self) {
        self.tokens.revoke();
    }

    /// How many requests each endpoint has had.
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
    headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| *value)
}

fn says_json(headers: &[(&str, &str)]) -> bool {
    let media_type = header(headers, "content-type").and_then(|value| value.split(';').next());
    media_type.is_some_and(|text| text.trim().eq_ignore_ascii_case("application/json"))
}
