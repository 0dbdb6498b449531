//! Prometheus remote-write 1.0: the protobuf message `prometheus.WriteRequest`, compressed with snappy.
//!
//! A group becomes three series, one for each count. A group with many samples becomes several series with the same
//! labels, in time order. The type, the unit and the help of a metric are not sent: version 1.0 reserves the field that
//! Prometheus itself uses for them.

use prost::Message;
use snap::raw::Encoder as Snappy;
use tallyfold::CountName;
use tallyfold::sending::{Answer, Delivery, HTTP};

use super::protobuf::add;
use crate::context::Context;
use crate::form::{Encoder, Form, Numbers, Order, VICTORIA_METRICS, Windows, carries_milliseconds};
use crate::sample::Group;

pub(crate) const FORM: Form = Form {
    media_type: "application/x-protobuf",
    order: Order::Groups,
    numbers: Numbers::Floats,
    limits: Some(VICTORIA_METRICS),
    leaves_out_empty: true,
    windows: Windows::Settled,
    is_messages: true,
    // Up to about 4,000 series of one sample each: twice what Prometheus itself sends in one request.
    max_bytes: 512 * 1024,
    read_bytes: None,
    check: carries_milliseconds,
    delivery: Some(Delivery {
        headers: &[("content-encoding", "snappy"), ("x-prometheus-remote-write-version", "0.1.0")],
        is_repeatable: true,
        is_accepted: |answer| answer.is_empty(),
        is_final: is_too_old,
        ..HTTP
    }),
    totals: None,
    encoder: |context| {
        Box::new(RemoteWrite {
            names: CountName::ALL.iter().map(|count| context.names.window(*count)).collect(),
            context,
            request: WriteRequest::default(),
        })
    },
};

/// Whether Prometheus refuses a sample permanently although the status means a server error: before 2.49, it responds
/// with 500 to a sample that is too old.
pub(super) fn is_too_old(answer: &Answer<'_>) -> bool {
    let said = String::from_utf8_lossy(answer.body);
    answer.status == 500 && said.contains("too old sample")
}

/// A request with one series. Consecutive requests are read as one.
#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, required, tag = "1")]
    timeseries: TimeSeries,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Point>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

impl Label {
    fn new((name, value): (&str, &str)) -> Self {
        Self { name: name.to_owned(), value: value.to_owned() }
    }
}

struct RemoteWrite<'a> {
    context: &'a Context,
    /// The metric's name for each count.
    names: Vec<String>,
    request: WriteRequest,
}

impl Encoder for RemoteWrite<'_> {
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) {
        let labels = || self.context.labels(group);
        let series = &mut self.request.timeseries;
        series.labels.clear();
        series.labels.extend(labels().map(Label::new));
        let position = position_of_name(labels());
        series.labels.insert(position, Label::new((NAME, "")));
        for count in group.counts {
            let series = &mut self.request.timeseries;
            let name = &mut series.labels[position].value;
            name.clone_from(&self.names[*count as usize]);
            if read_samples(group, *count, &mut series.samples) {
                add(&self.request, out);
            }
        }
    }

    fn has_labels_once(&self) -> bool {
        true
    }

    fn end(&mut self, _is_last: bool, out: &mut Vec<u8>) {
        compress(out);
    }
}

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

/// Copies the samples of one count into `samples`, in time order. Returns whether there are any.
pub(crate) fn read_samples(group: &Group<'_>, count: CountName, samples: &mut Vec<Point>) -> bool {
    samples.clear();
    samples.extend(group.samples.iter().filter_map(|sample| {
        Some(Point { value: sample.count(count)?.as_float(), timestamp: sample.unix_ms() })
    }));
    !samples.is_empty()
}

/// The position of the metric's name among the labels, which are sorted by name. Names with capital letters come before it.
pub(crate) fn position_of_name<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    labels.take_while(|(name, _)| *name < NAME).count()
}

/// Compresses a message in the block format of snappy.
#[expect(
    clippy::expect_used,
    reason = "snappy refuses only messages above 4 GiB, and no piece grows so large"
)]
pub(crate) fn compress(message: &mut Vec<u8>) {
    *message = Snappy::new().compress_vec(message).expect("a piece has less than 4 GiB");
}
