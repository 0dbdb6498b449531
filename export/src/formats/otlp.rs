//! The OpenTelemetry protocol (OTLP), as protobuf: the message `ExportMetricsServiceRequest`.
//!
//! The message types here have only the fields that are written. If a message is encoded piece by piece, its field is
//! declared as bytes, because both have the same encoding.
//!
//! For both encodings of the protocol, protobuf and JSON:
//!
//! - Each count is a metric of its own, a sum with delta temporality. Its points have the exact start and end of their
//!   windows, and whole numbers: a count above 2^63 - 1 is refused.
//! - The totals of a ledger are sums with cumulative temporality, from the time at which the ledger began to its stamp.
//! - A sum of counts is monotonic. The sum of a revision's changes isn't, because changes may be negative.
//! - All labels are attributes of the points, because some systems keep only some attributes of the resource, or move
//!   them to a separate metric, as Prometheus does.
//! - The resource has a `service.name`, which destinations expect. It names the sender: `tallyfold`.

use prost::Message;
use tallyfold::sending::{Delivery, HTTP, Partly};
use tallyfold::{Code, CountName, Error, Result, Window};

use super::protobuf::add;
use crate::context::Context;
use crate::form::{Encoder, Form, Limits, Numbers, Order, VICTORIA_METRICS, Windows};
use crate::sample::Group;

const MEDIA_TYPE: &str = "application/x-protobuf";

pub(crate) const FORM: Form = Form {
    media_type: MEDIA_TYPE,
    order: Order::Groups,
    numbers: Numbers::Signed,
    limits: LIMITS,
    leaves_out_empty: true,
    windows: Windows::Settled,
    is_messages: true,
    // A quarter of what destinations accept for OTLP over gRPC.
    max_bytes: 1024 * 1024,
    read_bytes: None,
    check: check_times,
    delivery: Some(DELIVERY),
    totals: Some(Delivery { is_repeatable: true, ..DELIVERY }),
    encoder: |context| {
        Box::new(Otlp {
            context,
            sums: vec![Vec::new(); CountName::ALL.len()],
            point: SumOfPoint::default(),
        })
    },
};

/// VictoriaMetrics also makes labels from the metric's name, the resource's `service.name`, and the scope's name and version.
const LIMITS: Option<Limits> = Some(Limits { added: 4, ..VICTORIA_METRICS });

const DELIVERY: Delivery = Delivery {
    is_passing,
    partly: partial_success,
    is_accepted: |answer| {
        // An empty body is a valid message without fields.
        let is_valid = |answer: ExportMetricsServiceResponse| {
            let points = answer.partial_success.map(|partial| partial.rejected_data_points);
            points.is_none_or(|points| points >= 0)
        };
        let is_typed = || {
            answer.is_of(MEDIA_TYPE)
                && ExportMetricsServiceResponse::decode(answer.body).is_ok_and(is_valid)
        };
        answer.status == 200 && (answer.body.is_empty() || is_typed())
    },
    ..HTTP
};

#[derive(Clone, PartialEq, Message)]
struct ExportMetricsServiceRequest {
    #[prost(message, required, tag = "1")]
    resource_metrics: ResourceMetrics,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, required, tag = "1")]
    resource: Resource,
    #[prost(message, required, tag = "2")]
    scope_metrics: ScopeMetrics,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, required, tag = "1")]
    attributes: KeyValue,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, required, tag = "1")]
    scope: InstrumentationScope,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct InstrumentationScope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    /// The encoded message `Sum`: one [`SumOfPoint`] after the other, and a [`KindOfSum`].
    #[prost(bytes = "vec", tag = "7")]
    sum: Vec<u8>,
}

/// A `Sum` with one point. Consecutive sums are read as one.
#[derive(Clone, PartialEq, Message)]
struct SumOfPoint {
    #[prost(message, required, tag = "1")]
    data_points: NumberDataPoint,
}

/// The other fields of a `Sum`.
#[derive(Clone, Copy, PartialEq, Message)]
struct KindOfSum {
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct NumberDataPoint {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    // Required, so that prost also writes 0: a point without a number is invalid.
    #[prost(sfixed64, required, tag = "6")]
    as_int: i64,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, required, tag = "2")]
    value: AnyValue,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    // Required, so that prost also writes an empty string.
    #[prost(string, required, tag = "1")]
    string_value: String,
}

impl KeyValue {
    fn new((key, value): (&str, &str)) -> Self {
        let string_value = value.to_owned();
        Self { key: key.to_owned(), value: AnyValue { string_value } }
    }
}

struct Otlp<'a> {
    context: &'a Context,
    /// The encoded points of each count.
    sums: Vec<Vec<u8>>,
    point: SumOfPoint,
}

