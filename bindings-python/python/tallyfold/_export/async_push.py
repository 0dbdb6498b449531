"""Sends counts to another system: drives a push of the core over HTTP or datagrams."""

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import httpx2

from tallyfold._arguments import PushArguments
from tallyfold._calls.callbacks import async_finished as awaited
from tallyfold._calls.callbacks import async_function
from tallyfold._calls.facade import cleared
from tallyfold._calls.steps import Done, Wait
from tallyfold._errors import TallyfoldError
from tallyfold._export.async_sender import AsyncSender
from tallyfold._export.exporting import warn_of
from tallyfold._export.sending import report_finished, seconds_of
from tallyfold._http.network import Certificates, network_of
from tallyfold._names import ExportFormat
from tallyfold._ranges.values import Revision
from tallyfold._tallyfold import CountTable, Finished, Message, Push, Series
from tallyfold._time import Now
from tallyfold._values import PushReport

__all__ = ["async_push"]


async def async_push(
    counts: CountTable | Series | Revision,
    format: ExportFormat,  # noqa: A002
    url: str,
    labels: Mapping[str, str] | None = None,
    *,
    finished: int = 0,
    on_finished: Callable[[int], object] | None = None,
    timeout: float | None = 30.0,
    transport: httpx2.AsyncBaseTransport | None = None,
    ca: Certificates | None = None,
    proxy: str | None = None,
    trust_env: bool = False,
    **options: Unpack[PushArguments],
) -> PushReport:
    """Sends counts to another system, message by message, until it has accepted all of them.

    After a transient failure, the push sends the message again, with increasing waits, for up to
    `patience` seconds. If the destination refuses a message, the push ends with an error. A message
    that is too large is cut in two. The destinations of `"remote-write"`, `"remote-write-2"` and
    `"influx"` store a repeated message once, so they get each count exactly once, whatever fails.
    For other formats, `guarantee` decides what happens to a message that was sent but not
    acknowledged.

    An interrupted push can resume in another process: store the number that `on_finished` gets, and
    pass it as `finished` to a push of the same counts with the same options.

    Args:
        counts: a table, a series, or a revision of a `follow`, as for `export`.
        format: the format of the messages, such as `"remote-write"`, `"otlp"`, `"influx"`,
            `"datadog"` or `"dogstatsd"`.
        url: the whole address of the destination, or `udp://host:port` for `"dogstatsd"` and
            `"statsd"`.
        labels: names and values that each sample gets in addition to its dimensions.
        finished: how many samples an earlier push of the same counts has finished.
        on_finished: a function, or a coroutine function, which is awaited. It
            gets the number of finished samples, and must store it before it returns. If a
            refusal ends the push, the number may be smaller than before.
        timeout: how many seconds one message and its response may take; `None` for no limit.
        transport: an httpx2 transport that sends the requests. The push does not close it.
        ca: CA certificates to trust in addition to the usual ones, as for a client.
        proxy: the address of a proxy, as for a client.
        trust_env: whether to use certificates and proxies from the environment, as for a client.
        **options: headers of each request (`headers`), which no error shows; `allow_http`,
            `guarantee` and `patience`; and all other options of `export`.

    Raises:
        ConfigError: for arguments that can't be used, before anything is sent.
        ServiceError: if the destination refuses a message, or accepts none for too long. The
            `report` of the error shows what was accepted.
        ResponseError: `html_response` for a response that is a web page.

    >>> receiver = httpx2.MockTransport(lambda request: httpx2.Response(204))
    >>> report = await tallyfold.async_push(
    ...     table,
    ...     "influx",
    ...     "https://influx.example/api/v2/write?bucket=counts",
    ...     {"cluster": "eu-1"},
    ...     headers={"authorization": "Token of-influx"},
    ...     transport=receiver,
    ... )
    >>> report.messages, report.samples, report.rejected
    (1, 2, [])
    """
    try:
        async_function("on_finished", on_finished)
        given: Any = {"format": format, "labels": labels, "url": url, **options}
        machine = Push(counts, Now.read().unix_ms, finished, **given)
        http_too = bool(options.get("allow_http"))
        network = network_of(transport, ca=ca, proxy=proxy, trust_env=trust_env, http_too=http_too)
        sender = AsyncSender(machine, transport, network, seconds_of(timeout))
    except BaseException as error:
        cleared(error)
        raise
    finally:
        # A traceback that shows locals would show headers, and passwords in addresses.
        given = None
        del options, proxy, url
    warn_of(machine.notes)
    try:
        async with sender:
            while True:
                match sender.step():
                    case Message() as message:
                        await sender.send(message)
                    case Wait(ms=ms):
                        await sender.pause(ms / 1000)
                    case Finished() as step:
                        if on_finished is not None:
                            result = report_finished(on_finished, step)
                            await awaited("on_finished", result)
                    case Done():
                        return machine.report()
    except TallyfoldError as error:
        error.report = machine.report()
        raise
