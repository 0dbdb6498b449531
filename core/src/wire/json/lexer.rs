//! The state machine from bytes to events.

use secrecy::zeroize::Zeroize;
use tallyfold_engine::{Taken, is_space};

use super::event::{Event, Visitor};
use super::path::{Frames, Place, Shown};
use super::state::{Number, State, Text};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::wire::limits::Limits;

/// Reads one document, chunk by chunk.
#[derive(Debug)]
pub(crate) struct Lexer {
    pub(super) limits: Limits,
    pub(super) state: State,
    frames: Frames,
    /// Whether errors may quote a byte of the document.
    quotes: bool,
    /// Bytes before the current chunk.
    pub(super) base: u64,
    /// The offset of the current token.
    pub(super) token_start: u64,
    /// The offset of the current escape.
    pub(super) escape_start: u64,
    /// The current token as far as it has been read: a string with its escapes resolved, or a
    /// number.
    pub(super) text: Vec<u8>,
    /// How much of `text` is known to be UTF-8.
    pub(super) checked: usize,
    is_key: bool,
    /// The start of an element that was cut by the end of a chunk and is not read yet; used only if
    /// the visitor takes elements.
    carried: Vec<u8>,
}

/// The most bytes that are carried from one chunk to the next, and the most bytes of the next chunk
/// that are read together with them.
const MOST_CARRIED: usize = 1024;

/// The most bytes at the start of a chunk that are checked for UTF-8 in one go.
const MOST_AT_ONCE: usize = 256;

impl Lexer {
    /// A lexer whose errors show only these keys.
    pub(crate) fn new(limits: Limits, shown: Shown) -> Self {
        Self {
            limits,
            state: State::Start,
            frames: Frames::new(shown),
            quotes: true,
            base: 0,
            token_start: 0,
            escape_start: 0,
            text: Vec::new(),
            checked: 0,
            is_key: false,
            carried: Vec::new(),
        }
    }

    /// A lexer of a document that contains a secret. Its errors quote nothing but these keys. It
    /// allocates its buffer at once, so that it never moves, and [`Lexer::wipe`] overwrites all
    /// that it has held.
    pub(crate) fn of_secret(limits: Limits, shown: Shown) -> Self {
        Self {
            quotes: false,
            text: Vec::with_capacity(limits.string_bytes),
            ..Self::new(limits, shown)
        }
    }

    /// Overwrites the token that is being read, which may be a secret.
    pub(crate) fn wipe(&mut self) {
        self.text.zeroize();
    }

    /// Reads the next bytes. Do not use the lexer again after an error.
    pub(crate) fn push(&mut self, chunk: &[u8], visitor: &mut dyn Visitor) -> Result<()> {
        let pushed = self.base + self.carried.len() as u64;
        let left = usize::try_from(self.limits.body_bytes - pushed).unwrap_or(usize::MAX);
        let allowed = chunk.len().min(left);
        let from = self.read_carried(&chunk[..allowed], visitor)?;
        self.read(&chunk[from..allowed], visitor)?;
        if allowed < chunk.len() {
            self.read_carried(&[], visitor)?;
            let limit = self.limits.body_bytes;
            let message = format!("the body is longer than {limit} bytes, which is the limit");
            return Err(self.error(self.base, Code::BodyLimit, message));
        }
        Ok(())
    }

    /// Ends the body.
    pub(crate) fn finish(&mut self, visitor: &mut dyn Visitor) -> Result<()> {
        self.read_carried(&[], visitor)?;
        match self.state {
            State::Done => Ok(()),
            State::Number(number) if self.frames.is_empty() && number.may_end() => {
                self.end_number(visitor)
            }
            State::Start => {
                let message = "the body is empty; want JSON";
                Err(self.error(self.base, Code::EmptyBody, message))
            }
            _ => {
                let message = "the body ends before its JSON is complete: it was truncated";
                Err(self.error(self.base, Code::TruncatedBody, message))
            }
        }
    }

    /// Reads the carried bytes, together with the start of the chunk if the visitor takes elements
    /// from both; returns how many bytes of the chunk were read.
    fn read_carried(&mut self, chunk: &[u8], visitor: &mut dyn Visitor) -> Result<usize> {
        if self.carried.is_empty() {
            return Ok(0);
        }
        let mut carried = std::mem::take(&mut self.carried);
        let cut = carried.len();
        let mut taken = Taken::default();
        if let Some(next) = chunk.get(..MOST_CARRIED) {
            carried.extend_from_slice(next);
            taken = visitor.take_elements(&carried);
        }
        if taken.elements > 0 {
            self.skip(taken);
            self.base += taken.bytes as u64;
        }
        // If the visitor took only elements that end before the cut, the carried bytes after them
        // are still unread.
        if taken.bytes < cut {
            self.read(&carried[taken.bytes..cut], visitor)?;
        }
        // The buffer is used again for the next chunk.
        carried.clear();
        self.carried = carried;
        Ok(taken.bytes.saturating_sub(cut))
    }

