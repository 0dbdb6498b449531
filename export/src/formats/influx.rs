//! InfluxDB's line protocol: a point for each group in each window, with the fields `success`, `errors` and `filtered`,
//! which are signed 64-bit integers, and a timestamp in nanoseconds.
//!
//! - Each piece consists of whole lines, by default about 9,000: InfluxDB recommends 5,000 to 10,000 lines for a request.
//! - The tags are the labels, sorted by name, as InfluxDB recommends. A tag can't have an empty value, so a label with an
//!   empty value is left out.
//! - A revision has the tag `revision`, so its points don't replace the points of other revisions. Changes of 0 are not
//!   written.
//! - A backslash precedes commas, spaces and equals signs in values. Control characters, backslashes and `%` are written
//!   as `%` and two hexadecimal digits, so readers must percent-decode the values. The line protocol has no escape for
//!   the line feed, and a backslash does not always stand for itself.
//! - InfluxDB accepts up to 65,535 bytes for all names and tags of a point, and timestamps from the year 1677 to 2262.

use tallyfold::sending::{Delivery, HTTP, Partly};
use tallyfold::{Code, CountName, Error, Result};

use serde::Deserialize;

use crate::context::Context;
use crate::escape::{Bytes, escape, write_hex};
use crate::form::{Encoder, Form, Numbers, Order, Windows, carries_milliseconds};
use crate::sample::{Group, last_ms};

pub(crate) const FORM: Form = Form {
    media_type: "text/plain; charset=utf-8",
    order: Order::Windows,
    numbers: Numbers::Signed,
    limits: None,
    leaves_out_empty: true,
    windows: Windows::Settled,
    is_messages: true,
    max_bytes: 1_000_000,
    read_bytes: None,
    check,
    delivery: Some(Delivery {
        is_repeatable: true,
        partly: partial_write,
        // All versions of InfluxDB, and other servers with its protocol, respond with 204. Status 200 is for queries and
        // web pages.
        is_accepted: |answer| answer.status == 204,
        ..HTTP
    }),
    totals: None,
    encoder: |context| {
        Box::new(Influx {
            context,
            measurement: context.names.stem("_"),
            fields: CountName::ALL.iter().map(|count| format!("{count}=")).collect(),
            series: Vec::new(),
        })
    },
};

/// Names that have another meaning in the points that InfluxDB returns.
const TAKEN: &[&str] = &["time", "_field", "_measurement", "success", "errors", "filtered"];

/// Bytes of a tag's value that must be escaped.
const SPECIAL: Bytes = Bytes::of_controls_and(b",= \\%");

const NS_PER_MS: i64 = 1_000_000;

fn check(context: &Context) -> Result<()> {
    context.refuse_labels(TAKEN)?;
    carries_milliseconds(context)?;
    // InfluxDB reserves the first two timestamps and the last one.
    let times = i64::MIN / NS_PER_MS + 1..i64::MAX / NS_PER_MS;
    let mut windows = context.windows.iter();
    match windows.find(|window| !times.contains(&last_ms(window.end()))) {
        None => Ok(()),
        Some(window) => {
            let message = format!(
                "InfluxDB's times are from 1677 to 2262, and the window {window:?} ends at another time"
            );
            Err(Error::new(Code::UnsupportedByFormat, message))
        }
    }
}

struct Influx<'a> {
    context: &'a Context,
    measurement: String,
    /// The name of each field, followed by an equals sign.
    fields: Vec<String>,
    /// The encoded measurement and tags of the group.
    series: Vec<u8>,
}

impl Encoder for Influx<'_> {
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) {
        self.series.clear();
        self.series.extend_from_slice(self.measurement.as_bytes());
        for (name, value) in self.context.labels(group) {
            self.series.push(b',');
            self.series.extend_from_slice(name.as_bytes());
            self.series.push(b'=');
            escape(value, &SPECIAL, &mut self.series, write_special);
        }
        for sample in group.samples {
            out.extend_from_slice(&self.series);
            let mut separator = b' ';
            for count in group.counts {
                let Some(amount) = sample.count(*count) else {
                    continue;
                };
                out.push(separator);
                out.extend_from_slice(self.fields[*count as usize].as_bytes());
                amount.write(out);
                out.push(b'i');
                separator = b',';
            }
            out.push(b' ');
            let ns = sample.unix_ms() * NS_PER_MS;
            out.extend_from_slice(itoa::Buffer::new().format(ns).as_bytes());
            out.push(b'\n');
        }
    }

    fn end_bytes(&self) -> Option<usize> {
        Some(0)
    }
}

fn write_special(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b',' | b'=' | b' ' => out.extend_from_slice(&[b'\\', byte]),
        _ => write_hex(b'%', byte, out),
    }
}

/// InfluxDB reports `partial write` if it accepted the other points: version 1 responds with 400 and `{"error": "partial
/// write: … dropped=3"}`, version 2 with 400 or 422 and a `message`, and version 3 with 400 and an `error`.
fn partial_write(status: u16, body: &[u8]) -> Option<Partly> {
    let answer: ErrorAnswer =
        serde_json::from_slice(body).ok().filter(|_| matches!(status, 400 | 422))?;
    let said = [answer.error, answer.message];
    let said = said.into_iter().flatten().find(|said| said.contains("partial write"))?;
    let dropped = said.rsplit_once("dropped=");
    let points = dropped.and_then(|(_, points)| points.trim().parse().ok());
    Some(Partly { points, said })
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: Option<String>,
    message: Option<String>,
}
