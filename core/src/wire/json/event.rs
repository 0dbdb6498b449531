//! What the lexer finds in a document, and who is told.

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
    /// A number as it is written.
    Number(&'a str),
    Bool,
    Null,
}

impl Event<'_> {
    /// What the event begins, in words for a message.
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

    /// Offers the bytes from the start of an object in an array on. The visitor may take the first
    /// few elements, whole ones with what separates them, if it knows better than the lexer what
    /// they are; it must take nothing that the lexer would not have accepted with the same events.
    fn take_elements(&mut self, _rest: &[u8]) -> Taken {
        Taken::default()
    }
}

/// A visitor of a document that is small or rare. The lexer is compiled once for all of these.
pub(crate) struct Rare<'a>(pub(crate) &'a mut dyn Visitor);

impl Visitor for Rare<'_> {
    fn event(&mut self, event: Event<'_>, place: &Place<'_>) -> Result<()> {
        self.0.event(event, place)
    }
}

/// Knows when a value that nobody wants has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skip {
    open: usize,
}

impl Skip {
    /// Whether the value is over once this event has passed.
    pub(crate) fn is_over(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::BeginObject | Event::BeginArray => self.open += 1,
            Event::EndObject | Event::EndArray => self.open -= 1,
            _ => {}
        }
        self.open == 0
    }
}
