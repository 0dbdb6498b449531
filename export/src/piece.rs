//! A piece that is being encoded, and the limit of its size.

use crate::context::Context;
use crate::form::Encoder;

use crate::sample::Group;

/// A piece that is being encoded.
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
    /// Begins the piece, unless it has already begun.
    pub(crate) fn begin(&mut self) {
        if !self.has_begun {
            self.encoder.begin(self.is_first, self.out);
            self.has_begun = true;
        }
    }

    /// Adds as many of the group's first samples as fit. Returns how many; 0 means that the piece is full. An empty piece
    /// always accepts the first sample, however large it is.
    pub(crate) fn add(&mut self, group: &Group<'_>) -> usize {
        let taken = match self.encoder.end_bytes() {
            Some(end_bytes) => self.add_exactly(group, end_bytes),
            None => self.add_by_estimate(group),
        };
        self.samples += taken;
        taken
    }

    /// Writes the group. If the piece becomes too large, removes the group again. If the piece was empty before, retries
    /// with half of the samples.
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

    /// Writes as many of the group's samples as are expected to fit.
    fn add_by_estimate(&mut self, group: &Group<'_>) -> usize {
        let values: usize = group.values.iter().map(|value| value.len()).sum();
        // The labels are written for each of three metrics, either once or with each sample.
        let labels = 3 * (self.context.label_bytes + 2 * values);
        let (once, each) =
            if self.encoder.has_labels_once() { (labels, 300) } else { (0, labels + 300) };
        let used = self.out.len() + self.encoder.held() + once;
        let fitting = self.max_bytes.saturating_sub(used) / each;
        let taken = fitting.min(group.samples.len()).max(usize::from(self.samples == 0));
        if taken > 0 {
            self.begin();
            let samples = &group.samples[..taken];
            self.encoder.group(&Group { samples, ..*group }, self.out);
        }
        taken
    }
}
