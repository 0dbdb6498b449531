//! The plain reader: it reads a response with serde_json, in the slow and obvious way.
//!
//! serde_json decides what is JSON. The rules of the service reference for a result are checked
//! here, in the order of the bytes, so that both readers report the first of several errors.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tallyfold::{AggregatorOptions, Code, Timestamp, Window};

/// The arguments of a fold.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) dimensions: Vec<&'static str>,
    pub(crate) options: AggregatorOptions,
}

impl Setup {
    /// The dimensions that are kept, in the order of the rows.
    pub(crate) fn kept(&self) -> Vec<String> {
        match &self.options.group_by {
            Some(kept) => kept.iter().map(ToString::to_string).collect(),
            None => self.dimensions.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

/// The contents of a response.
#[derive(Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) start: DateTime<Utc>,
    pub(crate) end: DateTime<Utc>,
    pub(crate) reported: [u64; 3],
    pub(crate) repeated_combinations: u64,
    pub(crate) null_dimensions: u64,
    /// The counts by the values of the kept dimensions.
    pub(crate) rows: BTreeMap<Vec<String>, [u64; 3]>,
}

/// Reads a body. Returns its contents, or the code of its first error.
pub(crate) fn read(body: &[u8], setup: &Setup) -> Result<Reading, Code> {
    let limit = usize::try_from(setup.options.limits.body_bytes).expect("64 bits");
    let Some(within) = body.get(..limit).filter(|_| body.len() > limit) else {
        return read_whole(body, setup);
    };
    match read_whole(within, setup) {
        Ok(_) | Err(Code::TruncatedBody | Code::EmptyBody) => Err(Code::BodyLimit),
        // A number that is the whole document may continue after the limit.
        Err(Code::WrongType)
            if within.trim_ascii_start().iter().all(is_of_number)
                && serde_json::from_slice::<IgnoredAny>(within).is_ok() =>
        {
            Err(Code::BodyLimit)
        }
        Err(code) => Err(code),
    }
}

/// Whether the byte can be a part of a number.
pub(crate) fn is_of_number(byte: &u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(byte)
}

fn read_whole(body: &[u8], setup: &Setup) -> Result<Reading, Code> {
    if let Some(code) = not_json_at_all(body) {
        return Err(code);
    }
    let mut body = body.to_vec();
    loop {
        let plain = Plain::new(setup);
        let mut json = serde_json::Deserializer::from_slice(&body);
        let read = Node::new(&plain, At::Root, 0).deserialize(&mut json);
        match read.and_then(|()| json.end()) {
            Ok(()) => return plain.reading(),
            // The fold does not convert numbers, so no number is out of range where any number is
            // allowed.
            Err(error) if error.to_string().starts_with("number out of range") => {
                let at = offset_in(&body, &error);
                make_small(&mut body, at);
            }
            Err(error) => return Err(plain.code(&error, &body)),
        }
    }
}

/// Parses a timestamp: ISO 8601 with `Z` or an offset from UTC.
pub(crate) fn instant(text: &str) -> Option<DateTime<Utc>> {
    let (local, zone) = match text.strip_suffix('Z') {
        Some(local) => (local, "+00:00"),
        None => text.split_at_checked(text.len().checked_sub(6)?)?,
    };
    let ahead = zone.strip_prefix(['+', '-'])?;
    let ahead = NaiveTime::parse_from_str(ahead, "%H:%M")
        .ok()
        .filter(|time| time.format("%H:%M").to_string() == ahead)?;
    let ahead = ahead.signed_duration_since(NaiveTime::MIN);
    let ahead = if zone.starts_with('-') { -ahead } else { ahead };
    let (body, rest) = local.as_bytes().split_at_checked(19)?;
    let number = |from: usize, to: usize| {
        let digits = &body[from..to];
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| body[*at] != *mark) {
        return None;
    }
    let nanoseconds = match rest {
        [] => 0,
        [b'.', digits @ ..]
            if (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) =>
        {
            let nine = (0..9).map(|at| u32::from(digits.get(at).unwrap_or(&b'0') - b'0'));
            nine.fold(0, |number, digit| number * 10 + digit)
        }
        _ => return None,
    };
    let year = i32::try_from(number(0, 4)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, number(5, 7)?, number(8, 10)?)?;
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let instant = date.and_hms_nano_opt(hour, minute, second, nanoseconds)?;
    let instant = instant.checked_sub_signed(ahead)?.and_utc();
    (0..=9999).contains(&instant.year()).then_some(instant)
}

/// The errors that are found before any JSON: an empty body, a web page, or a byte order mark.
fn not_json_at_all(body: &[u8]) -> Option<Code> {
    for mark in [&b"\xEF\xBB\xBF"[..], b"\xFE\xFF", b"\xFF\xFE"] {
        if body.starts_with(mark) {
            return Some(Code::ByteOrderMark);
        }
        if !body.is_empty() && mark.starts_with(body) {
            return Some(Code::TruncatedBody);
        }
    }
    match body.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
        None => Some(Code::EmptyBody),
        Some(b'<') => Some(Code::HtmlResponse),
        Some(_) => None,
    }
}

/// Replaces the number around this byte with a small one of the same length. The new number has an
/// exponent if the old one had one.
fn make_small(body: &mut [u8], at: usize) {
    let in_number = |byte: &&u8| is_of_number(byte);
    let start = at + 1 - body[..=at].iter().rev().take_while(in_number).count();
    let end = at + 1 + body[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = &mut body[start..end];
    let exponent = number.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = number.split_at_mut(exponent.unwrap_or(number.len()));
    exponent.iter_mut().filter(|byte| byte.is_ascii_digit()).for_each(|byte| *byte = b'0');
    if mantissa.len() > 2 {
        mantissa.fill(b'0');
        mantissa[1] = b'.';
    }
}

/// The offset of the byte at fault.
fn offset_in(body: &[u8], error: &serde_json::Error) -> usize {
    let lines = body.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(error.line() - 1).map(<[u8]>::len).sum();
    (before + error.column()).saturating_sub(1)
}

/// The place of the current value.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Root,
    Start,
    End,
    Reported(usize),
    Counts,
    Entry,
    Count(usize),
    Dimensions,
    Dimension(usize),
    Unknown,
}

/// A reading in progress.
struct Plain<'a> {
    setup: &'a Setup,
    kept: Vec<String>,
    /// Whether the reference describes the current value.
    known: Cell<bool>,
    /// Whether a number was read where no number is allowed.
    number: Cell<bool>,
    said: RefCell<Said>,
}

