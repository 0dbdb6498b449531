"""What callers may give, as types. Meanings and defaults stand in the core."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Required, TypedDict

from tallyfold._names import DimensionName, EndpointName, MetricName, Tolerance

if TYPE_CHECKING:
    from tallyfold._tallyfold import CountTable
    from tallyfold._values import Limits

__all__ = [
    "AggregatorArguments",
    "ClientArguments",
    "CollectArguments",
    "EventArguments",
    "FaultArguments",
    "FollowArguments",
    "Instant",
    "LimitsArguments",
    "MachineArguments",
    "SandboxArguments",
    "Step",
]

Instant = datetime | str
"""An aware `datetime`, or UTC ISO 8601 that ends in `Z`."""

Step = str | timedelta
"""A step that divides a day: digits and one of `s`, `m`, `h` and `d`, or whole seconds."""


class LimitsArguments(TypedDict, total=False):
    """Arguments of `Limits`."""

    depth: int | None
    string_bytes: int | None
    keys: int | None
    body_bytes: int | None
    groups: int | None


class AggregatorArguments(TypedDict, total=False):
    """Arguments of `Aggregator`."""

    metric: MetricName | None
    window: tuple[Instant, Instant] | None
    limits: "Limits | None"
    tolerate: Sequence[Tolerance]


class ClientArguments(TypedDict, total=False):
    """Arguments of `Client` that the core reads."""

    cluster_endpoint: str | None
    client_id: str | None
    client_secret: str | None
    control_audience: str | None
    base_url: str | None
    auth_url: str | None
    orchestration_audience: str | None
    timeout: float | None
    dangerously_allow_http: bool
    default_token_lifetime: int | None
    limits: "Limits | None"
    tolerate: Sequence[Tolerance]
    max_retries: int
    longest_retry_wait: float


class MachineArguments(ClientArguments, total=False):
    """Arguments of `Machine`."""

    host_tokens: bool
    in_browser: bool
    dangerously_allow_browser: bool


class CollectArguments(TypedDict, total=False):
    """Arguments of `Client.collect` that the core reads."""

    window: Step
    concurrency: int
    group_by: Sequence[DimensionName] | None
    part: tuple[int, int] | None
    have: "CountTable | None"
    settle: float
    finest: Step
    probe: bool


class FollowArguments(TypedDict, total=False):
    """Arguments of `Client.follow`."""

    window: Required[Step]
    end: Instant | None
    group_by: Sequence[DimensionName] | None
    delay: float
    reread: float | None
    settle: float


class SandboxArguments(TypedDict, total=False):
    """Arguments of `Sandbox`."""

    seed: int | None
    client_id: str
    client_secret: str
    control_audience: str
    orchestration_audience: str
    token_lifetime: int
    closed_windows: bool


class EventArguments(TypedDict, total=False):
    """Arguments of `Sandbox.record`."""

    event_name: Required[str]
    write_key: Required[str]
    integration: Required[str]
    reason: str
    count: int


class FaultArguments(TypedDict, total=False):
    """Arguments of `Sandbox.inject`."""

    endpoint: EndpointName | None
    every: int | None
    status: int | None
    retry_after: str | None
    milliseconds: int | None
    bytes: int | None
    content_type: str | None
    body: str | None
    amount: int | None
