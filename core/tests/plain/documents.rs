//! Documents that choices make: responses in every way in which a service may write them, with the
//! errors that may occur in the service or on the way from it.
//!
//! Choices are bytes from proptest or a fuzzer, followed by zeros. Fewer and smaller bytes make
//! simpler documents, so a failure shrinks to a small document.

use tallyfold::{AggregatorOptions, Dimension, Limits, Tolerate, Window};

use super::reading::Setup;

/// Bytes that determine the choices.
pub(crate) struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// A number below `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let mut number = usize::from(self.byte());
        if count > 256 {
            number = number << 8 | usize::from(self.byte());
        }
        if count > 1 << 16 {
            number = number << 8 | usize::from(self.byte());
        }
        number % count
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = last - self.below(last + 1);
            items.swap(last, other);
        }
    }
}

const START: &str = "2026-01-01T00:00:00Z";
const END: &str = "2026-01-01T00:15:00Z";

/// Which dimensions are requested and kept, what is tolerated, and how much is read.
pub(crate) fn any_setup(choices: &mut Choices<'_>) -> Setup {
    let mut dimensions = vec!["write_key", "integration", "event_name", "reason"];
    choices.shuffle(&mut dimensions);
    dimensions.truncate(1 + (choices.below(4) + 1) % 4);
    let group_by = match choices.below(6) {
        0 | 1 => None,
        2 => Some(Vec::new()),
        number => {
            let mut kept: Vec<Dimension> =
                dimensions.iter().filter_map(|name| Dimension::from_name(name)).collect();
            choices.shuffle(&mut kept);
            kept.truncate(number - 2);
            Some(kept)
        }
    };
    let tolerate =
        Tolerate { repeated_combination: choices.one_in(4), null_dimension: choices.one_in(4) };
    let mut limits = Limits::default();
    match choices.below(25) {
        19 => limits.body_bytes = choices.below(4_096) as u64,
        20 => limits.depth = choices.below(8),
        21 => limits.string_bytes = choices.below(45),
        22 => limits.keys = choices.below(12),
        23 => limits.groups = choices.below(12),
        24 => limits.table_bytes = choices.below(1_000) as u64,
        _ => {}
    }
    let window = choices.one_in(4).then(|| Window::parse(START, END).expect("a window"));
    let hash_seed = u64::from(choices.byte());
    let options = AggregatorOptions::default()
        .group_by(group_by)
        .window(window)
        .limits(limits)
        .tolerate(tolerate)
        .hash_seed(hash_seed);
    Setup { dimensions, options }
}

/// One error, or an oddity that is valid.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Oddity {
    None,
    /// A count that is not what it should be.
    Count,
    /// A value of another type.
    Type,
    /// A dimension that is null or empty in two entries that are equal otherwise.
    NullDimension,
    MissingField,
    MissingDimension,
    OtherDimension,
    DuplicateField,
    DuplicateDimension,
    RepeatedCombination,
    /// Text that isn't a valid string.
    Text,
    /// An edge of the window, or a total.
    Result,
}

const ODDITIES: [Oddity; 12] = [
    Oddity::Count,
    Oddity::Type,
    Oddity::NullDimension,
    Oddity::NullDimension,
    Oddity::MissingField,
    Oddity::MissingDimension,
    Oddity::OtherDimension,
    Oddity::DuplicateField,
    Oddity::DuplicateDimension,
    Oddity::RepeatedCombination,
    Oddity::Text,
    Oddity::Result,
];

/// How a value is written.
enum Json {
    /// Written unchanged.
    Raw(Vec<u8>),
    Object(Vec<(Vec<u8>, Json)>),
    Array(Vec<Json>),
}

/// The white space between the tokens.
#[derive(Clone, Copy)]
enum Space {
    None,
    Single,
    Pretty,
    Any,
}

/// How strings are written.
#[derive(Clone, Copy)]
enum Escapes {
    Needed,
    Some,
    All,
}

