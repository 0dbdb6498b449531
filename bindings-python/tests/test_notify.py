"""Notifications, to receivers of alerts on loopback."""

import asyncio
import contextlib
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from test_push import Receiver as Server

import tallyfold

BODY = b"""{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z",
    "totalDelivered": "7", "totalErrors": "3", "totalFiltered": "0", "counts": [
    {"success": "7", "errors": "3", "filtered": "0", "dimensions": {"integration": "crm"}}]}"""
RULE = (
    "{ name = 'errors', kind = 'threshold', measure = 'errors', by = ['integration'], above = 0 }"
)
SECRET = "hunter2-is-secret"

Notifier = Callable[..., tallyfold.Notified]


def found() -> tallyfold.Check:
    """A check that fires."""
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(BODY)
    rules = tallyfold.Rules.parse(f"rule = [{RULE}]")
    check = rules.check(delivery=aggregator.finish(), now="2026-01-01T01:00:00Z")
    assert [finding.status for finding in check.findings] == ["firing"]
    return check


def nothing() -> tallyfold.Check:
    return tallyfold.Rules.standard().check()


@pytest.fixture
def server() -> Iterator[Server]:
    """Gives a server on loopback."""
    with contextlib.closing(Server()) as server:
        yield server


@pytest.fixture(params=["sync", "async"])
def notify(request: pytest.FixtureRequest) -> Notifier:
    """Gives each way to notify."""
    if request.param == "sync":
        return tallyfold.notify
    return lambda *given, **named: asyncio.run(tallyfold.async_notify(*given, **named))


def webhook(server: Server, **more: Any) -> Any:
    return {"kind": "webhook", "name": "chat", "url": server.url, **more}


@pytest.mark.parametrize("status", [404, 500, 401, 429, 307])
def test_the_path_of_a_chat_is_a_secret(notify: Notifier, server: Server, status: int) -> None:
    path = "/services/T0001/B%30001/hunter2"
    server.answers = [(status, {}, f"Cannot POST {path}, B0001, hunter2".encode())] * 3
    for kind in "slack", "webhook", "teams":
        url = server.url.removesuffix("/write?db=counts") + path
        receiver: Any = {"kind": kind, "name": "chat", "url": url}
        notified = notify(found(), [receiver], patience=0)
        said = str(notified.receivers[0].error)
        assert "Cannot POST" in said
        for part in "services", "T0001", "B%30001", "B0001", "hunter2":
            assert part not in said


def test_a_change_is_sent_once_and_so_is_its_end(notify: Notifier, server: Server) -> None:
    receiver = webhook(server, template='{"is": "{{status}}", "all": {{finding}}}')
    begun = notify(found(), [receiver])
    assert begun.complete
    assert begun.receivers[0].receiver == "webhook:chat"
    assert begun.receivers[0].messages == 1
    (path, headers, data) = server.seen[0]
    assert path == "/write?db=counts"
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"].startswith("tallyfold/")
    message = httpx2.Response(200, content=data).json()
    assert message["is"] == "firing"
    assert message["all"]["observed"] == {"part": 3}
    assert message["all"]["window"]["start"] == "2026-01-01T00:00:00Z"
    again = notify(found(), [receiver], begun.state)
    assert len(server.seen) == 1
    over = notify(nothing(), [receiver], again.state.encode())
    assert [b"resolved" in data for _, _, data in server.seen] == [False, True]
    notify(nothing(), [receiver], over.state)
    assert len(server.seen) == 2


def test_an_incident_has_its_findings(notify: Notifier, server: Server) -> None:
    check = found()
    (incident,), (finding,) = check.incidents, check.findings
    assert (incident.id, incident.headline) == (finding.incident, finding.id)
    assert (incident.status, incident.severity) == ("firing", "warning")
    assert [(part.id, part.group, part.events) for part in incident.parts] == [
        (finding.id, {"integration": "crm"}, 3)
    ]
    assert [event.change for event in incident.history] == ["began"]
    receiver = webhook(server, template='{"all": {{incident}}}')
    assert notify(check, [receiver]).complete
    sent = httpx2.Response(200, content=server.seen[0][2]).json()["all"]
    assert sent["id"] == incident.id
    assert sent["parts"][0]["sentence"] == finding.sentence


