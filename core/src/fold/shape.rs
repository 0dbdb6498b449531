//! The shape of a metrics result (service reference 2.2 and 2.3), checked while it is folded.

use tallyfold_engine::{
    Added, Counts, EntryLimits, EntryReader, Fields, HashKeys, Key, Rows, RowsBuilder, RowsLimits,
    Taken,
};

use super::read_options::ReadOptions;
use super::tolerate::Tolerate;
use crate::code::Code;
use crate::counts::dimension::{Dimension, Dimensions};
use crate::counts::parse::{parse_count, refusal};
use crate::counts::part::Notes;
use crate::error::{Error, Result};
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;
use crate::wire::json::event::{Event, Skip, Visitor};
use crate::wire::json::path::Place;

/// Checks one response and adds its entries up.
#[derive(Debug)]
pub(super) struct ResultShape {
    requested: Dimensions,
    /// For each requested dimension, its column if it is kept.
    columns: [Option<usize>; Dimensions::MOST],
    expected: Option<Window>,
    tolerate: Tolerate,
    at: At,
    seen: Seen,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    window: Option<Window>,
    reported: Counts,
    entry: Entry,
    notes: Notes,
    rows: RowsBuilder,
    /// Reads entries that are written as expected; `None` if the limits are too low for that.
    reader: Option<EntryReader>,
}

/// Which value comes next.
#[derive(Clone, Copy, Debug)]
enum At {
    Root,
    ResultKey,
    ResultValue(ResultField),
    Counts,
    EntryKey,
    EntryValue(EntryField),
    DimensionKey,
    DimensionValue(usize),
    Unknown { skip: Skip, back: Level },
    End,
}

