"""The asynchronous client, `Client`'s twin for asyncio."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from tallyfold._async_driver import AsyncAccessToken, AsyncDriver
from tallyfold._checkpoint import AsyncCheckpoint, Path
from tallyfold._collect import Wishes, collect_in_tasks
from tallyfold._facade import parsed
from tallyfold._follow import AsyncRevisions
from tallyfold._ranges import Additivity, Progress
from tallyfold._tallyfold import Call, CountTable, Drive
from tallyfold._values import DimensionName, MetricName

__all__ = ["AsyncAccessToken", "AsyncClient"]


class AsyncClient(AsyncDriver):
    """Both APIs of the service, for asyncio.

    Arguments and errors are those of `Client`, but `access_token` may be a coroutine function and
    `transport` is an `httpx2.AsyncBaseTransport`; `on_attempt` is a plain function. A coroutine
    function has `timeout` seconds. All tasks of one event loop may share a client; they share its
    tokens. Another loop may use it after that one, but not at the same time: `RuntimeError`. A
    cancelled call leaves nothing behind: where it was fetching a token that others wait for, one of
    them fetches it.

    >>> async def totals():
    ...     async with tallyfold.AsyncClient(
    ...         cluster_endpoint="https://sandbox.example",
    ...         transport=sandbox.async_transport(),
    ...         **sandbox.credentials,
    ...     ) as client:
    ...         table = await client.event_delivery(
    ...             "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration"]
    ...         )
    ...     return table.totals
    >>> asyncio.run(totals())
    Counts(success=7, errors=1, filtered=2)
    """

    __slots__ = ()

    async def event_delivery(
        self,
        start: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> CountTable:
        """Asks for event delivery metrics, as `Client.event_delivery` (service reference 4.4)."""
        return await self._run(self._machine.event_delivery(start, end, dimensions, group_by))

    async def event_ingestion(
        self,
        start: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> CountTable:
        """Asks for event ingestion metrics, as `Client.event_ingestion` (service reference 4.5)."""
        return await self._run(self._machine.event_ingestion(start, end, dimensions, group_by))

    async def collect(
        self,
        metric: MetricName,
        start: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
        *,
        window: str | timedelta = "15m",
        concurrency: int = 8,
        group_by: Sequence[DimensionName] | None = None,
        on_progress: Callable[[Progress], object] | None = None,
        checkpoint: AsyncCheckpoint | Path | None = None,
        part: tuple[int, int] | None = None,
        have: CountTable | None = None,
        settle: float = 3600.0,
        finest: str | timedelta = "1m",
        probe: bool = False,
        progress: bool | None = None,
    ) -> CountTable:
        """Reads a long range, as `Client.collect`, with tasks in place of threads.

        `on_progress` is a plain function; those of a checkpoint may be coroutine functions, and a
        directory is written in a thread. A cancelled collect has stored what was read, and its
        `CancelledError` has `partial`, `gaps` and `failures`.

        >>> async def collected():
        ...     async with tallyfold.AsyncClient(
        ...         cluster_endpoint="https://sandbox.example",
        ...         transport=sandbox.async_transport(),
        ...         **sandbox.credentials,
        ...     ) as client:
        ...         return await client.collect(
        ...             "event_delivery",
        ...             "2026-01-01T00:00:00Z",
        ...             "2026-01-02T00:00:00Z",
        ...             ["integration"],
        ...         )
        >>> asyncio.run(collected()).totals.success
        7
        """
        self._check_usable()
        wishes = Wishes(concurrency, checkpoint, on_progress, progress)
        machine = self._machine.collect(
            metric,
            start,
            end,
            dimensions,
            window=window,
            group_by=group_by,
            part=part,
            have=have,
            settle=settle,
            finest=finest,
            probe=probe,
        )
        with self._in_this_loop():
            return await collect_in_tasks(machine, wishes, self._drive)

    def follow(
        self,
        metric: MetricName,
        start: datetime | str,
        dimensions: Sequence[DimensionName],
        *,
        window: str | timedelta,
        end: datetime | str | None = None,
        group_by: Sequence[DimensionName] | None = None,
        delay: float = 0.0,
        reread: float | None = None,
        settle: float = 3600.0,
    ) -> AsyncRevisions:
        """Reads windows as they close, as `Client.follow`: an asynchronous iterator."""
        machine = self._machine.follow(
            metric,
            start,
            dimensions,
            window=window,
            end=end,
            group_by=group_by,
            delay=delay,
            reread=reread,
            settle=settle,
        )
        return AsyncRevisions(machine, self._drive_alone, self._check_usable)

    async def _drive_alone(self, call: Call[CountTable]) -> None:
        with self._in_this_loop():
            await self._drive(call)

    async def probe_additivity(
        self,
        metric: MetricName,
        start: datetime | str,
        middle: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
    ) -> Additivity:
        """Finds out whether the service's windows are half-open, as `Client.probe_additivity`."""
        self._check_usable()
        probe = self._machine.probe_additivity(metric, start, middle, end, dimensions)
        with self._in_this_loop():
            while isinstance(step := probe.step(), Drive):
                await self._drive(step.call)
                probe.settle(step.task, step.call)
        return probe.finish()

    async def audit_logs(self, page: int | None = None, per_page: int | None = None) -> Any:  # noqa: ANN401
        """Lists a page of audit logs, as `Client.audit_logs` (service reference 4.2)."""
        return parsed(await self._run(self._machine.audit_logs(page, per_page)))

    async def close(self) -> None:
        """Closes the transport; later calls raise `RuntimeError`."""
        self._closed = True
        # A fork's copies of the connections are the parent's to close.
        if not self._in_other_process():
            await self._transport.aclose()

    async def __aenter__(self) -> Self:
        """Gives the client itself."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the client."""
        await self.close()
