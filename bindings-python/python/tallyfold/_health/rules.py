"""Health: explains changes, and checks counts by rules."""

import dataclasses
from datetime import UTC, datetime
from typing import Unpack, final

from tallyfold._arguments import ExplainArguments, Instant
from tallyfold._health.results import Check, ErrorBudget, Explanation, Need, Replay, Usual
from tallyfold._names import Measure
from tallyfold._tallyfold import CountTable, RuleSet
from tallyfold._tallyfold import explain as explain_change
from tallyfold._tallyfold import hold as hold_incident
from tallyfold._tallyfold import usual as usual_values

__all__ = ["Rules", "acknowledge", "explain", "silence", "unsilence", "usual"]


def explain(
    before: CountTable,
    now: CountTable,
    measure: Measure,
    **options: Unpack[ExplainArguments],
) -> Explanation:
    """Finds which few combinations of dimension values explain how a measure changed.

    Args:
        before: a table of the earlier time. For a rate, it may cover any length of time, and a
            longer time is better. If it has three windows or more, windows whose rate is far from
            the median are left out, unless they are in `now`, too. For a volume, it should have as
            many windows as `now`, because counts are not scaled.
        now: a table with the same dimensions.
        measure: what to compute from the counts: a volume (`"success"`, `"errors"`, `"filtered"` or
            `"events"`) or a rate (`"error_rate"` or `"filtered_rate"`).
        most: the maximum number of causes, by default 5.
        others: the maximum number of further candidates, by default 5.
        keep_unusual: whether to use windows of `before` with an unusual rate, too. By default, they
            are left out, and `left_out` of the result names them.

    Raises:
        ConfigError: `incompatible_tables` for tables of other dimensions, another metric or another
            filter; for other arguments that can't be used.

    >>> explained = tallyfold.explain(table, table, "error_rate")
    >>> explained.now, explained.change
    (Amount(part=1, whole=8), 0)
    """
    return explain_change(before, now, measure, **options)


def usual(
    table: CountTable, measure: Measure, start: Instant, end: Instant, *, step: str = "15m"
) -> list[Usual]:
    """Computes what is usual for the sum of a table's rows in each slot of a range.

    The function learns this from the table's settled windows before each slot, so the table needs
    history: with two weeks, the band follows how much the counts vary.

    Args:
        table: counts of the range and of the weeks before it.
        measure: what to compute from the counts, as for `explain`.
        start: the start of the range.
        end: the end of the range.
        step: the length of a slot.

    Returns:
        The expected value of each slot, and the band in which the value stays on all but a few
        days. Slots with too little history are left out.

    Raises:
        ConfigError: `unaligned_window` for a table with a window that crosses the edge of a slot;
            for other arguments that can't be used.

    >>> tallyfold.usual(table, "errors", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", step="1h")
    []
    """
    return usual_values(table, measure, start, end, step)


def acknowledge(state: str | bytes, incident: str, *, note: str | None = None) -> str:
    """Records that somebody knows of an incident.

    Until the incident becomes more severe, or is over and comes back, it counts as silenced: a
    check is healthy in spite of it, and no receiver is notified that it fires. If a receiver was
    notified before, it is still notified when the incident is over; an Alertmanager may let its
    alert expire earlier.

    Args:
        state: the `state` of the last check.
        incident: the `id` of one of its incidents, or the beginning of the `id`.
        note: who knows of the incident, or what is done about it.

    Returns:
        The state for the next check.

    Raises:
        ConfigError: `invalid_argument` unless exactly one incident has this `id`;
            `invalid_checkpoint` for a state that is incomplete or was changed.

    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
    >>> incident = check.incidents[0].id
    >>> state = tallyfold.acknowledge(check.state, incident, note="the vendor works on it")
    >>> rules.check(delivery=table, state=state, now="2026-01-01T01:00:00Z").healthy
    True
    """
    return hold_incident("acknowledge", state, incident, None, note)


def silence(state: str | bytes, incident: str, until: Instant, *, note: str | None = None) -> str:
    """Silences an incident until a time, even if it becomes more severe.

    Args:
        state: the `state` of the last check.
        incident: the `id` of one of its incidents, or the beginning of the `id`.
        until: when the silence ends.
        note: the reason.

    Returns:
        The state for the next check.

    Raises:
        ConfigError: as for `acknowledge`, and for an `until` that isn't a timestamp.

    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
    >>> incident = check.incidents[0].id
    >>> state = tallyfold.silence(check.state, incident, "2026-01-01T12:00:00Z")
    >>> rules.check(delivery=table, state=state, now="2026-01-01T01:00:00Z").healthy
    True
    """
    return hold_incident("silence", state, incident, until, note)


def unsilence(state: str | bytes, incident: str) -> str:
    """Removes the record of `acknowledge` or `silence`.

    Raises:
        ConfigError: as for `acknowledge`.

    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
    >>> incident = check.incidents[0].id
    >>> state = tallyfold.acknowledge(check.state, incident)
    >>> tallyfold.unsilence(state, incident) == check.state
    True
    """
    return hold_incident("unsilence", state, incident, None, None)