    /// Continues after elements of an array that the visitor has taken.
    fn skip(&mut self, taken: Taken) {
        self.frames.skip_elements(taken.elements - 1);
        self.state = State::After;
    }

    /// Reads a chunk, except the bytes that it carries to the next one.
    fn read(&mut self, chunk: &[u8], visitor: &mut dyn Visitor) -> Result<()> {
        let start = utf8_start(chunk);
        let mut at = 0;
        let mut carries = false;
        while at < chunk.len() {
            at = match self.state {
                State::Text(Text::Plain) => self.read_text(start, chunk, at, visitor)?,
                State::Text(text) => {
                    self.read_escape(text, chunk[at], self.base + at as u64)?;
                    at + 1
                }
                State::FirstKey | State::Key if chunk[at] == b'"' => {
                    self.begin_text(self.base + at as u64, true);
                    self.read_text(start, chunk, at + 1, visitor)?
                }
                State::Colon if chunk[at] == b':' => {
                    self.state = State::Value;
                    at + 1
                }
                State::Value if chunk[at] == b'"' => {
                    self.begin_text(self.base + at as u64, false);
                    self.read_text(start, chunk, at + 1, visitor)?
                }
                State::Number(number) => self.read_number(number, chunk, at, visitor)?,
                State::Literal { rest, event } => {
                    self.read_literal(rest, event, chunk[at], self.base + at as u64, visitor)?;
                    at + 1
                }
                State::ByteOrderMark { first, rest } => {
                    self.read_byte_order_mark(first, rest, chunk[at])?;
                    at + 1
                }
                State::Value | State::FirstElement if chunk[at] == b'{' => {
                    let rest = &chunk[at..];
                    let taken = visitor.take_elements(rest);
                    if taken.elements > 0 {
                        self.skip(taken);
                        carries = chunk.len() > MOST_CARRIED;
                        at + taken.bytes
                    } else if carries && rest.len() <= MOST_CARRIED {
                        self.carried.extend_from_slice(rest);
                        self.base += at as u64;
                        return Ok(());
                    } else {
                        self.read_structure(b'{', self.base + at as u64, visitor)?;
                        at + 1
                    }
                }
                _ => {
                    if !is_space(chunk[at]) {
                        self.read_structure(chunk[at], self.base + at as u64, visitor)?;
                    }
                    at + 1
                }
            };
        }
        self.base += chunk.len() as u64;
        Ok(())
    }

    fn read_byte_order_mark(&mut self, first: u8, rest: &'static [u8], byte: u8) -> Result<()> {
        match rest.split_first() {
            Some((expected, rest)) if *expected == byte => {
                if rest.is_empty() {
                    let message =
                        "there is a byte order mark before the JSON; want UTF-8 without it";
                    return Err(self.error(0, Code::ByteOrderMark, message));
                }
                self.state = State::ByteOrderMark { first, rest };
                Ok(())
            }
            _ => {
                self.state = State::Start;
                Err(self.unexpected(first, 0))
            }
        }
    }

    /// Reads a byte that is not white space, outside of strings, numbers and literals.
    fn read_structure(&mut self, byte: u8, at: u64, visitor: &mut dyn Visitor) -> Result<()> {
        match (self.state, byte) {
            (State::Start, 0xEF | 0xFE | 0xFF) if at == 0 => {
                let rest = match byte {
                    0xEF => &[0xBB, 0xBF][..],
                    0xFE => &[0xFF],
                    _ => &[0xFE],
                };
                self.state = State::ByteOrderMark { first: byte, rest };
                Ok(())
            }
            (State::Start, b'<') => {
                let message = "the body is HTML or XML; want JSON \
                               (is this the address of the service, or of a proxy?)";
                Err(self.error(at, Code::HtmlResponse, message))
            }
            (State::FirstKey, b'}') | (State::FirstElement, b']') => self.close(at, byte, visitor),
            (State::After, b',') => {
                self.frames.next();
                self.state = if self.frames.in_object() { State::Key } else { State::Value };
                Ok(())
            }
            (State::After, b'}' | b']') if self.frames.in_object() == (byte == b'}') => {
                self.close(at, byte, visitor)
            }
            (State::Start | State::Value | State::FirstElement, _) => {
                self.begin_value(byte, at, visitor)
            }
            (State::Done, _) => {
                let message = "there are bytes after the end of the JSON";
                Err(self.error(at, Code::TrailingBytes, message))
            }
            _ => Err(self.unexpected(byte, at)),
        }
    }

    fn begin_value(&mut self, byte: u8, at: u64, visitor: &mut dyn Visitor) -> Result<()> {
        self.token_start = at;
        self.state = match byte {
            b'{' | b'[' => return self.open(at, byte, visitor),
            b'"' => {
                self.begin_text(at, false);
                return Ok(());
            }
            b't' => State::Literal { rest: b"rue", event: Event::Bool },
            b'f' => State::Literal { rest: b"alse", event: Event::Bool },
            b'n' => State::Literal { rest: b"ull", event: Event::Null },
            b'-' => State::Number(Number::Minus),
            b'0' => State::Number(Number::Zero),
            b'1'..=b'9' => State::Number(Number::Integer),
            _ => return Err(self.unexpected(byte, at)),
        };
        if matches!(self.state, State::Number(_)) {
            self.text.clear();
            self.text.push(byte);
        }
        Ok(())
    }

