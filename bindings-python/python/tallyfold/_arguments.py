"""Arguments by their names, as types.

Written by scripts/declare.py from what the Rust crates declare. Change it there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, Required, TypedDict, Unpack

from tallyfold._names import (
    DimensionName,
    EndpointName,
    ExportWindows,
    Guarantee,
    MetricName,
    Scene,
    Tolerance,
)
from tallyfold._tallyfold import CountTable, limits_of

__all__ = [
    "ENVIRONMENT",
    "AggregatorArguments",
    "ClientArguments",
    "CollectArguments",
    "Dimensions",
    "EventArguments",
    "ExplainArguments",
    "ExportArguments",
    "FaultArguments",
    "FollowArguments",
    "Instant",
    "Limits",
    "LimitsArguments",
    "MachineArguments",
    "NotifyArguments",
    "PagesArguments",
    "PushArguments",
    "ReceiverArguments",
    "SandboxArguments",
    "Step",
    "Texts",
]

ENVIRONMENT = {
    "cluster_endpoint": "TALLYFOLD_CLUSTER_ENDPOINT",
    "client_id": "TALLYFOLD_CLIENT_ID",
    "client_secret": "TALLYFOLD_CLIENT_SECRET",
    "control_audience": "TALLYFOLD_CONTROL_AUDIENCE",
    "base_url": "TALLYFOLD_BASE_URL",
    "auth_url": "TALLYFOLD_AUTH_URL",
    "orchestration_audience": "TALLYFOLD_ORCHESTRATION_AUDIENCE",
    "identity": "TALLYFOLD_IDENTITY",
}
"""The arguments of a client that may come from the environment, and their variables."""


class Texts(Protocol):
    """Every `Sequence[str]` but `str`, which can't be asked whether it contains any object."""

    def __contains__(self, value: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> str: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...


Dimensions = Sequence[DimensionName] | Texts
"""Names of dimensions. Any `Sequence[str]` will do; editors complete the known ones."""

Instant = datetime | str
"""An aware `datetime`, or ISO 8601 text with `Z` or an offset from UTC."""

Step = str | timedelta
"""What divides a day: digits and one of `s`, `m`, `h` and `d`, or whole seconds."""


class LimitsArguments(TypedDict, total=False):
    """Arguments of `Limits`, by name."""

    depth: int
    """How deeply objects and arrays may be nested (`depth_limit`). Default: `32`."""
    string_bytes: int
    """The bytes of one string once its escapes are resolved (`string_limit`). Default: `65,536`."""
    keys: int
    """The keys of one object (`key_limit`). Default: `1,000`."""
    body_bytes: int
    """The bytes of one body (`body_limit`). Default: `4,294,967,296`."""
    groups: int
    """The groups of one table (`group_limit`). Default: `4,000,000`."""
    table_bytes: int
    """The bytes of one table: for each distinct value, its own bytes and 32 more; for each group,
    64 (`group_limit`). Default: `536,870,912`.
    """


@dataclass(frozen=True, slots=True, init=False)
class Limits:
    """How much of a response is read before it is refused.

    Limits that you don't set have their defaults.

    Args:
        depth: how deeply objects and arrays may be nested (`depth_limit`).
        string_bytes: the bytes of one string once its escapes are resolved (`string_limit`).
        keys: the keys of one object (`key_limit`).
        body_bytes: the bytes of one body (`body_limit`).
        groups: the groups of one table (`group_limit`).
        table_bytes: the bytes of one table: for each distinct value, its own bytes and 32 more; for
            each group, 64 (`group_limit`).

    Raises:
        ConfigError: for a limit that is not a number, or too large for this machine.

    >>> tallyfold.Limits(groups=1000).groups
    1000
    """

    depth: int
    """How deeply objects and arrays may be nested (`depth_limit`)."""
    string_bytes: int
    """The bytes of one string once its escapes are resolved (`string_limit`)."""
    keys: int
    """The keys of one object (`key_limit`)."""
    body_bytes: int
    """The bytes of one body (`body_limit`)."""
    groups: int
    """The groups of one table (`group_limit`)."""
    table_bytes: int
    """The bytes of one table: for each distinct value, its own bytes and 32 more; for each group,
    64 (`group_limit`).
    """

    def __init__(self, **limits: Unpack[LimitsArguments]) -> None:
        """Checks the limits, and uses the defaults for the others."""
        for name, value in limits_of(**limits).items():
            object.__setattr__(self, name, value)


# Pickles and docs should name the package, from which users import the class.
Limits.__module__ = "tallyfold"


class AggregatorArguments(TypedDict, total=False):
    """Arguments of `Aggregator`, by name."""

    metric: MetricName | None
    """The endpoint that the bytes are from; the table remembers it."""
    window: tuple[Instant, Instant] | None
    """The requested `start` and `end`, which the response is checked against."""
    limits: Limits | None
    """How much is read before the response is refused."""
    tolerate: Sequence[Tolerance]
    """Which deviations to tolerate."""


class ClientArguments(TypedDict, total=False):
    """Arguments of `Client`, by name."""

    cluster_endpoint: str | None
    """The address of your deployment, for the Control API and the Event Metrics API.

    https, or http on this machine.
    """
    client_id: str | None
    """The Client ID that the operator of the service has issued, for all APIs."""
    client_secret: str | None
    """The Client Secret that was issued with the Client ID.

    It can't be read back.
    """
    control_audience: str | None
    """The audience identifier of the Control API."""
    base_url: str | None
    """The address of the Orchestration API."""
    auth_url: str | None
    """The address of the authorization server, which issues the tokens of the Orchestration API."""
    orchestration_audience: str | None
    """The audience identifier of the Orchestration API."""
    identity: str | None
    """A name for the cluster and the client whose counts are read, such as `production`.

    Tables and states contain it. Tables and states with another name are refused. By default, it
    consists of the address, the Client ID, and a checksum of the headers that you add to requests.
    Set it if the address of a cluster changes, or if you provide the access tokens, which decide
    whose counts are read.
    """
    tokenless: bool
    """Whether requests carry no token, because the address is that of a server of yours that adds
    it.

    Such a server is `tallyfold/server` of the npm package, or `tallyfold.asgi`. In a page, requests
    carry the cookies of the page's own origin.
    """
    dangerously_allow_http: bool
    """Allows secrets and tokens to be sent over plain http to other machines."""
    default_token_lifetime: int
    """The lifetime of a token whose response names none. In seconds. Default: `3,600`."""
    limits: Limits | None
    """How much of a response is read before it is refused."""
    tolerate: Sequence[Tolerance]
    """Which deviations to tolerate in metrics responses, because the API is Beta."""
    max_retries: int
    """The maximum number of retries of one call, including its token requests; 0 for none.

    A call is retried after statuses 408, 429, 500, 502, 503 and 504, and after a broken connection
    or a timeout. All calls of a client share a budget of retries, so that a service that is down
    gets only a few more requests than usual. Default: `3`.
    """
    longest_retry_wait: float
    """The longest `Retry-After` for which a call waits.

    If the service requests a longer wait, the call fails with `retry_later`. Other waits between
    retries are limited by this, too. In seconds. Default: `60`.
    """
    timeout: float | None
    """How long one request may take, from connecting to the last byte of the response; at most a
    day.

    It also limits the wait for a token that another call fetches. In seconds. `None` for no limit.
    Default: `30`.
    """
    headers: Mapping[str, str]
    """Headers that go with every request, also with token requests, such as the key of a gateway.

    Headers that the client sets itself are refused, such as `authorization` and `content-type`.
    """


class MachineArguments(ClientArguments, total=False):
    """Arguments of `Machine`, by name."""

    host_tokens: bool
    """Whether the host provides the tokens, instead of a client secret."""
    in_browser: bool
    """Whether the host is a page in a browser, where every visitor can read what it holds."""
    dangerously_allow_browser: bool
    """Lets a page hold the client secret.

    Only for pages that nobody else can open.
    """


class CollectArguments(TypedDict, total=False):
    """Arguments of `Client.collect`, by name."""

    group_by: Dimensions | None
    """The dimensions to keep, in this order; an empty list gives one grand total.

    By default, all are kept.
    """
    window: Step
    """The length of the windows that are read; they start at multiples of it, counted from midnight
    UTC.

    The service's documentation recommends 5 to 15 minutes. Default: `15m`.
    """
    concurrency: int
    """How many windows are read at the same time. Default: `8`."""
    finest: Step
    """The shortest windows to read: a window whose response is too large or too slow is halved down
    to this length.

    A window is halved at a multiple of this length, counted from midnight UTC. Default: `1m`.
    """
    part: tuple[int, int] | None
    """Which part of the windows this machine collects, and how many parts there are, when several
    machines share the work.

    The first part is 0.
    """
    settle: float
    """For how long after a window's end its counts may still change.

    If a window is read earlier, its counts are used, but the window is marked as provisional. In
    seconds. Default: `3,600`.
    """
    keep: Step
    """What is kept of the windows that were read: `windows`, a step such as `1h` or `1d`, or
    `total`.

    `windows` keeps each by itself; a step, which is a multiple of `window`, keeps the sums of its
    windows; `total` keeps their sum. With a step or `total`, windows are added up as they settle,
    so memory grows with the number of groups and steps, not of windows. Default: `windows`.
    """
    memory_limit: int
    """About how many bytes the counts may take: the stored counts, and the counts of the responses
    being read.

    The bytes that the stored counts do not take are divided equally among the windows that are read
    at the same time. A window that needs more than its share is read alone. If that is not enough,
    or if the stored counts alone take more, reading ends with an error. Default: `1,073,741,824`.
    """
    drop_old: bool
    """Removes the counts of a checkpoint that lie entirely before the range.

    By default they stay, so that a later run over an earlier range can use them.
    """
    probe: bool
    """First tests, with one more call, that the counts of two adjacent windows add up to the counts
    of both together.

    The test uses the first two adjacent windows that are settled and have not been read yet.
    Without such a pair, nothing is tested.
    """
    patience: float | None
    """How long to wait for a service that is down; after that, reading ends.

    While the service is down, the workers pause, and one call at a time is tried again, with
    increasing waits of up to a minute. When the service responds again, all workers resume. With 0,
    a window fails once its own retries are used up. In seconds. `None` for no limit. Default:
    `900`.
    """
    deadline: float | None
    """How long reading may take in all, including waits, counted from its start.

    After that, reading ends with `deadline_exceeded`, and the windows that were not read are
    missing. In seconds. `None`, the default, for no limit.
    """
    have: CountTable | None
    """A table that holds some of the range already: only its gaps are read, and the windows
    that are provisional in it. Windows that lie outside of the range, or partly, are ignored."""


class ExplainArguments(TypedDict, total=False):
    """Arguments of `explain`, by name."""

    most: int
    """The maximum number of causes. Default: `5`."""
    others: int
    """The maximum number of further candidates, best first. Default: `5`."""
    keep_unusual: bool
    """Also compares with earlier windows whose rate is unusual.

    By default, they are left out, so that an earlier incident does not count as normal.
    """


class ExportArguments(TypedDict, total=False):
    """Arguments of `export`, by name."""

    name: str | None
    """The prefix of metric names, instead of `tallyfold` and the endpoint.

    It consists of up to 100 ASCII letters, digits and underscores, and does not begin with a digit.
    The names of the dimensions follow it, as in `tallyfold_event_delivery_by_integration`. Counts
    by other dimensions therefore have another metric name, and no sum over a metric counts an event
    twice.
    """
    windows: ExportWindows | None
    """Which windows are written.

    By default, StatsD and formats of files, such as CSV, contain all windows. Formats of other
    systems contain only settled windows, because counts that another system has stored can't be
    withdrawn. Revisions of a follow are always written.
    """
    exact: bool
    """Refuses counts above 2^53 if the destination stores 64-bit floats.

    By default, such counts are written, with a note.
    """
    max_bytes: int | None
    """The approximate maximum size of a message in bytes, before compression.

    By default, as many as the destination accepts.
    """


class FollowArguments(TypedDict, total=False):
    """Arguments of `Client.follow`, by name."""

    window: Required[Step]
    """The length of the windows; they start at multiples of it, counted from midnight UTC."""
    end: Instant | None
    """The end of the last window.

    By default, the follow has no end.
    """
    group_by: Dimensions | None
    """The dimensions to keep, in this order; an empty list gives one grand total.

    By default, all are kept.
    """
    delay: float
    """How long after its end a window is first read. In seconds. Default: `0`."""
    reread: float | None
    """How long after a reading, successful or failed, a window is read again.

    By default, the length of `window`. In seconds.
    """
    settle: float
    """For how long after a window's end its counts may still change.

    A window is read again until then. In seconds. Default: `3,600`.
    """
    settle_when_unchanged: bool
    """Settles a window early if its counts have not changed for at least the length of a window.

    This needs fewer requests, but loses the events that arrive after the last reading.
    """
    state: str | None
    """The state of an earlier follow of the same query.

    This one resumes there, and `start` has no effect.
    """
    patience: float | None
    """How long to wait for a service that is down; after that, the reading fails.

    While the service is down, one reading at a time is tried again, with increasing waits of up to
    a minute, and all others wait. With 0, a reading fails once its own retries are used up. If a
    window fails repeatedly while others can be read, its reading fails, too. In seconds. `None`,
    the default, for no limit.
    """


class NotifyArguments(TypedDict, total=False):
    """Arguments of `notify`, by name."""

    cluster: str | None
    """The name of the cluster, which becomes a label of each alert."""
    labels: Mapping[str, str]
    """More labels of each alert."""
    alert_for: float
    """How long an Alertmanager keeps an alert that no later call sends again.

    It should be longer than a few intervals between calls. In seconds. Default: `7,200`.
    """
    patience: float | None
    """How long to keep retrying when a receiver fails.

    A later call sends the messages that were not accepted. In seconds. `None` for no limit.
    Default: `5`.
    """


class ReceiverArguments(TypedDict, total=False):
    """Arguments of `notify`, by name."""

    name: Required[str]
    """The name under which the state remembers what the receiver was notified of.

    With another name, the receiver is notified of all firing alerts again.
    """
    url: str | None
    """The whole address. An Alertmanager's address may omit `/api/v2/alerts`. PagerDuty and
    Opsgenie have default addresses.

    The address of a chat tool is often a secret: no message shows more of it than its host.
    """
    headers: Mapping[str, str]
    """Headers of each request, such as `authorization`.

    No message quotes their values.
    """
    allow_http: bool
    """Allows messages to be sent by plain http to another machine.

    Others on the network can then read them.
    """
    template: str | None
    """The message of a webhook: JSON with placeholders such as `{{sentence}}`."""
    routing_key: str | None
    """The integration key of a PagerDuty service (Events API v2).

    No message quotes it.
    """


class PagesArguments(TypedDict, total=False):
    """Arguments of `asgi.PageServer`, by name."""

    hand_out_tokens: bool
    """Whether pages get access tokens: `POST` to `token/control` and `token/orchestration`."""
    audit_logs: bool
    """Whether pages may list audit logs."""
    provisional: float
    """How long an answer is kept if its window ended less than an hour ago, so that its counts may
    still change.

    Answers for older windows are kept until there is no room. In seconds. Default: `5`.
    """
    concurrency: int
    """How many calls to the service may be under way at the same time.

    Others wait. Default: `8`.
    """
    queue: int
    """How many calls may wait until others have ended.

    Further requests get status 503 with `Retry-After`. Default: `64`.
    """
    memory_bytes: int
    """How many bytes of answers are kept in memory. Default: `67,108,864`."""


class PushArguments(ExportArguments, total=False):
    """Arguments of `push`, by name."""

    headers: Mapping[str, str]
    """Headers of each request, such as `authorization`.

    No message quotes their values.
    """
    allow_http: bool
    """Allows headers, or a password in the address, to be sent by plain http to another machine.

    Others on the network can then read them.
    """
    guarantee: Guarantee | None
    """What happens to a message that was sent but not acknowledged, because the connection broke.

    `at_least_once` sends it again, so it may be counted twice. `at_most_once` does not, so it may
    be lost. Prometheus, VictoriaMetrics and InfluxDB accept a repeated message without harm: for
    them, it is always sent again, and this option is refused. For other destinations, the default
    is `at_most_once`, because a loss is reported, but nothing shows a count that was added twice.
    """
    patience: float | None
    """How long to wait in total for a destination that fails or requests pauses. In seconds. `None`
    for no limit. Default: `900`.
    """


class SandboxArguments(TypedDict, total=False):
    """Arguments of `Sandbox`, by name."""

    seed: int | None
    """The seed of realistic generated traffic: the same seed generates the same counts.

    By default, no traffic is generated.
    """
    scene: Scene | None
    """An incident in the generated traffic, during the hours before the first request.

    Without a seed, the seed is 1.
    """
    client_id: str
    """The client id that both token endpoints accept. Default: `sandbox-client`."""
    client_secret: str
    """The client secret.

    The default is public and is valid only for a sandbox.
    """
    control_audience: str
    """The audience identifier of the Control API. Default: `sandbox-control`."""
    orchestration_audience: str
    """The audience identifier of the Orchestration API.

    It must differ from the other one, because a token has one audience. Default: `sandbox-
    orchestration`.
    """
    token_lifetime: int
    """How long a token is valid. In seconds. Default: `86,400`."""
    closed_windows: bool
    """Whether an event at the `end` of a window also counts in it.

    Then the assumption `half_open_window` is false, and adjacent windows count some events twice.
    """


class EventArguments(TypedDict, total=False):
    """Arguments of `Sandbox.record`, by name."""

    event_name: Required[str]
    """The name of the event."""
    write_key: Required[str]
    """The write key of their source."""
    integration: Required[str]
    """The integration that they were for."""
    reason: str
    """Why they were filtered."""
    count: int
    """How many events to store. Default: `1`."""


class FaultArguments(TypedDict, total=False):
    """Arguments of `Sandbox.inject`, by name."""

    endpoint: EndpointName | None
    """The endpoint; by default, all endpoints for which the kind makes sense."""
    every: int | None
    """`k` for every `k`-th matching request; by default, the next one only."""
    status: int | None
    """The status of the response, for `status`: from 200 to 599."""
    retry_after: str | None
    """The `Retry-After` header of the response, for `status`; by default, there is none."""
    milliseconds: int | None
    """For `delay`, how long to wait, at most an hour. For `date`, how far `Date` is behind."""
    bytes: int | None
    """After how many bytes of the body the connection closes, for `truncate`."""
    content_type: str | None
    """The content type of the response, for `content_type`."""
    body: str | None
    """The body of the response, for `body`."""
    amount: int | None
    """What is added to the total, for `wrong_total`: 1 or more."""
