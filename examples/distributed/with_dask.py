"""Collects a day of counts in four worker processes of Dask, one of which is killed meanwhile.

Dask gives the part of the killed worker to another worker, and nothing is counted twice.
"""

import os
import signal

import tallyfold
from dask.distributed import Client, LocalCluster
from job import DIMENSIONS, END, START

WORKERS = 4


def main() -> None:
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as dask,
        tallyfold.Client.from_env() as client,
    ):
        processes = list(dask.run(os.getpid).values())

        def kill(_: tallyfold.Progress) -> None:
            if len(processes) == WORKERS:
                os.kill(processes.pop(), signal.SIGKILL)

        query = "event_delivery", START, END, DIMENSIONS
        table = client.collect(*query, executor=dask.get_executor(), workers=WORKERS, on_progress=kill)
        alone = client.collect(*query)
    if table != alone or table.to_json() != alone.to_json():
        raise SystemExit("the parts do not add up to the whole")
    print(f"by {WORKERS} processes, one of them killed: {table.totals}")
    print(f"equal to one process alone: {len(table)} groups in {len(table.windows)} windows")


if __name__ == "__main__":
    main()
