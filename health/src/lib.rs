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

pub use baseline::basis::Basis;
pub use baseline::expectation::Level;
pub use baseline::level::level;
pub use baseline::levels::Levels;
pub use baseline::season::Season;
pub use baseline::stream::Stream;
pub use cause::explain::{explain, explain_leaves};
pub use cause::explanation::{Amount, Cause, Explanation};
pub use cause::leaves::{Attribute, Leaves, MOST_ATTRIBUTES, Tally};
pub use cause::options::ExplainOptions;
pub use cause::reference::usual_windows;
pub use check::finding::{Finding, Query, Status};
pub use check::outcome::{Check, Observed, Replay, Unjudged};
pub use check::state::State;
pub use detection::cusum::{Cusum, Drift};
pub use detection::judge::{UNREMARKABLE, is_enough, is_unremarkable, judge};
pub use detection::scan::{Direction, Excess, scan};
pub use detection::scan_options::ScanOptions;
pub use detection::scan_slots::{SlotOptions, Unusual, scan_slots};
pub use detection::silence::ln_silence;
pub use measure::Measure;
pub use rules::names::{RuleKind, Severity, Side};
pub use rules::need::Need;
pub use rules::set::Rules;
pub use stats::deviance::deviance;
pub use stats::discovery::discovery_limit;
pub use stats::normal::normal_ln_tail;
pub use stats::tails::{Tails, beta_binomial, binomial, negative_binomial, poisson};
