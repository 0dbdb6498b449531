//! The options of a client, and how they are checked.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::retry::passing::LONGEST_TIMER_MS;
use crate::access::api::{Audience, Control, Orchestration};
use crate::access::token::{DEFAULT_LIFETIME_S, Lifetime};
use crate::checksum::checksum;
use crate::code::Code;
use crate::counts::identity::Identity;
use crate::endpoint::{control_token, orchestration_token};
use crate::error::{Error, Result};
use crate::fold::read_options::ReadOptions;
use crate::fold::tolerate::Tolerate;
use crate::secret::Secret;
use crate::spelling::{Name, Words, words};
use crate::time::patience::Patience;
use crate::wire::address::BaseAddress;
use crate::wire::headers::Headers;
use crate::wire::limits::Limits;
use crate::wire::request::Request;

/// A day: longer than any exchange takes, and within the limits of every operating system.
const LONGEST_TIMEOUT_MS: u64 = 86_400_000;

crate::options! {
    /// The options of a [`Machine`](crate::Machine). The arguments of an API that is not used may
    /// be left out; a call to that API then fails and names the missing ones.
    #[derive(Clone)]
    pub struct MachineOptions: Default {
        /// The address of your deployment, for the Control API and the Event Metrics API.
        ///
        /// https, or http on this machine.
        cluster_endpoint: Option<String> [Address] = None,
        /// The Client ID that the operator of the service has issued, for all APIs.
        client_id: Option<String> = None,
        /// The Client Secret that was issued with the Client ID.
        ///
        /// It can't be read back.
        client_secret: Option<Secret> = None,
        /// The audience identifier of the Control API.
        control_audience: Option<String> = None,
        /// The address of the Orchestration API.
        base_url: Option<String> [Address] = None,
        /// The address of the authorization server, which issues the tokens of the Orchestration API.
        auth_url: Option<String> [Address] = None,
        /// The audience identifier of the Orchestration API.
        orchestration_audience: Option<String> = None,
        /// A name for the cluster and the client whose counts are read, such as `production`.
        ///
        /// Tables and states contain it. Tables and states with another name are refused. By default, it consists of
        /// the address, the Client ID, and a checksum of the headers that you add to requests. Set it if the address of
        /// a cluster changes, or if you provide the access tokens, which decide whose counts are read.
        identity: Option<String> = None,
        /// Whether the host provides the tokens, instead of a client secret.
        host_tokens: bool = false,
        /// Whether requests carry no token, because the address is that of a server of yours that adds it.
        ///
        /// Such a server is `tallyfold/server` of the npm package, or `tallyfold.asgi`. In a page, requests carry
        /// the cookies of the page's own origin.
        tokenless: bool = false,
        /// Whether the host is a page in a browser, where every visitor can read what it holds.
        in_browser: bool = false,
        /// Lets a page hold the client secret.
        ///
        /// Only for pages that nobody else can open.
        dangerously_allow_browser: bool = false,
        /// Allows secrets and tokens to be sent over plain http to other machines.
        dangerously_allow_http: bool = false,
        /// The lifetime of a token whose response names none.
        default_token_lifetime_s: u64 = DEFAULT_LIFETIME_S,
        /// How much of a response is read before it is refused.
        limits: Limits = Limits::default(),
        /// Which deviations to tolerate in metrics responses, because the API is Beta.
        tolerate: Tolerate = Tolerate::default(),
        /// The maximum number of retries of one call, including its token requests; 0 for none.
        ///
        /// A call is retried after statuses 408, 429, 500, 502, 503 and 504, and after a broken connection or a
        /// timeout. All calls of a client share a budget of retries, so that a service that is down gets only a few
        /// more requests than usual.
        max_retries: u32 = 3,
        /// The longest `Retry-After` for which a call waits.
        ///
        /// If the service requests a longer wait, the call fails with `retry_later`. Other waits between retries are
        /// limited by this, too.
        longest_retry_wait_ms: u64 [Milliseconds] = 60_000,
        /// How long one request may take, from connecting to the last byte of the response; at most a day.
        ///
        /// It also limits the wait for a token that another call fetches.
        timeout_ms: Patience = Patience::Milliseconds(30_000),
        /// Headers that go with every request, also with token requests, such as the key of a gateway.
        ///
        /// Headers that the client sets itself are refused, such as `authorization` and `content-type`.
        headers: Headers = Headers::default(),
        /// The header `user-agent`, unless `headers` has one. A page sends none.
        user_agent: Option<&'static str> [Host] = None,
        /// See [`AggregatorOptions::hash_seed`](crate::AggregatorOptions::hash_seed).
        hash_seed: u64 [Host] = 0,
        /// The seed for the random part of every wait. The host draws a different seed for each
        /// client, because two clients with the same seed would retry at the same moments.
        jitter_seed: u64 [Host] = 0,
    }
}

