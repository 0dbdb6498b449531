"""A value of a wrong type is refused by an error that names the argument and says what is right.

Each public function and constructor is called once for each of its arguments and each kind of wrong
value, with all other arguments right.
"""

import asyncio
import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support import ADDRESS, END, MID, START

import tallyfold


class Something:
    """What no function wants."""


EVIL = "a text that no message may quote"
WRONG: dict[str, Any] = {
    "none": None,
    "bool": True,
    "int": 5,
    "huge": 10**30,
    "float": 1.5,
    "nan": float("nan"),
    "str": EVIL,
    "empty": "",
    "bytes": b"bytes",
    "list": [5],
    "strs": [EVIL],
    "dict": {"key": 5},
    "function": lambda: 5,
    "something": Something(),
}
"""Values by their kinds."""

TEXT = ("str", "empty")
"""The kinds of values that are text, whatever it says."""
LENGTH = ("int", "huge", "float")
"""Seconds, however many."""

#: Words that are JavaScript's and not Python's.
FOREIGN = re.compile(r"\b(undefined|null|objects?|arrays?|bigint|camelCase|Uint8Array|Date)\b")

#: Arguments whose value no message may quote.
SECRETS = ("access_token", "client_secret")

QUERY = {"start": START, "end": END, "dimensions": ["integration"]}
RANGE = {"metric": "event_delivery", **QUERY}


class Taken(BaseException):
    """What ends a call as soon as it would send something."""


def token(_: str) -> tuple[str, int]:
    """Gives none."""
    raise Taken


CLIENT = {"cluster_endpoint": ADDRESS, "access_token": token}
SECRET = {
    "cluster_endpoint": ADDRESS,
    "client_id": "id",
    "client_secret": "secret",
    "control_audience": "audience",
    "auth_url": ADDRESS,
    "base_url": ADDRESS,
    "orchestration_audience": "other",
}
SWITCHES = {
    "dangerously_allow_http": ("bool", "none"),
    "default_token_lifetime": ("int", "none"),
    "limits": ("none",),
    "tolerate": ("none",),
    "max_retries": ("int", "none"),
    "longest_retry_wait": ("int", "float", "none"),
    "timeout": ("int", "float", "none"),
}
METRICS = {"start": (), "end": (), "dimensions": (), "group_by": ("none",)}
COLLECT = {
    "metric": (),
    **METRICS,
    "on_progress": ("none", "function"),
    "progress": ("none", "bool"),
    "checkpoint": ("none", "str"),
    "window": ("none",),
    "concurrency": ("none", "int"),
    "drop_old": ("none", "bool"),
    "keep": ("none",),
    "memory_limit": ("none", "int"),
    "part": ("none",),
    "have": ("none",),
    "settle": ("none", *LENGTH),
    "finest": ("none",),
    "probe": ("none", "bool"),
    "patience": ("none", *LENGTH),
}
FOLLOW = {
    **{name: right for name, right in METRICS.items() if name != "end"},
    "metric": (),
    "window": (),
    "end": ("none",),
    "delay": ("none", *LENGTH),
    "reread": ("none", *LENGTH),
    "settle": ("none", *LENGTH),
    "state": ("none", *TEXT),
    "patience": ("none", *LENGTH),
    "on_failure": ("none", "function"),
}


class World:
    """What the functions under test belong to."""

    def __init__(self, table: tallyfold.CountTable) -> None:
        self.table = table
        self.client = tallyfold.Client(**CLIENT)  # type: ignore[arg-type]
        self.async_client = tallyfold.AsyncClient(**CLIENT)  # type: ignore[arg-type]
        self.sandbox = tallyfold.Sandbox()
        self.machine = tallyfold.Machine(cluster_endpoint=ADDRESS, host_tokens=True)
        self.aggregator = tallyfold.Aggregator(["integration"])
        self.plan = tallyfold.Plan(START, END, "5m")
        self.collect = self.machine.collect(**RANGE)  # type: ignore[arg-type]
        self.follow = self.machine.follow("event_delivery", START, ["reason"], window="5m")
        self.probe = self.machine.probe_additivity("event_delivery", START, MID, END, ["reason"])
        self.call = self.machine.event_delivery(**QUERY)  # type: ignore[arg-type]

    def reader(self, method: str) -> tallyfold.Call[Any]:
        """A call that waits for that method."""
        machine = tallyfold.Machine(cluster_endpoint=ADDRESS, host_tokens=True)
        call = machine.event_delivery(**QUERY)  # type: ignore[arg-type]
        call.step(tallyfold.Now.read())
        call.token("a-token", 60)
        call.step(tallyfold.Now.read())
        if method == "chunk":
            call.head(200, [])
        return call


