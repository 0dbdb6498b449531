//! DogStatsD, protocol 1.3: a count with a timestamp for each count of each group in each window. Agents read timestamps
//! from version 7.40 on.
//!
//! - Each piece is a datagram, by default of at most 1,432 bytes, as fits into an Ethernet frame with room for other
//!   headers. The lines of one group in one window stay together, so a datagram is larger if values are very long. An
//!   agent reads only the first 8,192 bytes of it, unless its `dogstatsd_buffer_size` is larger: longer ones are refused.
//! - The timestamp is the last whole second of the window. Two windows that end in the same second are refused.
//! - Changes of a revision may be negative: an agent reads any float, and a count of Datadog may go down. Changes of 0 are
//!   not written. Each revision has its own tag `revision`.
//! - An agent reads values as 64-bit floats, which are exact up to 2^53.
//! - A tag can't have an empty value: it is left out. Values have no escapes: `|`, `,`, `#`, `@` and control characters
//!   are written as `%` and two hexadecimal digits, and so is `%` itself. Datadog keeps of a tag 200 characters in lower
//!   case, and replaces all but letters, digits, `_`, `-`, `:`, `.` and `/` by `_`: values that differ only in what is lost
//!   there are the same to it.

use tallyfold::CountName;
use tallyfold::sending::DATAGRAMS;

use crate::context::Context;
use crate::escape::{Bytes, escape, write_hex};
use crate::form::{Encoder, Form, Numbers, Order, Windows, carries_whole_seconds};
use crate::sample::Group;

pub(crate) const FORM: Form = Form {
    media_type: "text/plain; charset=utf-8",
    order: Order::Windows,
    numbers: Numbers::Floats,
    limits: None,
    leaves_out_empty: true,
    windows: Windows::Settled,
    is_messages: true,
    max_bytes: 1432,
    read_bytes: Some(8_192),
    check: carries_whole_seconds,
    delivery: Some(DATAGRAMS),
    totals: None,
    encoder: |context| {
        Box::new(DogStatsD {
            context,
            names: CountName::ALL
                .iter()
                .map(|count| format!("{}:", context.names.dotted(*count)))
                .collect(),
            tags: Vec::new(),
        })
    },
};

/// Bytes that separate the parts of a line, and those that begin a part.
const SPECIAL: Bytes = Bytes::of_controls_and(b"|,#@%");

struct DogStatsD<'a> {
    context: &'a Context,
    /// The metric's name for each count, with its colon.
    names: Vec<String>,
    /// What follows the value in each line of the group, up to the timestamp.
    tags: Vec<u8>,
}

impl Encoder for DogStatsD<'_> {
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) {
        self.tags.clear();
        self.tags.extend_from_slice(b"|c");
        let mut separator: &[u8] = b"|#";
        for (name, value) in self.context.labels(group) {
            self.tags.extend_from_slice(separator);
            self.tags.extend_from_slice(name.as_bytes());
            self.tags.push(b':');
            escape(value, &SPECIAL, &mut self.tags, |byte, out| {
                write_hex(b'%', byte, out);
            });
            separator = b",";
        }
        self.tags.extend_from_slice(b"|T");
        for sample in group.samples {
            let seconds = sample.unix_seconds();
            for count in group.counts {
                let Some(amount) = sample.count(*count) else {
                    continue;
                };
                out.extend_from_slice(self.names[*count as usize].as_bytes());
                amount.write(out);
                out.extend_from_slice(&self.tags);
                out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
                out.push(b'\n');
            }
        }
    }

    fn end_bytes(&self) -> Option<usize> {
        Some(0)
    }
}
