//! The rules that are used without a file.

/// Rules that need no knowledge of what is counted.
pub(crate) const STANDARD: &str = r#"# What tallyfold looks for without a rules file.
window = "15m"

[[rule]]
name = "integration fails"
kind = "rate"
measure = "error_rate"
by = ["integration"]
side = "high"
change = "1%"
severity = "critical"

[[rule]]
name = "more is filtered"
kind = "rate"
measure = "filtered_rate"
by = ["write_key"]
change = "2%"
severity = "warning"

[[rule]]
name = "source changed"
kind = "volume"
measure = "events"
by = ["write_key"]
change = "20%"
slow = "1d"
severity = "warning"

[[rule]]
name = "event is silent"
kind = "silent"
by = ["event_name"]
severity = "warning"

[[rule]]
name = "integration is silent"
kind = "silent"
by = ["integration"]
severity = "critical"

[[rule]]
name = "new reason"
kind = "new"
by = ["integration", "reason"]
severity = "warning"

[[rule]]
name = "delivery budget"
kind = "budget"
budget = "5%"
severity = "critical"

[[rule]]
name = "nothing is delivered"
kind = "undelivered"
by = ["write_key"]
severity = "critical"

[[rule]]
name = "totals are off"
kind = "reconciliation"
severity = "info"
"#;
