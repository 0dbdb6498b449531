"""Notifies receivers of alerts: drives the notifications of the core over HTTP."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Unpack

import httpx2

from tallyfold._arguments import Instant, NotifyArguments
from tallyfold._calls.facade import cleared
from tallyfold._calls.steps import Done, Wait
from tallyfold._export.async_sender import AsyncSender
from tallyfold._export.sending import seconds_of
from tallyfold._health.notified import Notified, Receiver, listed
from tallyfold._health.results import Check
from tallyfold._http.network import Certificates, network_of
from tallyfold._tallyfold import Message, Notifications

__all__ = ["async_notify"]


async def async_notify(
    check: Check,
    receivers: Iterable[Receiver],
    state: str | bytes | None = None,
    *,
    now: Instant | None = None,
    timeout: float | None = 10.0,
    transport: httpx2.AsyncBaseTransport | None = None,
    ca: Certificates | None = None,
    proxy: str | None = None,
    trust_env: bool = False,
    **options: Unpack[NotifyArguments],
) -> Notified:
    """Notifies receivers of what a check has found, and of what is over.

    With each call, an Alertmanager gets all incidents that fire. Other receivers get a message when
    an incident begins, when it becomes more severe and when it is over. If a receiver does not
    accept a message, the call repeats the message for a few seconds, and the next call sends it
    again. So a failure of a receiver raises no exception: the result reports it.

    Args:
        check: the result of `Rules.check`.
        receivers: mappings with `kind` (`"alertmanager"`, `"webhook"`, `"slack"`, `"teams"`,
            `"pagerduty"` or `"opsgenie"`), `name` and `url`; `headers`, which no message shows; and
            `allow_http`. A webhook may have a `template`, PagerDuty needs a `routing_key`, and
            Opsgenie needs the header `authorization`.
        state: the `state` of the previous result. Store it after each call.
        now: the time from which ends of alerts are computed. By default, the clock's time.
        timeout: how many seconds one message and its response may take; `None` for no limit.
        transport: an httpx2 transport that sends the requests. The call does not close it.
        ca: CA certificates to trust in addition to the usual ones, as for a client.
        proxy: the address of a proxy, as for a client.
        trust_env: whether the environment names certificates and proxies, as for a client.
        **options: `cluster` and `labels`, which are added to each alert; `alert_for`, the seconds
            for which an Alertmanager keeps an alert; and `patience`.

    Raises:
        ConfigError: for arguments that can't be used, before anything is sent.

    >>> chat = httpx2.MockTransport(lambda request: httpx2.Response(200, text="ok"))
    >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
    >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
    >>> receiver = {"kind": "slack", "name": "team", "url": "https://hooks.example/T0"}
    >>> notified = await tallyfold.async_notify(check, [receiver], transport=chat)
    >>> notified.complete, notified.receivers[0].messages
    (True, 1)
    >>> again = await tallyfold.async_notify(check, [receiver], notified.state, transport=chat)
    >>> again.receivers[0].messages
    0
    """
    try:
        receivers = listed(receivers)
        given: Any = options
        machine = Notifications(
            check, receivers, state, datetime.now(UTC) if now is None else now, **given
        )
        http_too = any(one.get("allow_http") for one in receivers)
        network = network_of(transport, ca=ca, proxy=proxy, trust_env=trust_env, http_too=http_too)
        sender = AsyncSender(machine, transport, network, seconds_of(timeout))
    except BaseException as error:
        cleared(error)
        raise
    finally:
        # A traceback that shows locals would show headers, keys and addresses.
        given = None
        del receivers, proxy
    async with sender:
        while True:
            match sender.step():
                case Message() as message:
                    await sender.send(message)
                case Wait(ms=ms):
                    await sender.pause(ms / 1000)
                case Done():
                    return Notified(*machine.finish())


# Tracebacks, pickles and docs should name the package, from which users import it.
async_notify.__module__ = "tallyfold"
