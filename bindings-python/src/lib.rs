//! The native module `tallyfold._tallyfold`: newtypes that delegate to the Rust crates.
//!
//! `arguments` reads the arguments of calls, `plain` converts values to Python objects, and `error`
//! converts errors to exceptions. All rules of the service are in the other crates.

mod aggregator;
mod arguments;
mod arrow;
mod call;
mod columns;
mod comparison;
mod detach;
mod error;
mod export;
mod frame;
mod from_plain;
mod health;
mod host;
mod lease;
mod ledger;
mod machine;
mod notify;
mod outbox;
mod pages;
mod plain;
mod plan;
mod push;
mod ranges;
mod rates;
mod rows;
mod sandbox;
mod series;
mod table;

use pyo3::prelude::*;

/// The part of tallyfold that is written in Rust.
#[pymodule(gil_used = false)]
mod _tallyfold {
    #[pymodule_export]
    use crate::aggregator::Aggregator;
    #[pymodule_export]
    use crate::arguments::limits_of;
    #[pymodule_export]
    use crate::call::{Call, Request};
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::comparison::{Comparison, compare};
    #[pymodule_export]
    use crate::error::error_codes;
    #[pymodule_export]
    use crate::export::{Pending, Pieces};
    #[pymodule_export]
    use crate::frame::Frame;
    #[pymodule_export]
    use crate::health::{RuleSet, explain, hold, usual};
    #[pymodule_export]
    use crate::lease::Lease;
    #[pymodule_export]
    use crate::ledger::Totals;
    #[pymodule_export]
    use crate::machine::Machine;
    #[pymodule_export]
    use crate::notify::Notifications;
    #[pymodule_export]
    use crate::outbox::Held;
    #[pymodule_export]
    use crate::pages::{
        ErrorLog, VisibleRows, busy_answer, failed_answer, failed_line, good_answer, last_line,
        page_question, pages_options, range_answer, range_tag, sealed, unsealed, window_lines,
    };
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::push::{Finished, Message, Push};
    #[pymodule_export]
    use crate::ranges::{Collect, Follow, Probe, segment_name};
    #[pymodule_export]
    use crate::rates::count_rates;
    #[pymodule_export]
    use crate::sandbox::Sandbox;
    #[pymodule_export]
    use crate::series::Series;
    #[pymodule_export]
    use crate::table::CountTable;
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
