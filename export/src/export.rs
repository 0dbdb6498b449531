//! An export in progress: it yields pieces of bytes, one after the other.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use tallyfold::sending::{self, Delivery, Transport};
use tallyfold::{Code, CountName, Dictionary, Error, Key, Result, Window, WindowRows, Windowed};

use crate::context::{Context, Labels};
use crate::form::{Form, Limits, MOST_BYTES_OF_DATAGRAM, Numbers, Order, Windows};
use crate::note::Note;
use crate::options::ExportOptions;
use crate::piece::Piece;
use crate::sample::{Group, Sample};
use crate::source::Source;
use crate::walk::{Place, Samples, Walk};

/// The maximum number of samples that are passed to an encoder at once.
const MOST_SAMPLES: usize = 256;

/// The maximum size of a piece in bytes, even if the caller allows more. Readers of protobuf accept messages of up to 2
/// GiB, and snappy compresses up to 4 GiB. Half of the lower limit leaves space for a group that is larger than expected.
const MOST_BYTES: usize = 1 << 30;

/// An export in progress: the counts of one source, or of several, as one document.
///
/// A clone continues at the same place, and both give the same bytes.
#[derive(Clone)]
pub struct Export {
    fixed: Arc<Fixed>,
    walk: Walk,
    /// A group that did not fit into the last piece.
    held: Option<(Key, Vec<Sample>)>,
    /// The number of rounds in which a group was written.
    rounds: usize,
    /// Whether the document has already begun: with a piece of this export or, after [`Export::continued`], with another
    /// export.
    has_begun: bool,
    is_done: bool,
}

/// What does not change during an export.
struct Fixed {
    form: &'static Form,
    /// At least one.
    sources: Vec<FixedSource>,
    /// All windows of each source, including the windows that are left out.
    windows: Arc<[Vec<WindowRows>]>,
    leaves_out_unsettled: bool,
    max_bytes: usize,
    notes: Vec<Note>,
}

/// What does not change about a source during an export.
struct FixedSource {
    context: Context,
    dictionaries: Vec<Arc<Dictionary>>,
}

impl Export {
    /// Begins an export. All checks happen here, before anything is written.
    ///
    /// # Errors
    /// `invalid_argument` for invalid labels and names; `count_overflow` for a count above 2^63 - 1, if the format has
    /// signed 64-bit integers; `inexact_count` for a count above 2^53, if the destination stores 64-bit floats and
    /// `exact` is set; `unsupported_by_format` for anything else that the format can't represent.
    pub fn new(source: impl Into<Source>, options: &ExportOptions) -> Result<Self> {
        Self::of_sources([(source.into(), Labels::default())], options)
    }

    /// Begins an export of several sources. Each source has its own labels, and the labels of the options follow them. A
    /// text has one beginning and one end, and all samples of a metric are together. A message has samples of only one
    /// source.
    ///
    /// # Errors
    /// The errors of [`Export::new`]; `incompatible_tables` for sources of different endpoints or dimensions;
    /// `invalid_argument` without a source, and for labels whose names differ from source to source.
    pub fn of_sources(
        sources: impl IntoIterator<Item = (Source, Labels)>,
        options: &ExportOptions,
    ) -> Result<Self> {
        let form = options.format.form();
        let mut notes = Vec::new();
        let mut fixed: Vec<FixedSource> = Vec::new();
        let mut all: Vec<Vec<WindowRows>> = Vec::new();
        let mut windows: Vec<Vec<WindowRows>> = Vec::new();
        let leaves_out_unsettled = options.windows.unwrap_or(form.windows) == Windows::Settled;
        for (mut source, labels) in sources {
            all.push(source.rows.windows.clone());
            if leaves_out_unsettled && source.revision.is_none() {
                notes.extend(leave_out_unsettled(&mut source));
            }
            let labels = labels.followed_by(&options.labels)?;
            let context = Context::new(
                &source,
                labels,
                options.name.as_deref(),
                options.now_ms,
                form.leaves_out_empty,
            )?;
            if let Some(first) = fixed.first() {
                first.context.check_sibling(&context)?;
            }
            if source.is_total {
                form.totals()?;
            }
            (form.check)(&context)?;
            let rows = source.rows;
            notes.extend(check_numbers(&rows, &context, form, options.exact)?);
            notes.extend(check_labels(&rows, &context, form));
            windows.push(rows.windows);
            fixed.push(FixedSource { context, dictionaries: rows.dictionaries });
        }
        let Some(first) = fixed.first() else {
            let message = "want the counts of at least one source";
            return Err(Error::argument("counts", Code::InvalidArgument, message));
        };
        let walk = Walk::new(windows.into(), form.order, first.context.revision.is_some());
        let max_bytes = options.max_bytes.unwrap_or(form.max_bytes);
        let export = Self {
            fixed: Arc::new(Fixed {
                form,
                leaves_out_unsettled: leaves_out_unsettled && first.context.revision.is_none(),
                sources: fixed,
                windows: all.into(),
                max_bytes: max_bytes.min(most_bytes(form)),
                notes,
            }),
            walk,
            held: None,
            rounds: 0,
            has_begun: false,
            is_done: false,
        };
        if let Some(most) = form.read_bytes {
            export.check_messages(most.max(export.fixed.max_bytes))?;
        }
        Ok(export)
    }

