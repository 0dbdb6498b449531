//! Finds incidents in exact counts, and names their causes.
//!
//! Like the core it does no I/O, reads no clock and draws no random numbers. Counts stay whole numbers. Floats only rank and
//! weigh; they are finite, and the same on every platform, because every function that is not exact comes from the crate `libm`.
#![forbid(unsafe_code)]

mod baseline;
mod cause;
mod check;
mod detection;
mod measure;
mod rules;
mod stats;

pub use cause::explain::{explain, explain_leaves};
pub use cause::explanation::{Amount, Cause, Explanation};
pub use cause::leaves::{Attribute, Leaves, MOST_ATTRIBUTES, Tally};
pub use cause::options::ExplainOptions;
pub use measure::Measure;
pub use rules::names::{RuleKind, Severity, Side};
pub use rules::need::Need;
pub use rules::set::Rules;
