"""Runs the collects of an `AsyncClient`, in tasks or in the workers of an executor."""

from collections.abc import Callable
from concurrent.futures import Future

from tallyfold._calls.async_driver import AsyncDriver
from tallyfold._client.collecting import read_part
from tallyfold._files.async_checkpoint import AsyncCheckpoint
from tallyfold._files.async_keeper import AsyncKeeper
from tallyfold._files.stores import Path
from tallyfold._ranges.async_collect import collect
from tallyfold._ranges.async_executing import AsyncExecuting
from tallyfold._ranges.collect_run import CollectRun
from tallyfold._ranges.parts import Assignment, Outcome, PartsRun, Spread
from tallyfold._ranges.tasks import Tasks
from tallyfold._ranges.values import Progress
from tallyfold._tallyfold import Collect, CountTable

__all__ = ["AsyncCollecting"]


class AsyncCollecting(AsyncDriver):
    """A driver of single calls that also runs collects."""

    __slots__ = ()

    async def _collect(
        self,
        machine: Collect,
        checkpoint: AsyncCheckpoint | Path | None,
        on_progress: Callable[[Progress], object] | None,
        *,
        progress: bool | None,
    ) -> CountTable:
        has_checkpoint = checkpoint is not None
        run = CollectRun(machine, on_progress, progress=progress, has_checkpoint=has_checkpoint)
        with self._in_this_loop():
            keeper = AsyncKeeper(machine, checkpoint)
            return await collect(run, keeper, Tasks(run, self._drive))

    async def _collect_elsewhere(
        self, run: PartsRun, spread: Spread, keeper: AsyncKeeper
    ) -> CountTable:
        async def token() -> tuple[str, int] | None:
            return None if run.is_tokenless else await self._run(self._machine.token("control"))

        def submit(assignment: Assignment) -> Future[Outcome]:
            return spread.executor.submit(read_part, assignment)

        executing = AsyncExecuting(run, submit, token, self._drive_alone, self._on_attempt)
        return await collect(run, keeper, executing)
