//! The counts of one group, window by window.

/// Counts in adjacent windows of equal length, oldest first. Of a rate, `counts` are the parts and `wholes` what they are parts of.
///
/// A slice that is shorter than `counts` ends in unknown windows.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// The events of each window.
    pub counts: &'a [u64],
    /// Of a rate: what each count is a part of.
    pub wholes: Option<&'a [u64]>,
    /// Whether a window's count is final. Gaps and provisional windows are false, and teach nothing.
    pub known: &'a [bool],
}

impl Stream<'_> {
    /// The part and the whole (1 for volumes) of a known window.
    pub(crate) fn known_at(&self, at: usize) -> Option<(u64, u64)> {
        if !*self.known.get(at)? {
            return None;
        }
        let whole = match self.wholes {
            Some(wholes) => *wholes.get(at)?,
            None => 1,
        };
        Some((*self.counts.get(at)?, whole))
    }

    /// A known window whose whole is not 0.
    pub(crate) fn teaching_at(&self, at: usize) -> Option<(u64, u64)> {
        self.known_at(at).filter(|(_, whole)| *whole > 0)
    }
}
