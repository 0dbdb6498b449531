//! `tallyfold delivery`: counts of events sent to integrations.

use tallyfold::Metric;

use super::counts::{self, CountFlags};
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Result;

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold delivery
      The last hour by integration, as a table.
  tallyfold delivery --since 24h --by integration,event_name --top 10
      Where most events were lost in the last day: the integrations and events with most errors.
  tallyfold delivery --since 24h --by reason,integration --order filtered --top 10
      Which filters took most events, and of which integrations.
  tallyfold delivery --since 7d --by-window 1d --format csv > week.csv
      One row for each integration and day.
  tallyfold delivery --since 15m --fail-above 5% --quiet > /dev/null
      A health job: ends with 1 if an integration fails, and says which one.
";

/// Runs the command.
///
/// # Errors
/// As [`counts::run`].
pub(crate) async fn run(app: &App, flags: &CountFlags) -> Result<Exit> {
    counts::run(app, Metric::EventDelivery, flags).await
}
