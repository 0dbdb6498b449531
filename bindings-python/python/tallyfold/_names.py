"""Closed lists of names, the same in every language."""

from typing import Literal

__all__ = [
    "AdditivityVerdict",
    "ApiName",
    "CountName",
    "DimensionName",
    "EndpointName",
    "ErrorCode",
    "ErrorKind",
    "FaultKind",
    "MetricName",
    "Presence",
    "TargetName",
    "Tolerance",
    "Verdict",
]

DimensionName = Literal["event_name", "write_key", "integration", "reason"]
"""A group-by field (service reference 2.4)."""

CountName = Literal["success", "errors", "filtered"]
"""One of the three counts of an entry (service reference 2.3)."""

MetricName = Literal["event_delivery", "event_ingestion"]
"""Which counts they are (service reference 4.4 and 4.5)."""

Tolerance = Literal["repeated_combination", "null_dimension"]
"""A deviation from the service reference that a caller lets pass."""

TargetName = Literal["token", "event_delivery", "event_ingestion", "audit_logs"]
"""What a request is sent to: an API's token endpoint, or an endpoint of the API."""

Verdict = Literal["balanced", "unbalanced", "unavailable"]
"""How the reported totals compare with the sums of the counts."""

Presence = Literal["both", "new", "vanished"]
"""Which of two compared tables has a group."""

AdditivityVerdict = Literal["additive", "double_counted", "missing", "mixed", "unknown"]
"""Whether the halves of a window have the counts of the whole."""

ApiName = Literal["control", "orchestration"]
"""The two APIs; a token of the one is not valid for the other (service reference 5.1)."""

EndpointName = Literal[
    "control_token", "orchestration_token", "event_delivery", "event_ingestion", "audit_logs"
]
"""One of the sandbox's endpoints (service reference 4)."""

FaultKind = Literal[
    "status", "delay", "truncate", "content_type", "revoke_token", "wrong_total", "body"
]
"""What can be made to go wrong."""

ErrorKind = Literal["config", "auth", "service", "response"]
"""Who has to act on an error."""

ErrorCode = Literal[
    "missing_argument",
    "unknown_argument",
    "invalid_argument",
    "invalid_base_address",
    "insecure_base_address",
    "secret_in_browser",
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
    "wrong_content_type",
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
    "sum_overflow",
    "window_mismatch",
    "dimension_mismatch",
    "repeated_combination",
    "depth_limit",
    "string_limit",
    "key_limit",
    "body_limit",
    "group_limit",
    "invalid_table",
    "windows_not_additive",
]
"""What went wrong: a closed list, the same in every language."""
