//! The files of a checkpoint's folder.
//!
//! They are:
//! - `segment-00000.json` and so on, named by [`segment_name`]. The caller writes a segment to a temporary file, whose
//!   name is the segment's name with `.RANDOM.tmp`, syncs it to disk and renames it. A crash leaves the old or the new
//!   segment, and perhaps a temporary file. The next [`Lease`](super::Lease) removes that file.
//! - `lock-*`: the lease of each process that uses the folder, or tries to.

use crate::code::Code;
use crate::error::Error;

/// The name of the segment with a number, counted from 0.
///
/// ```
/// assert_eq!(tallyfold::keeper::segment_name(3), "segment-00003.json");
/// ```
#[must_use]
pub fn segment_name(number: u64) -> String {
    format!("segment-{number:05}.json")
}

/// Whether a file is the temporary file of a segment.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with("segment-") && name.ends_with(".tmp")
}

/// The error for a segment that isn't a regular file. A caller must not read it: a pipe may have no end, and a link may
/// lead out of the folder.
#[must_use]
pub fn not_a_file(place: &str) -> Error {
    let message = [place, " isn't a regular file"].concat();
    Error::new(Code::InvalidCheckpoint, message)
}
