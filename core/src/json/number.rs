//! Numbers: their grammar, and their text across chunks.

use super::lexer::{Lexer, State};
use super::{Event, Visitor};
use crate::error::Result;

/// Where in a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Number {
    fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus, b'1'..=b'9') | (Self::Integer, b'0'..=b'9') => Some(Self::Integer),
            (Self::Zero | Self::Integer, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::ExponentSign),
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Some(Self::ExponentDigits)
            }
            _ => None,
        }
    }

    pub(super) fn may_end(self) -> bool {
        matches!(
            self,
            Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits
        )
    }
}

impl Lexer {
    /// The bytes of a number from `from` on; returns where reading goes on.
    pub(super) fn read_number(
        &mut self,
        mut number: Number,
        chunk: &[u8],
        from: usize,
        visitor: &mut impl Visitor,
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

    pub(super) fn end_number(&mut self, visitor: &mut impl Visitor) -> Result<()> {
        self.end_value();
        let text = str::from_utf8(&self.text).unwrap_or_default();
        visitor.event(Event::Number(text), &self.place(self.token_start))
    }
}