/// How a run of entries is written.
struct Style {
    space: Space,
    escapes: Escapes,
    /// Whether the keys of each entry have another order.
    shuffled: bool,
    order: [usize; 4],
    dimension_order: Vec<usize>,
    unknown: Vec<(Vec<u8>, usize)>,
    /// Whether a value of each entry differs from the values of all other entries.
    distinct: bool,
    long: bool,
}

fn any_style(choices: &mut Choices<'_>, setup: &Setup) -> Style {
    let mut order = [0, 1, 2, 3];
    let mut dimension_order: Vec<usize> = (0..setup.dimensions.len()).collect();
    let space = choices.pick(&[Space::None, Space::Single, Space::Pretty, Space::Any]);
    if choices.one_in(2) {
        choices.shuffle(&mut order);
        choices.shuffle(&mut dimension_order);
    }
    let unknown = match choices.below(4) {
        3 => (0..=choices.below(5)).map(|number| any_unknown(choices, number)).collect(),
        _ => Vec::new(),
    };
    Style {
        space,
        escapes: choices.pick(&[Escapes::Needed, Escapes::Needed, Escapes::Some, Escapes::All]),
        shuffled: choices.one_in(6),
        order,
        dimension_order,
        unknown,
        distinct: !choices.one_in(64),
        long: choices.one_in(4),
    }
}

fn any_unknown(choices: &mut Choices<'_>, number: usize) -> (Vec<u8>, usize) {
    let name = choices.pick(&[
        "beta",
        "",
        "Success",
        "успех",
        "success ",
        "a_name_of_more_than_32_bytes_in_all",
    ]);
    // Most of them are strings, because strings can be predicted.
    let kind = if choices.one_in(6) { choices.below(UNKNOWN.len()) } else { 0 };
    (quoted(choices, &format!("{name}{number}"), Escapes::Needed), kind)
}

/// Values of unknown fields. The empty text stands for a string.
const UNKNOWN: [&str; 12] = [
    "",
    "null",
    "true",
    "-0.5e+10",
    "1e999",
    "0",
    "[]",
    "{}",
    r#"[1,[2,{"a":[]}],"\ud83d\ude00"]"#,
    r#"{"success":"1","dimensions":{"write_key":"x"}}"#,
    r#"{"a":{"b":{"c":{"d":null}}},"a2":false}"#,
    "123456789012345678901234567890",
];

/// Makes a response with at most one oddity.
pub(crate) fn document(choices: &mut Choices<'_>, setup: &Setup) -> Vec<u8> {
    let oddity = match choices.below(6) {
        3 if setup.options.tolerate.null_dimension => Oddity::NullDimension,
        4 | 5 => choices.pick(&ODDITIES),
        _ => Oddity::None,
    };
    let runs = choices.below(5);
    // In half of the documents, a run may be longer than what is carried from chunk to chunk.
    let most = choices.pick(&[12, 48]);
    let mut entries = Vec::new();
    for _ in 0..runs {
        let style = any_style(choices, setup);
        for _ in 0..=choices.below(most) {
            let fields = entry(choices, setup, &style, entries.len());
            entries.push((fields, style.space, style.shuffled));
        }
    }
    let odd = choices.below(entries.len().max(1));
    let mut written: Vec<Json> = Vec::new();
    for (number, (mut fields, space, shuffled)) in entries.into_iter().enumerate() {
        let is_odd = number == odd;
        if is_odd {
            make_odd(choices, &mut fields, oddity);
        }
        if shuffled {
            choices.shuffle(&mut fields);
        }
        let mut fields = Json::Object(fields);
        written.push(Json::Raw(written_as(choices, &fields, space)));
        if is_odd && matches!(oddity, Oddity::RepeatedCombination | Oddity::NullDimension) {
            if oddity == Oddity::NullDimension
                && let Json::Object(fields) = &mut fields
            {
                make_odd(choices, fields, oddity);
            }
            written.push(Json::Raw(written_as(choices, &fields, space)));
        }
    }
    let mut fields = result(choices, written);
    if oddity == Oddity::Result {
        let at = choices.below(fields.len());
        match choices.below(3) {
            0 => drop(fields.remove(at)),
            1 => fields.push((fields[at].0.clone(), Json::Raw(b"\"1\"".to_vec()))),
            _ => fields[at].1 = Json::Raw(odd_value(choices).into()),
        }
    }
    let space = choices.pick(&[Space::None, Space::Single, Space::Pretty, Space::Any]);
    written_as(choices, &Json::Object(fields), space)
}

