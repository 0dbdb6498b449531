//! Numbers: their grammar, and their text across chunks.

use super::event::{Event, Visitor};
use super::lexer::Lexer;
use super::state::{Number, State};
use crate::error::Result;

impl Lexer {
    /// Reads the bytes of a number from `from` on; returns where reading continues.
    pub(super) fn read_number(
        &mut self,
        mut number: Number,
        chunk: &[u8],
        from: usize,
        visitor: &mut dyn Visitor,
    ) -> Result<usize> {
        for (at, byte) in chunk.iter().enumerate().skip(from) {
            let offset = self.base + at as u64;
            match number.next(*byte) {
                Some(_) if self.text.len() >= self.limits.string_bytes => {
                    return Err(self.string_limit(offset));
                }
                Some(next) => {
                    number = next;
                    self.text.push(*byte);
                }
                None if number.may_end() => {
                    self.end_number(visitor)?;
                    return Ok(at);
                }
                None => return Err(self.unexpected(*byte, offset)),
            }
        }
        self.state = State::Number(number);
        Ok(chunk.len())
    }

    pub(super) fn end_number(&mut self, visitor: &mut dyn Visitor) -> Result<()> {
        self.end_value();
        let text = str::from_utf8(&self.text).unwrap_or_default();
        visitor.event(Event::Number(text), &self.place(self.token_start))
    }
}
