//! The events that the lexer finds in a document, and the visitor that receives them.

use tallyfold_engine::Taken;

use super::path::Place;
use crate::error::Result;

/// One step through a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event<'a> {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    Key(&'a str),
    String(&'a str),
    /// The text of a number.
    Number(&'a str),
    Bool,
    Null,
}

impl Event<'_> {
    /// Describes the value in a message.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::BeginObject | Self::EndObject => "an object",
            Self::BeginArray | Self::EndArray => "an array",
            Self::Key(_) => "a key",
            Self::String(_) => "a string",
            Self::Number(_) => "a number",
            Self::Bool => "true or false",
            Self::Null => "null",
        }
    }
}

/// Receives the events of one document in order; an error ends the reading.
pub(crate) trait Visitor {
    fn event(&mut self, event: Event<'_>, place: &Place<'_>) -> Result<()>;

    /// Offers the bytes from the start of an object that is an element of an array or the value of
    /// a key. In an array, a visitor that can read elements faster than the lexer may take the
    /// first few whole elements, with the separators between them. It must take only bytes that the
    /// lexer would have accepted with the same events.
    fn take_elements(&mut self, _rest: &[u8]) -> Taken {
        Taken::default()
    }
}

/// Skips a value. Returns whether it has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skip {
    open: usize,
}

impl Skip {
    /// Whether the value ends with this event.
    pub(crate) fn is_over(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::BeginObject | Event::BeginArray => self.open += 1,
            Event::EndObject | Event::EndArray => self.open -= 1,
            _ => {}
        }
        self.open == 0
    }
}
