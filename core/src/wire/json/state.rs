//! The states of the lexer.

use super::event::Event;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// Nothing but white space so far.
    Start,
    /// After a colon, or a comma in an array.
    Value,
    /// In what may be a byte order mark, of UTF-8 or UTF-16.
    ByteOrderMark {
        first: u8,
        rest: &'static [u8],
    },
    /// After `[`.
    FirstElement,
    /// After `{`.
    FirstKey,
    /// After a comma in an object.
    Key,
    Colon,
    /// After a value in a container.
    After,
    Text(Text),
    Number(Number),
    Literal {
        rest: &'static [u8],
        event: Event<'static>,
    },
    Done,
}

/// The states inside a string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Text {
    Plain,
    Escape,
    Hex {
        value: u16,
        digits: u8,
        high: Option<u16>,
    },
    /// After the first half of a surrogate pair: a backslash must follow.
    SecondHalf {
        high: u16,
    },
    /// After that backslash: a `u` must follow.
    SecondHalfEscape {
        high: u16,
    },
}

/// The states inside a number.
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
    pub(super) fn next(self, byte: u8) -> Option<Self> {
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
        matches!(self, Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits)
    }
}
