//! The requests of web apps.

use crate::access::api::Api;
use crate::code::Code;
use crate::counts::dimension::Dimension;
use crate::counts::metric::Metric;
use crate::counts::tree::Tree;
use crate::endpoint::{AuditLogsOptions, QueryOptions, audit_logs, endpoint_of};
use crate::error::{Error, Result};
use crate::pages::permission::Permission;
use crate::pages::windows::{MetricsQuestion, PATH as WINDOWS, WindowsQuestion, refused};
use crate::time::now::Now;
use crate::time::window::Window;
use crate::wire::headers::named;
use crate::wire::status::is_json;

/// The most bytes of a request's body. A usual one has a few hundred.
const MOST_BYTES: usize = 16 * 1024;

crate::options! {
    /// What pages may ask, and how much of what the service answers is kept.
    #[derive(Clone, Debug)]
    pub struct PagesOptions: Default {
        /// Whether pages get access tokens: `POST` to `token/control` and `token/orchestration`.
        hand_out_tokens: bool = false,
        /// Whether pages may list audit logs.
        audit_logs: bool = false,
        /// How long an answer is kept if its window ended less than an hour ago, so that its counts may still
        /// change.
        ///
        /// Answers for older windows are kept until there is no room.
        provisional_ms: u64 [Milliseconds] = 5_000,
        /// How many calls to the service may be under way at the same time.
        ///
        /// Others wait.
        concurrency: u32 = 8,
        /// How many calls may wait until others have ended.
        ///
        /// Further requests get status 503 with `Retry-After`.
        queue: u32 = 64,
        /// How many bytes of answers are kept in memory.
        memory_bytes: u64 = 64 * 1024 * 1024,
    }
}

impl PagesOptions {
    /// Refuses options that a host could not use.
    ///
    /// # Errors
    /// `invalid_argument` for a `concurrency` of 0.
    pub fn check(&self) -> Result<()> {
        match self.concurrency {
            0 => Err(Error::argument("concurrency", Code::InvalidArgument, "want 1 or more")),
            _ => Ok(()),
        }
    }
}

/// A request of a web app, as the host has received it.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, wherever the server is mounted, and the query if there is one.
    pub target: &'a str,
    /// Names and values of the headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body: all of it, or the first bytes of one that is longer than 16 KiB, at least one byte more than that.
    pub body: &'a [u8],
    /// What the server's own check has decided about the request.
    pub permission: &'a Permission,
}

/// What a web app requests: the call that the host makes on behalf of the server. A host must handle every kind of request,
/// so a new kind breaks its build, on purpose.
#[derive(Clone, Debug)]
pub enum PageQuestion {
    /// Counts. The response has the body that the service has sent, once the call has found it valid.
    Metrics(MetricsQuestion),
    /// Counts of the windows of a range. The response has the lines of each window, in the order of time.
    Windows(WindowsQuestion),
    /// An access token. The response must not be cached.
    Token(Api),
    /// A page of the audit logs. The response must not be cached.
    AuditLogs(AuditLogsOptions),
}

impl PageQuestion {
    /// Reads the request of a web app. The end of the path decides, so the server may be mounted anywhere. The web app can't
    /// choose `service`, the address of the service that the server calls.
    ///
    /// # Errors
    /// `forbidden` if the web app may not make this request, and the errors of arguments. Respond with
    /// [`Answer::of_error`](crate::Answer::of_error).
    pub fn read(
        options: &PagesOptions,
        service: &str,
        asked: PageRequest<'_>,
        now: Now,
    ) -> Result<Self> {
        if matches!(asked.permission, Permission::Refused) {
            return Err(forbidden("authorize has not allowed this request"));
        }
        // Tokens and audit logs would show more than some rows.
        let sees_everything = matches!(asked.permission, Permission::Everything);
        if !is_same_origin(asked.headers) {
            return Err(forbidden("this request comes from a page of another origin"));
        }
        let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
        if asked.method == "GET" && options.audit_logs && path.ends_with(audit_logs::PATH) {
            if !sees_everything {
                return Err(forbidden(NOT_EVERYTHING));
            }
            return page_of(query).map(Self::AuditLogs);
        }
        if asked.method == "GET"
            && let Some(endpoint) = path.strip_suffix(WINDOWS)
        {
            let metric = metric_at(endpoint).ok_or_else(unknown)?;
            return WindowsQuestion::read(metric, query, service, asked.permission, now)
                .map(Self::Windows);
        }
        if asked.method != "POST" {
            return Err(unknown());
        }
        if !named(asked.headers, "content-type").next().is_some_and(is_json) {
            return Err(refused("want the header content-type: application/json"));
        }
        if let Some(metric) = metric_at(path) {
            let query = query_of(asked.body)?;
            return MetricsQuestion::new(metric, query, service, asked.permission, now)
                .map(Self::Metrics);
        }
        if options.hand_out_tokens {
            for api in [Api::Control, Api::Orchestration] {
                if path.ends_with(&["/token/", api.as_str()].concat()) {
                    if !sees_everything {
                        return Err(forbidden(NOT_EVERYTHING));
                    }
                    return Ok(Self::Token(api));
                }
            }
        }
        Err(unknown())
    }
}

/// The metric whose endpoint a path names.
fn metric_at(path: &str) -> Option<Metric> {
    let mut metrics = [Metric::EventDelivery, Metric::EventIngestion].into_iter();
    metrics.find(|metric| path.ends_with(endpoint_of(*metric).path))
}

/// Whether the request did not come from a page of another origin. A browser states the origin in headers that a page
/// can't change. Other programs send neither header.
fn is_same_origin(headers: &[(&str, &str)]) -> bool {
    let first = |name| named(headers, name).next();
    match (first("sec-fetch-site"), first("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some() && host == first("host")
        }
        (None, None) => true,
    }
}

/// The query in a request to a metrics endpoint, in the form of the service (service reference 4.4).
fn query_of(body: &[u8]) -> Result<QueryOptions> {
    if body.len() > MOST_BYTES {
        return Err(refused("the body is longer than 16 KiB"));
    }
    let tree = Tree::read(body).unwrap_or_default();
    let fields = tree.fields(["start", "end", "dimensions"]);
    let texts = fields
        .and_then(|[start, end, names]| Some((start.text()?, end.text()?, names.texts()?)))
        .ok_or_else(|| {
            refused("want a body of start, end and dimensions, as the service takes it")
        })?;
    let (start, end, names) = texts;
    let dimensions: Result<Vec<Dimension>> =
        names.iter().map(|name| Dimension::parse(name)).collect();
    Ok(QueryOptions::new(Window::parse(start, end)?, &dimensions?))
}

/// The requested page of the audit logs.
fn page_of(query: &str) -> Result<AuditLogsOptions> {
    let mut options = AuditLogsOptions::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let number = |digits: &str| {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten()
        };
        match pair.split_once('=').map(|(name, digits)| (name, number(digits))) {
            Some(("page", page @ Some(_))) if options.page.is_none() => options.page = page,
            Some(("perPage", size @ Some(_))) if options.per_page.is_none() => {
                options.per_page = size;
            }
            _ => {
                return Err(refused("want page and perPage, whole numbers, each at most once"));
            }
        }
    }
    Ok(options)
}

const NOT_EVERYTHING: &str = "the user may see some rows only, and no tokens or audit logs";

fn forbidden(message: &'static str) -> Error {
    Error::new(Code::Forbidden, message).with_status(403)
}

fn unknown() -> Error {
    refused("this server answers no such request")
}
