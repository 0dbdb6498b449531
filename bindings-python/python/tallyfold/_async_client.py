"""The clients: a machine of the core, driven over an httpx2 transport."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from tallyfold._arguments import CollectArguments, FollowArguments, Instant
from tallyfold._async_checkpoint import AsyncCheckpoint
from tallyfold._async_driver import AsyncDriver
from tallyfold._async_follow import AsyncRevisions
from tallyfold._facade import parsed
from tallyfold._names import DimensionName, MetricName
from tallyfold._ranges import Additivity, Progress
from tallyfold._steps import Drive
from tallyfold._stores import Path
from tallyfold._tallyfold import CountTable

__all__ = ["AsyncClient"]


class AsyncClient(AsyncDriver):
    """Both APIs of the service, with tokens fetched, kept and renewed as needed.

    All tasks of one event loop may share one client; they share its tokens. Another loop may use it
    after that one, but not at the same time: `RuntimeError`. A cancelled call leaves nothing
    behind: where it was fetching a token that others wait for, one of them fetches it. A process
    that was forked makes its own: there, a client from before the fork raises `RuntimeError`.
    Close it, or use it in an `async with` statement.

    Args:
        cluster_endpoint: the address of your deployment, for the Event Metrics API.
        client_id: issued by the service's operator (service reference 5).
        client_secret: issued with it. It can't be read back from the client.
        control_audience: the audience identifier of the Control API (4.3).
        base_url: the address of the Orchestration API.
        auth_url: the address of the authorization server (4.1).
        orchestration_audience: the audience identifier of the Orchestration API.
        access_token: in place of a secret, a function that is called with `"control"` or
            `"orchestration"` and returns a token for that API with its lifetime in seconds, or
            `None` where that is not known. What it raises becomes an `AuthError`'s cause. Other
            calls wait for `timeout` seconds. It can't call the client that it serves. It may be a
            coroutine function, which has `timeout` seconds.
        transport: how to send requests, as httpx2 has it: `httpx2.AsyncHTTPTransport(proxy=...)`,
            `sandbox.async_transport()`, one of your own. The client closes it. Without a
            transport, requests go straight to the service: neither proxies nor certificates are
            taken from the environment, so that nothing there can lead a secret elsewhere.
        timeout: the seconds that one exchange may take, from connecting to the body's last byte,
            and the wait for a token that another call fetches; up to a day, `None` for no end.
            Looking a name up is up to the operating system.
        dangerously_allow_http: lets secrets and tokens go over plain http to other machines.
        default_token_lifetime: the seconds to use a token for whose answer names no lifetime.
        limits: `Limits` of responses other than the usual ones.
        tolerate: names of deviations to let pass and count in `CountTable.notes`:
            `"repeated_combination"`, `"null_dimension"`.
        max_retries: how often one call is tried again at most, after statuses 408, 429, 500, 502,
            503 and 504, a broken exchange or a `timeout`; 0 for never. All calls of a client share
            a budget of retries, so that a service that is down is not asked much more than usual.
        longest_retry_wait: the most seconds to wait for what the service asks for with
            `Retry-After`; where it asks for more, the call ends with `retry_later`.
        on_attempt: a plain function that is called with an `Attempt` for each request that has
            ended, in the task of its call. What it raises ends the call, and is raised as it is.

    Raises:
        ConfigError: for arguments that can't be used, before anything is sent.

    >>> async with tallyfold.AsyncClient(
    ...     cluster_endpoint="https://sandbox.example",
    ...     transport=sandbox.async_transport(),
    ...     **sandbox.credentials,
    ... ) as other_client:
    ...     table = await other_client.event_delivery(
    ...         "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["integration"]
    ...     )
    >>> table.totals
    Counts(success=7, errors=1, filtered=2)
    """

    __slots__ = ()

    async def event_delivery(
        self,
        start: Instant,
        end: Instant,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> CountTable:
        """Asks for event delivery metrics of `[start, end)` (service reference 4.4).

        Args:
            start: an aware `datetime`, or UTC ISO 8601 that ends in `Z`.
            end: likewise, after `start`. The service recommends windows of 5 to 15 minutes.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            group_by: those of them to keep; all when `None`.

        Raises:
            ConfigError: for arguments that can't be used, before anything is sent.
            AuthError: for credentials or tokens that the service does not take.
            ServiceError: for other statuses than 200, the network and the timeout.
            ResponseError: for a response that is not what it should be.

        >>> start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        >>> end = start + datetime.timedelta(minutes=15)
        >>> table = await async_client.event_delivery(start, end, ["integration", "reason"])
        >>> table[0]
        Row({'integration': 'email', 'reason': 'playbook'}, success=0, errors=0, filtered=2)
        """
        return await self._run(self._machine.event_delivery(start, end, dimensions, group_by))

    async def event_ingestion(
        self,
        start: Instant,
        end: Instant,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> CountTable:
        """Asks for event ingestion metrics of `[start, end)` (service reference 4.5).

        Arguments and errors are those of `event_delivery`; there is no dimension `reason`.

        >>> table = await async_client.event_ingestion(
        ...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["event_name"]
        ... )
        >>> table.dimensions
        ('event_name',)
        """
        return await self._run(self._machine.event_ingestion(start, end, dimensions, group_by))

    async def collect(
        self,
        metric: MetricName,
        start: Instant,
        end: Instant,
        dimensions: Sequence[DimensionName],
        *,
        on_progress: Callable[[Progress], object] | None = None,
        checkpoint: AsyncCheckpoint | Path | None = None,
        progress: bool | None = None,
        **options: Unpack[CollectArguments],
    ) -> CountTable:
        """Reads a long range `[start, end)` as many windows, and adds them up to one table.

        A window that fails leaves the others: the error says which time is missing. To read only
        that, call again with `have=error.partial`, or with the same checkpoint.

        Args:
            metric: `"event_delivery"` or `"event_ingestion"`.
            start: an aware `datetime`, or UTC ISO 8601 that ends in `Z`.
            end: likewise, after `start`.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            window: the length of the windows, `"5m"` to `"15m"` as the service advises (service
                reference 8), or any other step that divides a day. They start and end at multiples
                of it in UTC.
            concurrency: how many windows are read at a time, each in a task of its own.
            group_by: the dimensions to keep; all when `None`.
            on_progress: a plain function that is called with a `Progress` whenever a window has
                been settled, in the order of settling and in the caller's task.
            checkpoint: the path of a directory, which is made if it is not there, or an object with
                `load` and `save`: see `AsyncCheckpoint`. What was read is stored there as it comes;
                the same call with the same checkpoint goes on where a killed one ended. One collect
                at a time may use it.
            part: `(index, of)` for one of so many parts of the range: see `Plan.part`.
            have: a table that holds some of the range already: only its gaps are read.
            settle: for how many seconds after a window's end its counts may still change. What is
                read earlier counts, but is read again from a checkpoint.
            finest: a window whose response is too large or too slow is halved at multiples of this
                step, and tried again.
            probe: whether to find out first if the counts of two windows add up, with one more
                call; if they do not, the collect ends with `windows_not_additive`.
            progress: whether to show a bar; `None` for one if rich is installed
                (`tallyfold[progress]`). There is none unless standard error is a terminal.

        Raises:
            ConfigError: for arguments that can't be used, and `invalid_checkpoint` for a torn or
                another query's checkpoint, before anything is sent.
            TallyfoldError: if windows are missing: what ended the collect early, or the first
                failure. It has `partial`, `gaps` and `failures`.
            OSError: of a checkpoint's directory, `BlockingIOError` if another collect is using it.

        What else ends it, such as `CancelledError` or an exception of `on_progress`, is raised
        as it is once all tasks have ended and what was read is stored. It has the attributes
        `partial`, `gaps` and `failures`, too.

        >>> table = await async_client.collect(
        ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ["integration"]
        ... )
        >>> len(table.windows), table.totals.success
        (96, 7)
        """
        self._check_usable()
        others = ["on_progress", "checkpoint", "progress"]
        machine = self._machine._collect_of_client(  # noqa: SLF001
            others, metric, start, end, dimensions, **options
        )
        return await self._collect(machine, checkpoint, on_progress, progress=progress)

    def follow(
        self,
        metric: MetricName,
        start: Instant,
        dimensions: Sequence[DimensionName],
        **options: Unpack[FollowArguments],
    ) -> AsyncRevisions:
        """Reads windows as they close, and again while their counts may change.

        It gives an asynchronous iterator of `Revision` objects with signed changes, so that a
        running sum of the changes is always the sum of the newest counts of every window. A window
        is settled once two readings in a row were equal, or once it was read `settle` seconds after
        its end.

        Args:
            metric: `"event_delivery"` or `"event_ingestion"`.
            start: the start of the first window; it may be long ago, or still to come.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            window: the length of the windows, such as `"5m"`; it must divide a day.
            end: the end of the last window; `None` to go on.
            group_by: the dimensions to keep; all when `None`.
            delay: how many seconds after its end a window is first read.
            reread: how many seconds after a reading, also a failed one, a window is read again; the
                window's length when `None`.
            settle: for how many seconds after a window's end its counts may still change.

        Raises:
            ConfigError: for arguments that can't be used. What goes wrong with a reading is raised
                by `anext`.

        >>> revisions = async_client.follow(
        ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"],
        ...     window="15m", end="2026-01-01T00:30:00Z",
        ... )
        >>> [revision.changes.total_delta.success async for revision in revisions]
        [7, 0]
        """
        machine = self._machine.follow(metric, start, dimensions, **options)
        return AsyncRevisions(machine, self._reader())

    async def probe_additivity(
        self,
        metric: MetricName,
        start: Instant,
        middle: Instant,
        end: Instant,
        dimensions: Sequence[DimensionName],
    ) -> Additivity:
        """Finds out whether the service's windows are half-open, which its reference does not say.

        It compares the counts of `[start, end)` with those of `[start, middle)` and of
        `[middle, end)` together: three calls. The window should be so old that no late events come.

        Raises:
            TallyfoldError: what `event_delivery` raises.

        >>> found = await async_client.probe_additivity(
        ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z",
        ...     "2026-01-01T00:10:00Z", ["integration"],
        ... )
        >>> found.verdict
        'additive'
        """
        self._check_usable()
        probe = self._machine.probe_additivity(metric, start, middle, end, dimensions)
        while isinstance(step := probe.step(), Drive):
            await self._drive_alone(step.call)
            probe.settle(step.task, step.call)
        return probe.finish()

    async def audit_logs(self, page: int | None = None, per_page: int | None = None) -> Any:  # noqa: ANN401
        """Lists a page of audit logs and gives the parsed JSON (service reference 4.2).

        The reference shows neither the response nor its bounds, so its shape is the service's.

        Raises:
            ConfigError: for a `page` or `per_page` below 1.
            AuthError: for credentials or tokens that the service does not take.
            ServiceError: for other statuses than 200, the network and the timeout.
            ResponseError: for a body that is not JSON, or has a number above the largest `float`,
                also if it is written as an integer.

        >>> page = await async_client.audit_logs(page=1, per_page=2)
        >>> isinstance(page, dict)
        True
        """
        return parsed(await self._run(self._machine.audit_logs(page, per_page)))

    async def close(self) -> None:
        """Closes the transport; later calls raise `RuntimeError`.

        >>> await async_client.close()
        """
        await self._shut()

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
