//! An export under way: pieces of bytes, one after the other.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;
use tallyfold::sending::{self, Delivery, Way};
use tallyfold::{Code, CountName, Dictionary, Error, Key, Result};

use crate::context::Context;
use crate::form::{Form, Numbers, Order};
use crate::options::{ExportOptions, Windows};
use crate::piece::Piece;
use crate::sample::{Group, Sample};
use crate::samples::Samples;
use crate::source::Source;
use crate::walk::Walk;

/// The most samples that an encoder gets at once.
const MOST_SAMPLES: usize = 256;

/// The most bytes of a piece, whatever the caller asks for: protobuf's readers take messages of up to 2 GiB, and snappy
/// compresses up to 4 GiB. Half of that leaves room for a group that is larger than expected.
const MOST_BYTES: usize = 1 << 30;

/// The same for a datagram over IPv4.
const MOST_BYTES_OF_DATAGRAM: usize = 65_507;

/// An export under way.
///
/// A clone goes on at the same place, and both give the same bytes.
#[derive(Clone)]
pub struct Export {
    fixed: Arc<Fixed>,
    walk: Walk,
    /// A group that did not fit into the last piece.
    held: Option<(Key, Vec<Sample>)>,
    /// The number of rounds that were begun.
    rounds: usize,
    pieces: u64,
    is_done: bool,
}

/// What does not change while an export goes on.
struct Fixed {
    form: &'static Form,
    context: Context,
    dictionaries: Vec<Arc<Dictionary>>,
    max_bytes: usize,
    notes: Vec<Note>,
}

tallyfold::names! {
    /// What a caller should know of an export.
    pub enum NoteKind {
        /// A count is above 2^53, and the target stores 64-bit floats.
        InexactCount = "inexact_count",
        /// Windows were left out, because their counts may still change or they are not covered whole.
        WindowsLeftOut = "windows_left_out",
    }
}

/// What a caller should know of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Note {
    /// What kind of note.
    pub kind: NoteKind,
    /// A sentence for people.
    pub message: String,
}

impl Export {
    /// Begins an export. Whatever can't be written is found now: nothing is written before.
    ///
    /// # Errors
    /// `invalid_argument` for labels and names; `count_overflow` for a count above 2^63 - 1, if the format has signed
    /// 64-bit integers; `inexact_count` for one above 2^53, if the target stores 64-bit floats and `exact` is set;
    /// `unsupported_by_format` for what else the format can't carry.
    pub fn new(source: impl Into<Source>, options: &ExportOptions) -> Result<Self> {
        let mut source = source.into();
        let form = options.format.form();
        let mut notes = Vec::new();
        notes.extend(leave_out(&mut source, options, form));
        let context = Context::new(&source, options, form.leaves_out_empty)?;
        (form.check)(&context)?;
        let rows = source.rows;
        let is_change = source.revision.is_some();
        let walk = Walk::new(rows.windows, form.order, is_change);
        let mut export = Self {
            fixed: Arc::new(Fixed {
                form,
                context,
                dictionaries: rows.dictionaries,
                max_bytes: options
                    .max_bytes
                    .unwrap_or(form.max_bytes)
                    .min(most_bytes(form)),
                notes: Vec::new(),
            }),
            walk,
            held: None,
            rounds: 0,
            pieces: 0,
            is_done: false,
        };
        notes.extend(export.check_numbers(options.exact)?);
        if let Some(fixed) = Arc::get_mut(&mut export.fixed) {
            fixed.notes = notes;
        }
        Ok(export)
    }

