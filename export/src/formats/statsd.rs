//! Plain StatsD: three counts for each group, for windows that just ended.
//!
//! - StatsD has no timestamps: the server counts everything in the present. So a window that ended longer ago than it
//!   lasted is refused. Late corrections are refused, too, because they would be counted at the wrong time. All windows
//!   that just ended are written, even if their counts may still change, because StatsD can't accept them later.
//! - StatsD has no tags. Labels and values of dimensions are parts of the name, between the name of the metric and the
//!   name of the count, sorted by the names of the labels:
//!   `tallyfold.event_delivery.by_integration.cluster.eu.integration.warehouse.success`.
//! - The server deletes everything from names except letters, digits, `_`, `-` and dots, and a dot separates parts. So
//!   letters, digits and `_` in values are written unchanged. Every other byte, including `-`, becomes `-` and two
//!   hexadecimal digits, and an empty value becomes `-` alone. An escape with `%` would not work: the server would delete
//!   the percent sign, and the values `a b` and `a20b` would get the same name.
//! - The server adds counts as 64-bit floats, which are exact up to 2^53.
//! - Each piece is a datagram of at most 1,432 bytes by default. The lines of one group in one window stay together, so a
//!   datagram is larger if values are very long. It is refused if it exceeds the maximum size of a datagram.

use tallyfold::{Code, Error, Result};

use super::dogstatsd;
use crate::context::Context;
use crate::escape::{Bytes, escape, write_hex};
use crate::form::{Encoder, Form, MOST_BYTES_OF_DATAGRAM, Windows};
use crate::sample::Group;

pub(crate) const FORM: Form = Form {
    leaves_out_empty: false,
    windows: Windows::All,
    read_bytes: Some(MOST_BYTES_OF_DATAGRAM),
    check,
    encoder: |context| {
        Box::new(StatsD { context, stem: context.names.stem("."), path: Vec::new() })
    },
    ..dogstatsd::FORM
};

/// Bytes that must be escaped.
const SPECIAL: Bytes =
    Bytes::all_but(b"_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

/// Advice for the error messages.
const INSTEAD: &str =
    "use a format with timestamps instead, such as dogstatsd, influx or openmetrics";

fn check(context: &Context) -> Result<()> {
    if context.revision.unwrap_or_default() > 0 || context.has_negative {
        return refuse(format!(
            "StatsD has no timestamps, so a late correction would be counted in the present; {INSTEAD}"
        ));
    }
    let Some(now_ms) = context.now_ms else {
        return refuse(format!(
            "StatsD has no timestamps and takes only windows that just ended, and without the present time \
             (now_ms) none is known to have just ended; {INSTEAD}"
        ));
    };
    let mut windows = context.windows.iter();
    let is_past = |ms: (i64, i64)| now_ms.saturating_sub(ms.1) > ms.1 - ms.0;
    match windows.find(|of| is_past((of.start().unix_ms(), of.end().unix_ms()))) {
        None => Ok(()),
        Some(window) => refuse(format!(
            "StatsD has no timestamps, so the window {window:?}, which ended longer ago than it lasted, would be \
             counted in the present; {INSTEAD}"
        )),
    }
}

fn refuse(message: String) -> Result<()> {
    Err(Error::new(Code::UnsupportedByFormat, message))
}

struct StatsD<'a> {
    context: &'a Context,
    /// The common beginning of all names.
    stem: String,
    /// The beginning of the group's names, up to the name of the count.
    path: Vec<u8>,
}

impl Encoder for StatsD<'_> {
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) {
        self.path.clear();
        self.path.extend_from_slice(self.stem.as_bytes());
        self.path.push(b'.');
        for (name, value) in self.context.labels(group) {
            self.path.extend_from_slice(name.as_bytes());
            self.path.push(b'.');
            if value.is_empty() {
                self.path.push(b'-');
            }
            escape(value, &SPECIAL, &mut self.path, |byte, out| {
                write_hex(b'-', byte, out);
            });
            self.path.push(b'.');
        }
        for sample in group.samples {
            for count in group.counts {
                let Some(amount) = sample.count(*count) else {
                    continue;
                };
                out.extend_from_slice(&self.path);
                out.extend_from_slice(count.as_str().as_bytes());
                out.push(b':');
                amount.write(out);
                out.extend_from_slice(b"|c\n");
            }
        }
    }

    fn end_bytes(&self) -> Option<usize> {
        Some(0)
    }
}
