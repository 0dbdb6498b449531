//! A JSON document whose shape the service reference does not show.

use super::contract::{Body, Json, Output};
use crate::code::Code;
use crate::error::Result;
use crate::wire::json::double::is_beyond_double;
use crate::wire::json::event::{Event, Visitor};
use crate::wire::json::lexer::Lexer;
use crate::wire::json::path::{Place, Shown};
use crate::wire::limits::Limits;

/// Such a document is held in memory as a whole, so it has its own limit.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Keeps the bytes of one JSON document and checks them as they arrive.
#[derive(Debug)]
pub(crate) struct JsonBody {
    lexer: Lexer,
    bytes: Vec<u8>,
}

impl JsonBody {
    pub(super) fn new(limits: Limits) -> Self {
        let limits = Limits { body_bytes: limits.body_bytes.min(MOST_BYTES), ..limits };
        Self {
            // The reference names no field of it.
            lexer: Lexer::new(limits, Shown::Named(|_| false)),
            bytes: Vec::new(),
        }
    }
}

/// Accepts any shape. Numbers must be within the range of a 64-bit float, so that every host can
/// hold them.
struct AnyShape;

impl Visitor for AnyShape {
    fn event(&mut self, event: Event<'_>, place: &Place<'_>) -> Result<()> {
        match event {
            Event::Number(text) if is_beyond_double(text) => {
                let message = "a number is above the largest that a 64-bit float holds";
                Err(place.error(Code::InvalidJson, message))
            }
            _ => Ok(()),
        }
    }
}

impl Body for JsonBody {
    fn push(&mut self, chunk: &[u8]) -> Result<()> {
        self.lexer.push(chunk, &mut AnyShape)?;
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    fn finish(&mut self) -> Result<Output> {
        self.lexer.finish(&mut AnyShape)?;
        Ok(Output::Json(Json(std::mem::take(&mut self.bytes))))
    }
}
