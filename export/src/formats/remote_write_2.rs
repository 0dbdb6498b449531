//! Prometheus remote-write 2.0: the protobuf message `io.prometheus.write.v2.Request`, compressed with snappy.
//!
//! The series are the same as in version 1.0, but each text is in the message only once, in a list of symbols, and each
//! series has the type, the help and the unit of its metric. Start timestamps are not sent: gauges have none.

use std::collections::HashMap;

use prost::Message;
use tallyfold::CountName;
use tallyfold::sending::{Delivery, HTTP};

use super::protobuf::add;
use super::remote_write::{
    self, NAME, Point, compress, is_too_old, position_of_name, read_samples,
};
use crate::context::{Context, UNIT};
use crate::form::{Encoder, Form};
use crate::sample::Group;

pub(crate) const FORM: Form = Form {
    media_type: "application/x-protobuf;proto=io.prometheus.write.v2.Request",
    // Up to about 5,000 series of one sample each.
    max_bytes: 256 * 1024,
    delivery: Some(Delivery {
        headers: &[("content-encoding", "snappy"), ("x-prometheus-remote-write-version", "2.0.0")],
        is_repeatable: true,
        is_final: is_too_old,
        proof: Some("x-prometheus-remote-write-samples-written"),
        ..HTTP
    }),
    encoder: |context| Box::new(RemoteWrite2::new(context)),
    ..remote_write::FORM
};

/// A request with one symbol. Consecutive requests are read as one.
#[derive(Clone, PartialEq, Message)]
struct Symbol {
    // Required, so that prost also writes the empty symbol.
    #[prost(string, required, tag = "4")]
    symbol: String,
}

/// A request with one series.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, required, tag = "5")]
    timeseries: TimeSeries,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    /// The positions of each label's name and value in the list of symbols.
    #[prost(uint32, repeated, tag = "1")]
    labels_refs: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Point>,
    #[prost(message, required, tag = "5")]
    metadata: Metadata,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Metadata {
    #[prost(enumeration = "MetricType", tag = "1")]
    r#type: i32,
    #[prost(uint32, tag = "3")]
    help_ref: u32,
    #[prost(uint32, tag = "4")]
    unit_ref: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum MetricType {
    Unspecified = 0,
    Gauge = 2,
}

struct RemoteWrite2<'a> {
    context: &'a Context,
    symbols: Symbols,
    /// The symbol of the label with a metric's name.
    name: u32,
    /// For each count, the symbol of its metric's name, and the metadata of the metric.
    metrics: Vec<(u32, Metadata)>,
    request: Request,
}

impl<'a> RemoteWrite2<'a> {
    fn new(context: &'a Context) -> Self {
        let mut symbols = Symbols::default();
        // The first symbol is empty, so that 0 means that there is no text.
        symbols.position("");
        let name = symbols.position(NAME);
        let metrics = CountName::ALL.iter().map(|count| {
            let metadata = Metadata {
                r#type: MetricType::Gauge.into(),
                help_ref: symbols.position(&context.help(*count)),
                unit_ref: symbols.position(UNIT),
            };
            (symbols.position(&context.names.window(*count)), metadata)
        });
        Self { metrics: metrics.collect(), context, symbols, name, request: Request::default() }
    }
}

impl Encoder for RemoteWrite2<'_> {
    fn group(&mut self, group: &Group<'_>, out: &mut Vec<u8>) {
        let labels = || self.context.labels(group);
        let series = &mut self.request.timeseries;
        series.labels_refs.clear();
        let texts = labels().flat_map(|(name, value)| [name, value]);
        for (place, text) in texts.enumerate() {
            let symbol = self.symbols.position_at(place, text);
            series.labels_refs.push(symbol);
        }
        let position = 2 * position_of_name(labels());
        series.labels_refs.splice(position..position, [self.name, 0]);
        for count in group.counts {
            let series = &mut self.request.timeseries;
            let (name, metadata) = self.metrics[*count as usize];
            series.labels_refs[position + 1] = name;
            series.metadata = metadata;
            if read_samples(group, *count, &mut series.samples) {
                add(&self.request, out);
            }
        }
    }

    fn held(&self) -> usize {
        self.symbols.written.len()
    }

    fn has_labels_once(&self) -> bool {
        true
    }

    /// Puts the symbols before the series, because some destinations parse a message in one pass.
    fn end(&mut self, _is_last: bool, out: &mut Vec<u8>) {
        out.splice(..0, self.symbols.written.drain(..));
        compress(out);
    }
}

/// The texts of a message, each only once.
#[derive(Default)]
struct Symbols {
    positions: HashMap<String, u32>,
    /// The encoded symbols.
    written: Vec<u8>,
    /// The last text at each place of a group's labels, and its position. The next group often has the same text there.
    last: Vec<(String, u32)>,
}

impl Symbols {
    /// The position of a text at a place of a group's labels.
    fn position_at(&mut self, place: usize, text: &str) -> u32 {
        if let Some((last, position)) = self.last.get(place)
            && last == text
        {
            return *position;
        }
        let position = self.position(text);
        if place == self.last.len() {
            self.last.push((String::new(), 0));
        }
        let (last, of_last) = &mut self.last[place];
        last.clear();
        last.push_str(text);
        *of_last = position;
        position
    }

    /// Returns the position of a text, and adds the text if there is no such symbol yet.
    fn position(&mut self, text: &str) -> u32 {
        if let Some(position) = self.positions.get(text) {
            return *position;
        }
        let position = self.positions.len() as u32;
        let symbol = Symbol { symbol: text.to_owned() };
        add(&symbol, &mut self.written);
        self.positions.insert(symbol.symbol, position);
        position
    }
}
