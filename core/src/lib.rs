//! Exact, grouped counts from an event router's metrics API.
//!
//! This crate makes all decisions and does no I/O: it returns the request to send, reads the bytes of the response,
//! keeps tokens until they expire, and adds counts up. Your program, the host, sends the bytes and passes the current
//! time.
//!
//! # The parts
//!
//! - [`Machine`] is a client without I/O: it holds credentials and tokens, and begins calls.
//! - [`Call`] is one call. Get the next [`Step`] from it, do what the step requests, report the result, and repeat.
//! - [`CountTable`] is the result of a call: exact counts by dimension values. [`Series`] are its
//!   counts by window, and [`compare`] shows what changed from one table to another. [`Frame`] is
//!   what the three have in common.
//! - [`Collect`] reads a long range in windows, with any number of workers; [`Follow`] reads windows as they
//!   close. Both return calls, which are driven in the same way.
//! - [`Aggregator`] makes a table from the bytes of a response that was received in some other way.
//!
//! # A whole driver loop
//!
//! The host here is a test: the "network" is the sandbox, a simulated service, and time stands still.
//!
//! ```
//! use tallyfold::{Dimension, Frame, Machine, MachineOptions, Now, QueryOptions, Step, Window};
//! use tallyfold_sandbox::{Sandbox, SandboxOptions};
//!
//! # fn main() -> tallyfold::Result<()> {
//! let known = SandboxOptions::default().seed(7);
//! let machine = Machine::new(
//!     MachineOptions::default()
//!         .cluster_endpoint("https://cluster.example")
//!         .client_id(known.client_id.clone())
//!         .client_secret(known.client_secret.clone())
//!         .control_audience(known.control_audience.clone()),
//! )?;
//! let mut sandbox = Sandbox::new(known)?;
//! let now = Now { monotonic_ms: 0, unix_ms: 1_767_225_600_000 };
//!
//! let window = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z")?;
//! let mut call = machine.event_delivery(&QueryOptions::new(window, &[Dimension::Integration]))?;
//! loop {
//!     match call.step(now)? {
//!         Step::Send(request) => {
//!             let headers: Vec<(&str, &str)> = request.headers().collect();
//!             let target = request.url().trim_start_matches("https://cluster.example");
//!             let body = request.body().unwrap_or_default();
//!             let response = sandbox.handle(request.method(), target, &headers, body, now);
//!             let headers: Vec<(&str, &str)> =
//!                 response.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
//!             if call.head(response.status, &headers)? {
//!                 for chunk in response.body.chunks(1024) {
//!                     call.chunk(chunk)?;
//!                 }
//!                 call.end()?;
//!             }
//!         }
//!         Step::Wait { ms } => std::thread::sleep(std::time::Duration::from_millis(ms.into())),
//!         Step::ProvideToken { .. } | Step::Blocked { .. } => unreachable!("one call, with a secret"),
//!         Step::Done => break,
//!     }
//! }
//! let table = call.output()?;
//! assert_eq!(table.metric().map(|metric| metric.as_str()), Some("event_delivery"));
//! for row in table.rows() {
//!     println!("{:?} {}", row.values().collect::<Vec<_>>(), row.counts().success);
//! }
//! assert!(table.totals().success > 0);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod access;
pub mod arguments;
mod calls;
mod checksum;
mod code;
mod counts;
mod endpoint;
mod error;
mod fold;
pub mod keeper;
mod pages;
mod ranges;
mod secret;
pub mod sending;
mod spelling;
pub mod text;
mod time;
mod wire;

// Clients and their calls.
pub use access::api::Api;
pub use calls::{
    attempt::Attempt,
    call::Call,
    machine::Machine,
    options::MachineOptions,
    step::{HostFailure, Step},
};
pub use endpoint::*;
pub use wire::{headers::Headers, limits::Limits, request::Request};

// Long ranges, and windows as they close.
pub use ranges::{
    collecting::{
        checkpoint::Segment,
        collect::{Assignment, Collect},
        ending::{CollectError, Progress, Settled},
        keep::Keep,
        options::CollectOptions,
    },
    follow::{Follow, FollowOptions, Revision},
    plan::{PartOptions, Plan, PlanOptions},
    probe::{Additivity, AdditivityVerdict, Probe, ProbeOptions},
    step::{CollectStep, Drive, FollowStep},
};

// Counts.
pub use counts::{
    change::{Deltas, Presence, Shares},
    comparison::{Comparison, compare},
    count_columns::CountColumns,
    count_name::{CountName, RankBy, TopOptions},
    dimension::{Dimension, Dimensions},
    frame::{Column, Frame, Keys, Row, Values},
    html::{HtmlFrame, to_html},
    identity::Identity,
    metric::Metric,
    part::Notes,
    reconciliation::Reconciliation,
    series::Series,
    series_window::SeriesWindow,
    table::CountTable,
    windowed::{WindowRows, Windowed},
    windowed_columns::WindowedColumns,
};
pub use fold::{
    aggregator::{Aggregator, AggregatorOptions, AggregatorPlan},
    tolerate::{Tolerance, Tolerate},
};
pub use tallyfold_engine::{Counts, Dictionary, Key, Rates};

// Values that all parts share.
pub use code::{Code, Kind};
pub use error::{Error, Result};
pub use secret::Secret;
pub use spelling::{Name, Spelling, Words};
pub use time::{
    now::Now, patience::Patience, settling::ClockDifference, step::TimeStep, timestamp::Timestamp,
    window::Window,
};

// The responses of a server for web apps, and what it stores.
pub use pages::{
    answer::Answer,
    asked::{PageQuestion, PageRequest, PagesOptions},
    error_log::ErrorLog,
    kept::{sealed, unsealed},
    lines::{LAST_LINE, RangeTag, failed_line, window_lines},
    permission::{Permission, VisibleRows, regrouped_body},
    windows::{MetricsQuestion, WindowsQuestion},
};
