//! The JSON of Datadog's API for metrics, version 2: messages for `POST /api/v2/series`.
//!
//! - Each group has a series of the type count for each count, with a point for each window. The timestamp of a point is
//!   the last whole second of the window, and `interval` is the window's length in seconds. A window in which no whole
//!   second after 1970 begins is refused. Windows of another length go to another entry of the series.
//! - A message has at most 500,000 bytes by default. Datadog accepts up to 512,000.
//! - Values are written as integers. Datadog stores them as 64-bit floats, which are exact up to 2^53. The changes of a
//!   revision may be negative, and changes of 0 are not written. Each revision has its own tag `revision`.
//! - Tags are `name:value`. A tag can't have an empty value, so a label with an empty value is left out. Datadog keeps
//!   200 characters of a tag, in lower case, and replaces everything except letters, digits, `_`, `-`, `:`, `.` and `/`
//!   with `_`. Values that differ only in what is lost this way are the same tag.
//! - Datadog accepts points of the last hour. It accepts older points only for metrics with historical ingestion.

use tallyfold::CountName;
use tallyfold::sending::{Delivery, HTTP, Partly};

use serde::Deserialize;

use crate::context::Context;
use crate::escape::write_json;
use crate::form::{Encoder, Form, Numbers, Order, Windows, carries_whole_seconds};
use crate::sample::{Group, Sample};

pub(crate) const FORM: Form = Form {
    media_type: "application/json",
    order: Order::Groups,
    numbers: Numbers::Floats,
    limits: None,
    leaves_out_empty: true,
    windows: Windows::Settled,
    is_messages: true,
    max_bytes: 500_000,
    read_bytes: None,
    check: carries_whole_seconds,
    delivery: Some(Delivery {
        partly: errors_of_taken,
        is_accepted: |answer| {
            answer.status == 202
                && (answer.is_empty() || serde_json::from_slice::<Errors>(answer.body).is_ok())
        },
        ..HTTP
    }),
    totals: None,
    encoder: |context| {
        Box::new(Datadog {
            context,
            heads: CountName::ALL
                .iter()
                .map(|count| {
                    // JSON escapes no character of a name.
                    let name = context.names.dotted(*count);
                    format!(r#"{{"metric":"{name}","type":1,"unit":"event","interval":"#)
                })
                .collect(),
            tags: Vec::new(),
            tag: String::new(),
        })
    },
};

struct Datadog<'a> {
    context: &'a Context,
    /// The beginning of a series for each count, up to the interval.
    heads: Vec<String>,
    /// The encoded tags of the group.
    tags: Vec<u8>,
    /// The tag that is being encoded.
    tag: String,
}

const BEGIN: &[u8] = br#"{"series":["#;
/// The end of a series, and of a message.
const END: &[u8] = b"]}";

impl Datadog<'_> {
    fn read_tags(&mut self, group: &Group<'_>) {
        self.tags.clear();
        for (name, value) in self.context.labels(group) {
            if !self.tags.is_empty() {
                self.tags.push(b',');
            }
            self.tag.clear();
            self.tag.push_str(name);
            self.tag.push(':');
            self.tag.push_str(value);
            write_json(&self.tag, &mut self.tags);
        }
    }

    /// Writes a series for samples with the same interval, or nothing if all samples are changes of 0.
    fn write_series(&self, samples: &[Sample], count: CountName, out: &mut Vec<u8>) {
        let of = |sample: &Sample| Some((*sample, sample.count(count)?));
        let mut points = samples.iter().filter_map(of).peekable();
        let Some((first, _)) = points.peek() else {
            return;
        };
        if !out.ends_with(BEGIN) {
            out.push(b',');
        }
        out.extend_from_slice(self.heads[count as usize].as_bytes());
        write_digits(interval(*first), out);
        let mut separator: &[u8] = br#","points":[{"timestamp":"#;
        for (sample, amount) in points {
            out.extend_from_slice(separator);
            write_digits(sample.unix_seconds(), out);
            out.extend_from_slice(br#","value":"#);
            amount.write(out);
            out.push(b'}');
            separator = br#",{"timestamp":"#;
        }
        out.extend_from_slice(br#"],"tags":["#);
        out.extend_from_slice(&self.tags);
        out.extend_from_slice(END);
    }
}

/// The length of a window in whole seconds, but at least 1.
fn interval(sample: Sample) -> i64 {
    let (start, end) = (sample.window.start(), sample.window.end());
    ((end.unix_ms() - start.unix_ms()) / 1000).max(1)
}

fn write_digits(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

impl Encoder for Datadog<'_> {
    fn begin(&mut self, _: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(BEGIN);
    }

    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) {
        self.read_tags(group);
        for samples in group.samples.chunk_by(|one, other| interval(*one) == interval(*other)) {
            for count in group.counts {
                self.write_series(samples, *count, out);
            }
        }
    }

    fn end(&mut self, _: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(END);
    }

    fn end_bytes(&self) -> Option<usize> {
        Some(END.len())
    }
}

/// Datadog responds with status 202 and a list of errors, which is empty if it accepted everything.
fn errors_of_taken(status: u16, body: &[u8]) -> Option<Partly> {
    let answer: Errors = serde_json::from_slice(body).ok().filter(|_| status == 202)?;
    (!answer.errors.is_empty()).then(|| Partly { points: None, said: answer.errors.join("; ") })
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<String>,
}
