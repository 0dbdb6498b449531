//! What both versions of Prometheus remote-write have in common.

use prost::Message;
use snap::raw::Encoder as Snappy;
use tallyfold::CountName;

use crate::sample::Group;

/// The label that has a metric's name.
pub(crate) const NAME: &str = "__name__";

/// A sample of a series.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Point {
    #[prost(double, tag = "1")]
    pub(crate) value: f64,
    /// Milliseconds since 1970.
    #[prost(int64, tag = "2")]
    pub(crate) timestamp: i64,
}

/// Takes the samples of one count over, in the order of time. Gives whether there are any.
pub(crate) fn read_samples(group: &Group<'_>, count: CountName, samples: &mut Vec<Point>) -> bool {
    samples.clear();
    samples.extend(group.samples.iter().filter_map(|sample| {
        Some(Point {
            value: sample.count(count)?.as_float(),
            timestamp: sample.unix_ms(),
        })
    }));
    !samples.is_empty()
}

/// The position of a metric's name among the labels, which are sorted by name. Capital letters come before it.
pub(crate) fn position_of_name<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    labels.take_while(|(name, _)| *name < NAME).count()
}

/// Compresses a message in the block format of snappy.
#[expect(
    clippy::expect_used,
    reason = "snappy refuses only messages above 4 GiB, and no piece grows so large"
)]
pub(crate) fn compress(message: &mut Vec<u8>) {
    *message = Snappy::new()
        .compress_vec(message)
        .expect("a piece has less than 4 GiB");
}
