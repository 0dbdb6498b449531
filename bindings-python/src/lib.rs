//! The native module `tallyfold._tallyfold`: newtypes that delegate to the core crate.
//!
//! Conversions live in `convert`, the mapping of errors in `error`; no rule of the service is
//! decided here.

mod aggregator;
mod arrow;
mod call;
mod client;
mod collect;
mod comparison;
mod convert;
mod error;
mod follow;
mod html;
mod plan;
mod rows;
mod sandbox;
mod series;
mod table;

use pyo3::prelude::*;

/// The part of tallyfold that is written in Rust.
#[pymodule(gil_used = false)]
mod _tallyfold {
    #[pymodule_export]
    use crate::aggregator::{Aggregator, Limits};
    #[pymodule_export]
    use crate::call::{Blocked, Call, Done, ProvideToken, Request, Send, Wait};
    #[pymodule_export]
    use crate::client::Machine;
    #[pymodule_export]
    use crate::collect::{Collect, Drive, Idle, Probe, segment_name};
    #[pymodule_export]
    use crate::comparison::{Comparison, compare};
    #[pymodule_export]
    use crate::convert::count_rates;
    #[pymodule_export]
    use crate::error::error_codes;
    #[pymodule_export]
    use crate::follow::Follow;
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::rows::RowIterator;
    #[pymodule_export]
    use crate::sandbox::{Sandbox, SandboxResponse};
    #[pymodule_export]
    use crate::series::Series;
    #[pymodule_export]
    use crate::table::CountTable;

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