impl fmt::Debug for MachineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The addresses have not been checked yet: one may contain user info with a password.
        let address = |text: &Option<String>| {
            text.clone().map(|text| if text.contains('@') { "…".to_owned() } else { text })
        };
        f.debug_struct("MachineOptions")
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
pub(crate) struct Config {
    control: Result<Arc<ApiConfig<Control>>>,
    orchestration: Result<Arc<ApiConfig<Orchestration>>>,
    pub(crate) metrics: ReadOptions,
    /// Whose counts are read; unknown without an address of the Control API, unless the caller has named it.
    pub(crate) identity: Identity,
    /// Whether the identity shows which client reads the counts.
    pub(crate) is_client_known: bool,
    /// Errors that quote the service mask it.
    pub(super) client_secret: Option<Secret>,
    pub(super) policy: Policy,
    pub(super) timeout: Patience,
    /// The headers that every request contains.
    pub(super) headers: Arc<Headers>,
}

/// How often a call is retried, and how long it may wait before a retry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) max_retries: u32,
    pub(super) longest_wait_ms: u64,
    pub(super) seed: u64,
}

/// One API: its address, and where its tokens come from.
#[derive(Debug)]
pub(crate) struct ApiConfig<A> {
    pub(crate) base: BaseAddress,
    pub(super) tokens: Arc<TokenConfig>,
    audience: PhantomData<A>,
}

/// The tokens of an API.
#[derive(Debug)]
pub(crate) struct TokenConfig {
    pub(super) source: TokenSource,
    pub(super) default_lifetime: Lifetime,
}

/// Where the tokens of an API come from.
#[derive(Debug)]
pub(crate) enum TokenSource {
    /// The host: it provides each token.
    Host,
    /// The API's token endpoint, with this request.
    Endpoint(Request),
    /// None: a server of the user adds the token.
    None,
}

impl Config {
    pub(super) fn new(options: MachineOptions) -> Result<Self> {
        if options.client_secret.is_some()
            && options.in_browser
            && !options.dangerously_allow_browser
        {
            let message = words![
                "every visitor of a page can read a client secret in it; pass ",
                Name::from("access_token"),
                ", which fetches a token from your server"
            ];
            return Err(Error::argument("client_secret", Code::SecretInBrowser, message));
        }
        if options.client_secret.is_some() && options.host_tokens {
            let message = words![
                "pass either ",
                Name::from("access_token"),
                " or ",
                Name::from("client_secret"),
                ", not both"
            ];
            return Err(Error::argument("access_token", Code::InvalidArgument, message));
        }
        if options.tokenless && (options.client_secret.is_some() || options.host_tokens) {
            let message =
                "a client without tokens takes neither a client secret nor a source of tokens";
            return Err(Error::argument("tokenless", Code::InvalidArgument, message));
        }
        refuse_slips(&options)?;
        check_times(&options)?;
        let seconds = options.default_token_lifetime_s;
        let default_lifetime = Lifetime::from_seconds(seconds).ok_or_else(|| {
            let message = "want 1 second or more";
            Error::argument("default_token_lifetime_s", Code::InvalidArgument, message)
        })?;
        let address = |name, text: &Option<String>| {
            let allow_http = options.dangerously_allow_http;
            text.as_deref().map(|text| BaseAddress::parse(name, text, allow_http)).transpose()
        };
        let cluster_endpoint = address("cluster_endpoint", &options.cluster_endpoint)?;
        let base_url = address("base_url", &options.base_url)?;
        let auth_url = address("auth_url", &options.auth_url)?;
        if cluster_endpoint.is_none() && base_url.is_none() {
            let message = words![
                "want ",
                Name::from("cluster_endpoint"),
                ", ",
                Name::from("base_url"),
                " or both"
            ];
            return Err(missing("cluster_endpoint", message));
        }
        let control = ApiParts {
            base: (CONTROL.base, &cluster_endpoint),
            token_base: (CONTROL.token_base, &cluster_endpoint),
            audience: (CONTROL.audience, &options.control_audience),
            token_request: control_token::request,
        };
        let orchestration = ApiParts {
            base: (ORCHESTRATION.base, &base_url),
            token_base: (ORCHESTRATION.token_base, &auth_url),
            audience: (ORCHESTRATION.audience, &options.orchestration_audience),
            token_request: orchestration_token::request,
        };
        let control = control.check(&options, default_lifetime).map(ApiConfig::of);
        let orchestration = orchestration.check(&options, default_lifetime).map(ApiConfig::of);
        // If the address of an API was given, it will be used, so a missing argument is reported at
        // once.
        if cluster_endpoint.is_some() {
            control.as_ref().map_err(Clone::clone)?;
        }
        if base_url.is_some() {
            orchestration.as_ref().map_err(Clone::clone)?;
        }
        let is_client_known =
            options.identity.is_some() || options.client_id.is_some() || !options.host_tokens;
        let identity = identity_of(&options, cluster_endpoint.as_ref());
        let headers = match options.user_agent.filter(|_| !options.in_browser) {
            Some(agent) => options.headers.or_user_agent(agent),
            None => options.headers,
        };
        let metrics = ReadOptions {
            limits: options.limits,
            tolerate: options.tolerate,
            hash_seed: options.hash_seed,
        };
        Ok(Self {
            control,
            orchestration,
            metrics,
            identity,
            is_client_known,
            client_secret: options.client_secret,
            policy: Policy {
                max_retries: options.max_retries,
                longest_wait_ms: options.longest_retry_wait_ms,
                seed: options.jitter_seed,
            },
            timeout: options.timeout_ms,
            headers: Arc::new(headers),
        })
    }

