"""Sends counts to another system: drives a push of the core over HTTP or datagrams."""

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import httpx2

from tallyfold._arguments import PushArguments
from tallyfold._client.callbacks import async_finished as awaited
from tallyfold._client.callbacks import async_function
from tallyfold._client.facade import cleared
from tallyfold._client.steps import Done, Wait
from tallyfold._errors import TallyfoldError
from tallyfold._export.async_sender import AsyncSender
from tallyfold._export.exporting import warn_of
from tallyfold._export.report import PushReport
from tallyfold._export.sending import finished_of, network_of, seconds_of
from tallyfold._http.network import Certificates
from tallyfold._names import ExportFormat
from tallyfold._ranges.values import Revision
from tallyfold._tallyfold import CountTable, Finished, Message, Push, Series
from tallyfold._time import Now

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
    """Sends counts to another system, message by message, until all are taken.

    A message that the receiver did not take is sent again after a while, for up to `patience`
    seconds; one that is too large is cut in two. Where the receiver takes a message again without
    harm (`"remote-write"`, `"remote-write-2"` and `"influx"`), each count is there exactly once,
    whatever fails. For other formats, `guarantee` says what happens to a message of which nobody
    knows whether it was taken.

    A push that was ended resumes with `finished`, in any process: store the number that
    `on_finished` gets, and give it to a push of the same counts with the same options.

    Args:
        counts: a table, a series, or a revision of a `follow`, as of `export`.
        format: how messages are written, such as `"remote-write"`, `"otlp"`, `"influx"`,
            `"datadog"` or `"dogstatsd"`.
        url: the whole address of the receiver, or `udp://host:port` for `"dogstatsd"` and
            `"statsd"`.
        labels: names and values that each sample gets in addition to its dimensions.
        finished: how many samples were finished by an earlier push of the same counts.
        on_finished: a function, or a coroutine function, which is awaited. It
            gets the number of samples that are finished, and returns once it is stored. If a
            refusal ends the push, the number may be smaller than before.
        timeout: the seconds that one message may take, with its answer; `None` for no limit.
        transport: an httpx2 transport that sends the requests. It is not closed.
        ca: CA certificates to trust in addition to the usual ones, as for a client.
        proxy: the address of a proxy, as of a client.
        trust_env: whether the environment names certificates and proxies, as of a client.
        **options: headers of each request (`headers`), which no message shows; `allow_http`,
            `guarantee` and `patience`; and all other options of `export`.

    Raises:
        ConfigError: for arguments that can't be used; nothing was sent then.
        ServiceError: for a receiver that refuses a message, or takes none for too long; its
            `report` says what was sent.
        ResponseError: `html_response` for a web page that answers instead of the receiver.

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
        network = network_of(transport, ca=ca, proxy=proxy, trust_env=trust_env, options=options)
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
                            await awaited("on_finished", on_finished(finished_of(counts, step)))
                    case Done():
                        return machine.report()
    except TallyfoldError as error:
        error.report = machine.report()
        raise
