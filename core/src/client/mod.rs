//! The caller's side as a machine: it says what to send, and is told what came back.

mod attempt;
mod call;
mod collect;
mod errand;
mod follow;
mod machine;
mod options;
mod pace;
mod probe;
mod question;

use std::sync::{Arc, Mutex, PoisonError};

pub use attempt::Attempt;
pub use call::{Call, HostFailure, Step};
pub use collect::{
    Collect, CollectError, CollectOptions, CollectStep, Progress, Segment, Settled, segment_name,
};
pub use follow::{Follow, FollowOptions, FollowStep, Revision};
pub use options::ClientOptions;
pub use probe::{Additivity, AdditivityVerdict, Probe};

use errand::Typed;
use machine::Machine;
use options::{ApiConfig, Config};
use pace::Pace;
use question::Question;

use crate::dimension::Metric;
use crate::endpoint::{AuditLogsQuery, Endpoint, MetricsQuery};
use crate::error::Result;
use crate::token::{Api, TokenSlot, Tokens};

/// The calls of one client, which share its tokens. Cloning shares them too.
///
/// It does no I/O. Each call is a [`Call`] that the host drives: see there for the loop.
#[derive(Clone, Debug)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    config: Config,
    common: Mutex<Common>,
}

/// What the calls of one client have in common.
#[derive(Debug)]
struct Common {
    tokens: Tokens,
    pace: Pace,
}

impl Client {
    /// Checks the options. Nothing is sent.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument: `missing_argument`, `invalid_argument`,
    /// `invalid_base_address`, `insecure_base_address`, `secret_in_browser`.
    pub fn new(options: ClientOptions) -> Result<Self> {
        let config = Config::new(options)?;
        let common = Mutex::new(Common {
            tokens: Tokens::default(),
            pace: Pace::new(config.retry),
        });
        Ok(Self(Arc::new(Shared { config, common })))
    }

    /// Delivery counts of `[start, end)` by one to four dimensions (service reference 4.4), of
    /// which `group_by` says which to keep.
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn event_delivery<S: AsRef<str>>(
        &self,
        start: &str,
        end: &str,
        dimensions: &[S],
        group_by: Option<&[S]>,
    ) -> Result<Call> {
        self.metrics(Metric::EventDelivery, start, end, dimensions, group_by)
    }

    /// Ingestion counts (service reference 4.5): as [`Client::event_delivery`], without `reason`.
    ///
    /// # Errors
    /// As [`Client::event_delivery`].
    pub fn event_ingestion<S: AsRef<str>>(
        &self,
        start: &str,
        end: &str,
        dimensions: &[S],
        group_by: Option<&[S]>,
    ) -> Result<Call> {
        self.metrics(Metric::EventIngestion, start, end, dimensions, group_by)
    }

    fn metrics<S: AsRef<str>>(
        &self,
        metric: Metric,
        start: &str,
        end: &str,
        dimensions: &[S],
        group_by: Option<&[S]>,
    ) -> Result<Call> {
        let options = self.0.config.metrics;
        let query = MetricsQuery::new(metric, start, end, dimensions, group_by, options)?;
        let window = query.window();
        Ok(Question::new(self, query)?.call(window))
    }

    /// A page of audit logs (service reference 4.2).
    ///
    /// # Errors
    /// Of kind `config`, with the name of the argument; nothing is sent then.
    pub fn audit_logs(&self, page: Option<i64>, per_page: Option<i64>) -> Result<Call> {
        let query = AuditLogsQuery::new(page, per_page, self.0.config.metrics.limits)?;
        let api = self.0.config.orchestration()?.clone();
        Ok(self.call(api, query))
    }

    fn call<E: Endpoint>(&self, api: Arc<ApiConfig<E::Audience>>, endpoint: E) -> Call {
        let errand = Box::new(Typed { api, endpoint });
        Call::new(Machine::new(Arc::clone(&self.0), errand))
    }

    /// Grows whenever the fetching of a token has ended: a call whose step was
    /// [`Step::Blocked`] is then to be asked for its next step.
    #[must_use]
    pub fn token_epoch(&self) -> u64 {
        self.0.with(|common| common.tokens.epoch())
    }
}

impl Shared {
    fn with<T>(&self, act: impl FnOnce(&mut Common) -> T) -> T {
        // All of it is whole after each of its methods, so a panic elsewhere does not spoil it.
        act(&mut self.common.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_slot<T>(&self, api: Api, act: impl FnOnce(&mut TokenSlot) -> T) -> T {
        self.with(|common| act(common.tokens.slot(api)))
    }
}