impl Encoder for Otlp<'_> {
    fn group(&mut self, group: &Group<'_>, _out: &mut Vec<u8>) {
        let point = &mut self.point.data_points;
        point.attributes.clear();
        let attributes = self.context.labels(group).map(KeyValue::new);
        point.attributes.extend(attributes);
        for sample in group.samples {
            let [start, end] = times(sample.window);
            for count in group.counts {
                let Some(amount) = sample.count(*count) else {
                    continue;
                };
                let point = &mut self.point.data_points;
                point.start_time_unix_nano = start;
                point.time_unix_nano = end;
                point.as_int = amount.as_signed();
                add(&self.point, &mut self.sums[*count as usize]);
            }
        }
    }

    fn held(&self) -> usize {
        self.sums.iter().map(Vec::len).sum()
    }

    fn end(&mut self, _is_last: bool, out: &mut Vec<u8>) {
        let sums = std::mem::take(&mut self.sums);
        let counted = CountName::ALL.iter().zip(sums);
        let counted = counted.filter(|(_, sum)| !sum.is_empty());
        let metrics = counted.map(|(count, mut sum)| {
            let kind = KindOfSum {
                aggregation_temporality: temporality(self.context),
                is_monotonic: is_monotonic(self.context),
            };
            add(&kind, &mut sum);
            Metric {
                name: self.context.names.dotted(*count),
                description: self.context.description(*count),
                unit: UNIT.to_owned(),
                sum,
            }
        });
        let scope_metrics = ScopeMetrics {
            scope: InstrumentationScope { name: SENDER.to_owned(), version: VERSION.to_owned() },
            metrics: metrics.collect(),
        };
        let resource = Resource { attributes: KeyValue::new(("service.name", SENDER)) };
        let request = ExportMetricsServiceRequest {
            resource_metrics: ResourceMetrics { resource, scope_metrics },
        };
        add(&request, out);
    }
}

/// The response to a request that was accepted.
#[derive(Clone, PartialEq, Message)]
struct ExportMetricsServiceResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_data_points: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

fn partial_success(status: u16, body: &[u8]) -> Option<Partly> {
    let answer = ExportMetricsServiceResponse::decode(body).ok().filter(|_| status < 300)?;
    let partial = answer.partial_success?;
    rejected(partial.rejected_data_points, &partial.error_message)
}

/// The value of `service.name`, and the name of the scope of all metrics.
pub(crate) const SENDER: &str = "tallyfold";

/// The version of the scope.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The unit of all counts: a word in braces is a unit without dimension.
pub(crate) const UNIT: &str = "{event}";

/// What a point counts: with `AGGREGATION_TEMPORALITY_DELTA` the events since the last point, and with
/// `AGGREGATION_TEMPORALITY_CUMULATIVE` all events since its start.
pub(crate) fn temporality(context: &Context) -> i32 {
    const DELTA: i32 = 1;
    const CUMULATIVE: i32 = 2;
    if context.is_total { CUMULATIVE } else { DELTA }
}

/// Whether the sum of all points never falls.
pub(crate) fn is_monotonic(context: &Context) -> bool {
    context.revision.is_none()
}

/// The start and the end of a window, in nanoseconds since 1970.
pub(crate) fn times(window: Window) -> [u64; 2] {
    // `check_times` has refused timestamps that don't fit.
    [window.start(), window.end()].map(|time| time.unix_ns() as u64)
}

/// Refuses a window that begins before 1970 or ends after 2554-07-21, because timestamps are nanoseconds in unsigned
/// 64-bit integers.
fn check_times(context: &Context) -> Result<()> {
    let is_beyond = |window: &&Window| {
        let mut times = [window.start(), window.end()].into_iter();
        times.any(|time| u64::try_from(time.unix_ns()).is_err())
    };
    let Some(window) = context.windows.iter().find(is_beyond) else {
        return Ok(());
    };
    let message = format!(
        "the window {window:?} can't be written: OTLP has times from 1970 to the year 2554"
    );
    Err(Error::new(Code::UnsupportedByFormat, message))
}

/// The statuses after which OTLP requires a retry, apart from 429, after which every format retries. There is no retry
/// after other statuses.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 502..=504)
}

/// What a destination reports about points that it rejected. A message without rejected points is a warning. Returns
/// `None` for a negative number, which is invalid, and if there is nothing to report.
pub(crate) fn rejected(points: i64, message: &str) -> Option<Partly> {
    let points = u64::try_from(points).ok()?;
    let is_said = points > 0 || !message.is_empty();
    is_said.then(|| Partly { points: Some(points), said: message.to_owned() })
}
