//! OpenMetrics text 1.0: one gauge for each count, with a sample for each window.

use std::fmt;

use tallyfold::CountName;

use crate::context::{Context, UNIT};
use crate::form::{Encoder, Form, Numbers, Order, VICTORIA_METRICS, Windows, carries_milliseconds};
use crate::sample::Group;

pub(crate) const FORM: Form = Form {
    media_type: "application/openmetrics-text; version=1.0.0; charset=utf-8",
    order: Order::Counts,
    numbers: Numbers::Floats,
    limits: Some(VICTORIA_METRICS),
    leaves_out_empty: true,
    windows: Windows::Settled,
    is_messages: false,
    max_bytes: 64 * 1024,
    read_bytes: None,
    check: carries_milliseconds,
    delivery: None,
    totals: None,
    encoder: |context| {
        Box::new(OpenMetrics {
            names: CountName::ALL.iter().map(|count| context.names.window(*count)).collect(),
            context,
            series: Vec::new(),
        })
    },
};

struct OpenMetrics<'a> {
    context: &'a Context,
    /// The metric's name for each count.
    names: Vec<String>,
    /// The encoded labels of the group.
    series: Vec<u8>,
}

impl Encoder for OpenMetrics<'_> {
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) {
        self.series.clear();
        write_labels(self.context.labels(group), &mut self.series);
        for count in group.counts {
            let name = &self.names[*count as usize];
            if group.is_first {
                let help = self.context.help(*count);
                write_header(name, "gauge", UNIT, &help, out);
            }
            for sample in group.samples {
                let Some(amount) = sample.count(*count) else {
                    continue;
                };
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(&self.series);
                out.push(b' ');
                amount.write(out);
                out.push(b' ');
                Seconds(sample.unix_ms()).write(out);
                out.push(b'\n');
            }
        }
    }

    fn end(&mut self, is_last: bool, out: &mut Vec<u8>) {
        if is_last {
            out.extend_from_slice(b"# EOF\n");
        }
    }
}

/// Writes the header of a metric, which precedes its samples. The unit may be empty.
pub(crate) fn write_header(name: &str, kind: &str, unit: &str, help: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("# TYPE {name} {kind}\n").as_bytes());
    if !unit.is_empty() {
        out.extend_from_slice(format!("# UNIT {name} {unit}\n").as_bytes());
    }
    out.extend_from_slice(format!("# HELP {name} {help}\n").as_bytes());
}

/// Writes labels in braces; nothing if there are none.
pub(crate) fn write_labels<'a>(
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    out: &mut Vec<u8>,
) {
    let mut before = b'{';
    for (name, value) in labels {
        out.push(before);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"=\"");
        write_escaped(value.as_bytes(), out);
        out.push(b'"');
        before = b',';
    }
    if before == b',' {
        out.push(b'}');
    }
}

/// Writes the value of a label: escapes backslashes and quotes with a backslash, and writes a line feed as `\n`.
fn write_escaped(mut value: &[u8], out: &mut Vec<u8>) {
    while let Some(place) = memchr::memchr3(b'\\', b'"', b'\n', value) {
        let (plain, special) = (&value[..place], value[place]);
        out.extend_from_slice(plain);
        out.push(b'\\');
        out.push(if special == b'\n' { b'n' } else { special });
        value = &value[place + 1..];
    }
    out.extend_from_slice(value);
}

/// Milliseconds, written as seconds with three decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub i64);

impl Seconds {
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let Self(ms) = self;
        if ms < 0 {
            out.push(b'-');
        }
        let (seconds, ms) = (ms.unsigned_abs() / 1000, ms.unsigned_abs() % 1000);
        out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
        out.extend_from_slice(&[
            b'.',
            b'0' + (ms / 100) as u8,
            b'0' + (ms / 10 % 10) as u8,
            b'0' + (ms % 10) as u8,
        ]);
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = Vec::new();
        self.write(&mut digits);
        f.write_str(&String::from_utf8_lossy(&digits))
    }
}