/// The contents of the response so far.
#[derive(Default)]
struct Said {
    start: Option<DateTime<Utc>>,
    end: Option<DateTime<Utc>>,
    reported: [u64; 3],
    counts: [u64; 3],
    values: Vec<String>,
    totals: [u64; 3],
    rows: BTreeMap<Vec<String>, [u64; 3]>,
    repeated_combinations: u64,
    null_dimensions: u64,
}

impl<'a> Plain<'a> {
    fn new(setup: &'a Setup) -> Self {
        Self {
            setup,
            kept: setup.kept(),
            known: Cell::new(true),
            number: Cell::new(false),
            said: RefCell::default(),
        }
    }

    fn reading(self) -> Result<Reading, Code> {
        let said = self.said.into_inner();
        Ok(Reading {
            start: said.start.ok_or(Code::MissingField)?,
            end: said.end.ok_or(Code::MissingField)?,
            reported: said.reported,
            repeated_combinations: said.repeated_combinations,
            null_dimensions: said.null_dimensions,
            rows: said.rows,
        })
    }

    /// The code that the fold reports for an error of serde_json.
    fn code(&self, error: &serde_json::Error, body: &[u8]) -> Code {
        let message = error.to_string();
        let at = offset_in(body, error);
        if error.is_data() {
            // A number at the end of the body may be truncated.
            if self.number.get() && at + 1 == body.len() {
                return Code::TruncatedBody;
            }
            return our_code(&message);
        }
        // serde_json reads the four digits of an escape at once, so it reports the end before a
        // wrong digit.
        let is_cut = error.is_eof();
        let odd_digit = match () {
            () if is_cut => (0..4).rev().find_map(|length| odd_digit(body, length)),
            () if message.starts_with("invalid escape") => odd_digit(&body[..=at], 4),
            () => None,
        };
        let at = odd_digit.unwrap_or(if is_cut { body.len() } else { at });
        // serde_json checks the characters of a string only once it has the whole string.
        if let Err(error) = str::from_utf8(body)
            && error.error_len().is_some()
            && error.valid_up_to() < at
        {
            return Code::InvalidUtf8;
        }
        if is_cut && odd_digit.is_none() {
            return Code::TruncatedBody;
        }
        let says = |start: &str| message.starts_with(start);
        match () {
            () if says("trailing characters") => Code::TrailingBytes,
            () if says("invalid unicode code point") => Code::InvalidUtf8,
            () if says("lone leading surrogate") || says("unexpected end of hex escape") => {
                Code::LoneSurrogate
            }
            // The number ends before a digit that follows a leading zero.
            () if says("invalid number") && body[at].is_ascii_digit() && self.known.get() => {
                Code::WrongType
            }
            () => Code::InvalidJson,
        }
    }
}

