//! Long ranges: [`Plan`](crate::Plan) cuts them into windows, [`Collect`](crate::Collect) reads these windows,
//! [`Follow`](crate::Follow) reads windows as they close, and [`Probe`](crate::Probe) finds out whether their counts
//! add up. With `outage`, collects and follows wait for a service that is down.

pub(crate) mod collecting;
pub(crate) mod follow;
mod follow_state;
mod outage;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod step;
mod window_query;
