//! What is exported, and how.

use crate::context::Labels;
use crate::form::Windows;
use crate::formats::Format;

tallyfold::options! {
    /// What is exported, and how.
    #[derive(Clone, Debug)]
    pub struct ExportOptions {
        /// The format.
        format: Format,
        /// Labels for each sample, such as the cluster.
        ///
        /// Names consist of ASCII letters, digits and underscores. They must differ from the names of dimensions.
        labels: Labels = Labels::default(),
        /// The prefix of metric names, instead of `tallyfold` and the endpoint.
        ///
        /// It consists of up to 100 ASCII letters, digits and underscores, and does not begin with a digit. The names of
        /// the dimensions follow it, as in `tallyfold_event_delivery_by_integration`. Counts by other dimensions therefore have
        /// another metric name, and no sum over a metric counts an event twice.
        name: Option<String> = None,
        /// Which windows are written.
        ///
        /// By default, StatsD and formats of files, such as CSV, contain all windows. Formats of other systems contain
        /// only settled windows, because counts that another system has stored can't be withdrawn. Revisions of a follow
        /// are always written.
        windows: Option<Windows> = None,
        /// Refuses counts above 2^53 if the destination stores 64-bit floats.
        ///
        /// By default, such counts are written, with a note.
        exact: bool = false,
        /// The approximate maximum size of a message in bytes, before compression.
        ///
        /// By default, as many as the destination accepts.
        max_bytes: Option<usize> = None,
        /// The caller's clock, in milliseconds since 1970. StatsD has no timestamps, so it accepts only windows that just
        /// ended.
        now_ms: Option<i64> [Host] = None,
    }
}
