//! Makes tables from response bytes. Responses are all-or-nothing.

pub(crate) mod aggregator;
pub(crate) mod read_options;
pub(crate) mod shape;
pub(crate) mod tolerate;
