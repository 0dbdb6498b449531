//! What a collect keeps of the windows that it has read.

use crate::arguments::{Kind, Parameter, Value};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::step::TimeStep;
use crate::time::window::Window;

/// What a collect keeps of the windows that it has read.
///
/// Settled windows are added up as soon as they are read. So the memory that a collect takes grows with the
/// groups and the kept steps, not with the windows that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// Every window by itself.
    Windows,
    /// The sum of each step of the UTC day.
    Step(TimeStep),
    /// The sum of all windows.
    Total,
}

impl Keep {
    /// Parses `windows`, `total`, or a step such as `1h`.
    ///
    /// # Errors
    /// `invalid_argument` for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "windows" => Ok(Self::Windows),
            "total" => Ok(Self::Total),
            _ => TimeStep::parse(text).map(Self::Step).map_err(|_| {
                let message = "want windows, total, or a step that divides a day, such as 1h or 1d";
                Error::argument("keep", Code::InvalidArgument, message)
            }),
        }
    }

    /// The same as text.
    pub(super) fn text(self) -> String {
        match self {
            Self::Windows => "windows".to_owned(),
            Self::Step(step) => step.to_string(),
            Self::Total => "total".to_owned(),
        }
    }

    /// The time whose windows are added up with this one, in a collect of a range; `None` if each is kept by
    /// itself.
    pub(super) fn around(self, window: Window, range: Window) -> Option<Window> {
        match self {
            Self::Windows => None,
            Self::Total => Some(range),
            Self::Step(step) => {
                let start = step.floor(window.start());
                // In the last step of the year 9999 there is no end.
                let end = step.after(start).unwrap_or(window.end());
                Window::new(start, end).ok()
            }
        }
    }

    /// Refuses a step that would cut windows.
    pub(super) fn check(self, window: TimeStep) -> Result<()> {
        match self {
            Self::Step(step) if !step.seconds().is_multiple_of(window.seconds()) => {
                let message = format!("want a multiple of the windows' step, {window}, not {step}");
                Err(Error::argument("keep", Code::InvalidArgument, message))
            }
            _ => Ok(()),
        }
    }
}

impl Parameter for Keep {
    const KIND: Kind = Kind::Step;

    fn from_value(value: Value) -> Result<Self> {
        Self::parse(&String::from_value(value)?)
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.text()))
    }
}
