"""Exact, grouped counts from an event router's metrics API.

The examples in the docs of this package go on from here, where a sandbox stands for the service:

>>> import tallyfold
>>> sandbox = tallyfold.Sandbox()
>>> event = {"event_name": "Order Completed", "write_key": "web"}
>>> at = "2026-01-01T00:05:00Z"
>>> sandbox.record(at, "success", integration="warehouse", count=7, **event)
>>> sandbox.record(at, "errors", integration="warehouse", **event)
>>> sandbox.record(at, "filtered", integration="email", reason="playbook", count=2, **event)
>>> client = tallyfold.Client(
...     cluster_endpoint="https://sandbox.example",
...     base_url="https://sandbox.example",
...     auth_url="https://sandbox.example",
...     transport=sandbox.transport(),
...     **sandbox.credentials,
... )
>>> table = client.event_delivery(
...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration", "reason"]
... )
>>> for row in table:
...     print(row.dimensions, row.success, row.errors, row.filtered)
{'integration': 'email', 'reason': 'playbook'} 0 0 2
{'integration': 'warehouse', 'reason': ''} 7 1 0
"""

from tallyfold._async_client import AsyncAccessToken, AsyncClient
from tallyfold._checkpoint import AsyncCheckpoint, Checkpoint
from tallyfold._client import AccessToken, Client
from tallyfold._clock import Now
from tallyfold._errors import (
    AuthError,
    ConfigError,
    ErrorCode,
    ErrorKind,
    ResponseError,
    ServiceError,
    TallyfoldError,
)
from tallyfold._facade import ApiName
from tallyfold._follow import AsyncRevisions, Revisions
from tallyfold._ranges import Additivity, AdditivityVerdict, Progress, Revision
from tallyfold._sandbox import EndpointName, FaultKind, Sandbox
from tallyfold._serve import SandboxServer, serve
from tallyfold._tallyfold import (
    Aggregator,
    Blocked,
    Call,
    Collect,
    Comparison,
    CountTable,
    Done,
    Drive,
    Follow,
    Idle,
    Limits,
    Machine,
    Plan,
    Probe,
    ProvideToken,
    Request,
    SandboxResponse,
    Send,
    Series,
    Wait,
    __version__,
    compare,
    segment_name,
)
from tallyfold._values import (
    Attempt,
    ComparisonRow,
    CountName,
    Counts,
    Deltas,
    DimensionName,
    MetricName,
    Notes,
    Presence,
    Rates,
    Reconciliation,
    Row,
    SeriesRow,
    Shares,
    TargetName,
    Tolerance,
    Verdict,
)
from tallyfold._window import SeriesWindow, Window

__all__ = [
    "AccessToken",
    "Additivity",
    "AdditivityVerdict",
    "Aggregator",
    "ApiName",
    "AsyncAccessToken",
    "AsyncCheckpoint",
    "AsyncClient",
    "AsyncRevisions",
    "Attempt",
    "AuthError",
    "Blocked",
    "Call",
    "Checkpoint",
    "Client",
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
    "ErrorCode",
    "ErrorKind",
    "FaultKind",
    "Follow",
    "Idle",
    "Limits",
    "Machine",
    "MetricName",
    "Notes",
    "Now",
    "Plan",
    "Presence",
    "Probe",
    "Progress",
    "ProvideToken",
    "Rates",
    "Reconciliation",
    "Request",
    "ResponseError",
    "Revision",
    "Revisions",
    "Row",
    "Sandbox",
    "SandboxResponse",
    "SandboxServer",
    "Send",
    "Series",
    "SeriesRow",
    "SeriesWindow",
    "ServiceError",
    "Shares",
    "TallyfoldError",
    "TargetName",
    "Tolerance",
    "Verdict",
    "Wait",
    "Window",
    "__version__",
    "compare",
    "segment_name",
    "serve",
]
