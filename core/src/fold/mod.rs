//! Response bytes to a table: each response counts whole or not at all.

pub(crate) mod aggregator;
pub(crate) mod read_options;
pub(crate) mod shape;
pub(crate) mod tolerate;
