"""The client: drives a machine of the core over an httpx2 transport."""

import json
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Self, Unpack

from tallyfold._arguments import CollectArguments, Dimensions, FollowArguments, Instant
from tallyfold._calls.callbacks import async_function
from tallyfold._calls.facade import given_api
from tallyfold._calls.steps import Drive
from tallyfold._client.async_collecting import AsyncCollecting
from tallyfold._errors import TallyfoldError, check_flag
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


class AsyncClient(AsyncCollecting):
    """A client of both APIs. It fetches, keeps and renews tokens as needed.

    All tasks of one event loop may share one client and its tokens. Using it in two event loops at
    the same time raises `RuntimeError`. If a call is cancelled while it fetches a token that other
    calls wait for, one of them fetches it instead. After a fork, the child process must make its
    own client: one from before the fork raises `RuntimeError` there. Close the client, or use it in
    an `async with` statement.

    Args:
        cluster_endpoint: the address of your deployment, for the Event Metrics API.
        client_id: the Client ID that the service's operator has issued (service reference 5).
        client_secret: the Client Secret that was issued with the ID. The client doesn't reveal it.
        control_audience: the audience identifier of the Control API (4.3).
        base_url: the address of the Orchestration API.
        auth_url: the address of the authorization server (4.1).
        orchestration_audience: the audience identifier of the Orchestration API.
        identity: a name for the cluster and the client whose counts are read, by default the
            address and the Client ID. The client refuses tables and states with another name. Set
            it if an address changes, or if an `access_token` decides whose counts are read.
        access_token: instead of a secret, a function that gets `"control"` or `"orchestration"`,
            and returns a token for that API and the token's lifetime in seconds, or `None` if the
            lifetime is not known. If it raises an exception, this is the cause of the `AuthError`.
            Other calls wait up to `timeout` seconds for the token. The function must not call the
            client that it serves. It may be a coroutine function, which may take `timeout`
            seconds.
        transport: an httpx2 transport that sends the requests, such as
            `httpx2.AsyncHTTPTransport(proxy=...)`, `sandbox.async_transport()` or your own. The
            client closes it. Without a transport, requests go directly to the service, unless there
            is a `proxy` or `trust_env`.
        ca: CA certificates to trust in addition to the usual ones: the path of a PEM
            file, or the PEM text itself. An `ssl.SSLContext` replaces them all.
        proxy: the address of a proxy, such as `http://user:password@proxy.example:3128`. All
            requests use it, including token requests, except requests to this machine. No message
            shows the address.
        trust_env: whether the client uses the environment variables `HTTPS_PROXY`, `ALL_PROXY`,
            `NO_PROXY`, `SSL_CERT_FILE` and `SSL_CERT_DIR`. By default it ignores them, so the
            environment can't divert a secret to another machine.
        headers: headers to add to every request, including token requests, such as the key of a
            gateway. The client refuses headers that it sets itself, such as `authorization`. A
            `user-agent` replaces `tallyfold/<version> python`.
        tokenless: whether to send requests without a token, because `cluster_endpoint` is the
            address of your own server, which adds the token: `tallyfold.asgi`, or
            `tallyfold/server` of the npm package.
        timeout: how many seconds one exchange may take, from connecting to the last byte of the
            body; also the longest wait for a token that another call fetches. At most a day; `None`
            for no limit. The operating system limits the time of a name lookup.
        dangerously_allow_http: whether secrets and tokens may be sent over plain http to other
            machines.
        default_token_lifetime: the lifetime in seconds of a token whose response names none.
        limits: `Limits` of responses, if the defaults don't fit.
        tolerate: names of deviations to tolerate: `"repeated_combination"`, `"null_dimension"`.
            `CountTable.notes` counts them.
        max_retries: the maximum number of retries of one call, after statuses 408, 429, 500, 502,
            503 and 504, a broken exchange or a `timeout`; 0 for none. All calls of a client share a
            budget of retries, so that a service that is down gets only a few more requests than
            usual.
        longest_retry_wait: the longest `Retry-After`, in seconds, for which a call waits; if the
            service requests a longer wait, the call ends with `retry_later`.
        on_attempt: a function, or a coroutine function, which is awaited. It gets an `Attempt` for
            each request that has ended, in the task of its call. If it raises an exception, the
            call ends and raises the same exception.

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
        """Reads the event delivery metrics of `[start, end)` (service reference 4.4).

        Args:
            start: an aware `datetime`, or ISO 8601 text with `Z` or an offset from UTC.
            end: a timestamp after `start`, in the same forms. The service recommends windows of 5
                to 15 minutes.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            group_by: the dimensions to keep; `None` keeps all.
            deadline: how many seconds the call may take, including all its requests and waits;
                `None` for no limit. After that, it fails with `deadline_exceeded`.

        Raises:
            ConfigError: for arguments that can't be used, before anything is sent.
            AuthError: if the service refuses the credentials or tokens.
            ServiceError: for any status except 200, a network failure or a timeout.
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
        """Reads the event ingestion metrics of `[start, end)` (service reference 4.5).

        The arguments and errors are the same as for `event_delivery`, but there is no dimension
        `reason`.

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
        """Reads a long range `[start, end)` in many windows, and adds them up into one table.

        If a window fails, the collect still reads the other windows, and the error names the
        missing time. To read only the missing time, call again with `have=error.partial` or with
        the same checkpoint.

        Args:
            metric: `"event_delivery"` or `"event_ingestion"`.
            start: an aware `datetime`, or ISO 8601 text with `Z` or an offset from UTC.
            end: a timestamp after `start`, in the same forms.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            window: the length of the windows, `"5m"` to `"15m"` as the service advises (service
                reference 8), or any other step that divides a day. Windows start and end at
                multiples of the step in UTC.
            concurrency: how many windows are read at the same time, each in its own task.
            group_by: the dimensions to keep; `None` keeps all.
            on_progress: a function, or a coroutine function, which is awaited. It gets a
                `Progress` in the caller's task after each window.
            checkpoint: the path of a directory, which is created if it is missing; an address that
                fsspec knows, such as `s3://bucket/folder` (`tallyfold[fsspec]`), which is not
                locked; or an object with `load` and `save`: see `AsyncCheckpoint`. The collect
                stores counts there as it reads them. If the job is killed, the same call with the
                same checkpoint resumes. You can also use the checkpoint for another range of the
                same query, such as the last 30 days every night: the collect reads a stored window
                again only if it is provisional. Only one collect at a time may use a checkpoint.
            drop_old: whether to remove segments of the checkpoint that contain only time before
                `start`.
            keep: what is kept of the windows: `"windows"`, the default, keeps each window; a step
                such as `"1h"` or `"1d"`, a multiple of `window`, keeps the sums of its windows;
                `"total"` keeps the sum of all windows. Windows are added up as they settle, so
                memory grows with the number of groups and steps, not of windows.
            memory_limit: how many bytes the kept counts may take, by default 1 GiB. If they take
                more, the collect ends with `memory_limit`.
            part: `(index, of)` to collect one of `of` parts of the range: see `Plan.part`.
            have: a table that already covers a part of the range. The collect reads only the gaps
                of this table, and its `provisional` windows. Windows that are not entirely in the
                range are ignored.
            settle: for how many seconds after a window's end its counts may still change. The
                collect uses a window that it reads earlier, but reads it again when it resumes from
                a checkpoint.
            finest: if the response for a window is too large or too slow, the collect halves the
                window at a multiple of this step, and reads both halves.
            probe: whether to test first, with one more call, that the counts of two windows add up;
                if they do not, the collect ends with `windows_not_additive`.
            patience: for how many seconds to wait for a service that is down, by default 900;
                `None` for no limit, 0 for not at all. While calls fail but may succeed later, all
                workers pause, and one call at a time is tried. All workers resume when the service
                answers. `Progress.waiting` shows that they pause, and `on_attempt` shows when the
                next try is. When the patience is over, the collect ends.
            deadline: how many seconds the collect may take, including all its windows and waits;
                `None`, the default, for no limit. After that, the collect ends with
                `deadline_exceeded`, and `partial` contains what was read.
            executor: any `concurrent.futures.Executor`, whose workers read the windows: a
                `ProcessPoolExecutor`, `dask_client.get_executor()`, or an executor of MPI. The
                result is the same. Each worker has its own connections, and a token from this
                client. `concurrency` still limits all requests together. This process stores
                the checkpoint, and calls `on_progress` and `on_attempt` whenever a worker returns a
                part of the range. The client must not have a `transport`.
            workers: how many workers of the executor are used at the same time. By default, all
                workers of a pool of Python or MPI; for any other executor, as many as
                `concurrency`.
            progress: whether to show a progress bar: in a notebook, and on standard error if that
                is a terminal. On a terminal, `None` shows one if rich is installed
                (`tallyfold[progress]`).

        Raises:
            ConfigError: for arguments that can't be used, and `invalid_checkpoint` for a checkpoint
                that is incomplete or belongs to another query, before anything is sent.
            TallyfoldError: if windows are missing: the error that ended the collect early, or the
                error of the first failed window. It has `partial`, `gaps` and `failures`.
            OSError: for a failure of the checkpoint's directory; `BlockingIOError` if another
                collect uses it.
            BrokenExecutor: if the executor loses a part. Some executors raise another exception
                instead.

        If any other exception ends the collect, such as `CancelledError` or an exception from
        `on_progress`, the collect raises it unchanged after all tasks have ended and all counts
        are stored. This exception also has the attributes `partial`, `gaps` and `failures`, unless
        it is an interrupt that came before the checkpoint was open or after the result was
        complete.

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

        The method returns an asynchronous iterator of `Revision` objects with signed changes. A
        running sum of these changes is always the sum of the newest counts of all windows. A window
        is settled once a reading took place at least `settle` seconds after its end.

        Args:
            metric: `"event_delivery"` or `"event_ingestion"`.
            start: the start of the first window; it may be in the past or in the future.
            dimensions: one to four of `event_name`, `write_key`, `integration`, `reason`.
            window: the length of the windows, such as `"5m"`; it must divide a day.
            end: the end of the last window; `None` for no end.
            group_by: the dimensions to keep; `None` keeps all.
            delay: how many seconds after its end a window is first read.
            reread: how many seconds after a reading, successful or failed, a window is read again;
                `None` for the window's length.
            settle: for how many seconds after a window's end its counts may still change; the
                follow reads the window again until then.
            settle_when_unchanged: whether two equal readings, at least the window's length apart,
                settle a window earlier. Events that arrive after the second reading are lost.
            state: the `state` of an earlier follow of the same query. The new follow resumes there,
                and `start` has no effect.
            patience: for how many seconds to wait for a service that is down; `None`, the default,
                for no limit, 0 for not at all. Within that time, no reading fails because of the
                outage.
            on_failure: a function, or a coroutine function, which is awaited. It gets the
                window and the error if a reading fails; the window is read again after `reread`.
                Without `on_failure`, `anext` raises the error. You may then call `anext` again, or
                begin another `async for` loop. If `on_failure` raises an exception, `anext` raises
                it unchanged.
            once: whether the iteration yields what is due now, and ends instead of waiting. A job
                that runs every few minutes resumes with the `state` of its last run. If the service
                is down, `anext` raises the error instead of waiting.

        Raises:
            ConfigError: for arguments that can't be used.

        >>> revisions = async_client.follow(
        ...     "event_delivery", "2026-01-01T00:00:00Z", ["integration"],
        ...     window="15m", end="2026-01-01T00:30:00Z",
        ... )
        >>> [revision.changes.total_delta.success async for revision in revisions]
        [7, 0]
        """
        async_function("on_failure", on_failure)
        check_flag("once", once)
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
        """Tests whether the service's windows are half-open, which its reference does not specify.

        The test makes three calls, and compares the counts of `[start, end)` with the sum of the
        counts of `[start, middle)` and `[middle, end)`. Choose a window so old that no late events
        arrive.

        Raises:
            TallyfoldError: the same errors as `event_delivery`.

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
        """Reads a page of the audit logs, and returns the parsed JSON (service reference 4.2).

        The reference shows neither the response nor its size, so the method returns the JSON as the
        service sends it. `deadline` is the same as for `event_delivery`.

        Raises:
            ConfigError: for a `page` or `per_page` below 1.
            AuthError: if the service refuses the credentials or tokens.
            ServiceError: for any status except 200, a network failure or a timeout.
            ResponseError: for a body that is not JSON, or that contains a number above the largest
                `float`, even if it is written as an integer.

        >>> page = await async_client.audit_logs(page=1, per_page=2)
        >>> isinstance(page, dict)
        True
        """
        call = self._machine.audit_logs(page, per_page, deadline=deadline)
        # The core has checked the document, including its numbers.
        return json.loads(await self._run(call))

    async def token(self, api: ApiName) -> tuple[str, int]:
        """Returns a valid access token for one API, and how many seconds it is still valid.

        The `access_token` function of another client may return this pair: use it in a server that
        hands out tokens to web apps. The client returns the token that it uses itself, and fetches
        a new one only when needed, once for all concurrent calls. No other method reveals a token.
        Protect it like a password, and give it only to people who may see everything that it gives
        access to.

        Args:
            api: `"control"` or `"orchestration"`.

        Raises:
            ConfigError: for arguments that can't be used, before anything is sent.
            AuthError: if the service refuses the credentials.
            ServiceError: for any status except 200, a network failure or a timeout.

        >>> token, seconds = await async_client.token("control")
        >>> seconds <= 86400
        True
        """
        return await self._run(self._machine.token(given_api(api)))

    async def close(self) -> None:
        """Closes the transport. Later calls, and calls that are waiting, raise `RuntimeError`.

        >>> await async_client.close()
        """
        await self._shut()

    async def __aenter__(self) -> Self:
        """Returns the client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the client."""
        await self.close()
