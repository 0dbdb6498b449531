"""`collect(executor=…)` by the workers of Dask and Ray, and a checkpoint in a store that fsspec reaches."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import ray
import tallyfold
from dask.distributed import Client as DaskClient
from dask.distributed import KilledWorker, LocalCluster

ROOT = Path(__file__).parents[2]
DAY = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
DIMENSIONS: list[tallyfold.DimensionName] = ["write_key", "integration", "reason"]
WINDOWS = 96


def collect(client: tallyfold.Client, **options: Any) -> tallyfold.CountTable:
    return client.collect("event_delivery", *DAY, DIMENSIONS, **options)


def kill_one(dask: DaskClient) -> None:
    process = next(iter(dask.run(os.getpid).values()))
    os.kill(process, signal.SIGKILL)


def test_dask_reads_the_parts_of_a_killed_worker_again(sandbox: tallyfold.Sandbox) -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        DaskClient(cluster) as dask,
        tallyfold.Client.from_env() as client,
    ):
        done: list[tallyfold.Progress] = []

        def kill(progress: tallyfold.Progress) -> None:
            done.append(progress)
            if len(done) == 2:
                kill_one(dask)

        table = collect(client, executor=dask.get_executor(), workers=2, on_progress=kill)
        requests = sandbox.stats["event_delivery"]
        assert sandbox.stats["control_token"] == 1
        alone = collect(client)
    assert table.to_json() == alone.to_json()
    # The killed worker had at most one part, whose windows were requested twice.
    assert WINDOWS <= requests <= WINDOWS + WINDOWS // 8


def test_a_part_that_dask_gives_up_costs_only_itself(sandbox: tallyfold.Sandbox, tmp_path: Path) -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        DaskClient(cluster) as dask,
        tallyfold.Client.from_env() as client,
    ):
        executor = _Killing(dask.get_executor())
        with pytest.raises(KilledWorker) as caught:
            collect(client, executor=executor, workers=1, checkpoint=tmp_path)
        assert "The executor has lost the part [2026-01-01T06:00:00Z" in caught.value.__notes__[0]
        partial: tallyfold.CountTable = vars(caught.value)["partial"]
        assert len(partial.windows) == WINDOWS // 4
        before = sandbox.stats["event_delivery"]
        table = collect(client, executor=dask.get_executor(), checkpoint=tmp_path)
        assert sandbox.stats["event_delivery"] - before == WINDOWS - len(partial.windows)
        assert table == collect(client)


class _Killing(Executor):
    """Gives another executor its second part in such a way that it kills each worker that takes it."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self._submitted = 0

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> "Future[Any]":
        self._submitted += 1
        if self._submitted == 2:
            return self._inner.submit(_die)
        return self._inner.submit(function, *arguments, **named)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class RayExecutor(Executor):
    """As in the guide."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = ray.remote(function).remote(*arguments, **named).future()
        return future


def test_ray_reads_what_one_process_reads(sandbox: tallyfold.Sandbox) -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with tallyfold.Client.from_env() as client:
            table = collect(client, executor=RayExecutor(), workers=2)
            assert sandbox.stats["control_token"] == 1
            assert sandbox.stats["event_delivery"] == WINDOWS
            assert table.to_json() == collect(client).to_json()
    finally:
        ray.shutdown()


def test_a_checkpoint_may_be_in_an_object_store(sandbox: tallyfold.Sandbox) -> None:
    def interrupt(progress: tallyfold.Progress) -> None:
        if progress.done >= WINDOWS // 2:
            raise KeyboardInterrupt

    store = "memory://bucket/checkpoint"
    with tallyfold.Client.from_env() as client, ThreadPoolExecutor(2) as pool:
        with pytest.raises(KeyboardInterrupt) as caught:
            collect(client, executor=pool, checkpoint=store, on_progress=interrupt)
        known = len(vars(caught.value)["partial"].windows)
        assert known >= WINDOWS // 2
    before = sandbox.stats["event_delivery"]
    with tallyfold.Client.from_env() as client, ThreadPoolExecutor(2) as pool:
        table = collect(client, executor=pool, checkpoint=store)
        assert sandbox.stats["event_delivery"] - before == WINDOWS - known
        assert table == collect(client)
        for address, match in [("nowhere://bucket", "want an address"), (f"file://{ROOT}", "want a plain path")]:
            with pytest.raises(tallyfold.ConfigError, match=match):
                collect(client, checkpoint=address)


PROGRAMS = re.findall("^```py\n(.*?)^```", (ROOT / "docs/guides/executors.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_of_the_guide(number: int, sandbox: tallyfold.Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAMS[number])
    run = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("Counts(success=")
    assert sandbox.stats["control_token"] == 1


def test_there_are_programs_for_dask_and_ray() -> None:
    assert [name for name in ("dask", "ray") if not any(name in program for program in PROGRAMS)] == []
