//! `tallyfold ingestion`: counts of events received.

use tallyfold::Metric;

use super::counts::{self, CountFlags};
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Result;

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold ingestion --since 24h --by write_key
      What each source has sent in the last day.
  tallyfold ingestion --since 1h --by event_name --format json
";

/// Runs the command.
///
/// # Errors
/// As [`counts::run`].
pub(crate) async fn run(app: &App, flags: &CountFlags) -> Result<Exit> {
    counts::run(app, Metric::EventIngestion, flags).await
}
