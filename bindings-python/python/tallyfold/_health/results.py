"""Results of health, as values.

Written by scripts/declare.py from what the Rust crates declare. Change it there.
"""

from dataclasses import dataclass

from tallyfold._names import (
    DimensionName,
    IncidentChange,
    Measure,
    MetricName,
    RuleKind,
    Severity,
    Status,
)
from tallyfold._time import Window

__all__ = [
    "Amount",
    "Cause",
    "Check",
    "ErrorBudget",
    "Explanation",
    "Finding",
    "Incident",
    "IncidentEvent",
    "IncidentHold",
    "IncidentPart",
    "Need",
    "Query",
    "Receipt",
    "Replay",
    "Unjudged",
    "Usual",
]


@dataclass(frozen=True, slots=True)
class Amount:
    """Events of a group in one time range.

    >>> tallyfold.explain(table, table, "error_rate").now
    Amount(part=1, whole=8)
    """

    part: int
    """The events that are counted."""
    whole: int | None
    """For a rate, the events that they are a share of."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A combination of attribute values, and what it explains.

    >>> for at, failed in [("2026-01-01T00:20:00Z", 3), ("2026-01-01T00:35:00Z", 63)]:
    ...     for name, errors in [("crm", 3), ("email", failed), ("warehouse", 3)]:
    ...         sandbox.record(at, "success", integration=name, count=1000, **event)
    ...         sandbox.record(at, "errors", integration=name, count=errors, **event)
    >>> edges = [f"2026-01-01T00:{minute}:00Z" for minute in (15, 30, 45)]
    >>> before = client.event_delivery(*edges[:2], ["integration"])
    >>> now = client.event_delivery(*edges[1:], ["integration"])
    >>> (cause,) = tallyfold.explain(before, now, "errors").causes
    >>> cause.where, cause.events
    ({'integration': 'email'}, 60)
    """

    where: dict[str, str]
    """The values, in the order of the attributes. Attributes that are not named may have any value.
    """
    before: Amount
    """Its events before."""
    now: Amount
    """Its events now."""
    expected: float
    """The expected number of counted events now."""
    events: int
    """The events now minus the expected ones, rounded to whole events."""
    share: float
    """The share of these events in the whole change; 0 if nothing changed."""
    score: float
    """How much better the counts are explained with this cause than without it: a difference of log
    likelihoods, for ranking only.
    """


@dataclass(frozen=True, slots=True)
class Explanation:
    """What explains a change: its causes, with exact numbers of events.

    >>> tallyfold.explain(table, table, "errors").change
    0
    """

    measure: Measure
    """What changed."""
    before: Amount
    """All events before."""
    now: Amount
    """All events now."""
    change: int
    """The events now minus the expected events: for a volume, the events before; for a rate, the
    events at the rate before.
    """
    causes: list[Cause]
    """The causes, most important first. No event belongs to two of them: each counts only events
    that belong to no cause before it.
    """
    others: list[Cause]
    """Further candidates that were not named, best first. They may overlap with causes and with
    each other.
    """
    unexplained: int
    """The part of the change that no cause explains: `change` minus the `events` of all causes."""
    is_global: bool
    """Whether all groups changed alike, so that there is no narrower cause."""
    is_normal: bool
    """Whether counts vary this much by chance alone. If so, no cause is named."""
    probability: float
    """The probability, from 0 to 1, that all events together vary at least this much by chance."""
    left_out: list[Window]
    """The earlier windows that were left out because their rate is unusual. A window that is also
    one of the current windows is never left out.
    """
    sentence: str
    """The explanation in one sentence."""


