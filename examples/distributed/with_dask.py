"""A day of counts by four worker processes of Dask, one of which is killed on the way.

Each part's table travels as JSON, in which counts are digits. Dask gives the parts of the killed worker
to the others; a part is collected anew, so that nothing is counted twice.
"""

import os
import signal

import tallyfold
from dask.distributed import Client, LocalCluster, as_completed
from job import PARTS, collect

WORKERS = 4


def collect_part(index: int) -> tuple[int, str]:
    """One part's table as JSON, and the process that collected it."""
    return os.getpid(), collect(part=(index, PARTS)).to_json()


def main() -> None:
    tables = []
    processes = set()
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as dask,
    ):
        futures = dask.map(collect_part, range(PARTS), pure=False)
        for done, (_, (process, table)) in enumerate(as_completed(futures, with_results=True), 1):
            processes.add(process)
            tables.append(tallyfold.CountTable.from_json(table))
            if done == 1:
                os.kill(process, signal.SIGKILL)
                killed = process
    merged = tallyfold.CountTable.merge_all(tables)
    alone = collect()
    if merged != alone or merged.to_json() != alone.to_json():
        raise SystemExit("the parts do not add up to the whole")
    print(f"{PARTS} parts by {len(processes)} processes, {killed} killed: {merged.totals}")
    print(f"equal to one process alone: {len(merged)} groups in {len(merged.windows)} windows")


if __name__ == "__main__":
    main()
