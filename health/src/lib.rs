//! Finds incidents in exact counts, and names their causes.
//!
//! Like the core, this crate does no I/O, reads no clock and draws no random numbers. Counts stay whole numbers. Floats serve
//! only for probabilities, expectations and ranking. Returned floats are finite, except that [`discovery_limit`] may return
//! negative infinity. They are the same on every platform, because every inexact function comes from the crate `libm`.
#![forbid(unsafe_code)]

mod alerts;
mod cause;
mod check;
mod columns;
mod detection;
mod incidents;
mod measure;
mod pairs;
mod rules;
mod shown;
mod stats;
mod usual;

pub use alerts::alert::{Found, label_name};
pub use alerts::kinds::ReceiverKind;
pub use alerts::notifications::{
    Notifications, Notified, Posted, Receipt, Receiver, ReceiverOutcome,
};
pub use alerts::options::{AlertLabels, NotifyOptions, ReceiverOptions};
pub use cause::explain::{ExplainOptions, explain, explain_leaves, usual_windows};
pub use cause::explanation::{Amount, Cause, Explanation};
pub use cause::leaves::{Attribute, Leaves, MOST_ATTRIBUTES, Tally};
pub use check::result::{Check, Replay, Unjudged};
pub use check::run::ObservedPages;
pub use check::state::State;
pub use columns::groups::Observed;
pub use columns::page::Page;
pub use columns::page_head::{PageHead, SumsBy};
pub use columns::pages::{Pages, ReadPage};
pub use detection::scan::{Direction, Excess, Stream, scan};
pub use detection::scan_fit::ScanOptions;
pub use detection::window::{Level, judge, ln_silence};
pub use incidents::finding::{Finding, Query, Status};
pub use incidents::follow::incidents;
pub use incidents::incident::{
    Incident, IncidentChange, IncidentEvent, IncidentHold, IncidentPart,
};
pub use measure::Measure;
pub use rules::baseline::Baseline;
pub use rules::judging::discovery_limit;
pub use rules::kinds;
pub use rules::names::{Severity, Side};
pub use rules::rule::Rule;
pub use rules::set::{ErrorBudget, Need, Rules};
pub use stats::mass::deviance;
pub use stats::tails::{
    Tails, beta_binomial, binomial, negative_binomial, normal_ln_tail, poisson,
};
pub use usual::band::{Usual, usual};
