//! Comma-separated values (RFC 4180): a header, then a row for each group in each window. Lines end with CR LF.
//!
//! The columns are the caller's labels, in the caller's order; `window_start` and `window_end`, as ISO 8601 with `Z`;
//! `settled`; for a revision, its number as `revision`; the dimensions; `success`, `errors` and `filtered`.
//!
//! - `settled` is `true` if the counts are complete and no longer change. For a revision, it shows whether this is the
//!   last revision of the window.
//! - The counts of a revision are signed changes. A row whose changes are all 0 is left out.
//! - Values are written unchanged. A spreadsheet interprets values that begin with `=`, `+`, `-` or `@` as formulas, so
//!   import such columns as text.
//!
//! A field with a comma, a quote, a line feed or a carriage return is quoted; a quote in it is doubled.

use tallyfold::{CountName, Result, Window};

use crate::context::Context;
use crate::escape::{Bytes, escape};
use crate::form::{Encoder, Form, Numbers, Order, Windows};
use crate::sample::{Group, Sample};

pub(crate) const FORM: Form = Form {
    media_type: "text/csv; charset=utf-8; header=present",
    order: Order::Windows,
    numbers: Numbers::All,
    limits: None,
    leaves_out_empty: false,
    windows: Windows::All,
    is_messages: false,
    max_bytes: 64 * 1024,
    read_bytes: None,
    check,
    delivery: None,
    totals: None,
    encoder: |context| Box::new(Csv { context, window: None, before: Vec::new() }),
};

/// The names of columns that are neither labels nor dimensions.
const COLUMNS: &[&str] =
    &["window_start", "window_end", "settled", "success", "errors", "filtered"];

const QUOTE: Bytes = Bytes::of(b"\"");

fn check(context: &Context) -> Result<()> {
    context.refuse_labels(COLUMNS)
}

struct Csv<'a> {
    context: &'a Context,
    /// The window of the last row, and whether it is settled.
    window: Option<(Window, bool)>,
    /// The fields before the dimensions. They are the same for all rows of a window.
    before: Vec<u8>,
}

impl Csv<'_> {
    fn begin_window(&mut self, sample: &Sample) {
        let of = Some((sample.window, sample.settled));
        if self.window == of {
            return;
        }
        self.window = of;
        self.before.clear();
        for (_, value) in self.context.own_labels.iter() {
            write_field(value, &mut self.before);
            self.before.push(b',');
        }
        let (start, end) = (sample.window.start(), sample.window.end());
        let times = format!("{start},{end},{},", sample.settled);
        self.before.extend_from_slice(times.as_bytes());
        if let Some(number) = self.context.revision {
            self.before.extend_from_slice(format!("{number},").as_bytes());
        }
    }
}

impl Encoder for Csv<'_> {
    fn begin(&mut self, is_first: bool, out: &mut Vec<u8>) {
        if !is_first {
            return;
        }
        let labels = self.context.own_labels.iter();
        let mut names: Vec<&str> = labels.map(|(name, _)| name).collect();
        names.extend(&COLUMNS[..3]);
        names.extend(self.context.revision.map(|_| "revision"));
        names.extend(&self.context.dimensions);
        names.extend(CountName::ALL.iter().map(|count| count.as_str()));
        out.extend_from_slice(names.join(",").as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) {
        for sample in group.samples {
            self.begin_window(sample);
            out.extend_from_slice(&self.before);
            for value in group.values {
                write_field(value, out);
                out.push(b',');
            }
            for (position, count) in group.counts.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                sample.amount(*count).write(out);
            }
            out.extend_from_slice(b"\r\n");
        }
    }

    fn end_bytes(&self) -> Option<usize> {
        Some(0)
    }
}

fn write_field(value: &str, out: &mut Vec<u8>) {
    // This looks at all bytes without an early exit, because the compiler can then check many bytes at once.
    let is_special = |byte: u8| (byte == b',') | (byte == b'"') | (byte == b'\r') | (byte == b'\n');
    if !value.bytes().fold(false, |any, byte| any | is_special(byte)) {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    out.push(b'"');
    escape(value, &QUOTE, out, |_, out| out.extend_from_slice(b"\"\""));
    out.push(b'"');
}
