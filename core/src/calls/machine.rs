//! The client without I/O: it begins calls, which share its state.

use std::sync::Arc;

use super::any_endpoint::{TokenOnly, Typed};
use super::call::Call;
use super::delay::Delay;
use super::options::{ApiConfig, Config, Configured, MachineOptions, TokenSource};
use super::shared::Shared;
use super::state_machine::StateMachine;
use crate::access::api::{Api, Control, Orchestration};
use crate::code::Code;
use crate::counts::identity::Identity;
use crate::counts::metric::Metric;
use crate::counts::table::CountTable;
use crate::endpoint::contract::{Client, Endpoint};
use crate::endpoint::{self, QueryOptions, Target, Token, endpoint_of};
use crate::error::{Error, Result};
use crate::time::patience::Patience;

/// A client without I/O and without a clock: it begins calls and keeps the tokens that they share.
/// Clones share the tokens too.
///
/// Each call is a [`Call`] that the host drives; its documentation shows the loop.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Shared>);

impl Machine {
    /// Checks the options. Nothing is sent.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument: `missing_argument`, `invalid_argument`,
    /// `invalid_base_address`, `insecure_base_address`, `secret_in_browser`.
    pub fn new(options: MachineOptions) -> Result<Self> {
        Ok(Self(Shared::new(Config::new(options)?)))
    }

    /// Begins a call for the counts of a metric in one window.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn metrics(&self, metric: Metric, options: &QueryOptions) -> Result<Call<CountTable>> {
        let query = options.check(endpoint_of(metric), &self.client())?;
        self.begin(metric.into(), query, options.deadline_ms)
    }

    /// Begins a call for an access token of one API. The result is the token that the client itself uses; it is fetched
    /// or renewed only if necessary. This is for a server that passes tokens to pages. Protect the token like a password.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn token(&self, api: Api) -> Result<Call<Token>> {
        let config = self.config();
        let tokens = match api {
            Api::Control => &config.api::<Control>()?.tokens,
            Api::Orchestration => &config.api::<Orchestration>()?.tokens,
        };
        if matches!(tokens.source, TokenSource::None) {
            let message = "a client without tokens has none to give";
            return Err(Error::argument("tokenless", Code::InvalidArgument, message));
        }
        let tokens = Arc::clone(tokens);
        let endpoint = Box::new(TokenOnly { api, tokens });
        Ok(Call::new(Box::new(StateMachine::new(Arc::clone(&self.0), endpoint))))
    }

    /// Begins a call that may take at most this long.
    fn begin<E: Endpoint<Audience: Configured>>(
        &self,
        target: Target,
        endpoint: E,
        deadline: Patience,
    ) -> Result<Call<E::Output>> {
        let call = self.call_of(target, self.config().api()?, endpoint);
        Ok(call.ending(deadline.ms().map(Delay::For)))
    }

    /// A call with the settings of its API.
    pub(crate) fn call_of<E: Endpoint>(
        &self,
        target: Target,
        api: &Arc<ApiConfig<E::Audience>>,
        endpoint: E,
    ) -> Call<E::Output> {
        let api = Arc::clone(api);
        let endpoint = Box::new(Typed { target, api, endpoint });
        Call::new(Box::new(StateMachine::new(Arc::clone(&self.0), endpoint)))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    /// The properties of the client that its queries need.
    pub(crate) fn client(&self) -> Client<'_> {
        Client { reading: self.0.config.metrics, identity: self.identity() }
    }

    /// Whose counts the client reads. It is unknown without an address of the Control API, unless the option
    /// `identity` names it.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.config().identity
    }

    /// The identity as the beginning of keys in a store that several clients share.
    ///
    /// # Errors
    /// `missing_argument` if the identity is unknown, or if the host provides the access tokens and neither `identity`
    /// nor `client_id` is set.
    pub fn shared_identity(&self) -> Result<&str> {
        let identity = self.identity().as_str().filter(|_| self.config().is_client_known);
        identity.ok_or_else(|| {
            let message = "want a name for the client: its access tokens don't show whose counts it reads, and others may \
                           use the same store";
            Error::argument("identity", Code::MissingArgument, message)
        })
    }

    /// How long one exchange may take. The host enforces it.
    #[must_use]
    pub fn timeout(&self) -> Patience {
        self.0.config.timeout
    }

    /// How many requests of this client have failed temporarily, for [`Call::fail_fast`](crate::Call::fail_fast).
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.0.with(|common| common.pace.failures())
    }

    /// A number that grows whenever a token fetch has ended. When it has grown, get the next step of each
    /// call whose last step was [`Step::Blocked`](crate::Step::Blocked).
    #[must_use]
    pub fn token_epoch(&self) -> u64 {
        self.0.with(|common| common.tokens.epoch())
    }
}

/// Generates the method that begins a call, for each endpoint.
macro_rules! methods {
    ($($(#[$doc:meta])* $Target:ident = $name:literal in $file:ident: $Options:ident -> $Output:ident,)+) => {
        impl Machine { $(
            /// Begins a call to an endpoint:
            $(#[$doc])*
            ///
            /// # Errors
            /// Of kind `config`, with the name of the argument; nothing is sent then.
            pub fn $file(&self, options: &crate::$Options) -> Result<Call<crate::$Output>> {
                let query = endpoint::$file::query(options, &self.client())?;
                self.begin(Target::$Target, query, options.deadline_ms)
            }
        )+ }
    };
}
crate::each_endpoint!(methods);
