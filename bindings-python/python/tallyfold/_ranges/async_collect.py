"""Drives a long range: workers read window after window, the caller does the rest."""

from functools import partial

from tallyfold._calls.callbacks import async_finished
from tallyfold._files.async_keeper import AsyncKeeper
from tallyfold._ranges.async_executing import AsyncExecuting
from tallyfold._ranges.collect_run import CollectRun, noted
from tallyfold._ranges.tasks import Tasks, async_to_its_end
from tallyfold._tallyfold import CountTable

__all__ = ["collect"]


async def collect(
    run: CollectRun, keeper: AsyncKeeper, workers: Tasks | AsyncExecuting
) -> CountTable:
    """Collects a range with workers. No worker outlives the call."""
    keeper.turn.is_under_way = True
    try:
        with keeper:
            async with workers:
                await _work(run, keeper, workers)
        return run.finish()
    except BaseException as error:
        # For example, an interrupt came while the checkpoint was being loaded.
        if not hasattr(error, "partial"):
            run.hand_over_to(error)
        raise
    finally:
        keeper.turn.is_under_way = False
        keeper.turn.end()


async def _work(run: CollectRun, keeper: AsyncKeeper, workers: Tasks | AsyncExecuting) -> None:
    await keeper.load()
    with run:
        try:
            # Drops segments that are too old, even if there is nothing to read.
            await keeper.save()
            await workers.begin()
            while run.is_busy():
                await workers.wait()
                reports = run.news()
                await workers.begin()
                await keeper.save()
                for progress in reports:
                    await async_finished("on_progress", run.report(progress))
        except BaseException as error:
            await async_to_its_end(partial(_end, keeper, workers, error), error)
            run.hand_over_to(error)
            raise


async def _end(keeper: AsyncKeeper, workers: Tasks | AsyncExecuting, error: BaseException) -> None:
    """Ends all that is under way, and stores what was read."""
    await workers.dismiss()
    with noted(error):
        await keeper.save()
