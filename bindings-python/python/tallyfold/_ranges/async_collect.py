"""Drives a long range: workers read window after window, the caller does the rest."""

from tallyfold._client.callbacks import async_finished
from tallyfold._files.async_keeper import AsyncKeeper
from tallyfold._ranges.async_executing import AsyncExecuting
from tallyfold._ranges.collect_run import CollectRun, noted
from tallyfold._ranges.tasks import Tasks
from tallyfold._tallyfold import CountTable

__all__ = ["collect"]


async def collect(
    run: CollectRun, keeper: AsyncKeeper, workers: Tasks | AsyncExecuting
) -> CountTable:
    """Collects by workers, none of which outlives the call."""
    with keeper:
        async with workers:
            await keeper.load()
            with run:
                try:
                    # What is too old is dropped, even if there is nothing to read.
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
                    await workers.dismiss()
                    with noted(error):
                        await keeper.save()
                    run.hand_over_to(error)
                    raise
    return run.finish()
