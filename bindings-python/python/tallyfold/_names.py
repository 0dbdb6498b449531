"""Closed lists of names.

Written by scripts/declare.py from what the Rust crates declare. Change it there.
"""

from typing import Literal

__all__ = [
    "AdditivityVerdict",
    "ApiName",
    "CountName",
    "DimensionName",
    "EndpointName",
    "ErrorCode",
    "ExportFormat",
    "ExportWindows",
    "FaultKind",
    "Guarantee",
    "IncidentChange",
    "Measure",
    "MetricName",
    "NoteKind",
    "Presence",
    "RankBy",
    "ReceiverKind",
    "RuleKind",
    "Scene",
    "Severity",
    "Status",
    "TargetName",
    "Tolerance",
    "Verdict",
]

AdditivityVerdict = Literal["additive", "double_counted", "missing", "mixed", "unknown"]
"""Whether the counts of the halves of a window add up to the counts of the whole."""

ApiName = Literal["control", "orchestration"]
"""One of the two APIs, each with its own audience and tokens (service reference 5.1, point 5)."""

CountName = Literal["success", "errors", "filtered"]
"""The name of one of the three counts (service reference 2.3)."""

DimensionName = Literal["event_name", "write_key", "integration", "reason"]
"""A group-by field of the Event Metrics API (service reference 2.4)."""

EndpointName = Literal[
    "control_token", "orchestration_token", "event_delivery", "event_ingestion", "audit_logs"
]
"""An endpoint of the sandbox. All of them share one origin, so the sandbox's address serves as
`cluster_endpoint`, `base_url` and `auth_url` alike.
"""

ErrorCode = Literal[
    "missing_argument",
    "unknown_argument",
    "invalid_argument",
    "invalid_base_address",
    "insecure_base_address",
    "secret_in_browser",
    "wasm_forbidden",
    "invalid_timestamp",
    "invalid_window",
    "unknown_dimension",
    "repeated_dimension",
    "no_dimensions",
    "invalid_page",
    "overlapping_coverage",
    "unaligned_window",
    "incompatible_tables",
    "invalid_checkpoint",
    "memory_limit",
    "invalid_rules",
    "unsupported_by_format",
    "out_of_order",
    "token_refused",
    "invalid_token_response",
    "invalid_token_lifetime",
    "token_rejected",
    "token_provider_failed",
    "redirected",
    "forbidden",
    "rate_limited",
    "retry_later",
    "server_error",
    "unexpected_status",
    "network_failed",
    "timed_out",
    "deadline_exceeded",
    "wrong_content_type",
    "wrong_content_encoding",
    "html_response",
    "empty_body",
    "truncated_body",
    "invalid_json",
    "invalid_utf8",
    "lone_surrogate",
    "byte_order_mark",
    "trailing_bytes",
    "duplicate_key",
    "missing_field",
    "wrong_type",
    "invalid_count",
    "count_overflow",
    "inexact_count",
    "sum_overflow",
    "window_mismatch",
    "dimension_mismatch",
    "repeated_combination",
    "depth_limit",
    "string_limit",
    "key_limit",
    "body_limit",
    "group_limit",
    "out_of_memory",
    "crashed",
    "invalid_table",
    "windows_not_additive",
]
"""What went wrong: a closed list, the same in every language."""

FaultKind = Literal[
    "status", "delay", "truncate", "content_type", "revoke_token", "wrong_total", "body", "date"
]
"""What goes wrong."""

ExportFormat = Literal[
    "openmetrics",
    "remote-write",
    "remote-write-2",
    "otlp",
    "otlp-json",
    "influx",
    "dogstatsd",
    "statsd",
    "datadog",
    "csv",
    "ndjson",
    "parquet",
    "arrow",
]
"""A format in which counts are written."""

Guarantee = Literal["at_least_once", "at_most_once"]
"""What happens to a message that was sent but not acknowledged."""

IncidentChange = Literal["began", "joined", "worse", "ended", "reopened"]
"""A change of an incident."""

Measure = Literal["success", "errors", "filtered", "events", "error_rate", "filtered_rate"]
"""A number that is made from the three counts (service reference 2.3): a volume, or a rate."""

MetricName = Literal["event_delivery", "event_ingestion"]
"""Which counts are requested: the two analytics endpoints (service reference 4.4 and 4.5)."""

NoteKind = Literal["inexact_count", "windows_left_out", "long_value", "label_limit"]
"""The kind of a note about an export."""

Presence = Literal["both", "new", "vanished"]
"""Which of two tables has a group. A table has a group even if all of its counts are 0."""

RankBy = Literal["success", "errors", "filtered", "undelivered", "error_rate", "filtered_rate"]
"""What rows are ranked by."""

ReceiverKind = Literal["alertmanager", "webhook", "slack", "pagerduty", "opsgenie", "teams"]
"""A kind of receiver of alerts."""

RuleKind = Literal[
    "threshold",
    "rate",
    "volume",
    "day_off",
    "ratio",
    "silent",
    "vanished",
    "new",
    "budget",
    "undelivered",
    "reconciliation",
]
"""What a rule looks for."""

Scene = Literal["outage", "consent_filter", "schema_mismatch", "silent_source", "late_data"]
"""An incident in the seeded traffic. It begins some hours before the first request to the sandbox,
and affects a busy integration, source or event.
"""

Severity = Literal["info", "warning", "critical"]
"""How bad a finding is."""

Status = Literal["pending", "firing", "unjudged", "resolved"]
"""The stage of a finding or of an incident."""

TargetName = Literal["token", "event_delivery", "event_ingestion", "audit_logs"]
"""The destination of a request: a token endpoint, or an endpoint of an API."""

Tolerance = Literal["repeated_combination", "null_dimension"]
"""A deviation from the service reference that a Beta might send and that a caller may tolerate.
Each occurrence is counted in `Notes`.
"""

ExportWindows = Literal["settled", "all"]
"""Which windows are written."""

Verdict = Literal["balanced", "unbalanced", "unavailable"]
"""Whether the totals that the service reports are the sums of its counts."""