/// The code in the message of an error that [`fail`] made.
fn our_code(message: &str) -> Code {
    let name = message.split(' ').next().unwrap_or_default();
    let code = Code::ALL.iter().find(|code| code.as_str() == name);
    *code.unwrap_or_else(|| panic!("{message} is an error of ours"))
}

fn fail<T, E: serde::de::Error>(code: Code) -> Result<T, E> {
    Err(E::custom(code))
}

/// The offset of the first byte that isn't a hexadecimal digit, if the body ends with an escape of
/// `length` bytes.
fn odd_digit(body: &[u8], length: usize) -> Option<usize> {
    let start = body.len().checked_sub(length)?;
    let odd = body[start..].iter().position(|byte| !byte.is_ascii_hexdigit())?;
    is_escaped_u(&body[..start]).then_some(start + odd)
}

fn is_escaped_u(bytes: &[u8]) -> bool {
    let Some((b'u', before)) = bytes.split_last() else {
        return false;
    };
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// A value at its place, with `depth` open containers around it.
#[derive(Clone, Copy)]
struct Node<'a, 'b> {
    plain: &'b Plain<'a>,
    at: At,
    depth: usize,
}

impl<'a, 'b> Node<'a, 'b> {
    fn new(plain: &'b Plain<'a>, at: At, depth: usize) -> Self {
        Self { plain, at, depth }
    }

    fn inner(&self, at: At) -> Self {
        Self::new(self.plain, at, self.depth + 1)
    }

    fn scalar<E: serde::de::Error>(self) -> Result<(), E> {
        match self.at {
            At::Unknown => Ok(()),
            _ => fail(Code::WrongType),
        }
    }

    fn open<E: serde::de::Error>(self, allowed: &[At]) -> Result<(), E> {
        if self.depth >= self.plain.setup.options.limits.depth {
            return fail(Code::DepthLimit);
        }
        if self.at == At::Unknown || allowed.contains(&self.at) {
            return Ok(());
        }
        fail(Code::WrongType)
    }

    fn string<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        let mut said = self.plain.said.borrow_mut();
        let options = &self.plain.setup.options;
        if text.len() > options.limits.string_bytes {
            return fail(Code::StringLimit);
        }
        match self.at {
            At::Start => said.start = Some(echoed(text, options.window.map(Window::start))?),
            At::End => said.end = Some(echoed(text, options.window.map(Window::end))?),
            At::Reported(count) => said.reported[count] = digits(text)?,
            At::Count(count) => said.counts[count] = digits(text)?,
            At::Dimension(dimension) => said.values[dimension] = text.to_owned(),
            At::Unknown => {}
            _ => return fail(Code::WrongType),
        }
        Ok(())
    }

    /// The value that a key of the object announces.
    fn field<E: serde::de::Error>(self, key: &str) -> Result<At, E> {
        Ok(match (self.at, key) {
            (At::Root, "start") => At::Start,
            (At::Root, "end") => At::End,
            (At::Root, "totalDelivered") => At::Reported(0),
            (At::Root, "totalErrors") => At::Reported(1),
            (At::Root, "totalFiltered") => At::Reported(2),
            (At::Root, "counts") => At::Counts,
            (At::Entry, "success") => At::Count(0),
            (At::Entry, "errors") => At::Count(1),
            (At::Entry, "filtered") => At::Count(2),
            (At::Entry, "dimensions") => At::Dimensions,
            (At::Dimensions, _) => {
                let mut names = self.plain.setup.dimensions.iter();
                match names.position(|name| *name == key) {
                    Some(dimension) => At::Dimension(dimension),
                    None => return fail(Code::DimensionMismatch),
                }
            }
            _ => At::Unknown,
        })
    }

    /// Checks an object at its end.
    fn end<E: serde::de::Error>(self, keys: &[String]) -> Result<(), E> {
        let has = |names: &[&str]| {
            let mut names = names.iter();
            names.all(|name| keys.iter().any(|key| key == name))
        };
        match self.at {
            At::Root => {
                let totals = ["totalDelivered", "totalErrors", "totalFiltered"];
                if !has(&["start", "end", "counts"]) || !has(&totals) {
                    return fail(Code::MissingField);
                }
                let said = self.plain.said.borrow();
                if said.start >= said.end {
                    return fail(Code::WindowMismatch);
                }
                Ok(())
            }
            At::Dimensions if !has(&self.plain.setup.dimensions) => fail(Code::DimensionMismatch),
            At::Entry if !has(&["success", "errors", "filtered", "dimensions"]) => {
                fail(Code::MissingField)
            }
            At::Entry => self.end_entry(),
            _ => Ok(()),
        }
    }

    fn end_entry<E: serde::de::Error>(self) -> Result<(), E> {
        let Plain { setup, kept, .. } = self.plain;
        let said = &mut *self.plain.said.borrow_mut();
        let Some(totals) = sum(said.totals, said.counts) else {
            return fail(Code::SumOverflow);
        };
        let value = |name: &String| {
            let mut names = setup.dimensions.iter();
            let position = names.position(|known| known == name);
            said.values[position.expect("what is kept was requested")].clone()
        };
        let key: Vec<String> = kept.iter().map(value).collect();
        let keeps_all = kept.len() == setup.dimensions.len();
        let by_null = said.null_dimensions > 0 && said.values.iter().any(String::is_empty);
        let may_repeat = setup.options.tolerate.repeated_combination || by_null || !keeps_all;
        match said.rows.get(&key) {
            Some(_) if !may_repeat => return fail(Code::RepeatedCombination),
            Some(_) => said.repeated_combinations += u64::from(keeps_all),
            None if said.rows.len() >= setup.options.limits.groups => {
                return fail(Code::GroupLimit);
            }
            None => {
                let mut bytes = 64 * (said.rows.len() + 1);
                for (column, value) in key.iter().enumerate() {
                    let values = said.rows.keys().map(|key| &key[column]);
                    let distinct: BTreeSet<&String> = values.chain([value]).collect();
                    bytes += distinct.iter().map(|value| value.len() + 32).sum::<usize>();
                }
                if bytes as u64 > setup.options.limits.table_bytes {
                    return fail(Code::GroupLimit);
                }
            }
        }
        let row = said.rows.entry(key).or_default();
        *row = sum(*row, said.counts).expect("no sum is above the total");
        said.totals = totals;
        Ok(())
    }
}