@dataclass(frozen=True, slots=True)
class Query:
    """The query for the counts of a finding.

    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> (finding,) = rules.check(delivery=table, now="2026-01-01T01:00:00Z").findings
    >>> query = finding.query
    >>> rows = client.event_delivery(query.start, query.end, query.dimensions)
    >>> rows.filter(**query.where).totals.errors
    1
    """

    metric: MetricName
    """The endpoint."""
    start: str
    """The start of the range."""
    end: str
    """The end of the range."""
    dimensions: list[DimensionName]
    """The dimensions to group by."""
    where: dict[str, list[str]]
    """The values to keep, by dimension."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule has found about a group of events.

    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> (finding,) = rules.check(delivery=table, now="2026-01-01T01:00:00Z").findings
    >>> finding.rule, finding.status, finding.observed
    ('errors', 'firing', Amount(part=1, whole=None))
    """

    id: str
    """An identifier of 16 hexadecimal digits that depends only on the rule and the group: a finding
    that comes back has the same identifier.
    """
    rule: str
    """The name of the rule."""
    kind: RuleKind
    """What the rule looks for."""
    severity: Severity
    """The severity of the finding."""
    status: Status
    """Whether the finding is pending, firing, unjudged or resolved."""
    group: dict[str, str]
    """The values of the rule's dimensions."""
    window: Window
    """The time range of the numbers: the last bad window, or several windows that were judged
    together.
    """
    since: str
    """When the finding began: the start of the first bad window."""
    fired: str | None
    """When the finding began to fire: the end of the bad window that made it fire; none while it is
    pending.
    """
    resolved: str | None
    """When the finding ended: the end of the last window that showed no recovery, such as a bad
    window.
    """
    seen: str
    """The end of the last window that had enough events to judge the group."""
    measure: Measure
    """The measure that the rule judges."""
    observed: Amount
    """The counted events."""
    total: Amount | None
    """The counted events from `since` until the end of `window`, or until `resolved`. None if that
    time is longer than two days (for a resolved finding, a week), if counts are missing, or if this
    kind of rule has no totals. If a rule has very many findings, only some of them have totals.
    """
    expected: float
    """The expected number of counted events."""
    low: int
    """The fewest counted events that would be normal."""
    high: int | None
    """The most counted events that would be normal; none without an upper limit."""
    ln_p: float | None
    """The natural logarithm of the probability of these counts if nothing is wrong; none for fixed
    limits.
    """
    causes: list[Cause]
    """The parts of the group that explain the finding, most important first."""
    within: dict[str, str]
    """For dimensions that the group does not name, the values that nearly all events of the group
    had on the day before the finding began, or since then if the group is new; empty if there are
    causes.
    """
    unexplained: int
    """The events of the change that no cause explains."""
    compared: list[Window]
    """The earlier time ranges that the finding was compared with to find its causes: the same time
    in earlier weeks, or the time just before if the counts of those weeks are unknown. Empty if the
    finding is not explained.
    """
    silenced: bool
    """Whether a silence covers the finding, or its incident is acknowledged or silenced."""
    provisional: bool
    """Whether the counts may still change. The severity of such a finding is at most `warning`."""
    labels: dict[str, str]
    """The labels of the rules file and of the rule."""
    note: str | None
    """The note of the rule, if it has one."""
    runbook: str | None
    """The address of the rule's runbook, if it has one."""
    incident: str | None
    """The identifier of the finding's incident; none while the finding is pending."""
    sentence: str
    """The finding in one sentence."""
    query: Query
    """The query for the counts of the finding."""


@dataclass(frozen=True, slots=True)
class IncidentEvent:
    """Something that happened to an incident.

    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
    >>> [event.change for event in check.incidents[0].history]
    ['began']
    """

    at: str
    """When it happened: the end of a window."""
    change: IncidentChange
    """What happened."""
    severity: Severity
    """The severity of the incident from then on."""
    finding: str
    """The identifier of the finding that caused the change."""


@dataclass(frozen=True, slots=True)
class IncidentHold:
    """The acknowledgement or silence of an incident.

    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
    >>> state = tallyfold.acknowledge(check.state, check.incidents[0].id, note="known")
    >>> later = rules.check(delivery=table, state=state, now="2026-01-01T01:00:00Z")
    >>> later.incidents[0].hold, later.healthy
    (IncidentHold(until=None, note='known'), True)
    """

    until: str | None
    """When the silence ends. An acknowledgement has no such time: it ends when the incident becomes
    more severe or comes back.
    """
    note: str | None
    """Who knows of the incident, or what is done about it."""


