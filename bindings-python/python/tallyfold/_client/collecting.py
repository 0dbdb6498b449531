"""Runs the collects of a `Client`, in threads or in the workers of an executor."""

import functools
import ssl
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

import httpx2

from tallyfold._calls.driver import Driver
from tallyfold._errors import TallyfoldError
from tallyfold._files.checkpoint import Checkpoint
from tallyfold._files.keeper import Keeper
from tallyfold._files.stores import Path
from tallyfold._http.stop import Stop
from tallyfold._names import ApiName
from tallyfold._ranges.collect import collect
from tallyfold._ranges.collect_run import CollectRun
from tallyfold._ranges.executing import Executing
from tallyfold._ranges.parts import Assignment, Outcome, PartsRun, Spread, encoded
from tallyfold._ranges.threads import Threads
from tallyfold._ranges.values import Progress
from tallyfold._tallyfold import Collect, CountTable

if TYPE_CHECKING:
    from tallyfold._values import Attempt

__all__ = ["Collecting", "read_part"]


class Collecting(Driver):
    """A driver of single calls that also runs collects."""

    __slots__ = ()

    def _collect(
        self,
        machine: Collect,
        checkpoint: Checkpoint | Path | None,
        on_progress: Callable[[Progress], object] | None,
        *,
        progress: bool | None,
    ) -> CountTable:
        has_checkpoint = checkpoint is not None
        run = CollectRun(machine, on_progress, progress=progress, has_checkpoint=has_checkpoint)
        stop = Stop(self._closing)
        threads = Threads(run, lambda call: self._drive(call, stop), lambda: self._stop(stop))
        return collect(run, Keeper(machine, checkpoint), threads)

    def _collect_elsewhere(self, run: PartsRun, spread: Spread, keeper: Keeper) -> CountTable:
        def token() -> tuple[str, int] | None:
            return None if run.is_tokenless else self._run(self._machine.token("control"))

        def submit(assignment: Assignment) -> Future[Outcome]:
            return spread.executor.submit(read_part, assignment)

        executing = Executing(run, submit, token, self._drive_alone, self._on_attempt)
        return collect(run, keeper, executing)


@functools.cache
def _usual_tls() -> ssl.SSLContext:
    # Reading all certificates takes 20 ms, so a worker reads them once, and not for each part.
    return httpx2.create_ssl_context(trust_env=False)


def read_part(assignment: Assignment) -> Outcome:
    """Reads a part of a collect. An executor's workers call this function."""
    tokens = [] if assignment.token is None else [assignment.token]
    attempts: list[Attempt] = []
    needs_token = False

    def token(_: ApiName) -> tuple[str, int | None]:
        nonlocal needs_token
        if not tokens:
            needs_token = True
            raise LookupError("a worker has one token; the process that collects renews it")
        return tokens.pop()

    settings = assignment.settings.arguments()
    if settings.get("ca") is None and not settings.get("trust_env"):
        settings["ca"] = _usual_tls()
    driver = Collecting(
        access_token=None if settings.get("tokenless") else token,
        on_attempt=attempts.append if assignment.wants_attempts else None,
        **settings,
    )
    table, error, has_ended = None, None, False
    try:
        machine = driver._machine.collect(*assignment.query, **assignment.options)  # noqa: SLF001
        try:
            table = driver._collect(machine, None, None, progress=False)  # noqa: SLF001
        except TallyfoldError as failure:
            error, table = failure, failure.partial
            # The outcome contains the table separately.
            error.partial = None
            planned, done, failed, _ = machine.progress()
            has_ended = done + failed < planned
    finally:
        driver._shut()  # noqa: SLF001
    needs_token = needs_token and error is not None and error.code == "token_provider_failed"
    return Outcome(
        assignment.part.task, encoded(table), error, has_ended, needs_token, tuple(attempts)
    )
