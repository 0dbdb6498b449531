//! What a client is told, and what it makes of it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::endpoint::{control_token, orchestration_token};
use crate::error::{Code, Error, Result};
use crate::fold::{ReadOptions, Tolerate};
use crate::http::{BaseAddress, Request};
use crate::json::Limits;
use crate::retry::RetryPolicy;
use crate::secret::Secret;
use crate::token::{Control, DEFAULT_LIFETIME_S, Lifetime, Orchestration};

/// What a [`Client`](crate::Client) is told. Each of the two APIs may be left out: one that is
/// called without its arguments says which are missing.
#[derive(Clone, Default)]
pub struct ClientOptions {
    /// The address of the customer's own deployment: Control API and Event Metrics API.
    pub cluster_endpoint: Option<String>,
    /// The Client ID, for both APIs.
    pub client_id: Option<String>,
    /// The Client Secret, for both APIs.
    pub client_secret: Option<Secret>,
    /// The audience identifier of the Control API.
    pub control_audience: Option<String>,
    /// The base address of the Orchestration API.
    pub base_url: Option<String>,
    /// The address of the authorization server of the Orchestration API.
    pub auth_url: Option<String>,
    /// The audience identifier of the Orchestration API.
    pub orchestration_audience: Option<String>,
    /// Whether the host has tokens from elsewhere, in place of a secret.
    pub host_tokens: bool,
    /// Whether the host is a page whose every visitor can read what it holds.
    pub in_browser: bool,
    /// Lets a client secret into a browser.
    pub dangerously_allow_browser: bool,
    /// Lets plain http go to other machines.
    pub dangerously_allow_http: bool,
    /// Seconds that a token lives when nobody says; an hour if this is not given.
    pub default_token_lifetime_s: Option<u64>,
    /// How much of a response is read before it is refused.
    pub limits: Limits,
    /// What to let pass in metrics responses.
    pub tolerate: Tolerate,
    /// See [`AggregatorOptions::hash_seed`](crate::AggregatorOptions::hash_seed).
    pub hash_seed: u64,
    /// What is tried again, and how long it may take.
    pub retry: RetryPolicy,
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nobody has looked at the addresses yet: one may hold user info, and that a password.
        let address = |text: &Option<String>| {
            text.clone().map(|text| {
                if text.contains('@') {
                    "…".to_owned()
                } else {
                    text
                }
            })
        };
        f.debug_struct("ClientOptions")
            .field("cluster_endpoint", &address(&self.cluster_endpoint))
            .field("base_url", &address(&self.base_url))
            .field("auth_url", &address(&self.auth_url))
            .field("client_id", &self.client_id)
            .field("control_audience", &self.control_audience)
            .field("orchestration_audience", &self.orchestration_audience)
            .field("host_tokens", &self.host_tokens)
            .finish_non_exhaustive()
    }
}

/// Checked options.
#[derive(Debug)]
pub(super) struct Config {
    control: Result<Arc<ApiConfig<Control>>>,
    orchestration: Result<Arc<ApiConfig<Orchestration>>>,
    pub(super) metrics: ReadOptions,
    pub(super) retry: RetryPolicy,
}

/// One API: where it is, and where its tokens come from.
#[derive(Debug)]
pub(super) struct ApiConfig<A> {
    pub(super) base: BaseAddress,
    pub(super) tokens: TokenSource,
    pub(super) default_lifetime: Lifetime,
    audience: PhantomData<A>,
}

/// Where the tokens of an API come from.
#[derive(Debug)]
pub(super) enum TokenSource {
    /// The host, which is asked each time.
    Host,
    /// The API's token endpoint, by this request.
    Endpoint(Request),
}