const ODD_STARTS: [&str; 6] = [
    "2026-01-01T00:00:00.000Z",
    "2025-12-31T23:45:00.000000001Z",
    "2026-01-01T00:15:00Z",
    "2026-01-01T00:00:00+00:00",
    "2026-02-30T00:00:00Z",
    "0000-01-01T00:00:00Z",
];

const ODD_ENDS: [&str; 7] = [
    "2026-01-01T01:15:00+01:00",
    "2026-01-01T00:15:00+01:00",
    "2026-01-01T00:15:00.0Z",
    "9999-12-31T23:59:59.999999999Z",
    "2026-01-01T23:59:60Z",
    "2026-01-01T00:15:00",
    "2026-01-01T00:15:00.1234567890Z",
];

fn result(choices: &mut Choices<'_>, entries: Vec<Json>) -> Vec<(Vec<u8>, Json)> {
    let [mut start, mut end] = [START, END];
    match choices.below(32) {
        29 => start = choices.pick(&ODD_STARTS),
        30 => end = choices.pick(&ODD_ENDS),
        31 => std::mem::swap(&mut start, &mut end),
        _ => {}
    }
    let mut fields = vec![
        ("start", Json::Raw(quoted(choices, start, Escapes::Needed))),
        ("end", Json::Raw(quoted(choices, end, Escapes::Needed))),
        ("totalDelivered", Json::Raw(any_count(choices, false))),
        ("totalErrors", Json::Raw(any_count(choices, false))),
        ("totalFiltered", Json::Raw(any_count(choices, false))),
        ("counts", Json::Array(entries)),
    ];
    if choices.one_in(4) {
        let kind = choices.below(UNKNOWN.len());
        fields.push(("region", Json::Raw(unknown_value(choices, kind))));
    }
    if choices.one_in(3) {
        choices.shuffle(&mut fields);
    }
    fields
        .into_iter()
        .map(|(name, value)| (quoted(choices, name, Escapes::Needed), value))
        .collect()
}

fn entry(
    choices: &mut Choices<'_>,
    setup: &Setup,
    style: &Style,
    number: usize,
) -> Vec<(Vec<u8>, Json)> {
    let mut dimensions: Vec<(Vec<u8>, Json)> = Vec::new();
    for at in &style.dimension_order {
        let name = quoted(choices, setup.dimensions[*at], rarely(style.escapes));
        let value = if *at == 0 && style.distinct {
            distinct_value(choices, number, style.long)
        } else {
            any_value(choices, style.long)
        };
        dimensions.push((name, Json::Raw(quoted(choices, &value, style.escapes))));
    }
    let mut values: Vec<Option<Json>> = Vec::new();
    for _ in 0..3 {
        values.push(Some(Json::Raw(any_count(choices, true))));
    }
    values.push(Some(Json::Object(dimensions)));
    let names = ["success", "errors", "filtered", "dimensions"];
    let mut fields = Vec::new();
    for at in style.order {
        let name = quoted(choices, names[at], rarely(style.escapes));
        fields.extend(values[at].take().map(|value| (name, value)));
    }
    for (name, kind) in &style.unknown {
        let value = unknown_value(choices, *kind);
        let at = usize::from(name[1]) % (fields.len() + 1);
        fields.insert(at, (name.clone(), Json::Raw(value)));
    }
    fields
}

