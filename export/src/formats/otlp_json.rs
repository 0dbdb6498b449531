//! The OpenTelemetry protocol (OTLP), as JSON: `ExportMetricsServiceRequest` with keys in camelCase, 64-bit integers as
//! strings, and enums as numbers.

use serde::Deserialize;
use serde_json::{Map, Value};
use tallyfold::CountName;
use tallyfold::sending::{Delivery, HTTP, Partly};

use super::otlp::{
    self, SENDER, UNIT, VERSION, is_monotonic, is_passing, rejected, temporality, times,
};
use crate::context::Context;
use crate::escape::write_json;
use crate::form::{Encoder, Form};
use crate::sample::Group;

const MEDIA_TYPE: &str = "application/json";

pub(crate) const FORM: Form = Form {
    media_type: MEDIA_TYPE,
    delivery: Some(DELIVERY),
    totals: Some(Delivery { is_repeatable: true, ..DELIVERY }),
    encoder: |context| {
        Box::new(OtlpJson {
            context,
            points: vec![Vec::new(); CountName::ALL.len()],
            attributes: Vec::new(),
        })
    },
    ..otlp::FORM
};

const DELIVERY: Delivery = Delivery {
    is_passing,
    partly: partial_success,
    is_accepted: |answer| {
        let fields = || serde_json::from_slice::<Map<String, Value>>(answer.body);
        let is_valid = || {
            let answer = serde_json::from_slice::<ExportMetricsServiceResponse>(answer.body);
            let partial = answer.map(|answer| answer.partial_success.unwrap_or_default());
            partial.is_ok_and(|partial| partial.points().is_some_and(|points| points >= 0))
        };
        let is_typed = || {
            answer.is_of(MEDIA_TYPE)
                && fields().is_ok_and(|all| all.is_empty() || all.contains_key("partialSuccess"))
                && is_valid()
        };
        answer.status == 200 && (answer.is_empty() || is_typed())
    },
    ..HTTP
};

struct OtlpJson<'a> {
    context: &'a Context,
    /// The encoded points of each count, with commas between them.
    points: Vec<Vec<u8>>,
    /// The encoded attributes of the group.
    attributes: Vec<u8>,
}

impl Encoder for OtlpJson<'_> {
    fn group(&mut self, group: &Group<'_>, _out: &mut Vec<u8>) {
        self.attributes.clear();
        for (position, label) in self.context.labels(group).enumerate() {
            if position > 0 {
                self.attributes.push(b',');
            }
            write_attribute(label, &mut self.attributes);
        }
        for sample in group.samples {
            let [start, end] = times(sample.window);
            for count in group.counts {
                let Some(amount) = sample.count(*count) else {
                    continue;
                };
                let out = &mut self.points[*count as usize];
                if !out.is_empty() {
                    out.push(b',');
                }
                out.extend_from_slice(br#"{"attributes":["#);
                out.extend_from_slice(&self.attributes);
                out.extend_from_slice(br#"],"startTimeUnixNano":""#);
                out.extend_from_slice(itoa::Buffer::new().format(start).as_bytes());
                out.extend_from_slice(br#"","timeUnixNano":""#);
                out.extend_from_slice(itoa::Buffer::new().format(end).as_bytes());
                out.extend_from_slice(br#"","asInt":""#);
                amount.write(out);
                out.extend_from_slice(br#""}"#);
            }
        }
    }

    fn held(&self) -> usize {
        self.points.iter().map(Vec::len).sum()
    }

    fn end(&mut self, _is_last: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"resourceMetrics":[{"resource":{"attributes":["#);
        write_attribute(("service.name", SENDER), out);
        let scope = format!(
            r#"]}},"scopeMetrics":[{{"scope":{{"name":"{SENDER}","version":"{VERSION}"}},"metrics":["#
        );
        out.extend_from_slice(scope.as_bytes());
        let mut is_first = true;
        for (count, points) in CountName::ALL.iter().zip(&self.points) {
            if points.is_empty() {
                continue;
            }
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            // JSON escapes no character of a name or a description.
            let metric = format!(
                r#"{{"name":"{}","description":"{}","unit":"{UNIT}","sum":{{"aggregationTemporality":{},"isMonotonic":{},"dataPoints":["#,
                self.context.names.dotted(*count),
                self.context.description(*count),
                temporality(self.context),
                is_monotonic(self.context),
            );
            out.extend_from_slice(metric.as_bytes());
            out.extend_from_slice(points);
            out.extend_from_slice(b"]}}");
        }
        out.extend_from_slice(b"]}]}]}");
    }
}

fn write_attribute((key, value): (&str, &str), out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"key":"#);
    write_json(key, out);
    out.extend_from_slice(br#","value":{"stringValue":"#);
    write_json(value, out);
    out.extend_from_slice(b"}}");
}

/// The response to a request that was accepted.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExportMetricsServiceResponse {
    partial_success: Option<PartialSuccess>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    rejected_data_points: Option<Number>,
    error_message: Option<String>,
}

impl PartialSuccess {
    /// How many points were rejected; `None` for a string that isn't a number.
    fn points(&self) -> Option<i64> {
        match &self.rejected_data_points {
            None => Some(0),
            Some(Number::Text(text)) => text.parse().ok(),
            Some(Number::Number(number)) => Some(*number),
        }
    }
}

/// OTLP encodes a 64-bit integer as a string, but some destinations write a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Number(i64),
}

fn partial_success(status: u16, body: &[u8]) -> Option<Partly> {
    let answer: ExportMetricsServiceResponse =
        serde_json::from_slice(body).ok().filter(|_| status < 300)?;
    let partial = answer.partial_success?;
    let message = partial.error_message.as_deref().unwrap_or_default();
    rejected(partial.points()?, message)
}
