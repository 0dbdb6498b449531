//! DogStatsD, protocol 1.3: for each group in each window, three counts with a timestamp. Agents read timestamps from
//! version 7.40 on.
//!
//! - Each piece is a datagram of at most 1,432 bytes by default, so that it fits into an Ethernet frame. The lines of one
//!   group in one window stay together, so a datagram is larger if values are very long. An agent reads only the first
//!   8,192 bytes of a datagram, unless its `dogstatsd_buffer_size` is larger, so longer datagrams are refused unless the
//!   caller allows them.
//! - The timestamp is the last whole second of the window. A window in which no whole second after 1970 begins is refused.
//! - The changes of a revision may be negative: an agent accepts any float, and a count in Datadog may decrease. Changes
//!   of 0 are not written. Each revision has its own tag `revision`.
//! - An agent reads values as 64-bit floats, which are exact up to 2^53.
//! - A tag can't have an empty value, so a label with an empty value is left out. The protocol has no escapes for values:
//!   `|`, `,`, `#`, `@`, `%` and control characters are written as `%` and two hexadecimal digits. Datadog keeps 200
//!   characters of a tag, in lower case, and replaces everything except letters, digits, `_`, `-`, `:`, `.` and `/` with
//!   `_`. Values that differ only in what is lost this way are the same tag.

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

/// Bytes that separate or begin the parts of a line, control characters, and the escape character.
const SPECIAL: Bytes = Bytes::of_controls_and(b"|,#@%");

struct DogStatsD<'a> {
    context: &'a Context,
    /// The name of the metric for each count, followed by a colon.
    names: Vec<String>,
    /// The part of each line of the group between the value and the timestamp.
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
