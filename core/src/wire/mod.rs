//! What goes over the wire: requests, addresses, heads of responses, and JSON as it arrives.

pub(crate) mod address;
pub(crate) mod excerpt;
pub(crate) mod headers;
pub(crate) mod json;
pub(crate) mod limits;
pub(crate) mod passed_on;
pub(crate) mod request;
pub(crate) mod retry_after;
pub(crate) mod status;
