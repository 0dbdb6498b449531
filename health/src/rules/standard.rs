//! The rules that are used without a file.

/// The standard rules, which need no settings of your own. They were chosen on simulated quarters: see `docs/health.md`.
pub(crate) const STANDARD: &str = r#"# What tallyfold looks for without a rules file.
window = "15m"

# Errors: by integration, and by integration and source, as the failures of one source are few among those of all.
[[rule]]
name = "integration fails"
kind = "rate"
measure = "error_rate"
by = ["integration"]
side = "high"
change = "2%"
severity = "critical"

[[rule]]
name = "integration fails for a source"
kind = "rate"
measure = "error_rate"
by = ["write_key", "integration"]
side = "high"
change = "3%"
severity = "critical"

# Filters: what is new, and what takes more than before.
[[rule]]
name = "new reason"
kind = "new"
by = ["reason"]
severity = "warning"

[[rule]]
name = "more is filtered"
kind = "rate"
measure = "filtered_rate"
by = ["write_key"]
side = "high"
change = "3%"
least = 50
severity = "warning"

# Silence. An event goes to several integrations, so its counts are not independent: 60 of them are some 20 events.
[[rule]]
name = "source is silent"
kind = "silent"
by = ["write_key"]
least = 60
severity = "critical"

[[rule]]
name = "integration is silent"
kind = "silent"
by = ["integration"]
least = 60
severity = "critical"

[[rule]]
name = "event is silent"
kind = "silent"
by = ["event_name"]
least = 60
severity = "critical"

[[rule]]
name = "event of a source is silent"
kind = "silent"
by = ["write_key", "event_name"]
least = 60
severity = "critical"

[[rule]]
name = "nothing is delivered"
kind = "undelivered"
by = ["write_key"]
severity = "critical"

# Volumes: sources that decline, at once or slowly, and integrations that get events twice. A single window may be bad by chance
# three times a month; two windows in a row almost never are.
[[rule]]
name = "source declines"
kind = "volume"
measure = "events"
by = ["write_key"]
side = "low"
change = "25%"
false_alarms = 3
severity = "warning"

[[rule]]
name = "source declines slowly"
kind = "volume"
measure = "events"
by = ["write_key"]
side = "low"
window = "1h"
baseline = { weeks = 6, neighbours = 0 }
change = "20%"
false_alarms = 3
severity = "warning"

[[rule]]
name = "integration gets more"
kind = "volume"
measure = "success"
by = ["integration"]
side = "high"
change = "50%"
severity = "warning"

[[rule]]
name = "integration gets more from a source"
kind = "volume"
measure = "success"
by = ["write_key", "integration"]
side = "high"
change = "60%"
severity = "warning"

[[rule]]
name = "delivery budget"
kind = "budget"
budget = "5%"
severity = "critical"

[[rule]]
name = "totals are off"
kind = "reconciliation"
severity = "info"
"#;