    /// Refuses a group whose message is longer than the destination reads. The destination would silently discard the rest.
    fn check_messages(&self, most: usize) -> Result<()> {
        let may_be_long = |of: &FixedSource| {
            let longest = |values: &Arc<Dictionary>| values.values().map(str::len).max();
            let values: usize = of.dictionaries.iter().filter_map(longest).sum();
            // An escaped byte takes three bytes, and the labels are in each of three metrics.
            3 * (3 * (of.context.label_bytes + values) + 300) > most
        };
        if !self.fixed.sources.iter().any(may_be_long) {
            return Ok(());
        }
        let (mut export, mut message, mut before) = (self.clone(), Vec::new(), 0);
        while let Some(samples) = export.next_piece_of(1, &mut message) {
            if message.len() > most {
                let longest = self.longest_label(before).unwrap_or_default();
                let text = format!(
                    "the counts of a group make a message of {} bytes, and the destination reads at most {most}: {longest}; \
                     leave it out, filter the value out, use a format without this limit, or allow longer messages if the \
                     destination reads them",
                    message.len()
                );
                return Err(Error::new(Code::UnsupportedByFormat, text));
            }
            before += samples as u64;
        }
        Ok(())
    }

    /// Describes the dimension or label with the longest value in the group that follows the first `before` samples.
    fn longest_label(&self, before: u64) -> Option<String> {
        let (mut export, mut samples) = (self.clone(), Vec::new());
        sending::Source::skip(&mut export, before);
        let key = export.next_group(1, &mut samples)?;
        let of = &self.fixed.sources[export.walk.source];
        let values: Vec<&str> = values_of(&of.dictionaries, key).collect();
        let own = of.context.own_labels.iter();
        let own = own.map(|(name, value)| (format!("the label {name}"), value));
        let names = of.context.dimensions.iter();
        let dimensions = names.map(|name| format!("the dimension {name}"));
        let (what, value) =
            (own.chain(dimensions.zip(values))).max_by_key(|(_, value)| value.len())?;
        Some(format!("{what} has a value of {} bytes", value.len()))
    }

    /// Restricts the export to these rows of its sources, in this order, such as the highest counts first. This is for
    /// formats that are tables of rows ([`Format::is_file`](crate::Format::is_file)). Notes and checks still cover all
    /// rows.
    ///
    /// # Errors
    /// `invalid_argument` for a row that does not exist; `unsupported_by_format` for a format that requires another order.
    pub fn choosing(mut self, places: Vec<Place>) -> Result<Self> {
        if self.fixed.form.order != Order::Windows {
            let message = "this format has an order of its own";
            return Err(Error::new(Code::UnsupportedByFormat, message));
        }
        let Fixed { windows, leaves_out_unsettled, .. } = &*self.fixed;
        let walk = (self.walk).choosing(places, Arc::clone(windows), *leaves_out_unsettled);
        self.walk = walk.ok_or_else(|| {
            Error::new(Code::InvalidArgument, "want the places of rows that are exported")
        })?;
        Ok(self)
    }

    /// Makes the export continue a text that another export with the same columns has begun: CSV gets no header.
    #[must_use]
    pub fn continued(mut self) -> Self {
        self.has_begun = true;
        self
    }

