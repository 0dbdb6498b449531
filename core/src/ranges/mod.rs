//! Long ranges: [`Plan`](crate::Plan) cuts them into windows, [`Collect`](crate::Collect) reads these,
//! [`Follow`](crate::Follow) reads windows as they close, [`Probe`](crate::Probe) finds out whether their counts
//! add up.

pub(crate) mod collecting;
pub(crate) mod follow;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod step;
mod window_query;
