"""The client: drives a machine of the core over an httpx2 transport."""

from collections.abc import Callable
from concurrent.futures import Executor
from types import TracebackType
from typing import Any, Self, Unpack

from tallyfold._arguments import CollectArguments, Dimensions, FollowArguments, Instant
from tallyfold._client.async_driver import AsyncDriver
from tallyfold._client.callbacks import async_function
from tallyfold._client.facade import given_api, parsed
from tallyfold._client.steps import Drive
from tallyfold._errors import TallyfoldError, wrong_type
from tallyfold._files.async_checkpoint import AsyncCheckpoint
from tallyfold._files.async_keeper import AsyncKeeper
from tallyfold._files.stores import Path
from tallyfold._names import ApiName, MetricName
from tallyfold._ranges.async_revisions import AsyncRevisions
from tallyfold._ranges.parts import PartsRun, Spread
from tallyfold._ranges.values import Additivity, Progress
from tallyfold._tallyfold import CountTable
from tallyfold._time import Window

__all__ = ["AsyncClient"]


class AsyncClient(AsyncDriver):
    """A client of both APIs, which fetches, keeps and renews tokens as needed.

    All tasks of one event loop may share one client and its tokens. Using it in two event loops at
    the same time raises `RuntimeError`. If a call is cancelled while it fetches a token that other
    calls wait for, one of them fetches it instead. After a fork, the child process must make its
    own client: one from before the fork raises `RuntimeError` there. Close the client, or use it in
    an `async with` statement.

    Args:
        cluster_endpoint: the address of your deployment, for the Event Metrics API.
        client_id: issued by the service's operator (service reference 5).
        client_secret: issued with the id. It can't be read back from the client.
        control_audience: the audience identifier of the Control API (4.3).
        base_url: the address of the Orchestration API.
        auth_url: the address of the authorization server (4.1).
        orchestration_audience: the audience identifier of the Orchestration API.
        identity: a name for the cluster and the client whose counts are read, by default the
            address and the client id. Tables and states of another one are refused. Set it if an
            address changes, or if an `access_token` decides whose counts are read.
        access_token: instead of a secret, a function that is called with `"control"` or
            `"orchestration"` and returns a token for that API and the token's lifetime in seconds,
            or `None` if the lifetime is not known. An exception that it raises becomes the cause of
            an `AuthError`. Other calls wait for it for up to `timeout` seconds. It must not call
            the client that it serves. It may be a coroutine function, which may take `timeout`
            seconds.
        transport: an httpx2 transport that sends the requests, such as
            `httpx2.AsyncHTTPTransport(proxy=...)`, `sandbox.async_transport()` or your own. The
            client closes it. Without a transport, requests go directly to the service, unless there
            is a `proxy` or `trust_env`.
        ca: CA certificates to trust in addition to the usual ones: the path of a PEM
            file, or the PEM text itself. An `ssl.SSLContext` is used as it is.
        proxy: the address of a proxy, `http://user:password@proxy.example:3128`, for all requests,
            also for tokens. No message shows it. Addresses of plain http, which are on this
            machine, are reached without it, unless `dangerously_allow_http` is set.
        trust_env: whether `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` and
            `SSL_CERT_DIR` count. Without it they are ignored, so that the environment can't lead a
            secret elsewhere.
        headers: headers that go with every request, also for tokens, such as the key of a gateway.
            Those that the client sets itself are refused, such as `authorization`. A `user-agent`
            replaces `tallyfold/<version> python`.
        tokenless: whether requests carry no token, because `cluster_endpoint` is the address of a
            server of yours that adds it: `tallyfold.asgi`, or `tallyfold/server` of the npm
            package.
        timeout: the seconds that one exchange may take, from connecting to the last byte of the
            body; also the longest wait for a token that another call fetches. At most a day; `None`
            for no limit. The operating system limits the time of a name lookup.
        dangerously_allow_http: lets secrets and tokens go over plain http to other machines.
        default_token_lifetime: the lifetime in seconds of a token whose response names none.
        limits: `Limits` of responses other than the defaults.
        tolerate: names of deviations to tolerate; `CountTable.notes` counts them:
            `"repeated_combination"`, `"null_dimension"`.
        max_retries: how often one call is retried at most, after statuses 408, 429, 500, 502, 503
            and 504, a broken exchange or a `timeout`; 0 for never. All calls of a client share a
            budget of retries, so that a service that is down gets only a few more requests than
            usual.
        longest_retry_wait: the longest `Retry-After`, in seconds, that a call waits for; if the
            service asks for a longer wait, the call ends with `retry_later`.
        on_attempt: a function, or a coroutine function, which is awaited. It is called with an
            `Attempt` for each request that has ended, in the task of its call. An exception from
            it ends the call and is raised unchanged.

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
        dimensions: Dimensions,
        group_by: Dimensions | None = None,
        *,
        deadline: float | None = None,
    ) -> CountTable:
        """Asks for event delivery metrics of `[start, end)` (service reference 4.4).

        Args:
            start: an aware `datetime`, or ISO 8601 text with `Z` or an offset from UTC.
            end: likewise, after `start`. The service recommends windows of 5 to 15 minutes.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            group_by: the dimensions to keep; `None` keeps all.
            deadline: how many seconds the call may take with all its requests and waits; `None`
                for no limit. After that, it fails with `deadline_exceeded`.

        Raises:
            ConfigError: for arguments that can't be used, before anything is sent.
            AuthError: for credentials or tokens that the service does not take.
            ServiceError: for other statuses than 200, the network and the timeout.
            ResponseError: for a response that is not a valid result.

        >>> start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        >>> end = start + datetime.timedelta(minutes=15)
        >>> table = await async_client.event_delivery(start, end, ["integration", "reason"])
        >>> table[0]
        Row({'integration': 'email', 'reason': 'playbook'}, success=0, errors=0, filtered=2)
        """
        call = self._machine.event_delivery(start, end, dimensions, group_by, deadline=deadline)
        return await self._run(call)

    async def event_ingestion(
        self,
        start: Instant,
        end: Instant,
        dimensions: Dimensions,
        group_by: Dimensions | None = None,
        *,
        deadline: float | None = None,
    ) -> CountTable:
        """Asks for event ingestion metrics of `[start, end)` (service reference 4.5).

        It has the arguments and errors of `event_delivery`, but no dimension `reason`.

        >>> table = await async_client.event_ingestion(
        ...     "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", ["event_name"]
        ... )
        >>> table.dimensions
        ('event_name',)
        """
        call = self._machine.event_ingestion(start, end, dimensions, group_by, deadline=deadline)
        return await self._run(call)

    async def collect(
        self,
        metric: MetricName,
        start: Instant,
        end: Instant,
        dimensions: Dimensions,
        *,
        on_progress: Callable[[Progress], object] | None = None,
        checkpoint: AsyncCheckpoint | Path | None = None,
        progress: bool | None = None,
        executor: Executor | None = None,
        workers: int | None = None,
        **options: Unpack[CollectArguments],
    ) -> CountTable:
        """Reads a long range `[start, end)` as many windows, and adds them up to one table.

        If a window fails, the others are still read, and the error says which time is missing. To
        read only the missing time, call again with `have=error.partial` or with the same
        checkpoint.

        Args:
            metric: `"event_delivery"` or `"event_ingestion"`.
            start: an aware `datetime`, or ISO 8601 text with `Z` or an offset from UTC.
            end: likewise, after `start`.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            window: the length of the windows, `"5m"` to `"15m"` as the service advises (service
                reference 8), or any other step that divides a day. Windows start and end at
                multiples of the step in UTC.
            concurrency: how many windows are read at the same time, each in its own task.
            group_by: the dimensions to keep; all when `None`.
            on_progress: a function, or a coroutine function, which is awaited. It is called with a
                `Progress` in the caller's task whenever a window has been settled.
            checkpoint: the path of a directory, which is made if it is not there; an address that
                fsspec knows, such as `s3://bucket/folder` (`tallyfold[fsspec]`), which is not
                locked; or an object with `load` and `save`: see `AsyncCheckpoint`. Counts are
                stored there while they are read; after a job was killed, the same call with the
                same checkpoint continues where it ended. It also serves another range of the same
                query, such as the last 30 days, every night: what is stored of the range is not
                read again. One collect at a time may use it.
            drop_old: whether to drop segments of the checkpoint that hold only time before `start`.
            keep: what is kept of the windows: `"windows"`, the default, for each by itself; a step
                such as `"1h"` or `"1d"`, a multiple of `window`; or `"total"` for their sum.
                Windows are added up as they settle, so that memory grows with groups and steps.
            memory_limit: how many bytes the counts that are kept may take, 1 GiB unless told
                otherwise. More end the collect with `memory_limit`.
            part: `(index, of)` to collect one of `of` parts of the range: see `Plan.part`.
            have: a table that covers a part of the range already: only its gaps are read, and the
                windows that are `provisional` in it. Windows that lie outside of the range, or
                partly, are ignored.
            settle: for how many seconds after a window's end its counts may still change. A window
                that is read earlier is used, but it is read again when a checkpoint is continued.
            finest: if the response for a window is too large or too slow, the window is halved at a
                multiple of this step and read again.
            probe: whether to test first that the counts of two windows add up, which takes one more
                call; if they do not, the collect ends with `windows_not_additive`.
            patience: for how many seconds to wait for a service that is down, 900 unless told
                otherwise; `None` for as long as it takes, 0 for not at all. When calls fail and may
                succeed later, all workers pause, one call at a time tries, and all go on when the
                service answers. `Progress.waiting` shows that they pause, and `on_attempt` when the
                next try is. If it takes longer, the collect ends.
            deadline: how many seconds the collect may take with all its windows and waits; `None`,
                the default, for no limit. It then ends with `deadline_exceeded`, and `partial` has
                what was read.
            executor: any `concurrent.futures.Executor`, whose workers read the windows: a
                `ProcessPoolExecutor`, `dask_client.get_executor()`, or one of MPI. The result is
                the same. Each worker has connections of its own, and a token that this client
                hands out. `concurrency` still limits all requests together. This process stores
                the checkpoint and calls `on_progress` and `on_attempt`, each time that a part of
                the range has come back. The client may not have a `transport`.
            workers: how many workers of the executor are used at the same time. By default, all of
                a pool of Python or MPI; of any other executor, one for each of `concurrency`.
            progress: whether to show a progress bar: in a notebook, and on standard error if that
                is a terminal. On a terminal, `None` shows one if rich is installed
                (`tallyfold[progress]`).

        Raises:
            ConfigError: for arguments that can't be used, and `invalid_checkpoint` for a checkpoint
                that is incomplete or belongs to another query, before anything is sent.
            TallyfoldError: if windows are missing: the error that ended the collect early, or that
                of the first failed window. It has `partial`, `gaps` and `failures`.
            OSError: from a checkpoint's directory; `BlockingIOError` if another collect uses it.
            BrokenExecutor: or another exception of the executor, if it has lost a part.

        Any other exception that ends it, such as `CancelledError` or one from `on_progress`, is
        raised unchanged after all tasks have ended and all counts are stored. It also has the
        attributes `partial`, `gaps` and `failures`.

        >>> table = await async_client.collect(
        ...     "event_delivery", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ["integration"]
        ... )
        >>> len(table.windows), table.totals.success
        (96, 7)
        """
        self._check_usable()
        async_function("on_progress", on_progress)
        others = ["on_progress", "checkpoint", "progress", "executor", "workers"]
        machine = self._machine._collect_of_client(  # noqa: SLF001
            others, metric, start, end, dimensions, **options
        )
        if executor is None and workers is None:
            return await self._collect(machine, checkpoint, on_progress, progress=progress)
        spread = Spread(executor, workers)
        run = PartsRun(
            machine,
            on_progress,
            spread,
            self._settings(),
            (metric, dimensions, options),
            progress=progress,
            has_checkpoint=checkpoint is not None,
            wants_attempts=self._on_attempt is not None,
        )
        return await self._collect_elsewhere(run, spread, AsyncKeeper(machine, checkpoint))

    def follow(
        self,
        metric: MetricName,
        start: Instant,
        dimensions: Dimensions,
        *,
        on_failure: Callable[[Window, TallyfoldError], object] | None = None,
        once: bool = False,
        **options: Unpack[FollowArguments],
    ) -> AsyncRevisions:
        """Reads windows as they close, and again while their counts may change.

        It returns an asynchronous iterator of `Revision` objects with signed changes, so that a
        running sum of the changes is always the sum of the newest counts of every window. A window
        is settled once it was read `settle` seconds or more after its end.

        Args:
            metric: `"event_delivery"` or `"event_ingestion"`.
            start: the start of the first window; it may be in the past or in the future.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            window: the length of the windows, such as `"5m"`; it must divide a day.
            end: the end of the last window; `None` for no end.
            group_by: the dimensions to keep; all when `None`.
            delay: how many seconds after its end a window is first read.
            reread: how many seconds after a reading, successful or failed, a window is read again;
                `None` for the window's length.
            settle: for how many seconds after a window's end its counts may still change; the
                window is read again until then.
            settle_when_unchanged: whether two equal readings, at least the window's length apart,
                settle a window earlier; events that arrive after them are lost.
            state: the `state` of an earlier follow of the same query: this one resumes there,
                and `start` has no effect.
            patience: for how many seconds to wait for a service that is down; `None`, the default,
                for as long as it takes, 0 for not at all. Until then no reading fails because of
                it.
            on_failure: a function, or a coroutine function, which is awaited. It is called with the
                window and the error if a reading fails; the window is read again after `reread`.
                Without it, `anext` raises the error
                and may be called again, or another `async for` loop may be begun. If the function
                raises, so does `anext`.
            once: whether the iteration gives what is due now, and ends where it would wait. A job
                that runs every few minutes resumes with the `state` of its last run. If the service
                is down, `anext` raises the error instead of waiting.

        Raises:
            ConfigError: for arguments that can't be used. If a reading fails, and there is no
                `on_failure`, `anext` raises the error.

        >>> revisions = async_client.follow(
        ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"],
        ...     window="15m", end="2026-01-01T00:30:00Z",
        ... )
        >>> [revision.changes.total_delta.success async for revision in revisions]
        [7, 0]
        """
        async_function("on_failure", on_failure)
        if not isinstance(once, bool):
            raise wrong_type("once", "want True or False", once)
        machine = self._machine._follow_of_client(  # noqa: SLF001
            ["on_failure", "once"], metric, start, dimensions, **options
        )
        return AsyncRevisions(machine, self._reader(), on_failure, once=once)

    async def probe_additivity(
        self,
        metric: MetricName,
        start: Instant,
        middle: Instant,
        end: Instant,
        dimensions: Dimensions,
    ) -> Additivity:
        """Finds out whether the service's windows are half-open, which its reference does not say.

        It makes three calls, and compares the counts of `[start, end)` with the sum of those of
        `[start, middle)` and `[middle, end)`. Choose a window so old that no late events arrive.

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

    async def audit_logs(
        self,
        page: int | None = None,
        per_page: int | None = None,
        *,
        deadline: float | None = None,
    ) -> Any:  # noqa: ANN401
        """Lists a page of audit logs and gives the parsed JSON (service reference 4.2).

        The reference shows neither the response nor its size, so the JSON is returned as the
        service sends it. `deadline` is that of `event_delivery`.

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
        call = self._machine.audit_logs(page, per_page, deadline=deadline)
        return parsed(await self._run(call))

    async def token(self, api: ApiName) -> tuple[str, int]:
        """Gives a valid access token of one API, and the seconds that are left of its lifetime.

        That is what `access_token` of another client returns: use it in a server that hands tokens
        to pages. It is this client's own token, which is fetched or renewed only if it is time,
        once for all who wait. This is the only way for a token to leave the client: keep it as you
        keep a password, and give it only to those who may see all that it opens.

        Args:
            api: `"control"` or `"orchestration"`.

        Raises:
            ConfigError: for arguments that can't be used, before anything is sent.
            AuthError: for credentials that the service does not take.
            ServiceError: for other statuses than 200, the network and the timeout.

        >>> token, seconds = await async_client.token("control")
        >>> seconds <= 86400
        True
        """
        return await self._run(self._machine.token(given_api(api)))

    async def close(self) -> None:
        """Closes the transport; calls from now on, and those that wait, raise `RuntimeError`.

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