@dataclass(frozen=True, slots=True)
class IncidentPart:
    """A finding that belongs to an incident, as it was last reported.

    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
    >>> [part.rule for part in check.incidents[0].parts]
    ['errors']
    """

    id: str
    """The identifier of the finding."""
    rule: str
    """The name of the rule."""
    severity: Severity
    """The severity of the finding."""
    status: Status
    """Whether the finding is firing, unjudged or resolved."""
    group: dict[str, str]
    """The values of the rule's dimensions."""
    cause: dict[str, str]
    """The values of the main cause; without causes, the values that nearly all events of the
    finding have.
    """
    measure: Measure
    """The measure that the rule judges."""
    events: int
    """By how many events the count differs from the expected count, rounded."""
    since: str
    """When the finding began: the start of the first bad window."""
    until: str
    """The end of the last bad window so far."""
    silenced: bool
    """Whether a silence covers the finding."""
    provisional: bool
    """Whether the counts of the finding may still change."""
    sentence: str
    """The finding in one sentence."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings that belong together.

    An incident keeps its identifier from check to check, even if it is over and comes back soon.

    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
    >>> (incident,) = check.incidents
    >>> incident.status, incident.headline == check.findings[0].id
    ('firing', True)
    """

    id: str
    """An identifier of 16 hexadecimal digits, which no other incident has."""
    severity: Severity
    """The highest severity that its parts have had since it began or came back. Silenced and
    provisional parts don't raise it. If all open parts are silenced or all are provisional, the
    next part that is neither sets it anew.
    """
    status: Status
    """Firing if a part fires; otherwise unjudged if a part is unjudged, and resolved if all parts
    are resolved.
    """
    since: str
    """When the incident began: the start of the first bad window of all parts."""
    fired: str
    """When the first part began to fire."""
    until: str
    """The end of the last bad window of all parts so far."""
    headline: str
    """The identifier of the part that explains more of the other parts than any other one."""
    sentence: str
    """The sentence of the headline, with the names of the other findings. If the incident came
    back, these are the findings since then.
    """
    silenced: bool
    """Whether silences cover all parts that are not over, or the incident is acknowledged or
    silenced.
    """
    provisional: bool
    """Whether the incident depends on counts that may still change."""
    missed: bool
    """Whether the incident began, or came back, and ended between two checks. Then no receiver was
    notified that it fires.
    """
    hold: IncidentHold | None
    """The acknowledgement or silence of the incident. While it is in force, no receiver is notified
    that the incident fires.
    """
    parts: list[IncidentPart]
    """The findings that belong to the incident, sorted by their identifiers."""
    history: list[IncidentEvent]
    """What happened to the incident, in chronological order. A long history keeps the first and the
    latest entries.
    """


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A rule that could not judge anything.

    >>> tallyfold.Rules.standard().check().unjudged[0]
    Unjudged(rule='integration fails', reason='there are no counts of event_delivery')
    """

    rule: str
    """The name of the rule, or `recent counts` if the counts are too old to show whether all is
    well now.
    """
    reason: str
    """The reason, as a sentence."""


@dataclass(frozen=True, slots=True)
class Check:
    """What a check has found.

    >>> tallyfold.Rules.standard().check(delivery=table, now="2026-01-01T01:00:00Z").healthy
    True
    """

    findings: list[Finding]
    """The findings that are firing, unjudged, pending or just resolved, sorted by status (in this
    order), severity and evidence.
    """
    incidents: list[Incident]
    """The incidents that the findings belong to, sorted by status and severity. A receiver of
    alerts gets one alert for each incident.
    """
    judged: int
    """How many windows all rules together have judged; each group counts its own windows. Each
    check judges the windows whose counts may still change, and counts them again.
    """
    healthy: bool
    """Whether all is well. False if a warning or critical finding fires or is unjudged, unless the
    finding is silenced or provisional. Also false if there are no recent counts, or if no rule can
    judge the counts.
    """
    unjudged: list[Unjudged]
    """Rules that could not judge anything, with the reason."""
    left_out: int
    """How many findings were left out, because there are too many."""
    state: str = ""
    """The state for the next check, as a document with a checksum: pass it as `state`."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What checks would have found in a range.

    >>> rules = tallyfold.Rules.standard()
    >>> day = rules.replay("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", delivery=table)
    >>> day.range
    Window('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z')
    """

    findings: list[Finding]
    """Each finding as it was when it began to fire, with the time when it was resolved. The order
    is chronological; findings with the same times are sorted by severity and evidence. Findings
    that were only pending are left out.
    """
    incidents: list[Incident]
    """The incidents that the findings belong to, as they were at the end of the range, in
    chronological order.
    """
    judged: int
    """How many windows all rules together have judged; each group counts its own windows."""
    range: Window
    """The range."""
    unjudged: list[Unjudged]
    """Rules that could not judge anything, with the reason."""
    left_out: int
    """How many findings were left out, because there are too many."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of the messages to a receiver.

    >>> chat = httpx2.MockTransport(lambda request: httpx2.Response(200, text="ok"))
    >>> receiver = {"kind": "slack", "name": "team", "url": "https://hooks.example/T0"}
    >>> check = tallyfold.Rules.standard().check(delivery=table)
    >>> tallyfold.notify(check, [receiver], transport=chat).receivers[0].messages
    0
    """

    receiver: str
    """The kind of receiver and its name, such as `slack:data-team`."""
    messages: int
    """How many messages the receiver accepted."""
    retries: int
    """How many messages were sent again."""
    code: str | None
    """The error code of the first message that the receiver did not accept. The next call sends
    this message again, unless the receiver refused a message about an incident that began and ended
    between two checks.
    """
    status: int | None
    """The status of the response to this message."""
    error: str | None
    """The error of this message, as a sentence."""


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """How many events may fail or be filtered, according to a rule of kind `budget`.

    >>> budget = tallyfold.Rules.standard().budgets()[0]
    >>> budget.rule, budget.share
    ('delivery budget', 0.05)
    """

    rule: str
    """The name of the rule."""
    metric: MetricName
    """The endpoint."""
    measure: Measure
    """Which events the budget limits."""
    dimensions: list[DimensionName]
    """The dimensions to group by. Each group has its own budget."""
    where: dict[str, list[str]]
    """For each restricted dimension, the values to keep."""
    share: float
    """The share of events that may fail or be filtered: 0.05 for 5%."""


@dataclass(frozen=True, slots=True)
class Need:
    """The counts of one endpoint that rules need.

    >>> need = tallyfold.Rules.standard().needs()[0]
    >>> need.metric, need.window
    ('event_delivery', '15m')
    """

    metric: MetricName
    """The endpoint."""
    dimensions: list[DimensionName]
    """The dimensions that all rules together need."""
    window: str
    """The length of the windows, such as `15m`: a divisor of the window length of each rule."""
    back: float
    """How long before now the first window starts. In seconds."""


@dataclass(frozen=True, slots=True)
class Usual:
    """What is usual in a slot of time: numbers of events for a volume, shares for a rate.

    >>> tallyfold.usual(table, "errors", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")
    []
    """

    start: str
    """When the slot begins."""
    end: str
    """When it ends."""
    expected: float
    """The expected value."""
    low: float
    """The lowest usual value."""
    high: float
    """The highest usual value."""


# Pickles and docs should name the package, from which users import the classes.
for _class in (
    Amount,
    Cause,
    Explanation,
    Query,
    Finding,
    IncidentEvent,
    IncidentHold,
    IncidentPart,
    Incident,
    Unjudged,
    Check,
    Replay,
    Receipt,
    ErrorBudget,
    Need,
    Usual,
):
    _class.__module__ = "tallyfold"
