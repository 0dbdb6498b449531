//! The metrics query for each window of a range, and the result of its call.

use std::sync::Arc;

use crate::access::api::Control;
use crate::calls::call::Call;
use crate::calls::machine::Machine;
use crate::calls::options::ApiConfig;
use crate::code::{Code, Kind};
use crate::counts::dimension::Dimension;
use crate::counts::subject::Subject;
use crate::counts::table::CountTable;
use crate::endpoint::contract::Output;
use crate::endpoint::metrics::MetricsQuery;
use crate::error::{Error, Result};
use crate::time::window::Window;

/// A metrics query without a fixed window.
#[derive(Clone)]
pub(super) struct WindowQuery {
    machine: Machine,
    api: Arc<ApiConfig<Control>>,
    query: MetricsQuery,
    /// The query that is sent. It may request more dimensions.
    sent: MetricsQuery,
}

/// The result of a call for a window.
pub(super) enum WindowResult {
    Table(CountTable),
    Failed(Error),
    /// The call had not ended, or was not the one for this window.
    None,
}

impl WindowQuery {
    pub(super) fn new(machine: &Machine, query: MetricsQuery) -> Result<Self> {
        Ok(Self {
            machine: machine.clone(),
            api: Arc::clone(machine.config().api()?),
            sent: query.clone(),
            query,
        })
    }

    /// Requests these dimensions, which include the dimensions of the query. The tables stay the same.
    pub(super) fn request_by(&mut self, dimensions: &[Dimension]) -> Result<()> {
        self.sent = self.query.clone().requesting(dimensions)?;
        Ok(())
    }

    /// The identity of the cluster and the client, as text; empty if it is unknown.
    pub(super) fn cluster(&self) -> String {
        let identity = self.query.identity().as_str();
        identity.unwrap_or_default().to_owned()
    }

    /// What checkpoints and states may have in place of the identity: a fingerprint of the address.
    pub(super) fn fingerprint(&self) -> String {
        self.api.base.fingerprint()
    }

    /// The query. Its window means nothing.
    pub(super) fn query(&self) -> &MetricsQuery {
        &self.query
    }

    /// What its tables count.
    pub(super) fn subject(&self) -> Subject {
        self.query.subject()
    }

    pub(super) fn call(&self, window: Window) -> Call {
        self.call_within(window, u64::MAX)
    }

    /// The call for a window whose table may take at most `table_bytes` bytes.
    pub(super) fn call_within(&self, window: Window, table_bytes: u64) -> Call {
        let query = self.sent.clone().of(window).within(table_bytes);
        let target = query.metric().into();
        self.machine.call_of(target, &self.api, query).untyped()
    }

    /// Takes the outcome of the call of a window.
    pub(super) fn outcome(&self, call: &mut Call, window: Window) -> WindowResult {
        match call.output() {
            Ok(Output::Table(table))
                if table.windows() == [window] && table.subject == self.subject() =>
            {
                WindowResult::Table(table)
            }
            Ok(_) => WindowResult::None,
            Err(error) if error.code() == Code::OutOfOrder => WindowResult::None,
            Err(error) => WindowResult::Failed(error),
        }
    }
}

/// Whether the other windows would fail with the same error, or the service has requested that no
/// more requests be sent.
pub(super) fn concerns_all(error: &Error) -> bool {
    let is_refusal = matches!(error.code(), Code::Forbidden | Code::Redirected | Code::RetryLater);
    is_refusal || matches!(error.kind(), Kind::Auth | Kind::Config) || error.is_lasting()
}

/// The error for a task that was never given, or was settled before.
pub(super) fn unknown_task() -> Error {
    let message = "no such task is under way; settle each task once";
    Error::new(Code::OutOfOrder, message)
}