    /// One of the APIs, or an error that names a missing argument.
    pub(crate) fn api<A: Configured>(&self) -> Result<&Arc<ApiConfig<A>>> {
        A::of(self).as_ref().map_err(Clone::clone)
    }
}

/// An API, as a type, whose settings are part of a [`Config`].
pub(crate) trait Configured: Audience + Sized {
    fn of(config: &Config) -> &Result<Arc<ApiConfig<Self>>>;
}

impl Configured for Control {
    fn of(config: &Config) -> &Result<Arc<ApiConfig<Self>>> {
        &config.control
    }
}

impl Configured for Orchestration {
    fn of(config: &Config) -> &Result<Arc<ApiConfig<Self>>> {
        &config.orchestration
    }
}

/// The names of the options that one API needs.
struct ApiNames {
    base: &'static str,
    token_base: &'static str,
    audience: &'static str,
}

const CONTROL: ApiNames = ApiNames {
    base: "cluster_endpoint",
    token_base: "cluster_endpoint",
    audience: "control_audience",
};

const ORCHESTRATION: ApiNames =
    ApiNames { base: "base_url", token_base: "auth_url", audience: "orchestration_audience" };

impl MachineOptions {
    /// The options that a machine needs in addition to the `given` ones, in the order in which [`Machine::new`] reports
    /// them. With `has_tokens`, no credentials are needed, because the tokens come from elsewhere. This is for callers that
    /// read options from an environment and want to name all missing variables at once.
    ///
    /// ```
    /// # use tallyfold::MachineOptions;
    /// let missing = MachineOptions::missing(&["cluster_endpoint", "client_id"], false);
    /// assert_eq!(missing, ["client_secret", "control_audience"]);
    /// ```
    ///
    /// [`Machine::new`]: crate::Machine::new
    #[must_use]
    pub fn missing(given: &[&str], has_tokens: bool) -> Vec<&'static str> {
        let has = |name: &str| given.contains(&name);
        let mut missing = Vec::new();
        for (api, is_used) in [
            // Without any address, the error names the one of the Control API.
            (CONTROL, has(CONTROL.base) || !has(ORCHESTRATION.base)),
            (ORCHESTRATION, has(ORCHESTRATION.base)),
        ] {
            let credentials = [api.token_base, "client_id", "client_secret", api.audience];
            let credentials = credentials.iter().filter(|_| !has_tokens);
            for name in std::iter::once(&api.base).chain(credentials) {
                if is_used && !has(name) && !missing.contains(name) {
                    missing.push(*name);
                }
            }
        }
        missing
    }
}

