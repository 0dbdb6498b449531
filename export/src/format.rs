//! The list of all formats.

/// Hands the list of all formats to a macro: each with its meaning, its name, and the file in `formats/` that has it.
macro_rules! each_format {
    ($to:ident) => {
        $to! {
            /// OpenMetrics text 1.0, for a scrape or for `promtool tsdb create-blocks-from openmetrics`.
            OpenMetrics = "openmetrics" in openmetrics,
        }
    };
}
pub(crate) use each_format;

macro_rules! declare {
    ($($(#[$doc:meta])* $Format:ident = $name:literal in $file:ident),+ $(,)?) => {
        tallyfold::names! {
            /// A format that counts are written in.
            pub enum Format { $( $(#[$doc])* $Format = $name ),+ }
        }
    };
}
each_format!(declare);
