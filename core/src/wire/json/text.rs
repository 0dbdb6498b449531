//! Strings: plain bytes, escapes, and characters that are cut by the end of a chunk.

use tallyfold_engine::plain_text;

use super::event::Visitor;
use super::lexer::Lexer;
use super::state::{State, Text};
use crate::code::Code;
use crate::error::Result;

impl Lexer {
    /// Reads the plain bytes of a string from `from` on; returns where reading continues. `start`,
    /// the start of the chunk, is known to be UTF-8.
    pub(super) fn read_text(
        &mut self,
        start: &str,
        chunk: &[u8],
        from: usize,
        visitor: &mut dyn Visitor,
    ) -> Result<usize> {
        let end = from + plain_text(&chunk[from..]);
        let run = &chunk[from..end];
        let stop = chunk.get(end).copied();
        let whole = stop == Some(b'"') && self.text.is_empty();
        if whole
            && run.len() <= self.limits.string_bytes
            && let Some(text) = start.get(from..end).or_else(|| str::from_utf8(run).ok())
        {
            self.end_text(text, visitor)?;
            return Ok(end + 1);
        }
        self.append(run, self.base + from as u64)?;
        let Some(byte) = stop else {
            return Ok(end);
        };
        let at = self.base + end as u64;
        if self.checked < self.text.len() {
            return Err(self.invalid_utf8(at - (self.text.len() - self.checked) as u64));
        }
        match byte {
            b'"' => {
                // The buffer is moved out during the call and put back, so that the next string
                // uses it again.
                let text = std::mem::take(&mut self.text);
                let ended = match str::from_utf8(&text) {
                    Ok(text) => self.end_text(text, visitor),
                    Err(error) => {
                        Err(self.invalid_utf8(self.token_start + error.valid_up_to() as u64))
                    }
                };
                self.text = text;
                ended?;
            }
            b'\\' => {
                self.escape_start = at;
                self.state = State::Text(Text::Escape);
            }
            _ => {
                let message = "there is a control character in a string; want it escaped";
                return Err(self.error(at, Code::InvalidJson, message));
            }
        }
        Ok(end + 1)
    }

    /// Adds plain bytes to the current string and checks them, except for a character that may be
    /// cut at their end.
    fn append(&mut self, run: &[u8], run_start: u64) -> Result<()> {
        let room = self.limits.string_bytes - self.text.len();
        let taken = run.len().min(room);
        let start = run_start - (self.text.len() - self.checked) as u64;
        self.text.extend_from_slice(&run[..taken]);
        match str::from_utf8(&self.text[self.checked..]) {
            Ok(_) => self.checked = self.text.len(),
            Err(error) if error.error_len().is_none() => self.checked += error.valid_up_to(),
            Err(error) => return Err(self.invalid_utf8(start + error.valid_up_to() as u64)),
        }
        if taken < run.len() {
            return Err(self.string_limit(run_start + taken as u64));
        }
        Ok(())
    }

    pub(super) fn read_escape(&mut self, text: Text, byte: u8, at: u64) -> Result<()> {
        let next = match text {
            Text::Plain => Text::Plain,
            Text::Escape if byte == b'u' => Text::Hex { value: 0, digits: 0, high: None },
            Text::Escape => {
                let Some(character) = short_escape(byte) else {
                    return Err(self.unexpected(byte, at));
                };
                self.append_char(character)?;
                Text::Plain
            }
            Text::SecondHalf { high } if byte == b'\\' => Text::SecondHalfEscape { high },
            Text::SecondHalfEscape { high } if byte == b'u' => {
                Text::Hex { value: 0, digits: 0, high: Some(high) }
            }
            Text::SecondHalf { .. } | Text::SecondHalfEscape { .. } => {
                return Err(self.lone_surrogate());
            }
            Text::Hex { value, digits, high } => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    return Err(self.unexpected(byte, at));
                };
                let value = value << 4 | digit as u16;
                if digits < 3 {
                    Text::Hex { value, digits: digits + 1, high }
                } else {
                    self.end_hex(value, high)?
                }
            }
        };
        self.state = State::Text(next);
        Ok(())
    }

    fn end_hex(&mut self, value: u16, high: Option<u16>) -> Result<Text> {
        let character = match (high, value) {
            (None, 0xD800..=0xDBFF) => return Ok(Text::SecondHalf { high: value }),
            (None, _) => char::from_u32(u32::from(value)),
            (Some(high), 0xDC00..=0xDFFF) => {
                let upper = (u32::from(high) - 0xD800) << 10;
                char::from_u32(0x1_0000 + upper + u32::from(value) - 0xDC00)
            }
            (Some(_), _) => None,
        };
        let character = character.ok_or_else(|| self.lone_surrogate())?;
        self.append_char(character)?;
        Ok(Text::Plain)
    }

    fn append_char(&mut self, character: char) -> Result<()> {
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).as_bytes();
        if self.text.len() + bytes.len() > self.limits.string_bytes {
            return Err(self.string_limit(self.escape_start));
        }
        self.text.extend_from_slice(bytes);
        self.checked = self.text.len();
        Ok(())
    }
}

fn short_escape(byte: u8) -> Option<char> {
    Some(match byte {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}