/// Keys are escaped less often than values.
fn rarely(escapes: Escapes) -> Escapes {
    match escapes {
        Escapes::All => Escapes::Some,
        _ => Escapes::Needed,
    }
}

fn unknown_value(choices: &mut Choices<'_>, kind: usize) -> Vec<u8> {
    match UNKNOWN[kind] {
        "" => {
            let value = any_value(choices, true);
            quoted(choices, &value, Escapes::Needed)
        }
        text => text.into(),
    }
}

/// Lengths around the sizes of the blocks that are read at once.
const LENGTHS: [usize; 24] =
    [0, 1, 2, 7, 8, 9, 14, 15, 16, 17, 18, 23, 24, 30, 31, 32, 33, 34, 47, 48, 63, 64, 65, 70];

const TEXTS: [&str; 14] = [
    "",
    "a",
    "Google Analytics 4",
    "wk_9f8e7d6c5b4a",
    "ключ",
    "日本語のイベント名前",
    "naïve café",
    "😀",
    "a \"quoted\" \\ name",
    "tab\tand\nline",
    "\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}",
    "\u{0}",
    "/slash/",
    "exactly_32_bytes_long_value_here",
];

fn any_value(choices: &mut Choices<'_>, long: bool) -> String {
    if !long {
        return choices.pick(&TEXTS).to_owned();
    }
    let length = choices.pick(&LENGTHS);
    let filler = choices.pick(&["x", "xy", "prefix_", "é", "a😀"]);
    let mut text = filler.repeat(length / filler.len());
    let rest = length - text.len();
    text.extend((0..rest).map(|_| 'z'));
    text
}

/// A value that no other entry has.
fn distinct_value(choices: &mut Choices<'_>, number: usize, long: bool) -> String {
    let mut text = any_value(choices, long);
    // The number is at the start or at the end, because a comparison may look at only one of them.
    if choices.one_in(2) {
        text.insert_str(0, &format!("{number}."));
    } else {
        text.push_str(&format!(".{number}"));
    }
    text
}

/// A count with its quotes. In an entry, it is usually small, because sums must not overflow.
fn any_count(choices: &mut Choices<'_>, small: bool) -> Vec<u8> {
    const EDGES: [u128; 10] = [
        1 << 53,
        (1 << 53) + 1,
        (1 << 53) - 1,
        1 << 63,
        (1 << 64) - 1,
        (1 << 64) - 2,
        1 << 64,
        10_000_000_000_000_000_000,
        9_999_999_999_999_999_999,
        99_999_999_999_999_999_999,
    ];
    let count = match choices.below(256) {
        0..=99 => u128::from(choices.byte()),
        // This is half as frequent in entries, because there are many of them.
        254 if !small => choices.pick(&EDGES),
        255 => choices.pick(&EDGES),
        number => {
            let digits = number % 20;
            let word = [(); 8].map(|()| choices.byte());
            u128::from(u64::from_le_bytes(word)) % 10_u128.pow(digits.min(16) as u32 + 1)
        }
    };
    let zeros = if choices.one_in(8) { choices.below(24) } else { 0 };
    format!("\"{}{count}\"", "0".repeat(zeros)).into_bytes()
}

