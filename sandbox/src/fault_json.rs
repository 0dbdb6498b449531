//! Faults as JSON, such as `{"kind": "status", "status": 503, "endpoint": "event_delivery"}`.

use serde_json::{Map, Value as Json};
use tallyfold::arguments::{self, Arguments, Kind, Value};
use tallyfold::{Code, Error, Result, Spelling};

use crate::fault::{Fault, FaultOptions};

/// Parses a fault. A field that is `null` counts as absent.
pub(crate) fn parse(text: &str) -> Result<Fault> {
    let fields = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
    let options: FaultOptions =
        arguments::read(&Fields(fields), &[]).map_err(|error: Error| refused(error.to_string()))?;
    options.fault().map_err(|error| error.with_argument("fault"))
}

fn refused(problem: String) -> Error {
    let message = format!("not a fault: {problem}");
    Error::argument("fault", Code::InvalidArgument, message)
}

struct Fields(Map<String, Json>);

impl Arguments for Fields {
    type Error = Error;

    const SPELLING: Spelling = Spelling::Rust;

    fn value(&self, name: &str, kind: Kind) -> Result<Option<Value>> {
        let value = match self.0.get(name) {
            None | Some(Json::Null) => return Ok(None),
            Some(value) => value,
        };
        let read = match kind {
            Kind::Text => value.as_str().map(|text| Value::Text(text.to_owned())),
            Kind::Whole => value.as_u64().map(|number| Value::Whole(number.into())),
            _ => None,
        };
        let wrong = || {
            let message = match kind {
                Kind::Text => "want a string",
                _ => "want a whole number",
            };
            Error::new(Code::InvalidArgument, format!("{name}: {message}"))
        };
        read.map(Some).ok_or_else(wrong)
    }

    fn nested(&self, _: &str) -> Result<Option<Self>> {
        Ok(None)
    }

    fn names(&self) -> Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }
}
