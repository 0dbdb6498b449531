//! What a caller stores and who may use it: the names of segments, the lease of a folder, and documents with a checksum.
//!
//! Nothing here reads or writes a file. [`Lease`] gives a step, such as to create a file, and is told what came of it. A host
//! knows how to do each step on its system.

mod document;
mod folder;
mod lease;

pub use document::DocumentKind;
pub(crate) use document::{Stored, invalid};
pub use folder::{not_a_file, segment_name};
pub use lease::{Holder, Lease, LeaseStep, Process};
