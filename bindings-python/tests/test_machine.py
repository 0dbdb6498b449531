"""The sans-IO machine under another HTTP stack: the standard library's."""

import http.client
import threading
import time
import urllib.parse
from typing import TypeVar

import pytest
from support import ADDRESS, END, START

import tallyfold
from tallyfold import Blocked, Call, CountTable, Done, Machine, Now, ProvideToken, Send, Wait

T = TypeVar("T")
NOW = Now(0, 1_767_225_600_000)


def drive(machine: Machine, call: Call[T]) -> T:
    """The whole loop that a host needs."""
    try:
        while True:
            match call.step(Now.read()):
                case Send(request):
                    exchange(call, request)
                case Blocked(epoch):
                    while machine.token_epoch() == epoch:
                        threading.Event().wait(0.01)
                case Wait(ms):
                    time.sleep(ms / 1000)
                case ProvideToken():
                    call.token_failed()
                case Done():
                    return call.output()
    finally:
        call.close()


def exchange(call: Call[T], request: tallyfold.Request) -> None:
    url = urllib.parse.urlsplit(request.url)
    connection = http.client.HTTPConnection(url.netloc)
    try:
        connection.request(request.method, url.path, request.body, dict(request.headers))
        response = connection.getresponse()
        if call.head(response.status, response.getheaders()):
            while chunk := response.read(100):
                call.chunk(chunk)
            call.end()
    except (OSError, http.client.HTTPException) as error:
        call.failed(type(error).__name__)
    finally:
        connection.close()


def machine_of(sandbox: tallyfold.Sandbox, address: str) -> Machine:
    return Machine(
        cluster_endpoint=address, base_url=address, auth_url=address, **sandbox.credentials
    )


def test_the_standard_library_will_do(
    sandbox: tallyfold.Sandbox, table: tallyfold.CountTable
) -> None:
    with tallyfold.serve(sandbox) as server:
        machine = machine_of(sandbox, server.url)
        dimensions: list[tallyfold.DimensionName] = ["integration", "reason"]
        assert drive(machine, machine.event_delivery(START, END, dimensions)) == table
        assert drive(machine, machine.audit_logs()).startswith(b"{")
        sandbox.revoke_tokens()
        ingestion = drive(machine, machine.event_ingestion(START, END, ["integration"]))
        assert ingestion.metric == "event_ingestion"


def test_a_host_without_a_token(sandbox: tallyfold.Sandbox) -> None:
    machine = Machine(cluster_endpoint=ADDRESS, host_tokens=True)
    with pytest.raises(tallyfold.AuthError) as caught:
        drive(machine, machine.event_delivery(START, END, ["reason"]))
    assert caught.value.code == "token_provider_failed"
    assert sandbox.stats["control_token"] == 0


def test_steps_say_what_they_are() -> None:
    machine = Machine(cluster_endpoint=ADDRESS, host_tokens=True)
    first = machine.event_delivery(START, END, ["reason"])
    second = machine.event_delivery(START, END, ["reason"])
    assert repr(first.step(NOW)) == "ProvideToken(api='control')"
    blocked = second.step(NOW)
    assert isinstance(blocked, Blocked)
    assert repr(blocked) == f"Blocked(epoch={machine.token_epoch()})"

    # Whoever gives up lets the next one lead.
    first.close()
    assert machine.token_epoch() != blocked.epoch
    assert isinstance(second.step(NOW), ProvideToken)
    second.token("a-token", 60)
    send = second.step(NOW)
    assert isinstance(send, Send)
    assert (send.request.method, send.request.url) == (
        "POST",
        f"{ADDRESS}/v1.1/analytics/event_delivery",
    )
    assert [name for name, _ in send.request.headers] == [
        "authorization",
        "content-type",
        "accept-encoding",
    ]
    assert machine.token_epoch() > blocked.epoch


def test_the_order_is_kept() -> None:
    call = Machine(cluster_endpoint=ADDRESS, host_tokens=True).audit_logs
    with pytest.raises(tallyfold.ConfigError) as caught:
        call()
    assert (caught.value.code, caught.value.argument) == ("missing_argument", "base_url")

    delivery = Machine(cluster_endpoint=ADDRESS, host_tokens=True).event_delivery(
        START, END, ["reason"]
    )
    for act in (delivery.output, delivery.end, lambda: delivery.chunk(b"")):
        with pytest.raises(tallyfold.ConfigError) as caught:
            act()
        assert caught.value.code == "out_of_order"


def test_a_call_has_the_type_of_its_output() -> None:
    assert str(Call[CountTable]) == "tallyfold.Call[tallyfold.CountTable]"


@pytest.mark.parametrize("page", [0, -1])
def test_pages_count_from_one(page: int) -> None:
    machine = Machine(base_url=ADDRESS, host_tokens=True)
    for arguments, name in [({"page": page}, "page"), ({"per_page": page}, "per_page")]:
        with pytest.raises(tallyfold.ConfigError) as caught:
            machine.audit_logs(**arguments)
        assert (caught.value.code, caught.value.argument) == ("invalid_page", name)


def test_limits_have_usual_values() -> None:
    usual, own = tallyfold.Limits(), tallyfold.Limits(depth=7, body_bytes=2**40)
    assert (own.depth, own.body_bytes) == (7, 2**40)
    assert own.groups == usual.groups
    assert repr(own) == repr(usual).replace(f"depth={usual.depth}", "depth=7").replace(
        f"body_bytes={usual.body_bytes}", f"body_bytes={2**40}"
    )
