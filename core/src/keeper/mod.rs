//! What a caller stores and who may use it: the names of segments, the lease of a folder, and documents with a checksum.
//!
//! Nothing here reads or writes a file. [`Lease`] gives a step, such as to create a file, and is told what came of it. A host
//! knows how to do each step on its system.
//!
//! A folder with a checkpoint has these files:
//! - `segment-00000.json` and so on: a [`segment_name`] each. A host writes a segment to a temporary file, whose name is that
//!   of the segment with `.RANDOM.tmp`, syncs it to the disk and renames it. A crash leaves the old or the new segment, and
//!   perhaps a temporary file, which the next [`Lease`] removes.
//! - `lock-*`: the lease of each process that uses the folder, or tries to.

mod document;
mod lease;

pub use document::DocumentKind;
pub(crate) use document::{Stored, invalid};
pub use lease::{Holder, Lease, LeaseStep, Process};

use crate::code::Code;
use crate::error::Error;

/// The name of the segment with a number, counted from 0.
///
/// ```
/// assert_eq!(tallyfold::segment_name(3), "segment-00003.json");
/// ```
#[must_use]
pub fn segment_name(number: u64) -> String {
    format!("segment-{number:05}.json")
}

/// Whether a file is the temporary file of a segment.
fn is_temporary(name: &str) -> bool {
    name.starts_with("segment-") && name.ends_with(".tmp")
}

/// The error for a segment, stored at a place, that a host must not read: a pipe may have no end, and a link may lead out of
/// the folder.
#[must_use]
pub fn not_a_file(place: &str) -> Error {
    let message = [place, " is no regular file"].concat();
    Error::new(Code::InvalidCheckpoint, message)
}
