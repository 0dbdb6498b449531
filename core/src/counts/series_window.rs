//! A window of a series.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::time::window::Window;

/// One window of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesWindow {
    /// The step, or without one what the response covers.
    pub window: Window,
    /// Whether the table covers all of the window. If not, its counts are of a part of it.
    pub complete: bool,
}

/// As a [`Window`] with one field more.
impl Serialize for SeriesWindow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("SeriesWindow", 3)?;
        fields.serialize_field("start", &self.window.start())?;
        fields.serialize_field("end", &self.window.end())?;
        fields.serialize_field("complete", &self.complete)?;
        fields.end()
    }
}