    fn open(&mut self, at: u64, byte: u8, visitor: &mut dyn Visitor) -> Result<()> {
        if self.frames.depth() >= self.limits.depth {
            let limit = self.limits.depth;
            let message = format!("the JSON is nested deeper than {limit}, which is the limit");
            return Err(self.error(at, Code::DepthLimit, message));
        }
        if byte == b'{' {
            visitor.event(Event::BeginObject, &self.place(at))?;
            self.frames.open_object();
            self.state = State::FirstKey;
        } else {
            visitor.event(Event::BeginArray, &self.place(at))?;
            self.frames.open_array();
            self.state = State::FirstElement;
        }
        Ok(())
    }

    fn close(&mut self, at: u64, byte: u8, visitor: &mut dyn Visitor) -> Result<()> {
        self.frames.close();
        self.end_value();
        let event = if byte == b'}' { Event::EndObject } else { Event::EndArray };
        visitor.event(event, &self.place(at))
    }

    pub(super) fn end_value(&mut self) {
        self.state = if self.frames.is_empty() { State::Done } else { State::After };
    }

    fn begin_text(&mut self, at: u64, is_key: bool) {
        self.token_start = at;
        self.text.clear();
        self.checked = 0;
        self.is_key = is_key;
        self.state = State::Text(Text::Plain);
    }

    pub(super) fn end_text(&mut self, text: &str, visitor: &mut dyn Visitor) -> Result<()> {
        if self.is_key {
            self.frames.add_key(text, self.limits.keys, self.token_start)?;
            self.state = State::Colon;
            visitor.event(Event::Key(text), &self.place(self.token_start))
        } else {
            self.end_value();
            visitor.event(Event::String(text), &self.place(self.token_start))
        }
    }

    fn read_literal(
        &mut self,
        rest: &'static [u8],
        event: Event<'static>,
        byte: u8,
        at: u64,
        visitor: &mut dyn Visitor,
    ) -> Result<()> {
        match rest.split_first() {
            Some((expected, rest)) if *expected == byte => {
                if rest.is_empty() {
                    self.end_value();
                    return visitor.event(event, &self.place(self.token_start));
                }
                self.state = State::Literal { rest, event };
                Ok(())
            }
            _ => Err(self.unexpected(byte, at)),
        }
    }

    pub(super) fn place(&self, offset: u64) -> Place<'_> {
        Place { frames: &self.frames, offset }
    }

    pub(super) fn error(&self, at: u64, code: Code, message: impl Into<String>) -> Error {
        self.frames.error(at, code, message)
    }

    pub(super) fn unexpected(&self, byte: u8, at: u64) -> Error {
        let want = match self.state {
            State::Start | State::ByteOrderMark { .. } | State::Value => "a value",
            State::FirstElement => "a value or ]",
            State::FirstKey => "a key or }",
            State::Key => "a key",
            State::Colon => "a colon",
            State::After if self.frames.in_object() => "a comma or }",
            State::After => "a comma or ]",
            State::Text(_) => "a JSON escape",
            State::Number(_) => "a digit",
            State::Literal { .. } => "true, false or null",
            State::Done => "the end",
        };
        let found = match byte {
            _ if !self.quotes => "what is there".to_owned(),
            b'\'' | b'\\' => format!("'\\{}'", char::from(byte)),
            b'!'..=b'~' => format!("'{}'", char::from(byte)),
            _ => format!("byte 0x{byte:02X}"),
        };
        self.error(at, Code::InvalidJson, format!("this is not JSON: want {want}, not {found}"))
    }

    pub(super) fn invalid_utf8(&self, at: u64) -> Error {
        self.error(at, Code::InvalidUtf8, "a string is not UTF-8")
    }

    pub(super) fn lone_surrogate(&self) -> Error {
        let message = "an escape is half of a surrogate pair and stands alone";
        self.error(self.escape_start, Code::LoneSurrogate, message)
    }

    pub(super) fn string_limit(&self, at: u64) -> Error {
        let limit = self.limits.string_bytes;
        let message =
            format!("a string or number is longer than {limit} bytes, which is the limit");
        self.error(at, Code::StringLimit, message)
    }
}

/// The start of the chunk, as far as it is UTF-8. [`MOST_AT_ONCE`] is about the length of the
/// fields before the entries of a response. Checking all of it takes as long as checking four short
/// strings.
fn utf8_start(chunk: &[u8]) -> &str {
    let start = &chunk[..chunk.len().min(MOST_AT_ONCE)];
    match str::from_utf8(start) {
        Ok(start) => start,
        Err(error) => str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
    }
}