    /// What the caller should know about the export, in the order of the sources.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.fixed.notes
    }

    /// The samples as values, for callers that write them in another form. Call this before the first piece: samples that
    /// were already read for a piece are missing.
    #[must_use]
    pub fn samples(&self) -> Samples {
        Samples::new(self.walk.clone())
    }

    /// The names of the dimensions, in the order of a sample's values.
    #[must_use]
    pub fn dimensions(&self) -> &[&'static str] {
        &self.fixed.first().dimensions
    }

    /// For each dimension, its distinct values in the source at that position, sorted.
    #[must_use]
    pub fn dictionaries(&self, source: usize) -> &[Arc<Dictionary>] {
        let source = self.fixed.sources.get(source);
        source.map_or(&[], |source| &source.dictionaries)
    }

    /// The labels of the source at that position, in the caller's order.
    pub fn labels(&self, source: usize) -> impl Iterator<Item = (&str, &str)> {
        let source = self.fixed.sources.get(source);
        source.into_iter().flat_map(|source| source.context.own_labels.iter())
    }

    /// The number of the revision, if changes are exported.
    #[must_use]
    pub fn revision(&self) -> Option<u32> {
        self.fixed.first().revision
    }

    /// Replaces the contents of `out` with the next piece. Returns how many samples it has; `None` after the last piece.
    pub fn next_piece(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        self.next_piece_of(usize::MAX, out)
    }

    /// Like [`Export::next_piece`], with at most `most` samples, but at least one. For destinations that refuse a message
    /// as too large.
    pub fn next_piece_of(&mut self, most: usize, out: &mut Vec<u8>) -> Option<usize> {
        out.clear();
        if self.is_done {
            return None;
        }
        let most = most.max(1);
        let fixed = Arc::clone(&self.fixed);
        let mut samples = Vec::new();
        let mut next = self.next_group(most.min(MOST_SAMPLES), &mut samples);
        // A piece has samples of one source.
        let source = self.walk.source;
        let FixedSource { context, dictionaries } = &fixed.sources[source];
        let mut piece = Piece {
            encoder: (fixed.form.encoder)(context),
            out,
            context,
            max_bytes: fixed.max_bytes,
            is_first: !self.has_begun,
            has_begun: false,
            samples: 0,
        };
        let mut values: Vec<&str> = Vec::new();
        loop {
            let Some(key) = next else {
                self.is_done = true;
                break;
            };
            if self.walk.source != source {
                self.hold(key, samples);
                break;
            }
            values.clear();
            values.extend(values_of(dictionaries, key));
            let round = self.walk.round;
            let taken = piece.add(&Group {
                values: &values,
                samples: &samples,
                counts: match fixed.form.order {
                    Order::Counts => &CountName::ALL[round..=round],
                    _ => CountName::ALL,
                },
                is_first: self.rounds <= round,
            });
            self.hold(key, samples.split_off(taken));
            if taken == 0 {
                break;
            }
            self.rounds = round + 1;
            if piece.samples >= most {
                break;
            }
            next = self.next_group(MOST_SAMPLES.min(most - piece.samples), &mut samples);
        }
        // A text has a beginning and an end, even without a sample. A message without a sample is not sent.
        if piece.samples == 0 && fixed.form.is_messages {
            return None;
        }
        piece.begin();
        piece.encoder.end(self.is_done, piece.out);
        self.has_begun = true;
        Some(piece.samples)
    }

    /// Reads the next group, or the held rest of a group.
    fn next_group(&mut self, most: usize, samples: &mut Vec<Sample>) -> Option<Key> {
        let Some((key, mut held)) = self.held.take() else {
            return self.walk.next(most, samples);
        };
        if held.len() > most {
            let rest = held.split_off(most);
            self.held = Some((key, rest));
        }
        *samples = held;
        Some(key)
    }

    /// Holds samples for the next piece, before held samples of the same group.
    fn hold(&mut self, key: Key, mut samples: Vec<Sample>) {
        if samples.is_empty() {
            return;
        }
        let held = self.held.take();
        samples.extend(held.into_iter().flat_map(|(_, held)| held));
        self.held = Some((key, samples));
    }

    /// Writes all remaining pieces.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn write_to(&mut self, writer: &mut dyn Write) -> io::Result<()> {
        let mut piece = Vec::new();
        while self.next_piece(&mut piece).is_some() {
            writer.write_all(&piece)?;
        }
        Ok(())
    }
}

impl sending::Source for Export {
    fn delivery(&self) -> Result<&'static Delivery> {
        let form = self.fixed.form;
        match self.fixed.first().is_total {
            true => form.totals(),
            false => form.delivery(),
        }
    }

    fn media_type(&self) -> &'static str {
        self.fixed.form.media_type
    }

    fn next_message(&mut self, most: usize, out: &mut Vec<u8>) -> Option<usize> {
        self.next_piece_of(most, out)
    }

    fn skip(&mut self, mut samples: u64) -> u64 {
        let mut skipped = Vec::new();
        while samples > 0 {
            let most = usize::try_from(samples).unwrap_or(MOST_SAMPLES).min(MOST_SAMPLES);
            if self.next_group(most, &mut skipped).is_none() {
                break;
            }
            samples -= skipped.len() as u64;
        }
        samples
    }
}