def test_a_failure_is_tried_again(notify: Notifier, server: Server) -> None:
    server.answers = [500, "broken", 204]
    notified = notify(found(), [webhook(server)])
    assert len(server.seen) == 3
    assert notified.receivers[0].retries == 2
    assert notified.complete


def test_what_was_refused_is_sent_by_the_next_call(notify: Notifier, server: Server) -> None:
    server.answers = [(400, {}, f"no {SECRET}".encode())]
    receiver = webhook(server, headers={"authorization": f"Bearer {SECRET}"})
    notified = notify(found(), [receiver])
    assert not notified.complete
    (receipt,) = notified.receivers
    assert (receipt.code, receipt.status, receipt.messages) == ("unexpected_status", 400, 0)
    assert SECRET not in repr(notified) + notified.state
    assert server.url not in repr(notified) + notified.state
    assert notify(found(), [receiver], notified.state).complete
    assert len(server.seen) == 2


def test_each_kind_has_messages_of_its_own(notify: Notifier, server: Server) -> None:
    ok: Any = (200, {}, b"ok")
    server.answers = [ok, ok, 202]
    receivers = [
        {"kind": "alertmanager", "name": "a", "url": server.url.partition("?")[0]},
        {"kind": "slack", "name": "b", "url": server.url},
        {"kind": "pagerduty", "name": "c", "url": server.url, "routing_key": SECRET},
    ]
    given: Any = {"cluster": "eu", "labels": {"team": "data"}, "alert_for": 60}
    notified = notify(found(), receivers, now="2026-01-01T01:00:00Z", **given)
    assert notified.complete, notified
    messages = [httpx2.Response(200, content=data).json() for _, _, data in server.seen]
    assert server.seen[0][0] == "/write/api/v2/alerts"
    assert messages[0][0]["endsAt"] == "2026-01-01T01:01:00Z"
    labels = {"alertname": "errors", "cluster": "eu", "integration": "crm", "team": "data"}
    assert labels.items() <= messages[0][0]["labels"].items()
    assert messages[1]["text"].startswith("*")
    assert "*: eu: errors: integration crm" in messages[1]["text"]
    assert messages[2]["event_action"] == "trigger"
    assert messages[2]["routing_key"] == SECRET


@pytest.mark.parametrize(
    ("receivers", "named", "argument"),
    [
        ([{"kind": "pager", "name": "x"}], {}, "kind"),
        ([{"kind": "slack", "name": "x"}], {}, "url"),
        ([{"kind": "slack", "url": "https://x.example"}], {}, "name"),
        ([{"kind": "pagerduty", "name": "x"}], {}, "routing_key"),
        ([{"kind": "slack", "name": "x", "url": "http://x.example"}], {}, "url"),
        ([{"kind": "slack", "name": "x", "url": "https://x.example", "urll": ""}], {}, "urll"),
        ([], {"state": "{}"}, "state"),
        ([], {"patient": 5}, "patient"),
        ([], {"timeout": 0}, "timeout"),
    ],
)
def test_arguments_are_checked_before_anything_is_sent(
    receivers: Any, named: Any, argument: str
) -> None:
    with pytest.raises(tallyfold.ConfigError, match=argument) as raised:
        tallyfold.notify(found(), receivers, **named)
    shown = "".join(traceback.format_exception(raised.value, limit=None))
    assert SECRET not in shown


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"check: want the result of Rules\.check"):
        tallyfold.notify("check", [])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="receivers"):
        tallyfold.notify(nothing(), [7])  # type: ignore[list-item]


@pytest.mark.parametrize("receivers", [None, 7, "slack", {"kind": "slack"}])
def test_receivers_are_a_list(receivers: Any) -> None:
    for send in (tallyfold.notify, in_asyncio):
        with pytest.raises(tallyfold.ConfigError) as raised:
            send(found(), receivers)
        assert (raised.value.code, raised.value.argument) == ("invalid_argument", "receivers")
        assert isinstance(raised.value, TypeError)


def in_asyncio(*given: Any, **named: Any) -> Any:
    return asyncio.run(tallyfold.async_notify(*given, **named))