/// The objects that may hold fields that the reference does not show.
#[derive(Clone, Copy, Debug)]
enum Level {
    Result,
    Entry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultField {
    Start,
    End,
    TotalDelivered,
    TotalErrors,
    TotalFiltered,
    Counts,
}

impl ResultField {
    const ALL: [(&'static str, Self); 6] = [
        ("start", Self::Start),
        ("end", Self::End),
        ("totalDelivered", Self::TotalDelivered),
        ("totalErrors", Self::TotalErrors),
        ("totalFiltered", Self::TotalFiltered),
        ("counts", Self::Counts),
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryField {
    Success,
    Errors,
    Filtered,
    Dimensions,
}

impl EntryField {
    const ALL: [(&'static str, Self); 4] = [
        ("success", Self::Success),
        ("errors", Self::Errors),
        ("filtered", Self::Filtered),
        ("dimensions", Self::Dimensions),
    ];
}

/// The fields that have been read, by their number.
#[derive(Clone, Copy, Debug, Default)]
struct Seen(u8);

impl Seen {
    fn add(&mut self, field: usize) {
        self.0 |= 1 << field;
    }

    fn has(self, field: usize) -> bool {
        self.0 & 1 << field != 0
    }

    /// The first name whose field has not been read.
    fn missing<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        names.into_iter().enumerate().find(|(field, _)| !self.has(*field)).map(|(_, name)| name)
    }
}

/// The current entry.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    seen: Seen,
    dimensions_seen: Seen,
    counts: Counts,
    key: Key,
    /// Whether a dimension is an empty string, or a `null` that was read as an empty string.
    has_empty: bool,
}

impl ResultShape {
    pub(super) fn new(
        requested: Dimensions,
        kept: Dimensions,
        expected: Option<Window>,
        options: ReadOptions,
    ) -> Self {
        let ReadOptions { limits, tolerate, hash_seed } = options;
        let mut columns = [None; Dimensions::MOST];
        for (column, dimension) in columns.iter_mut().zip(requested.iter()) {
            *column = kept.position(dimension);
        }
        let names = requested.iter().map(Dimension::as_str);
        Self {
            requested,
            columns,
            expected,
            tolerate,
            at: At::Root,
            seen: Seen::default(),
            start: None,
            end: None,
            window: None,
            reported: Counts::default(),
            entry: Entry::default(),
            notes: Notes::default(),
            rows: RowsBuilder::new(
                kept.len(),
                RowsLimits {
                    groups: limits.groups,
                    bytes: usize::try_from(limits.table_bytes).unwrap_or(usize::MAX),
                },
                HashKeys::from_seed(hash_seed),
            ),
            reader: EntryReader::new(
                Fields {
                    dimensions: names.zip(columns).collect(),
                    may_repeat: tolerate.repeated_combination || kept.len() < requested.len(),
                },
                EntryLimits {
                    string_bytes: limits.string_bytes,
                    keys: limits.keys,
                    // The entries are nested in the result and its array.
                    depth: limits.depth.saturating_sub(2),
                },
            ),
        }
    }

    /// The contents of the response, once the lexer has found it complete.
    pub(super) fn into_parts(self) -> Result<(Window, Counts, Notes, Rows)> {
        let window = self.window.ok_or_else(|| {
            Error::new(Code::TruncatedBody, "the body ends before its JSON is complete")
        })?;
        self.rows.check_memory().map_err(refusal)?;
        Ok((window, self.reported, self.notes, self.rows.finish()))
    }

    fn result_value(
        &mut self,
        field: ResultField,
        event: Event<'_>,
        place: &Place<'_>,
    ) -> Result<At> {
        match field {
            ResultField::Start => {
                let expected = self.expected.map(Window::start);
                self.start = Some(echoed_instant(event, place, expected)?);
            }
            ResultField::End => {
                let expected = self.expected.map(Window::end);
                self.end = Some(echoed_instant(event, place, expected)?);
            }
            ResultField::TotalDelivered => self.reported.success = count(event, place)?,
            ResultField::TotalErrors => self.reported.errors = count(event, place)?,
            ResultField::TotalFiltered => self.reported.filtered = count(event, place)?,
            ResultField::Counts => {
                return match event {
                    Event::BeginArray => Ok(At::Counts),
                    _ => Err(wrong_type(event, place, "an array of count entries")),
                };
            }
        }
        Ok(At::ResultKey)
    }

    fn entry_value(
        &mut self,
        field: EntryField,
        event: Event<'_>,
        place: &Place<'_>,
    ) -> Result<At> {
        let counts = &mut self.entry.counts;
        match field {
            EntryField::Success => counts.success = count(event, place)?,
            EntryField::Errors => counts.errors = count(event, place)?,
            EntryField::Filtered => counts.filtered = count(event, place)?,
            EntryField::Dimensions => {
                return match event {
                    Event::BeginObject => Ok(At::DimensionKey),
                    _ => Err(wrong_type(event, place, "an object of dimension values")),
                };
            }
        }
        Ok(At::EntryKey)
    }

    fn dimension_key(&mut self, name: &str, place: &Place<'_>) -> Result<At> {
        let dimension = Dimension::from_name(name).and_then(|known| self.requested.position(known));
        let Some(dimension) = dimension else {
            let message = format!("this dimension was not requested; want {:?}", self.requested);
            return Err(place.error(Code::DimensionMismatch, message));
        };
        self.entry.dimensions_seen.add(dimension);
        Ok(At::DimensionValue(dimension))
    }

    fn dimension_value(
        &mut self,
        dimension: usize,
        event: Event<'_>,
        place: &Place<'_>,
    ) -> Result<At> {
        let value = match event {
            Event::String(value) => value,
            Event::Null if self.tolerate.null_dimension => {
                self.notes.null_dimensions += 1;
                ""
            }
            _ => return Err(wrong_type(event, place, "a string")),
        };
        self.entry.has_empty |= value.is_empty();
        if let Some(column) = self.columns[dimension] {
            let id = self.rows.intern(column, value);
            self.entry.key[column] = id.map_err(|refused| place.locate(refusal(refused)))?;
        }
        Ok(At::DimensionKey)
    }

    fn end_dimensions(&self, place: &Place<'_>) -> Result<At> {
        let names = self.requested.iter().map(Dimension::as_str);
        match self.entry.dimensions_seen.missing(names) {
            None => Ok(At::EntryKey),
            Some(name) => {
                let message = format!("the requested dimension {name} is missing");
                Err(place.error(Code::DimensionMismatch, message))
            }
        }
    }

    fn end_entry(&mut self, place: &Place<'_>) -> Result<At> {
        require_all(self.entry.seen, EntryField::ALL.map(|(name, _)| name), place)?;
        let Entry { key, counts, .. } = self.entry;
        // A `null` that was read as "" may repeat the combination of a real "". That is not the
        // service's mistake, so it is allowed.
        let by_null = self.entry.has_empty && self.notes.null_dimensions > 0;
        let may_repeat = self.tolerate.repeated_combination || by_null || !self.keeps_all();
        let added = self
            .rows
            .add(key, counts, may_repeat)
            .map_err(|refused| place.locate(refusal(refused)))?;
        if added == Added::Again && self.keeps_all() {
            self.notes.repeated_combinations += 1;
        }
        Ok(At::Counts)
    }

    /// Whether a repeated combination would be detected.
    fn keeps_all(&self) -> bool {
        self.columns.iter().flatten().count() == self.requested.len()
    }

    fn end_result(&mut self, place: &Place<'_>) -> Result<At> {
        require_all(self.seen, ResultField::ALL.map(|(name, _)| name), place)?;
        if let (Some(start), Some(end)) = (self.start, self.end) {
            let window = Window::new(start, end)
                .map_err(|error| place.error(Code::WindowMismatch, error.message()))?;
            self.window = Some(window);
        }
        Ok(At::End)
    }
}

impl Visitor for ResultShape {
    fn event(&mut self, event: Event<'_>, place: &Place<'_>) -> Result<()> {
        self.at = match (self.at, event) {
            (At::Root, Event::BeginObject) => At::ResultKey,
            (At::Root, _) => return Err(wrong_type(event, place, "an object")),

            (At::ResultKey, Event::Key(name)) => match position(&ResultField::ALL, name) {
                Some((number, field)) => {
                    self.seen.add(number);
                    At::ResultValue(field)
                }
                None => At::Unknown { skip: Skip::default(), back: Level::Result },
            },
            (At::ResultKey, _) => self.end_result(place)?,
            (At::ResultValue(field), _) => self.result_value(field, event, place)?,

            (At::Counts, Event::BeginObject) => {
                self.entry = Entry::default();
                At::EntryKey
            }
            (At::Counts, Event::EndArray) => At::ResultKey,
            (At::Counts, _) => return Err(wrong_type(event, place, "a count entry (an object)")),

            (At::EntryKey, Event::Key(name)) => match position(&EntryField::ALL, name) {
                Some((number, field)) => {
                    self.entry.seen.add(number);
                    At::EntryValue(field)
                }
                None => At::Unknown { skip: Skip::default(), back: Level::Entry },
            },
            (At::EntryKey, _) => self.end_entry(place)?,
            (At::EntryValue(field), _) => self.entry_value(field, event, place)?,

            (At::DimensionKey, Event::Key(name)) => self.dimension_key(name, place)?,
            (At::DimensionKey, _) => self.end_dimensions(place)?,
            (At::DimensionValue(dimension), _) => self.dimension_value(dimension, event, place)?,

            (At::Unknown { mut skip, back }, _) => match (skip.is_over(&event), back) {
                (false, _) => At::Unknown { skip, back },
                (true, Level::Result) => At::ResultKey,
                (true, Level::Entry) => At::EntryKey,
            },
            (At::End, _) => At::End,
        };
        Ok(())
    }

    fn take_elements(&mut self, rest: &[u8]) -> Taken {
        if !matches!(self.at, At::Counts) {
            return Taken::default();
        }
        let taken = match &mut self.reader {
            Some(reader) => reader.take(rest, &mut self.rows),
            None => Taken::default(),
        };
        if self.keeps_all() {
            self.notes.repeated_combinations += taken.repeated;
        }
        taken
    }
}

/// Whether the reference has a field or a dimension with that name.
pub(crate) fn is_named(key: &str) -> bool {
    position(&ResultField::ALL, key).is_some()
        || position(&EntryField::ALL, key).is_some()
        || Dimension::from_name(key).is_some()
}

/// The place of a name in a list, and its value.
fn position<T: Copy>(all: &[(&str, T)], name: &str) -> Option<(usize, T)> {
    let number = all.iter().position(|(known, _)| *known == name)?;
    Some((number, all[number].1))
}

fn require_all<const N: usize>(seen: Seen, names: [&str; N], place: &Place<'_>) -> Result<()> {
    match seen.missing(names) {
        None => Ok(()),
        Some(name) => {
            Err(place.error(Code::MissingField, format!("the field {name} is missing here")))
        }
    }
}

fn count(event: Event<'_>, place: &Place<'_>) -> Result<u64> {
    match event {
        Event::String(digits) => parse_count(digits).map_err(|error| place.locate(error)),
        _ => Err(wrong_type(event, place, "a string of ASCII digits")),
    }
}

/// Reads `start` or `end`, which must be the requested timestamp, in any form.
fn echoed_instant(
    event: Event<'_>,
    place: &Place<'_>,
    expected: Option<Timestamp>,
) -> Result<Timestamp> {
    let Event::String(text) = event else {
        return Err(wrong_type(event, place, "a string with a date and time"));
    };
    let Some(instant) = Timestamp::named_by(text) else {
        let message = "this isn't a timestamp: want a date and time with Z or an offset from UTC";
        return Err(place.error(Code::WindowMismatch, message));
    };
    match expected {
        Some(expected) if expected != instant => {
            let message = format!("the response is about {instant}, and {expected} was requested");
            Err(place.error(Code::WindowMismatch, message))
        }
        _ => Ok(instant),
    }
}

fn wrong_type(event: Event<'_>, place: &Place<'_>, want: &str) -> Error {
    place.error(Code::WrongType, format!("want {want}, not {}", event.describe()))
}