    /// What the caller should know.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.fixed.notes
    }

    /// The samples that no piece was begun with, for hosts that write them in a form of their own.
    #[must_use]
    pub fn samples(&self) -> Samples {
        Samples::new(self.walk.clone())
    }

    /// The names of the dimensions, in the order of a sample's values.
    #[must_use]
    pub fn dimensions(&self) -> &[&'static str] {
        &self.fixed.context.dimensions
    }

    /// For each dimension, its distinct values, sorted.
    #[must_use]
    pub fn dictionaries(&self) -> &[Arc<Dictionary>] {
        &self.fixed.dictionaries
    }

    /// The labels of the caller, in the caller's order.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.fixed.context.own_labels.iter();
        labels.map(|(name, value)| (&**name, &**value))
    }

    /// The number of the revision, if changes are exported.
    #[must_use]
    pub fn revision(&self) -> Option<u32> {
        self.fixed.context.revision
    }

    /// Writes the next piece, in place of what `out` holds. Gives how many samples it has; `None` after the last piece.
    pub fn next_piece(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        self.next_piece_of(usize::MAX, out)
    }

    /// The same, with at most so many samples: for targets that refuse a message as too large.
    pub fn next_piece_of(&mut self, most: usize, out: &mut Vec<u8>) -> Option<usize> {
        out.clear();
        if self.is_done {
            return None;
        }
        let fixed = Arc::clone(&self.fixed);
        let mut piece = Piece {
            encoder: (fixed.form.encoder)(&fixed.context),
            out,
            context: &fixed.context,
            max_bytes: fixed.max_bytes,
            is_first: self.pieces == 0,
            has_begun: false,
            samples: 0,
        };
        let mut samples = Vec::new();
        let mut values: Vec<&str> = Vec::new();
        while piece.samples < most {
            let room = MOST_SAMPLES.min(most - piece.samples);
            let Some(key) = self.next_group(room, &mut samples) else {
                self.is_done = true;
                break;
            };
            values.clear();
            values.extend(values_of(&fixed.dictionaries, key));
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
        }
        // A text has a beginning and an end, even without a sample. A message without one is not sent.
        if piece.samples == 0 && fixed.form.is_messages {
            return None;
        }
        piece.begin();
        piece.encoder.end(self.is_done, piece.out);
        self.pieces += 1;
        Some(piece.samples)
    }

    /// The next group, or what was held of it.
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

    /// Holds samples for the next piece, before those of the same group that are held.
    fn hold(&mut self, key: Key, mut samples: Vec<Sample>) {
        if samples.is_empty() {
            return;
        }
        let held = self.held.take();
        samples.extend(held.into_iter().flat_map(|(_, held)| held));
        self.held = Some((key, samples));
    }

    /// Writes all pieces that are left.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_to(&mut self, writer: &mut dyn Write) -> io::Result<()> {
        let mut piece = Vec::new();
        while self.next_piece(&mut piece).is_some() {
            writer.write_all(&piece)?;
        }
        Ok(())
    }

    /// Looks for a count that the format, or the system that reads it, can't hold.
    fn check_numbers(&self, exact: bool) -> Result<Option<Note>> {
        let numbers = self.fixed.form.numbers;
        if numbers == Numbers::All {
            return Ok(None);
        }
        let mut walk = self.walk.by_windows();
        let mut samples = Vec::new();
        while let Some(key) = walk.next(MOST_SAMPLES, &mut samples) {
            let Some(sample) = samples
                .iter()
                .find(|sample| sample.largest() > numbers.most())
            else {
                continue;
            };
            let values: Vec<&str> = values_of(&self.fixed.dictionaries, key).collect();
            let place = format!(
                "a count of {values:?} in {:?}, {},",
                sample.window,
                sample.largest()
            );
            if numbers == Numbers::Signed {
                let message =
                    format!("{place} is above 2^63 - 1, the largest number of this format");
                return Err(Error::new(Code::CountOverflow, message));
            }
            if exact {
                let message = format!("{place} is above 2^53, and the target stores 64-bit floats");
                return Err(Error::new(Code::InexactCount, message));
            }
            return Ok(Some(Note {
                kind: NoteKind::InexactCount,
                message: format!(
                    "{place} is above 2^53: the target stores it as a 64-bit float, which rounds it"
                ),
            }));
        }
        Ok(None)
    }
}

impl sending::Source for Export {
    fn delivery(&self) -> Result<&'static Delivery> {
        self.fixed.form.delivery()
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
            let most = usize::try_from(samples)
                .unwrap_or(MOST_SAMPLES)
                .min(MOST_SAMPLES);
            if self.next_group(most, &mut skipped).is_none() {
                break;
            }
            samples -= skipped.len() as u64;
        }
        samples
    }
}

/// Takes windows out that are not to be written, and says which.
fn leave_out(source: &mut Source, options: &ExportOptions, form: &Form) -> Option<Note> {
    let usual = if form.has_all_windows {
        Windows::All
    } else {
        Windows::Settled
    };
    if source.revision.is_some() || options.windows.unwrap_or(usual) == Windows::All {
        return None;
    }
    let windows = std::mem::take(&mut source.rows.windows);
    let (settled, others): (Vec<_>, Vec<_>) = windows.into_iter().partition(|rows| rows.settled);
    source.rows.windows = settled;
    let (first, last) = (others.first()?.window, others.last()?.window);
    Some(Note {
        kind: NoteKind::WindowsLeftOut,
        message: format!(
            "{} windows from {} to {} were left out: their counts may still change, or are not all there; the \
             option windows with \"all\" writes them too",
            others.len(),
            first.start(),
            last.end()
        ),
    })
}

fn values_of(dictionaries: &[Arc<Dictionary>], key: Key) -> impl Iterator<Item = &str> {
    dictionaries
        .iter()
        .zip(key)
        .map(|(dictionary, id)| dictionary.value(id))
}

/// The most bytes of a piece, whatever the caller asks for.
fn most_bytes(form: &Form) -> usize {
    match &form.delivery {
        Some(delivery) if delivery.way == Way::Datagrams => MOST_BYTES_OF_DATAGRAM,
        _ => MOST_BYTES,
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("pieces", &self.pieces)
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}
