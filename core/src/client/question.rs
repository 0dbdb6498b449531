//! What is asked of each window of a longer time, and what an ended call says to it.

use std::sync::Arc;

use super::Client;
use super::call::Call;
use super::options::ApiConfig;
use crate::dimension::{Dimensions, Metric};
use crate::endpoint::{MetricsQuery, Output};
use crate::error::{Code, Error, Result};
use crate::table::CountTable;
use crate::token::Control;
use crate::window::Window;

/// A metrics query whose window can be any.
#[derive(Clone)]
pub(super) struct Question {
    client: Client,
    api: Arc<ApiConfig<Control>>,
    query: MetricsQuery,
}

/// What became of a call.
pub(super) enum Answer {
    Table(CountTable),
    Failed(Error),
    /// The call had not ended, or was another one.
    None,
}

impl Question {
    pub(super) fn new(client: &Client, query: MetricsQuery) -> Result<Self> {
        Ok(Self {
            client: client.clone(),
            api: client.0.config.control()?.clone(),
            query,
        })
    }

    /// What tells the cluster that is asked from others.
    pub(super) fn cluster(&self) -> String {
        self.api.base.fingerprint()
    }

    pub(super) fn metric(&self) -> Metric {
        self.query.metric()
    }

    /// The dimensions that are asked for.
    pub(super) fn requested(&self) -> &Dimensions {
        self.query.requested()
    }

    /// The dimensions that a table of the answer has.
    pub(super) fn kept(&self) -> &Dimensions {
        self.query.kept()
    }

    pub(super) fn call(&self, window: Window) -> Call {
        let query = self.query.clone().of(window);
        self.client.call(Arc::clone(&self.api), query)
    }

    /// Takes the outcome of the call of a window.
    pub(super) fn answer(&self, call: &mut Call, window: Window) -> Answer {
        match call.output() {
            Ok(Output::Table(table)) if self.fits(&table, window) => Answer::Table(table),
            Ok(_) => Answer::None,
            Err(error) if error.code() == Code::OutOfOrder => Answer::None,
            Err(error) => Answer::Failed(error),
        }
    }

    fn fits(&self, table: &CountTable, window: Window) -> bool {
        table.windows() == [window] && table.counts_all(self.metric(), self.kept())
    }
}

/// The error for a task that was never given, or has been settled.
pub(super) fn unknown_task() -> Error {
    let message = "there is no such task under way; settle each task that was given, once";
    Error::new(Code::OutOfOrder, message)
}