def _run(of: Callable[[World], Callable[..., Any]], world: World, given: dict[str, Any]) -> None:
    result = of(world)(**given)
    if asyncio.iscoroutine(result):
        asyncio.run(result)


Right = dict[str, tuple[str, ...]]
NOW = tallyfold.Now.read()
CASES: list[tuple[str, Callable[[World], Callable[..., Any]], dict[str, Any], Right]] = [
    (
        "Client",
        lambda _: tallyfold.Client,
        CLIENT,
        {"access_token": ("none", "function"), **SWITCHES},
    ),
    (
        "AsyncClient",
        lambda _: tallyfold.AsyncClient,
        CLIENT,
        {"access_token": ("none", "function"), "on_attempt": ("none", "function"), **SWITCHES},
    ),
    (
        "Client with a secret",
        lambda _: tallyfold.Client,
        SECRET,
        {
            "cluster_endpoint": ("none",),
            "client_id": ("str",),
            "client_secret": ("str",),
            "control_audience": ("str",),
            "base_url": ("none",),
            "auth_url": (),
            "orchestration_audience": ("str",),
            "on_attempt": ("none", "function"),
        },
    ),
    ("Machine", lambda _: tallyfold.Machine, SECRET, {**SWITCHES, "in_browser": ("none", "bool")}),
    ("event_delivery", lambda w: w.client.event_delivery, QUERY, METRICS),
    ("event_ingestion", lambda w: w.client.event_ingestion, QUERY, METRICS),
    ("async event_delivery", lambda w: w.async_client.event_delivery, QUERY, METRICS),
    ("async event_ingestion", lambda w: w.async_client.event_ingestion, QUERY, METRICS),
    (
        "audit_logs",
        lambda w: w.client.audit_logs,
        {},
        {"page": ("none", "int"), "per_page": ("none", "int")},
    ),
    ("collect", lambda w: w.client.collect, RANGE, COLLECT),
    ("async collect", lambda w: w.async_client.collect, RANGE, COLLECT),
    ("follow", lambda w: w.client.follow, {**RANGE, "window": "5m"}, FOLLOW),
    ("async follow", lambda w: w.async_client.follow, {**RANGE, "window": "5m"}, FOLLOW),
    (
        "probe_additivity",
        lambda w: w.client.probe_additivity,
        {**RANGE, "middle": MID},
        {"metric": (), "start": (), "middle": (), "end": (), "dimensions": ()},
    ),
    (
        "Aggregator",
        lambda _: tallyfold.Aggregator,
        {"dimensions": ["reason"]},
        {
            "dimensions": (),
            "group_by": ("none",),
            "metric": ("none",),
            "window": ("none",),
            "limits": ("none",),
            "tolerate": ("none",),
        },
    ),
    ("push", lambda w: w.aggregator.push, {}, {"chunk": ("bytes",)}),
    ("group_by", lambda w: lambda group_by: w.table.group_by(group_by), {}, {"group_by": ()}),
    (
        "filter",
        lambda w: w.table.filter,
        {},
        {"integration": ("str", "empty", "strs"), "reason": ("str", "empty", "strs")},
    ),
    ("merge", lambda w: w.table.merge, {"other": None}, {"other": ()}),
    (
        "replace",
        lambda w: functools.partial(w.table.merge, w.table),
        {},
        {"replace": ("none", "bool")},
    ),
    ("merge_all", lambda w: w.table.merge_all, {}, {"tables": ()}),
    (
        "gaps",
        lambda w: w.table.gaps,
        {"start": START, "end": END},
        {"start": ("none",), "end": ("none",)},
    ),
    ("by_window", lambda w: w.table.by_window, {}, {"step": ("none",)}),
    (
        "zone of by_window",
        lambda w: functools.partial(w.table.by_window, "1d"),
        {},
        {"zone": ("none",)},
    ),
    ("between", lambda w: w.table.between, {"start": START, "end": END}, {"start": (), "end": ()}),
    (
        "between of a series",
        lambda w: w.table.by_window().between,
        {"start": START, "end": END},
        {"start": (), "end": ()},
    ),
    (
        "from_json",
        lambda _: tallyfold.CountTable.from_json,
        {},
        {"data": ("str", "empty", "bytes")},
    ),
    ("top", lambda w: w.table.top, {"n": 1}, {"n": ("int", "huge"), "by": ("none",)}),
    (
        "top of a series",
        lambda w: w.table.by_window().top,
        {"n": 1},
        {"n": ("int", "huge"), "by": ("none",)},
    ),
    ("compare", lambda w: functools.partial(tallyfold.compare, after=w.table), {}, {"before": ()}),
    ("compare to", lambda w: functools.partial(tallyfold.compare, w.table), {}, {"after": ()}),
    (
        "export",
        lambda w: functools.partial(tallyfold.export, w.table),
        {"format": "openmetrics"},
        {
            "format": (),
            "labels": ("none",),
            "name": ("none",),
            "windows": ("none",),
            "exact": ("none", "bool"),
            "max_bytes": ("none", "int"),
        },
    ),
    (
        "export of",
        lambda _: tallyfold.export,
        {"format": "openmetrics"},
        {"counts": ()},
    ),
    *(
        (
            name,
            lambda w, name=name: functools.partial(getattr(tallyfold, name), w.table),
            {"format": "influx", "url": "http://127.0.0.1:9/write", "transport": None},
            {
                "format": (),
                "url": (),
                "labels": ("none",),
                "finished": ("int",),
                "on_finished": ("none", "function"),
                "timeout": ("none", *LENGTH),
                "transport": ("none",),
                "proxy": ("none",),
                "headers": ("none",),
                "allow_http": ("none", "bool"),
                "guarantee": ("none",),
                "patience": ("none", *LENGTH),
            },
        )
        for name in ("push", "async_push")
    ),
    (
        "write_to",
        lambda w: tallyfold.export(w.table, "openmetrics").write_to,
        {},
        # Text is the path of a file, which this would make.
        {"target": ("str", "empty")},
    ),
    (
        "Plan",
        lambda _: tallyfold.Plan,
        {"start": START, "end": END, "window": "5m"},
        {"start": (), "end": (), "window": ()},
    ),
    ("part", lambda w: w.plan.part, {"index": 0, "of": 9}, {"index": ("int",), "of": ("int",)}),
    (
        "Limits",
        lambda _: tallyfold.Limits,
        {},
        {"groups": ("int", "none"), "depth": ("int", "none")},
    ),
    ("segment_name", lambda _: tallyfold.segment_name, {}, {"number": ("int",)}),
    (
        "Sandbox",
        lambda _: tallyfold.Sandbox,
        {},
        {
            "seed": ("none", "int"),
            "scene": ("none", "str"),
            "client_id": ("none", "str"),
            "client_secret": ("none", "str"),
            "token_lifetime": ("none", "int"),
            "closed_windows": ("none", "bool"),
        },
    ),
    (
        "record",
        lambda w: w.sandbox.record,
        {
            "timestamp": START,
            "outcome": "success",
            "event_name": "a",
            "write_key": "a",
            "integration": "a",
        },
        {
            "timestamp": (),
            "outcome": (),
            "event_name": TEXT,
            "write_key": TEXT,
            "integration": TEXT,
            "reason": (*TEXT, "none"),
            "count": ("int", "none"),
        },
    ),
    (
        "inject",
        lambda w: functools.partial(w.sandbox.inject, "status"),
        {"status": 500},
        {
            "status": ("none", "int"),
            "retry_after": ("none", *TEXT),
            "endpoint": ("none",),
            "every": ("none", "int"),
        },
    ),
    ("inject a kind", lambda w: w.sandbox.inject, {}, {"kind": ()}),
    (
        "handle",
        lambda w: w.sandbox.handle,
        {"method": "GET", "target": "/", "headers": [], "body": b""},
        {
            "method": TEXT,
            "target": TEXT,
            "headers": ("dict",),
            "body": ("bytes",),
            "now": ("none",),
        },
    ),
    ("serve", lambda _: tallyfold.serve, {"sandbox": None}, {"sandbox": ()}),
    ("a port", lambda w: functools.partial(tallyfold.serve, w.sandbox), {}, {"port": ("int",)}),
    ("Call.step", lambda w: w.call.step, {}, {"now": ()}),
    (
        "Call.head",
        lambda w: w.reader("head").head,
        {"status": 200, "headers": []},
        {"status": ("int",), "headers": ()},
    ),
    ("Call.chunk", lambda w: w.reader("chunk").chunk, {}, {"data": ("bytes",)}),
    ("Collect.next", lambda w: w.collect.next, {}, {"now": ()}),
    (
        "Collect.settle",
        lambda w: w.collect.settle,
        {"task": 0, "call": None, "now": NOW},
        {"call": ()},
    ),
    (
        "Collect.load",
        lambda w: w.collect.load,
        {"name": "a", "data": "{}"},
        {"name": TEXT, "data": ("str", "empty", "bytes")},
    ),
    ("Follow.next", lambda w: w.follow.next, {}, {"now": ()}),
    (
        "Follow.settle",
        lambda w: w.follow.settle,
        {"task": 0, "call": None, "now": NOW},
        {"call": ()},
    ),
    ("Probe.settle", lambda w: w.probe.settle, {"task": 0, "call": None}, {"call": ()}),
]


