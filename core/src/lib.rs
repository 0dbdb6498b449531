//! Exact, grouped counts from an event router's metrics API.
//!
//! The core does the thinking and no I/O: it builds requests, reads response bytes, keeps the
//! life of tokens and folds counts. The host carries the bytes and tells the time.
//!
//! - [`Machine`] and [`Call`]: what to send, and what came back.
//! - [`Collect`]: a long range, window by window, by as many workers as the host likes.
//! - [`Follow`]: windows as they close, and corrections as late events come.
//! - [`Aggregator`]: response bytes to a [`CountTable`].
//! - [`CountTable`]: exact counts by dimension values.
//! - [`Series`]: exact counts by window and dimension values.
//! - [`compare`]: what changed from one table to another.
#![forbid(unsafe_code)]

mod access;
pub mod arguments;
mod calls;
mod code;
mod counts;
mod endpoint;
mod error;
mod fold;
mod ranges;
mod secret;
mod spelling;
mod time;
mod wire;

pub use access::api::Api;
pub use calls::attempt::Attempt;
pub use calls::call::Call;
pub use calls::machine::Machine;
pub use calls::options::MachineOptions;
pub use calls::step::{HostFailure, Step};
pub use code::{Code, Kind};
pub use counts::change::{Deltas, Presence, Shares};
pub use counts::comparison::{Comparison, compare};
pub use counts::count_columns::CountColumns;
pub use counts::count_name::{CountName, TopOptions};
pub use counts::dimension::{Dimension, Dimensions};
pub use counts::frame::{Column, Frame, Keys, Row, Values};
pub use counts::html::{HtmlFrame, to_html};
pub use counts::metric::Metric;
pub use counts::part::Notes;
pub use counts::reconciliation::Reconciliation;
pub use counts::series::Series;
pub use counts::series_window::SeriesWindow;
pub use counts::table::CountTable;
pub use endpoint::audit_logs::AuditLogsOptions;
pub use endpoint::contract::Output;
pub use endpoint::query::QueryOptions;
pub use endpoint::target::Target;
pub use error::{Error, Result};
pub use fold::aggregator::{Aggregator, AggregatorOptions, AggregatorPlan};
pub use fold::tolerate::{Tolerance, Tolerate};
pub use ranges::collecting::checkpoint::{Segment, segment_name};
pub use ranges::collecting::collect::Collect;
pub use ranges::collecting::ending::{CollectError, Progress, Settled};
pub use ranges::collecting::options::CollectOptions;
pub use ranges::follow::{Follow, FollowOptions, Revision};
pub use ranges::plan::{PartOptions, Plan, PlanOptions};
pub use ranges::probe::{Additivity, AdditivityVerdict, Probe, ProbeOptions};
pub use ranges::step::{CollectStep, Drive, FollowStep};
pub use secret::Secret;
pub use spelling::{Name, Spelling, Words};
pub use tallyfold_engine::{Counts, Dictionary, Rates};
pub use time::now::Now;
pub use time::patience::Patience;
pub use time::step::TimeStep;
pub use time::timestamp::Timestamp;
pub use time::window::Window;
pub use wire::limits::Limits;
pub use wire::request::Request;