fn sum(a: [u64; 3], b: [u64; 3]) -> Option<[u64; 3]> {
    let mut sum = a;
    for (sum, more) in sum.iter_mut().zip(b) {
        *sum = sum.checked_add(more)?;
    }
    Some(sum)
}

/// Parses a count without a limit on its length.
fn digits<E: serde::de::Error>(text: &str) -> Result<u64, E> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return fail(Code::InvalidCount);
    }
    match text.trim_start_matches('0') {
        "" => Ok(0),
        digits if digits.len() > 20 => fail(Code::CountOverflow),
        digits => match digits.parse::<u128>().map(u64::try_from) {
            Ok(Ok(count)) => Ok(count),
            _ => fail(Code::CountOverflow),
        },
    }
}

fn echoed<E: serde::de::Error>(text: &str, wanted: Option<Timestamp>) -> Result<DateTime<Utc>, E> {
    match instant(text) {
        Some(echoed)
            if wanted.is_none_or(|wanted| instant(&wanted.to_string()) == Some(echoed)) =>
        {
            Ok(echoed)
        }
        _ => fail(Code::WindowMismatch),
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.plain.known.set(self.at != At::Unknown);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what the service reference shows")
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.scalar()
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.visit_f64(0.0)
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.visit_f64(0.0)
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        // A whole document may be a number, so it isn't truncated then.
        self.plain.number.set(!matches!(self.at, At::Root | At::Unknown));
        self.scalar()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        match self.at {
            At::Dimension(dimension) if self.plain.setup.options.tolerate.null_dimension => {
                let mut said = self.plain.said.borrow_mut();
                said.null_dimensions += 1;
                said.values[dimension] = String::new();
                Ok(())
            }
            _ => self.scalar(),
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.string(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        self.open(&[At::Counts])?;
        let at = if self.at == At::Counts { At::Entry } else { At::Unknown };
        while elements.next_element_seed(self.inner(at))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        self.open(&[At::Root, At::Entry, At::Dimensions])?;
        if self.at == At::Entry {
            let values = vec![String::new(); self.plain.setup.dimensions.len()];
            self.plain.said.borrow_mut().values = values;
        }
        let limits = &self.plain.setup.options.limits;
        let mut keys: Vec<String> = Vec::new();
        while let Some(key) = fields.next_key::<String>()? {
            if key.len() > limits.string_bytes {
                return fail(Code::StringLimit);
            }
            if keys.contains(&key) {
                return fail(Code::DuplicateKey);
            }
            if keys.len() >= limits.keys {
                return fail(Code::KeyLimit);
            }
            let at = self.field(&key)?;
            keys.push(key);
            fields.next_value_seed(self.inner(at))?;
        }
        self.end(&keys)
    }
}
