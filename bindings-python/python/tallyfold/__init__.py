"""Exact, grouped counts from an event router's metrics API.

The examples in the docs of this package continue this one, in which a sandbox replaces the service:

>>> import tallyfold
>>> sandbox = tallyfold.Sandbox()
>>> event = {"event_name": "Order Completed", "write_key": "web"}
>>> at = "2026-01-01T00:05:00Z"
>>> sandbox.record(at, "success", integration="warehouse", count=7, **event)
>>> sandbox.record(at, "errors", integration="warehouse", **event)
>>> sandbox.record(at, "filtered", integration="email", reason="playbook", count=2, **event)
>>> service = {
...     **dict.fromkeys(["cluster_endpoint", "base_url", "auth_url"], "https://sandbox.example"),
...     **sandbox.credentials,
... }
>>> client = tallyfold.Client(transport=sandbox.transport(), **service)
>>> table = client.event_delivery(
...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration", "reason"]
... )
>>> for row in table:
...     print(row.dimensions, row.success, row.errors, row.filtered)
{'integration': 'email', 'reason': 'playbook'} 0 0 2
{'integration': 'warehouse', 'reason': ''} 7 1 0

With asyncio, `AsyncClient` does the same. Its examples work in a prompt that supports `await`, such
as `python -m asyncio`:

>>> async_client = tallyfold.AsyncClient(transport=sandbox.async_transport(), **service)
>>> table = await async_client.event_delivery(
...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration", "reason"]
... )
"""

from tallyfold import codes
from tallyfold._arguments import Limits
from tallyfold._calls.async_driver import AsyncAccessToken
from tallyfold._calls.driver import AccessToken
from tallyfold._calls.facade import ClockWarning
from tallyfold._calls.steps import Blocked, Done, Drive, Idle, ProvideToken, Send, Wait
from tallyfold._client.async_client import AsyncClient
from tallyfold._client.client import Client
from tallyfold._errors import (
    AuthError,
    ConfigError,
    ErrorKind,
    ResponseError,
    ServiceError,
    TallyfoldError,
)
from tallyfold._export.async_push import async_push
from tallyfold._export.exporting import (
    Export,
    ExportWarning,
    InexactCountWarning,
    LabelLimitWarning,
    LongValueWarning,
    WindowsLeftOutWarning,
    export,
)
from tallyfold._export.ledger import Ledger
from tallyfold._export.outbox import Outbox
from tallyfold._export.push import push
from tallyfold._files.async_checkpoint import AsyncCheckpoint
from tallyfold._files.checkpoint import Checkpoint
from tallyfold._health.async_notify import async_notify
from tallyfold._health.notified import Notified, Receiver
from tallyfold._health.notify import notify
from tallyfold._health.results import (
    Amount,
    Cause,
    Check,
    ErrorBudget,
    Explanation,
    Finding,
    Incident,
    IncidentEvent,
    IncidentHold,
    IncidentPart,
    Need,
    Query,
    Receipt,
    Replay,
    Unjudged,
    Usual,
)
from tallyfold._health.rules import Rules, acknowledge, explain, silence, unsilence, usual
from tallyfold._names import (
    AdditivityVerdict,
    ApiName,
    CountName,
    DimensionName,
    EndpointName,
    ErrorCode,
    ExportFormat,
    ExportWindows,
    FaultKind,
    Guarantee,
    IncidentChange,
    Measure,
    MetricName,
    NoteKind,
    Presence,
    RankBy,
    ReceiverKind,
    RuleKind,
    Severity,
    Status,
    TargetName,
    Tolerance,
    Verdict,
)
from tallyfold._notebook import show
from tallyfold._ranges.async_revisions import AsyncRevisions
from tallyfold._ranges.revisions import Revisions
from tallyfold._ranges.values import Additivity, Progress, Revision
from tallyfold._sandbox.sandbox import Sandbox, SandboxResponse
from tallyfold._sandbox.server import SandboxServer, serve
from tallyfold._scan import scan
from tallyfold._tallyfold import (
    Aggregator,
    Call,
    Collect,
    Comparison,
    CountTable,
    Follow,
    Machine,
    Plan,
    Probe,
    Request,
    Series,
    __version__,
    compare,
    segment_name,
)
from tallyfold._time import Now, SeriesWindow, Window
from tallyfold._values import (
    Attempt,
    ClockDifference,
    ComparisonRow,
    Counts,
    Deltas,
    Note,
    Notes,
    PushReport,
    Rates,
    Reconciliation,
    Rejected,
    Row,
    SeriesRow,
    Shares,
)

__all__ = [
    "AccessToken",
    "Additivity",
    "AdditivityVerdict",
    "Aggregator",
    "Amount",
    "ApiName",
    "AsyncAccessToken",
    "AsyncCheckpoint",
    "AsyncClient",
    "AsyncRevisions",
    "Attempt",
    "AuthError",
    "Blocked",
    "Call",
    "Cause",
    "Check",
    "Checkpoint",
    "Client",
    "ClockDifference",
    "ClockWarning",
    "Collect",
    "Comparison",
    "ComparisonRow",
    "ConfigError",
    "CountName",
    "CountTable",
    "Counts",
    "Deltas",
    "DimensionName",
    "Done",
    "Drive",
    "EndpointName",
    "ErrorBudget",
    "ErrorCode",
    "ErrorKind",
    "Explanation",
    "Export",
    "ExportFormat",
    "ExportWarning",
    "ExportWindows",
    "FaultKind",
    "Finding",
    "Follow",
    "Guarantee",
    "Idle",
    "Incident",
    "IncidentChange",
    "IncidentEvent",
    "IncidentHold",
    "IncidentPart",
    "InexactCountWarning",
    "LabelLimitWarning",
    "Ledger",
    "Limits",
    "LongValueWarning",
    "Machine",
    "Measure",
    "MetricName",
    "Need",
    "Note",
    "NoteKind",
    "Notes",
    "Notified",
    "Now",
    "Outbox",
    "Plan",
    "Presence",
    "Probe",
    "Progress",
    "ProvideToken",
    "PushReport",
    "Query",
    "RankBy",
    "Rates",
    "Receipt",
    "Receiver",
    "ReceiverKind",
    "Reconciliation",
    "Rejected",
    "Replay",
    "Request",
    "ResponseError",
    "Revision",
    "Revisions",
    "Row",
    "RuleKind",
    "Rules",
    "Sandbox",
    "SandboxResponse",
    "SandboxServer",
    "Send",
    "Series",
    "SeriesRow",
    "SeriesWindow",
    "ServiceError",
    "Severity",
    "Shares",
    "Status",
    "TallyfoldError",
    "TargetName",
    "Tolerance",
    "Unjudged",
    "Usual",
    "Verdict",
    "Wait",
    "Window",
    "WindowsLeftOutWarning",
    "__version__",
    "acknowledge",
    "async_notify",
    "async_push",
    "codes",
    "compare",
    "explain",
    "export",
    "notify",
    "push",
    "scan",
    "segment_name",
    "serve",
    "show",
    "silence",
    "unsilence",
    "usual",
]