/// A value in place of a count or a string.
fn odd_value(choices: &mut Choices<'_>) -> &'static str {
    choices.pick(&[
        "null",
        "0",
        "7",
        "01",
        "-1",
        "1.5",
        "1e3",
        "1e400",
        "true",
        "[]",
        "{}",
        "[\"1\"]",
        "{\"a\":\"1\"}",
        "\"\"",
        "\"-1\"",
        "\"+1\"",
        "\" 1\"",
        "\"1 \"",
        "\"1.0\"",
        "\"1e3\"",
        "\"0x1\"",
        "\"1_000\"",
        "\"١\"",
        "\"18446744073709551616\"",
        "\"99999999999999999999\"",
        "\"100000000000000000000\"",
        "\"\\u0031\"",
    ])
}

fn make_odd(choices: &mut Choices<'_>, fields: &mut Vec<(Vec<u8>, Json)>, oddity: Oddity) {
    let field = choices.below(fields.len());
    let is_object = |(_, value): &&mut (Vec<u8>, Json)| matches!(value, Json::Object(_));
    let dimensions = fields.iter_mut().find(is_object);
    let Some((_, Json::Object(dimensions))) = dimensions else {
        return;
    };
    let dimension = choices.below(dimensions.len());
    match oddity {
        Oddity::None | Oddity::RepeatedCombination | Oddity::Result => {}
        Oddity::Count => {
            let counts = fields.iter_mut().filter(|(_, value)| matches!(value, Json::Raw(_)));
            if let Some((_, value)) = counts.into_iter().nth(field % 3) {
                *value = Json::Raw(odd_value(choices).into());
            }
        }
        Oddity::Type if choices.one_in(2) => {
            fields[field].1 = Json::Raw(odd_value(choices).into());
        }
        Oddity::Type => dimensions[dimension].1 = Json::Raw(odd_value(choices).into()),
        Oddity::NullDimension => {
            // This is always the first dimension, so that it is the same one the next time.
            dimensions[0].1 = Json::Raw(choices.pick(&["null", "\"\""]).into());
        }
        Oddity::MissingField => drop(fields.remove(field)),
        Oddity::MissingDimension => drop(dimensions.remove(dimension)),
        Oddity::OtherDimension => {
            let name = choices.pick(&["\"region\"", "\"reason\"", "\"\"", "\"write_key\""]);
            dimensions.insert(dimension, (name.into(), Json::Raw(b"\"x\"".to_vec())));
        }
        Oddity::DuplicateField => {
            let name = fields[field].0.clone();
            let at = choices.below(fields.len() + 1);
            fields.insert(at, (name, Json::Raw(b"\"1\"".to_vec())));
        }
        Oddity::DuplicateDimension => {
            let name = dimensions[dimension].0.clone();
            dimensions.push((name, Json::Raw(b"\"x\"".to_vec())));
        }
        Oddity::Text => {
            let texts: [&[u8]; 14] = [
                b"\"\\ud800\"",
                b"\"\\udc00\"",
                b"\"\\ud800\\u0041\"",
                b"\"\\ud800x\"",
                b"\"\\x\"",
                b"\"\\u00g0\"",
                b"\"\x01\"",
                b"\"\xff\"",
                b"\"\xc3\"",
                b"\"\xed\xa0\x80\"",
                b"\"\xf0\x9f\x98\"",
                b"\"\xc3\\n\"",
                b"'a'",
                b"\"a\nb\"",
            ];
            dimensions[dimension].1 = Json::Raw(choices.pick(&texts).to_vec());
        }
    }
}

fn quoted(choices: &mut Choices<'_>, text: &str, escapes: Escapes) -> Vec<u8> {
    let mut out = String::from("\"");
    for (number, character) in text.chars().enumerate() {
        let escaped = match escapes {
            Escapes::Needed => false,
            Escapes::Some => number % 5 == 1,
            Escapes::All => true,
        };
        let short = match character {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '\n' => Some("\\n"),
            '\t' => Some("\\t"),
            '/' if escaped => Some("\\/"),
            _ => None,
        };
        match short {
            Some(short) if !choices.one_in(8) => out.push_str(short),
            None if !escaped && character >= ' ' => out.push(character),
            _ => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    let upper = number % 2 == 0;
                    out.push_str(&if upper {
                        format!("\\u{unit:04X}")
                    } else {
                        format!("\\u{unit:04x}")
                    });
                }
            }
        }
    }
    out.push('"');
    out.into_bytes()
}

