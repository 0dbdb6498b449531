//! A piece that is being written, and what fits into it.

use crate::context::Context;
use crate::encoder::Encoder;
use crate::sample::Group;

/// A piece that is being written.
pub(crate) struct Piece<'a> {
    pub(crate) encoder: Box<dyn Encoder + 'a>,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) context: &'a Context,
    pub(crate) max_bytes: usize,
    /// Whether no other piece was written before.
    pub(crate) is_first: bool,
    pub(crate) has_begun: bool,
    /// How many samples it has.
    pub(crate) samples: usize,
}

impl Piece<'_> {
    /// Begins the piece, if it has not begun.
    pub(crate) fn begin(&mut self) {
        if !self.has_begun {
            self.encoder.begin(self.is_first, self.out);
            self.has_begun = true;
        }
    }

    /// Adds the first samples of a group, as many as fit, and gives how many: with 0, the piece is full. Its first sample
    /// is always taken, however large it is.
    pub(crate) fn add(&mut self, group: &Group<'_>) -> usize {
        let taken = match self.encoder.end_bytes() {
            Some(end_bytes) => self.add_exactly(group, end_bytes),
            None => self.add_by_estimate(group),
        };
        self.samples += taken;
        taken
    }

    /// Writes the group, and cuts it off again if the piece has become too large.
    fn add_exactly(&mut self, group: &Group<'_>, end_bytes: usize) -> usize {
        self.begin();
        let before = self.out.len();
        let mut taken = group.samples.len();
        loop {
            let samples = &group.samples[..taken];
            self.encoder.group(&Group { samples, ..*group }, self.out);
            if self.out.len() + end_bytes <= self.max_bytes || (self.samples == 0 && taken == 1) {
                return taken;
            }
            self.out.truncate(before);
            if self.samples > 0 {
                return 0;
            }
            taken /= 2;
        }
    }

    /// Writes the group, unless it is expected to make the piece too large.
    fn add_by_estimate(&mut self, group: &Group<'_>) -> usize {
        let values: usize = group.values.iter().map(|value| value.len()).sum();
        // Each sample in each of three metrics, and all labels in each of them.
        let expected = (self.context.label_bytes + 2 * values + 100 * group.samples.len()) * 3;
        if self.samples > 0 && self.out.len() + self.encoder.held() + expected > self.max_bytes {
            return 0;
        }
        self.begin();
        self.encoder.group(group, self.out);
        group.samples.len()
    }
}