impl Fixed {
    /// The context of the first source. The names of dimensions and labels are the same in all sources.
    fn first(&self) -> &Context {
        &self.sources[0].context
    }
}

/// Returns an error or a note if there is a count that the format, or the system that reads it, can't represent exactly.
fn check_numbers(
    rows: &Windowed,
    context: &Context,
    form: &Form,
    exact: bool,
) -> Result<Option<Note>> {
    let numbers = form.numbers;
    if numbers == Numbers::All {
        return Ok(None);
    }
    let is_change = context.revision.is_some();
    let mut all = rows.windows.iter().flat_map(|of| {
        of.clone().map(move |(key, counts)| (key, Sample::new(of, counts, is_change)))
    });
    let Some((key, sample)) = all.find(|(_, sample)| sample.largest() > numbers.most()) else {
        return Ok(None);
    };
    let values: Vec<&str> = values_of(&rows.dictionaries, key).collect();
    let (window, count) = (sample.window, sample.largest());
    let place = format!("a count of {values:?} in {window:?}, {count},");
    if numbers == Numbers::Signed {
        let message = format!("{place} is above 2^63 - 1, the largest number of this format");
        return Err(Error::new(Code::CountOverflow, message));
    }
    if exact {
        let message = format!("{place} is above 2^53, and the target stores 64-bit floats");
        return Err(Error::new(Code::InexactCount, message));
    }
    Ok(Some(Note::InexactCount {
        values: values.into_iter().map(str::to_owned).collect(),
        window,
        count,
    }))
}

/// Returns notes about labels that a system which reads the format does not accept.
fn check_labels(rows: &Windowed, context: &Context, form: &Form) -> Vec<Note> {
    let Some(limits) = form.limits else {
        return Vec::new();
    };
    let reader = limits.reader;
    let long_value = long_value(rows, context, limits);
    let long_name = context.label_names().find_map(|name| {
        let is_long = name.len() > limits.name_bytes;
        is_long.then(|| Note::LongName { label: name.to_owned(), most: limits.name_bytes, reader })
    });
    let labels = context.label_names().count() + limits.added;
    let many = (labels > limits.labels).then_some(Note::ManyLabels {
        labels,
        most: limits.labels,
        reader,
    });
    long_value.into_iter().chain(long_name).chain(many).collect()
}

fn long_value(rows: &Windowed, context: &Context, limits: Limits) -> Option<Note> {
    let most = limits.value_bytes;
    let note = |(label, value): (&str, &str)| Note::LongValue {
        label: label.to_owned(),
        bytes: value.len(),
        most,
        reader: limits.reader,
    };
    let is_long = |(_, value): &(&str, &str)| value.len() > most;
    if let Some(own) = context.own_labels.iter().find(is_long) {
        return Some(note(own));
    }
    let has_long =
        |dictionary: &Arc<Dictionary>| dictionary.values().any(|value| value.len() > most);
    if !rows.dictionaries.iter().any(has_long) {
        return None;
    }
    // A dictionary may contain values that no row has.
    let mut keys = rows.windows.iter().flat_map(|of| of.clone().map(|(key, _)| key));
    keys.find_map(|key| {
        let names = rows.dimensions.names();
        let mut values = names.into_iter().zip(values_of(&rows.dictionaries, key));
        values.find(is_long).map(note)
    })
}

/// Removes the windows whose counts may still change or are incomplete, and returns a note about them.
fn leave_out_unsettled(source: &mut Source) -> Option<Note> {
    let windows = std::mem::take(&mut source.rows.windows);
    let (settled, others): (Vec<_>, Vec<_>) = windows.into_iter().partition(|rows| rows.settled);
    source.rows.windows = settled;
    let (first, last) = (others.first()?.window, others.last()?.window);
    Some(Note::WindowsLeftOut {
        windows: others.len(),
        range: Window::new(first.start(), last.end()).ok()?,
    })
}

fn values_of(dictionaries: &[Arc<Dictionary>], key: Key) -> impl Iterator<Item = &str> {
    dictionaries.iter().zip(key).map(|(dictionary, id)| dictionary.value(id))
}

/// The maximum size of a piece in bytes, even if the caller allows more.
fn most_bytes(form: &Form) -> usize {
    match &form.delivery {
        Some(delivery) if delivery.transport == Transport::Datagrams => MOST_BYTES_OF_DATAGRAM,
        _ => MOST_BYTES,
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("has_begun", &self.has_begun)
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}
