"""Drives a long range: workers read window after window, the caller does the rest."""

from tallyfold._async_callbacks import finished
from tallyfold._async_keeper import AsyncKeeper
from tallyfold._gathering import Gathering, noted
from tallyfold._tallyfold import CountTable
from tallyfold._tasks import Tasks

__all__ = ["collect"]


async def collect(gathering: Gathering, keeper: AsyncKeeper, workers: Tasks) -> CountTable:
    """Collects by workers, none of which outlives the call."""
    with keeper:
        async with workers:
            await keeper.load()
            with gathering:
                try:
                    # What is too old is dropped, even if there is nothing to read.
                    await keeper.save()
                    workers.start(gathering.due())
                    while gathering.is_busy():
                        await workers.wait()
                        reports = gathering.news()
                        workers.start(gathering.due())
                        await keeper.save()
                        for progress in reports:
                            await finished("on_progress", gathering.report(progress))
                except BaseException as error:
                    await workers.dismiss()
                    with noted(error):
                        await keeper.save()
                    gathering.hand_over_to(error)
                    raise
    return gathering.finish()
