//! A window of a series.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::time::window::Window;

/// One window of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesWindow {
    /// The step; if the series has no step, the window of the response.
    pub window: Window,
    /// Whether the table covers all of the window, and the window had ended when it was read. If not, the counts cover
    /// only a part of the window.
    pub complete: bool,
    /// Whether its counts may still change, because one of its responses was read so early
    /// ([`CountTable::provisional`](crate::CountTable::provisional)).
    pub provisional: bool,
}

impl SeriesWindow {
    /// Whether its counts are final: the window is complete and not provisional.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.complete && !self.provisional
    }
}

/// Serialized like a [`Window`] with two more fields.
impl Serialize for SeriesWindow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("SeriesWindow", 4)?;
        fields.serialize_field("start", &self.window.start())?;
        fields.serialize_field("end", &self.window.end())?;
        fields.serialize_field("complete", &self.complete)?;
        fields.serialize_field("provisional", &self.provisional)?;
        fields.end()
    }
}
