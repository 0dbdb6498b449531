//! The client without I/O: it begins calls, which share its state.

use std::sync::Arc;

use super::any_endpoint::{TokenOnly, Typed};
use super::call::Call;
use super::delay::Delay;
use super::options::{ApiConfig, Config, MachineOptions, TokenSource};
use super::shared::Shared;
use super::state_machine::StateMachine;
use crate::access::api::Api;
use crate::code::Code;
use crate::counts::identity::Identity;
use crate::counts::metric::Metric;
use crate::counts::table::CountTable;
use crate::endpoint::audit_logs::{AuditLogsOptions, AuditLogsQuery};
use crate::endpoint::contract::{AuditLogs, Endpoint, Token};
use crate::endpoint::query::QueryOptions;
use crate::error::{Error, Result};
use crate::fold::read_options::ReadOptions;
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

    /// Begins a call for the counts of events sent to integrations in one window (service reference
    /// 4.4).
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn event_delivery(&self, options: &QueryOptions) -> Result<Call<CountTable>> {
        self.metrics(Metric::EventDelivery, options)
    }

    /// Begins a call for the counts of events received in one window (service reference 4.5).
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn event_ingestion(&self, options: &QueryOptions) -> Result<Call<CountTable>> {
        self.metrics(Metric::EventIngestion, options)
    }

    /// Begins a call for the counts of a metric in one window.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn metrics(&self, metric: Metric, options: &QueryOptions) -> Result<Call<CountTable>> {
        let query = options.check(metric, self.reading())?;
        let query = query.of_identity(&self.config().identity);
        let call = self.call(self.config().control()?, query);
        Ok(call.ending(options.deadline_ms.ms().map(Delay::For)))
    }

    /// Begins a call for a page of audit logs (service reference 4.2).
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn audit_logs(&self, options: &AuditLogsOptions) -> Result<Call<AuditLogs>> {
        let query = AuditLogsQuery::new(*options, self.reading().limits)?;
        let call = self.call(self.config().orchestration()?, query);
        Ok(call.ending(options.deadline_ms.ms().map(Delay::For)))
    }

    /// Begins a call for an access token of one API: the client's own, which is fetched or renewed only if it is
    /// time. It gives the token, for a server that hands tokens to pages: keep it as you keep a password.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn token(&self, api: Api) -> Result<Call<Token>> {
        let config = self.config();
        let tokens = match api {
            Api::Control => &config.control()?.tokens,
            Api::Orchestration => &config.orchestration()?.tokens,
        };
        if matches!(tokens.source, TokenSource::None) {
            let message = "a client without tokens has none to give";
            return Err(Error::argument("tokenless", Code::InvalidArgument, message));
        }
        let tokens = Arc::clone(tokens);
        let endpoint = Box::new(TokenOnly { api, tokens });
        Ok(Call::new(Box::new(StateMachine::new(
            Arc::clone(&self.0),
            endpoint,
        ))))
    }

    pub(crate) fn call<E: Endpoint>(
        &self,
        api: &Arc<ApiConfig<E::Audience>>,
        endpoint: E,
    ) -> Call<E::Output> {
        let api = Arc::clone(api);
        let endpoint = Box::new(Typed { api, endpoint });
        Call::new(Box::new(StateMachine::new(Arc::clone(&self.0), endpoint)))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    /// How metrics responses are read.
    pub(crate) fn reading(&self) -> ReadOptions {
        self.0.config.metrics
    }

    /// Whose counts the client reads. It is unknown without an address of the Control API.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.config().identity
    }

    /// The identity as the beginning of keys in a store that several clients share.
    ///
    /// # Errors
    /// `missing_argument` if access tokens from elsewhere decide which client it is, and the option `identity` isn't set.
    pub fn shared_identity(&self) -> Result<&str> {
        let identity = self
            .identity()
            .as_str()
            .filter(|_| self.config().is_client_known);
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

    /// A number that grows whenever a token fetch has ended. Then ask a call whose step was
    /// [`Step::Blocked`](crate::Step::Blocked) for its next step.
    #[must_use]
    pub fn token_epoch(&self) -> u64 {
        self.0.with(|common| common.tokens.epoch())
    }
}