fn written_as(choices: &mut Choices<'_>, json: &Json, space: Space) -> Vec<u8> {
    let mut out = Vec::new();
    write(choices, json, space, 0, &mut out);
    out
}

fn write(choices: &mut Choices<'_>, json: &Json, space: Space, indent: usize, out: &mut Vec<u8>) {
    let (open, close, len) = match json {
        Json::Raw(raw) => return out.extend_from_slice(raw),
        Json::Object(fields) => (b'{', b'}', fields.len()),
        Json::Array(items) => (b'[', b']', items.len()),
    };
    out.push(open);
    for number in 0..len {
        if number > 0 {
            gap(choices, space, None, out);
            out.push(b',');
        }
        gap(choices, space, Some(indent + 1), out);
        match json {
            Json::Object(fields) => {
                let (name, value) = &fields[number];
                out.extend_from_slice(name);
                gap(choices, space, None, out);
                out.push(b':');
                if matches!(space, Space::Single | Space::Pretty) {
                    out.push(b' ');
                }
                gap(choices, space, None, out);
                write(choices, value, space, indent + 1, out);
            }
            Json::Array(items) => write(choices, &items[number], space, indent + 1, out),
            Json::Raw(_) => {}
        }
    }
    if len > 0 {
        gap(choices, space, Some(indent), out);
    }
    out.push(close);
}

/// Writes white space. `indent` is the indentation of a value or a closing bracket.
fn gap(choices: &mut Choices<'_>, space: Space, indent: Option<usize>, out: &mut Vec<u8>) {
    match (space, indent) {
        (Space::Single, Some(_)) => out.push(b' '),
        (Space::Pretty, Some(indent)) => {
            out.push(b'\n');
            out.extend(std::iter::repeat_n(b' ', 2 * indent));
        }
        (Space::Any, _) => {
            let spaces: [&[u8]; 8] =
                [b"", b"", b" ", b"\t", b"\r\n", b"\n\n", b"    ", b" \t \r \n "];
            out.extend_from_slice(choices.pick(&spaces));
        }
        _ => {}
    }
}

/// Pieces of JSON that a damaged body may contain.
const PIECES: [&[u8]; 24] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\n",
    b"0",
    b"9",
    b"null",
    b"\"\"",
    b"\\u",
    b"\\ud800",
    b"\xff",
    b"\xc3",
    b"\x00",
    b"\xef\xbb\xbf",
    b",\"a\":1",
    b"\"success\":\"1\"",
    b"{}",
    b"<",
];

/// Damages a body in one or two places.
pub(crate) fn mutate(choices: &mut Choices<'_>, body: &mut Vec<u8>) {
    for _ in 0..=choices.below(2) {
        if body.is_empty() {
            return;
        }
        let at = choices.below(body.len());
        match choices.below(25) {
            0 => body[at] = choices.byte(),
            1 => body[at] ^= 1 << choices.below(8),
            2 => drop(body.remove(at)),
            3 => {
                let piece = choices.pick(&PIECES);
                let at = if choices.one_in(3) { body.len() } else { at };
                body.splice(at..at, piece.iter().copied());
            }
            4 => {
                let other = choices.below(body.len());
                body.swap(at, other);
            }
            5 => {
                let end = (at + choices.below(40)).min(body.len());
                body.drain(at..end);
            }
            6 => {
                let end = (at + choices.below(200)).min(body.len());
                let copy = body[at..end].to_vec();
                let to = choices.below(body.len() + 1);
                body.splice(to..to, copy);
            }
            7 => body.truncate(at),
            // Replaces or inserts a digit, usually in a value.
            _ => {
                let digit = body[at..].iter().position(u8::is_ascii_digit);
                if let Some(at) = digit.map(|from| at + from) {
                    match choices.byte() {
                        byte @ b'0'..=b'9' => body[at] = byte,
                        byte => body.insert(at, b'0' + byte % 10),
                    }
                }
            }
        }
    }
}