/// The options of one API, with the names of their arguments.
struct ApiParts<'a> {
    base: (&'static str, &'a Option<BaseAddress>),
    token_base: (&'static str, &'a Option<BaseAddress>),
    audience: (&'static str, &'a Option<String>),
    token_request: fn(&BaseAddress, &str, &Secret, &str) -> Request,
}

impl<A> ApiConfig<A> {
    fn of((base, tokens): (BaseAddress, TokenConfig)) -> Arc<Self> {
        Arc::new(Self { base, tokens: Arc::new(tokens), audience: PhantomData })
    }
}

impl ApiParts<'_> {
    /// The address and the source of tokens.
    fn check(
        &self,
        options: &MachineOptions,
        default_lifetime: Lifetime,
    ) -> Result<(BaseAddress, TokenConfig)> {
        let base = given(self.base.0, self.base.1)?.clone();
        let source = if options.tokenless {
            TokenSource::None
        } else if options.host_tokens {
            TokenSource::Host
        } else {
            TokenSource::Endpoint((self.token_request)(
                given(self.token_base.0, self.token_base.1)?,
                given("client_id", &options.client_id)?,
                given("client_secret", &options.client_secret)?,
                given(self.audience.0, self.audience.1)?,
            ))
        };
        let tokens = TokenConfig { source, default_lifetime };
        Ok((base, tokens))
    }
}

/// Refuses credentials that are probably a mistake: an empty text, and a text with a control character or with white space
/// at an end, such as a line break that was copied or read with it.
fn refuse_slips(options: &MachineOptions) -> Result<()> {
    let texts = [
        ("client_id", options.client_id.as_deref()),
        ("identity", options.identity.as_deref()),
        ("client_secret", options.client_secret.as_ref().map(Secret::expose)),
        ("control_audience", options.control_audience.as_deref()),
        ("orchestration_audience", options.orchestration_audience.as_deref()),
    ];
    for (name, text) in texts {
        let message = match text {
            Some("") => "this is empty; is an environment variable unset?",
            Some(text) if text.ends_with(['\n', '\r']) => {
                "this ends with a line break; was it read from a file?"
            }
            Some(text) if text.trim() != text => "this begins or ends with white space",
            Some(text) if text.contains(char::is_control) => {
                "this contains a control character, such as a tab or a line break"
            }
            _ => continue,
        };
        return Err(Error::argument(name, Code::InvalidArgument, message));
    }
    Ok(())
}

/// The identity that the options name. Without one, it consists of the address, the Client ID, and a checksum of the headers
/// (except `user-agent`), because a header may select a tenant. Without an address, it is unknown.
fn identity_of(options: &MachineOptions, address: Option<&BaseAddress>) -> Identity {
    let (Some(address), None) = (address, &options.identity) else {
        return options.identity.as_deref().map_or_else(Identity::default, Identity::new);
    };
    let mut text = address.join("");
    if let Some(client_id) = &options.client_id {
        text += ", client ";
        text += client_id;
    }
    let mut headers = String::new();
    for (name, value) in options.headers.iter() {
        if name != "user-agent" {
            headers = [&headers, name, ":", value, "\n"].concat();
        }
    }
    if !headers.is_empty() {
        text += ", headers ";
        text += &checksum(&[b"tallyfold identity\n", headers.as_bytes()]);
    }
    Identity::new(&text)
}

fn given<'a, T>(name: &'static str, option: &'a Option<T>) -> Result<&'a T> {
    option.as_ref().ok_or_else(|| {
        let message = words![
            "this is needed for the call, or ",
            Name::from("access_token"),
            " in place of ",
            Name::from("client_id"),
            ", ",
            Name::from("client_secret"),
            " and the audience"
        ];
        missing(name, message)
    })
}

/// Refuses times that are longer than a timer can wait or an exchange may take, and a timeout of 0.
fn check_times(options: &MachineOptions) -> Result<()> {
    if options.longest_retry_wait_ms > LONGEST_TIMER_MS {
        let message = "want at most 24 days, the longest time that a timer can wait";
        return Err(Error::argument("longest_retry_wait_ms", Code::InvalidArgument, message));
    }
    match options.timeout_ms {
        Patience::Milliseconds(ms) if ms == 0 || ms > LONGEST_TIMEOUT_MS => {
            let message = "want more than 0 and at most a day, or no limit";
            Err(Error::argument("timeout_ms", Code::InvalidArgument, message))
        }
        _ => Ok(()),
    }
}

fn missing(name: &'static str, message: Words) -> Error {
    Error::argument(name, Code::MissingArgument, message)
}