impl Config {
    pub(super) fn new(options: ClientOptions) -> Result<Self> {
        if options.client_secret.is_some()
            && options.in_browser
            && !options.dangerously_allow_browser
        {
            let message = "every visitor of a page can read a client secret in it; pass \
                           access_token, which fetches a token from your server";
            return Err(Error::argument(
                "client_secret",
                Code::SecretInBrowser,
                message,
            ));
        }
        if options.client_secret.is_some() && options.host_tokens {
            let message = "pass either access_token or client_secret, not both";
            return Err(Error::argument(
                "access_token",
                Code::InvalidArgument,
                message,
            ));
        }
        refuse_empty(&options)?;
        let retry = options.retry.check()?;
        let seconds = options
            .default_token_lifetime_s
            .unwrap_or(DEFAULT_LIFETIME_S);
        let default_lifetime = Lifetime::from_seconds(seconds).ok_or_else(|| {
            let message = "want 1 second or more";
            Error::argument("default_token_lifetime", Code::InvalidArgument, message)
        })?;
        let address = |name, text: &Option<String>| {
            let allow_http = options.dangerously_allow_http;
            text.as_deref()
                .map(|text| BaseAddress::parse(name, text, allow_http))
                .transpose()
        };
        let cluster_endpoint = address("cluster_endpoint", &options.cluster_endpoint)?;
        let base_url = address("base_url", &options.base_url)?;
        let auth_url = address("auth_url", &options.auth_url)?;
        if cluster_endpoint.is_none() && base_url.is_none() {
            return Err(missing(
                "cluster_endpoint",
                "want cluster_endpoint, base_url or both",
            ));
        }
        let control = ApiParts {
            base: ("cluster_endpoint", &cluster_endpoint),
            token_base: ("cluster_endpoint", &cluster_endpoint),
            audience: ("control_audience", &options.control_audience),
            token_request: control_token::request,
        };
        let orchestration = ApiParts {
            base: ("base_url", &base_url),
            token_base: ("auth_url", &auth_url),
            audience: ("orchestration_audience", &options.orchestration_audience),
            token_request: orchestration_token::request,
        };
        let control = control.check(&options, default_lifetime);
        let orchestration = orchestration.check(&options, default_lifetime);
        // An API whose address was given is meant to be used, so what it lacks is said at once.
        if cluster_endpoint.is_some() {
            control.as_ref().map_err(Clone::clone)?;
        }
        if base_url.is_some() {
            orchestration.as_ref().map_err(Clone::clone)?;
        }
        let metrics = ReadOptions {
            limits: options.limits,
            tolerate: options.tolerate,
            hash_seed: options.hash_seed,
        };
        Ok(Self {
            control,
            orchestration,
            metrics,
            retry,
        })
    }

    /// The Control API, or what it lacks.
    pub(super) fn control(&self) -> Result<&Arc<ApiConfig<Control>>> {
        self.control.as_ref().map_err(Clone::clone)
    }

    /// The Orchestration API, or what it lacks.
    pub(super) fn orchestration(&self) -> Result<&Arc<ApiConfig<Orchestration>>> {
        self.orchestration.as_ref().map_err(Clone::clone)
    }
}

/// The options of one API by the names of their arguments.
struct ApiParts<'a> {
    base: (&'static str, &'a Option<BaseAddress>),
    token_base: (&'static str, &'a Option<BaseAddress>),
    audience: (&'static str, &'a Option<String>),
    token_request: fn(&BaseAddress, &str, &Secret, &str) -> Request,
}

impl ApiParts<'_> {
    fn check<A>(
        &self,
        options: &ClientOptions,
        default_lifetime: Lifetime,
    ) -> Result<Arc<ApiConfig<A>>> {
        let base = given(self.base.0, self.base.1)?.clone();
        let tokens = if options.host_tokens {
            TokenSource::Host
        } else {
            TokenSource::Endpoint((self.token_request)(
                given(self.token_base.0, self.token_base.1)?,
                given("client_id", &options.client_id)?,
                given("client_secret", &options.client_secret)?,
                given(self.audience.0, self.audience.1)?,
            ))
        };
        Ok(Arc::new(ApiConfig {
            base,
            tokens,
            default_lifetime,
            audience: PhantomData,
        }))
    }
}

fn refuse_empty(options: &ClientOptions) -> Result<()> {
    let texts = [
        ("client_id", options.client_id.as_deref()),
        (
            "client_secret",
            options.client_secret.as_ref().map(Secret::expose),
        ),
        ("control_audience", options.control_audience.as_deref()),
        (
            "orchestration_audience",
            options.orchestration_audience.as_deref(),
        ),
    ];
    match texts.into_iter().find(|(_, text)| *text == Some("")) {
        None => Ok(()),
        Some((name, _)) => {
            let message = "this is empty; is an environment variable unset?";
            Err(Error::argument(name, Code::InvalidArgument, message))
        }
    }
}

fn given<'a, T>(name: &'static str, option: &'a Option<T>) -> Result<&'a T> {
    option.as_ref().ok_or_else(|| {
        let message = "this is needed for the call, or access_token in place of \
                       client_id, client_secret and the audience";
        missing(name, message)
    })
}

fn missing(name: &'static str, message: &str) -> Error {
    Error::argument(name, Code::MissingArgument, message)
}
