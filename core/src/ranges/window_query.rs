//! A metrics query of any window: what is asked of each window of a range, and what an ended call says to it.

use std::sync::Arc;

use crate::access::api::Control;
use crate::calls::call::Call;
use crate::calls::machine::Machine;
use crate::calls::options::ApiConfig;
use crate::code::Code;
use crate::counts::subject::Subject;
use crate::counts::table::CountTable;
use crate::endpoint::contract::Output;
use crate::endpoint::metrics::MetricsQuery;
use crate::error::{Error, Result};
use crate::time::window::Window;

/// A metrics query whose window can be any.
#[derive(Clone)]
pub(super) struct WindowQuery {
    machine: Machine,
    api: Arc<ApiConfig<Control>>,
    query: MetricsQuery,
}

/// What became of a call.
pub(super) enum Outcome {
    Table(CountTable),
    Failed(Error),
    /// The call had not ended, or was another one.
    None,
}

impl WindowQuery {
    pub(super) fn new(machine: &Machine, query: MetricsQuery) -> Result<Self> {
        Ok(Self {
            machine: machine.clone(),
            api: Arc::clone(machine.config().control()?),
            query,
        })
    }

    /// What tells the cluster that is asked from others.
    pub(super) fn cluster(&self) -> String {
        self.api.base.fingerprint()
    }

    /// The query, of whatever window.
    pub(super) fn query(&self) -> &MetricsQuery {
        &self.query
    }

    /// What the tables count that it gives.
    pub(super) fn subject(&self) -> Subject {
        self.query.subject()
    }

    pub(super) fn call(&self, window: Window) -> Call {
        let query = self.query.clone().of(window);
        self.machine.call(&self.api, query)
    }

    /// Takes the outcome of the call of a window.
    pub(super) fn outcome(&self, call: &mut Call, window: Window) -> Outcome {
        match call.output() {
            Ok(Output::Table(table))
                if table.windows() == [window] && table.subject == self.subject() =>
            {
                Outcome::Table(table)
            }
            Ok(_) => Outcome::None,
            Err(error) if error.code() == Code::OutOfOrder => Outcome::None,
            Err(error) => Outcome::Failed(error),
        }
    }
}

/// The error for a task that was never given, or has been settled.
pub(super) fn unknown_task() -> Error {
    let message = "there is no such task under way; settle each task that was given, once";
    Error::new(Code::OutOfOrder, message)
}
