//! One JSON object per line for each group in each window. Each line ends with a line feed.
//!
//! The members of an object have the names and the order of the columns in CSV: the caller's labels, `window_start` and
//! `window_end`, `settled`, `revision` for a revision, the dimensions, and the three counts. Dimensions are members of
//! the object itself, so readers get a flat table.
//!
//! Counts and the signed changes of a revision are numbers up to 2^53 - 1, and strings of digits above that, because many
//! JSON readers round larger numbers. An object whose changes are all 0 is left out. `settled` is `true` or `false`, and
//! `revision` is a number.

use tallyfold::{CountName, Window};

use super::csv;
use crate::context::Context;
use crate::escape::write_json;
use crate::form::{Encoder, Form};
use crate::sample::{Group, Sample};

pub(crate) const FORM: Form = Form {
    media_type: "application/x-ndjson",
    encoder: |context| {
        Box::new(Ndjson {
            context,
            dimensions: context.dimensions.iter().map(|name| key(name)).collect(),
            counts: CountName::ALL.iter().map(|count| key(count.as_str())).collect(),
            window: None,
            before: Vec::new(),
        })
    },
    ..csv::FORM
};

/// The encoded name of a member. JSON escapes no character of a name.
fn key(name: &str) -> String {
    format!("\"{name}\":")
}

struct Ndjson<'a> {
    context: &'a Context,
    /// The encoded name of each dimension.
    dimensions: Vec<String>,
    /// The encoded name of each count.
    counts: Vec<String>,
    /// The window of the last object, and whether it is settled.
    window: Option<(Window, bool)>,
    /// The members before the dimensions. They are the same for all objects of a window.
    before: Vec<u8>,
}

impl Ndjson<'_> {
    fn begin_window(&mut self, sample: &Sample) {
        let of = Some((sample.window, sample.settled));
        if self.window == of {
            return;
        }
        self.window = of;
        self.before.clear();
        self.before.push(b'{');
        for (name, value) in self.context.own_labels.iter() {
            self.before.extend_from_slice(key(name).as_bytes());
            write_json(value, &mut self.before);
            self.before.push(b',');
        }
        let (start, end, settled) = (sample.window.start(), sample.window.end(), sample.settled);
        let times =
            format!(r#""window_start":"{start}","window_end":"{end}","settled":{settled},"#);
        self.before.extend_from_slice(times.as_bytes());
        if let Some(number) = self.context.revision {
            let revision = format!(r#""revision":{number},"#);
            self.before.extend_from_slice(revision.as_bytes());
        }
    }
}

impl Encoder for Ndjson<'_> {
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) {
        for sample in group.samples {
            self.begin_window(sample);
            out.extend_from_slice(&self.before);
            for (key, value) in self.dimensions.iter().zip(group.values) {
                out.extend_from_slice(key.as_bytes());
                write_json(value, out);
                out.push(b',');
            }
            for (position, count) in group.counts.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(self.counts[*count as usize].as_bytes());
                sample.amount(*count).write_json(out);
            }
            out.extend_from_slice(b"}\n");
        }
    }

    fn end_bytes(&self) -> Option<usize> {
        Some(0)
    }
}