@pytest.fixture
def world(table: tallyfold.CountTable) -> Iterator[World]:
    """Gives one of each."""
    made = World(table)
    with contextlib.closing(made.client):
        yield made


ARGUMENTS = [
    pytest.param(of, given, argument, right, id=f"{name}: {argument}")
    for name, of, given, arguments in CASES
    for argument, right in arguments.items()
]


@pytest.mark.parametrize(("of", "given", "argument", "right"), ARGUMENTS)
def test_a_value_of_a_wrong_type(
    world: World,
    of: Callable[[World], Callable[..., Any]],
    given: dict[str, Any],
    argument: str,
    right: tuple[str, ...],
) -> None:
    tried = [kind for kind in WRONG if kind not in right]
    wrong = {kind: fault(world, of, {**given, argument: WRONG[kind]}, argument) for kind in tried}
    faults = [f"{kind}: {why}" for kind, why in wrong.items() if why]
    assert not faults, "\n".join(faults)


def fault(
    world: World, of: Callable[[World], Callable[..., Any]], given: dict[str, Any], argument: str
) -> str | None:
    """What is wrong with what is raised; nothing, as it should be."""
    try:
        _run(of, world, given)
    except tallyfold.ConfigError as error:
        if error.argument != argument:
            return f"is about {error.argument}: {error}"
        text = str(error)
    except TypeError as error:
        text = str(error)
    except Taken:
        return "is taken"
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"raises {error!r}"
    else:
        return "is taken"
    if argument not in text:
        return f"does not name it: {text}"
    if not re.search(r"\b(want|required|needed|empty|is not a)\b", text):
        return f"does not say what would be right: {text}"
    if argument in SECRETS and EVIL in text:
        return f"quotes it: {text}"
    if FOREIGN.search(text):
        return f"is not in its words: {text}"
    return None
