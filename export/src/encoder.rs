//! What each format does.

use crate::sample::Group;

/// Writes one piece in a format. A new one is made for each piece.
pub(crate) trait Encoder {
    /// Begins the piece. `is_first` tells whether no other piece was written before.
    fn begin(&mut self, is_first: bool, out: &mut Vec<u8>) {
        let _ = (is_first, out);
    }

    /// Adds the samples of a group. A group with many samples, or windows far from each other, is added more than once.
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>);

    /// Whether the labels of a group are written once, and not with each of its samples.
    fn has_labels_once(&self) -> bool {
        false
    }

    /// How many bytes of the piece are not in `out` yet: those that only the end writes.
    fn held(&self) -> usize {
        0
    }

    /// Ends the piece. `is_last` tells whether no other piece follows.
    fn end(&mut self, is_last: bool, out: &mut Vec<u8>) {
        let _ = (is_last, out);
    }

    /// How many bytes `end` adds, if a group is written whole at once, so that it can be cut off again if the piece
    /// becomes too large. Pieces are then as large as they may be. `None` if pieces are cut by an estimate.
    fn end_bytes(&self) -> Option<usize> {
        None
    }
}
