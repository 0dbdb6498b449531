//! Every conversion between JavaScript's values and the core's, in one place.

mod fields;
mod options;
mod values;

pub(crate) use fields::{Fields, size, status, string, strings};
pub(crate) use options::{
    aggregator_options, client_options, conditions, headers, host_failure, metrics_query, now,
    sandbox_options, token,
};
pub(crate) use values::{
    array, column, counts, credentials, dimension_column, indexes, notes, object, output,
    reconciliation, response, row, stats, step, windows,
};
