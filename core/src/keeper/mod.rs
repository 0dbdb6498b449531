//! What a caller stores and who may use it: the names of segments, the lease of a folder, and documents with a checksum.
//!
//! Nothing here reads or writes a file. [`Lease`] returns a step, such as creating a file. The caller carries it out on
//! its system and reports the result.

mod document;
mod folder;
mod lease;
mod process;

pub(crate) use document::is_sealed;
pub use document::{DocumentKind, check_past};
pub(crate) use document::{Stored, invalid};
pub use folder::{not_a_file, segment_name};
pub use lease::{Lease, LeaseStep};
pub use process::{Holder, Process};
