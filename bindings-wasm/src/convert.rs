//! Every conversion between JavaScript's values and the core's, in one place.

mod fields;
mod options;
#[cfg(feature = "library")]
mod ranges;
mod values;

pub(crate) use fields::{Fields, size, status, string, strings};
pub(crate) use options::{
    aggregator_options, client_options, conditions, headers, host_failure, metrics_query, now,
    random_seed, sandbox_options, time_step, token,
};
#[cfg(feature = "library")]
pub(crate) use ranges::{
    additivity, collect_options, collect_step, ended, follow_options, follow_step,
    metric as metric_field, part, progress, range, revision, settled, step_field, task,
};
#[cfg(feature = "library")]
pub(crate) use values::output;
pub(crate) use values::{
    array, attempt, cells, count_columns, counts, credentials, deltas, dimension_column,
    float_columns, metric, names, notes, object, presences, rates, reconciliation, response,
    series_windows, shares, stats, step, window, windows,
};