@final
class Rules:
    """Rules: what to look for in counts, and how severe each finding is.

    Rules are immutable, and threads may share them. A check returns its state as text; the caller
    stores it and passes it to the next check.

    >>> rules = tallyfold.Rules.parse('''
    ... [[rule]]
    ... name = "integrations fail"
    ... kind = "threshold"
    ... measure = "error_rate"
    ... by = ["integration"]
    ... above = "5%"
    ... ''')
    >>> rules.names
    ['integrations fail']
    """

    __slots__ = ("_core", "_text")

    def __init__(self, core: RuleSet, text: str) -> None:
        """Keeps both. Use `parse` instead."""
        self._core = core
        self._text = text

    @classmethod
    def parse(cls, text: str) -> "Rules":
        """Reads rules from a TOML file's text.

        Raises:
            ConfigError: `invalid_rules`, with line, column and key.

        >>> tallyfold.Rules.parse("rule = [{ name = 'x', kind = 'treshold' }]")
        Traceback (most recent call last):
            ...
        tallyfold.ConfigError: invalid_rules: ... did you mean threshold?
        """
        return cls(RuleSet(text), text)

    @classmethod
    def standard(cls) -> "Rules":
        """The standard rules, which need no settings.

        >>> tallyfold.Rules.standard().names[0]
        'integration fails'
        """
        return cls.parse(RuleSet.standard)

    @property
    def text(self) -> str:
        """The text that the rules were read from.

        >>> print(tallyfold.Rules.standard().text)
        # What tallyfold looks for without a rules file.
        ...
        """
        return self._text

    @property
    def names(self) -> list[str]:
        """The names of the rules, in the order of the text."""
        return self._core.names

    def needs(self) -> list[Need]:
        """The counts that the rules need: dimensions, windows and history for each endpoint.

        >>> for need in tallyfold.Rules.standard().needs():
        ...     print(need.metric, need.dimensions, need.window)
        event_delivery ['event_name', 'write_key', 'integration', 'reason'] 15m
        event_ingestion ['event_name', 'write_key', 'integration'] 15m
        """
        return self._core.needs()

    def budgets(self) -> list[ErrorBudget]:
        """The share of events that may fail or be filtered, for each rule of kind `budget`.

        >>> for budget in tallyfold.Rules.standard().budgets():
        ...     print(budget.rule, budget.measure, budget.share)
        delivery budget error_rate 0.05
        """
        return self._core.budgets()

    def check(
        self,
        *,
        delivery: CountTable | None = None,
        ingestion: CountTable | None = None,
        state: str | bytes | None = None,
        now: Instant | None = None,
    ) -> Check:
        """Judges the windows that have settled since the last check.

        A repeated check judges no window twice, and a late check judges all windows since the last
        check. Without a state, a check judges the windows of the last day. The same counts, state
        and time give the same findings, in every language.

        Args:
            delivery: counts of event delivery with the history that `needs` lists.
            ingestion: counts of event ingestion.
            state: the `state` of the previous check.
            now: the time of the check, which decides which silences apply. Windows that end after
                it are not judged. By default, the clock's time.

        Raises:
            ConfigError: `invalid_checkpoint` for a state that is incomplete or was changed;
                `unaligned_window` for a table whose windows are longer than a rule's windows, or
                cross the edge of such a window; for other arguments that can't be used.

        >>> check = tallyfold.Rules.standard().check(delivery=table, now="2026-01-01T01:00:00Z")
        >>> check.healthy, check.findings
        (True, [])
        >>> again = tallyfold.Rules.standard().check(delivery=table, state=check.state)
        >>> again.judged
        0
        """
        now = datetime.now(UTC) if now is None else now
        check, left = self._core.check(delivery, ingestion, state, now)
        return dataclasses.replace(check, state=left)

    def replay(
        self,
        start: Instant,
        end: Instant,
        *,
        delivery: CountTable | None = None,
        ingestion: CountTable | None = None,
    ) -> Replay:
        """Judges a past range window by window, as checks would have done at the time.

        Args:
            start: the start of the range. Windows before it only show what is normal.
            end: the end of the range.
            delivery: counts of event delivery with their history.
            ingestion: counts of event ingestion.

        Raises:
            ConfigError: as for `check`.

        >>> rules = tallyfold.Rules.standard()
        >>> rules.replay("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", delivery=table).findings
        []
        """
        return self._core.replay(delivery, ingestion, start, end)

    def __repr__(self) -> str:
        """Names the rules."""
        return f"<Rules: {', '.join(self.names)}>"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Supports pickling and copying."""
        return Rules.parse, (self._text,)


# Tracebacks, pickles and docs should name the package, from which users import them.
for _public in (Rules, explain, usual):
    _public.__module__ = "tallyfold"
