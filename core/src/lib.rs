//! Exact, grouped counts from an event router's metrics API.
//!
//! The core does the thinking and no I/O: it builds requests, reads response bytes, keeps the
//! life of tokens and folds counts. The host carries the bytes and tells the time.
//!
//! - [`Client`] and [`Call`]: what to send, and what came back.
//! - [`Collect`]: a long range, window by window, by as many workers as the host likes.
//! - [`Follow`]: windows as they close, and corrections as late events come.
//! - [`Aggregator`]: response bytes to a [`CountTable`].
//! - [`CountTable`]: exact counts by dimension values.
//! - [`Series`]: exact counts by window and dimension values.
//! - [`compare`]: what changed from one table to another.
//! - [`Sandbox`]: the service itself, replicated as a value.
#![forbid(unsafe_code)]

mod client;
mod dimension;
mod endpoint;
mod error;
mod fold;
mod http;
mod json;
mod plan;
mod retry;
mod sandbox;
mod secret;
mod step;
mod table;
mod time;
mod token;
mod tree;
mod window;

pub use client::{
    Additivity, AdditivityVerdict, Attempt, Call, Client, ClientOptions, Collect, CollectError,
    CollectOptions, CollectStep, Follow, FollowOptions, FollowStep, HostFailure, Probe, Progress,
    Revision, Segment, Settled, Step, segment_name,
};
pub use dimension::{Dimension, Dimensions, Metric};
pub use endpoint::{Output, Target};
pub use error::{Code, Error, Kind, Result};
pub use fold::{Aggregator, AggregatorOptions, AggregatorPlan, Tolerate};
pub use http::Request;
pub use json::Limits;
pub use plan::Plan;
pub use retry::RetryPolicy;
pub use sandbox::{
    Fault, FaultEffect, Sandbox, SandboxEndpoint, SandboxOptions, SandboxResponse, SandboxStats,
};
pub use secret::Secret;
pub use step::TimeStep;
pub use table::{
    Column, Comparison, ComparisonRow, CountColumns, CountTable, Counts, Deltas, Dictionary, Notes,
    Presence, Rates, Reconciliation, Row, Series, SeriesRow, SeriesWindow, Shares, compare,
};
pub use time::{Now, Timestamp};
pub use token::Api;
pub use window::Window;
