"""Who may use a checkpoint's directory, and what else may lie in it."""

import asyncio
import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from service import HOUR, Service, busy_day
from support import interrupting

import tallyfold

pytestmark = pytest.mark.skipif(os.name != "posix", reason="speaks of links and signals")

HELD = "another collect is using this checkpoint"


def collect(checkpoint: Path, **options: Any) -> None:
    with Service(busy_day()).client() as client:
        client.collect("event_delivery", *HOUR, ["integration"], checkpoint=checkpoint, **options)


def acollect(checkpoint: Path, **options: Any) -> None:
    async def main() -> None:
        async with Service(busy_day()).async_client() as client:
            await client.collect(
                "event_delivery", *HOUR, ["integration"], checkpoint=checkpoint, **options
            )

    asyncio.run(main())


BOTH = pytest.mark.parametrize("run", [collect, acollect])


def own_lock(directory: Path) -> str:
    """The name of this process's lock, taken from a collect that was under way."""
    names: list[str] = []

    def look(_: object) -> None:
        names.extend(path.name for path in directory.glob("lock-*"))

    collect(directory, on_progress=look)
    return names[0]


def in_time(act: Any) -> None:
    """Does something that is not to hang."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


@BOTH
def test_no_link_is_followed(tmp_path: Path, run: Any) -> None:
    target, created, directory = tmp_path / "target", tmp_path / "created", tmp_path / "in"
    target.write_text("precious")
    directory.mkdir()
    (directory / f"segment-00000.json.{os.getpid()}.tmp").symlink_to(target)
    (directory / "lock").symlink_to(created)
    run(directory)
    assert target.read_text() == "precious"
    assert not created.exists()
    # A stored segment is replaced as a link, and never read or written through one.
    segment = directory / "segment-00000.json"
    segment.rename(tmp_path / "elsewhere")
    segment.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(tallyfold.ConfigError, match="isn't a regular file") as caught:
        run(directory)
    assert caught.value.code == "invalid_checkpoint"
    # Nor is a directory read, or left open.
    segment.unlink()
    segment.mkdir()
    opened = open_files()
    for _ in range(3):
        with pytest.raises(tallyfold.ConfigError, match="isn't a regular file"):
            run(directory)
    assert open_files() <= opened


def open_files() -> int:
    """How many files this process has open, where that can be seen."""
    directory = Path("/proc/self/fd")
    return len(list(directory.iterdir())) if directory.exists() else 0


@BOTH
@pytest.mark.parametrize("name", ["lock", "segment-00000.json.1.tmp"])
def test_a_pipe_holds_nobody(tmp_path: Path, run: Any, name: str) -> None:
    os.mkfifo(tmp_path / name)
    in_time(lambda: run(tmp_path))
    assert (tmp_path / "segment-00000.json").exists()


@BOTH
def test_a_pipe_is_no_segment(tmp_path: Path, run: Any) -> None:
    os.mkfifo(tmp_path / "segment-00000.json")
    caught: list[Exception] = []

    def act() -> None:
        try:
            run(tmp_path)
        except tallyfold.ConfigError as error:
            caught.append(error)

    in_time(act)
    assert "isn't a regular file" in str(caught[0])


@BOTH
def test_files_are_their_owners_only(tmp_path: Path, run: Any) -> None:
    modes: set[int] = set()

    def look(_: object) -> None:
        modes.update(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir())

    run(tmp_path, on_progress=look)
    assert modes == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["segment-00000.json"]


@BOTH
def test_files_that_were_left_over_are_removed(tmp_path: Path, run: Any) -> None:
    names = ["segment-00000.json.1.tmp", "segment-00004.json.e5f1-22.tmp", "segment-00001.tmp"]
    for name in names:
        (tmp_path / name).write_text("{")
    run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["segment-00000.json"]


def test_the_lock_says_which_process_has_it(tmp_path: Path) -> None:
    name = own_lock(tmp_path)
    assert re.fullmatch(rf"lock-[0-9a-f]{{16}}-{os.getpid()}-[0-9]+-[0-9a-f]+", name)


@BOTH
def test_a_lock_ends_with_its_process(tmp_path: Path, run: Any) -> None:
    _, host, pid, start, random = own_lock(tmp_path).split("-")
    lock = tmp_path / f"lock-{host}-{pid}-{start}-aa{random}"
    lock.touch()
    with pytest.raises(BlockingIOError, match=HELD):
        run(tmp_path)
    assert lock.exists()
    lock.unlink()
    # A process of that number that began at another time is another one.
    (tmp_path / f"lock-{host}-{pid}-1-{random}").touch()
    # A dead one whose parent has not asked for its end is dead, too.
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    lock = tmp_path / f"lock-{host}-{child.pid}-{began}-{random}"
    lock.touch()
    with pytest.raises(BlockingIOError, match=HELD):
        run(tmp_path)
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    run(tmp_path)
    child.communicate()
    assert [path.name for path in tmp_path.iterdir()] == ["segment-00000.json"]


@BOTH
def test_a_lock_of_another_machine_ends_when_it_is_silent(tmp_path: Path, run: Any) -> None:
    _, _, pid, start, random = own_lock(tmp_path).split("-")
    lock = tmp_path / f"lock-{'0' * 16}-{pid}-{start}-{random}"
    lock.touch()
    with pytest.raises(BlockingIOError, match=HELD):
        run(tmp_path)
    os.utime(lock, (time.time() - 55, time.time() - 55))
    with pytest.raises(BlockingIOError, match=HELD):
        run(tmp_path)
    os.utime(lock, (time.time() - 65, time.time() - 65))
    run(tmp_path)
    assert not lock.exists()


def test_a_lock_shows_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallyfold._files.lock.SIGN_OF_LIFE", 0.02)
    ages: list[float] = []

    def look(_: object) -> None:
        (lock,) = tmp_path.glob("lock-*")
        os.utime(lock, (0, 0))
        until = time.monotonic() + 60
        while lock.stat().st_mtime == 0 and time.monotonic() < until:
            time.sleep(0.01)
        ages.append(time.time() - lock.stat().st_mtime)

    collect(tmp_path, on_progress=look)
    assert max(ages) < 60


@BOTH
def test_a_job_that_has_lost_its_lock_stores_nothing(tmp_path: Path, run: Any) -> None:
    stored: list[bytes] = []

    def remove(_: object) -> None:
        for lock in tmp_path.glob("lock-*"):
            lock.unlink()
        stored.append((tmp_path / "segment-00000.json").read_bytes())

    with pytest.raises(BlockingIOError, match=HELD):
        run(tmp_path, on_progress=remove, concurrency=1)
    assert (tmp_path / "segment-00000.json").read_bytes() == stored[-1]


@BOTH
def test_a_lock_that_was_replaced_is_lost(tmp_path: Path, run: Any) -> None:
    other = tmp_path / "other"
    other.touch()

    def replace(_: object) -> None:
        (lock,) = tmp_path.glob("lock-*")
        if other.exists():
            other.replace(lock)

    with pytest.raises(BlockingIOError, match=HELD):
        run(tmp_path, on_progress=replace, concurrency=1)


@BOTH
def test_a_process_that_cannot_be_inspected_holds_it_until_it_is_silent(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, host, *_ = own_lock(tmp_path).split("-")

    def kill(_: int, signal: int) -> None:
        assert signal == 0
        raise OSError(errno.EINVAL, "unknown")

    monkeypatch.setattr(os, "kill", kill)
    lock = tmp_path / f"lock-{host}-4194304-1-a"
    lock.touch()
    with pytest.raises(BlockingIOError, match=HELD):
        run(tmp_path)
    os.utime(lock, (time.time() - 65, time.time() - 65))
    run(tmp_path)
    assert not lock.exists()


@pytest.mark.parametrize("event", ["call", "return"])
@pytest.mark.parametrize(
    "function",
    [
        "Lock.__init__",
        "Lock.release",
        "_take",
        "create",
        "Keeper.__init__",
        "Keeper.__enter__",
        "Keeper.load",
        "Keeper.__exit__",
        "Directory.__enter__",
        "Directory.__exit__",
        "collect",
        "CollectRun.finish",
    ],
)
def test_an_interrupt_at_any_moment_keeps_nobody_out(
    tmp_path: Path, function: str, event: str
) -> None:
    with Service(busy_day()).client() as client:
        query: Any = ("event_delivery", *HOUR, ["integration"])
        with interrupting(function, event), pytest.raises(KeyboardInterrupt) as caught:
            client.collect(*query, checkpoint=tmp_path)
        if function in {"Keeper.load", "Keeper.__exit__", "CollectRun.finish"}:
            assert caught.value.gaps is not None  # type: ignore[attr-defined]
        table = client.collect(*query, checkpoint=tmp_path)
    assert table.totals.success > 0
    assert not list(tmp_path.glob("lock-*"))
    until = time.monotonic() + 60
    while sum("checkpoint lock" in thread.name for thread in threading.enumerate()) > 1:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_of_many_that_begin_at_once_one_writes(tmp_path: Path) -> None:
    job = """
import os, sys, time
from tallyfold._files.lock import Turn
from tallyfold._files.stores import Directory
while not os.path.exists(sys.argv[2]): pass
for _ in range(20):
    try:
        with Directory(sys.argv[1], Turn()):
            os.close(os.open(sys.argv[1] + "/inside", os.O_CREAT | os.O_EXCL))
            time.sleep(0.001)
            os.unlink(sys.argv[1] + "/inside")
            print("in")
    except BlockingIOError:
        print("out")
"""
    begin = tmp_path / "begin"
    command = [sys.executable, "-c", job, str(tmp_path / "shared"), str(begin)]
    jobs = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(6)]
    time.sleep(1)
    begin.touch()
    said = [job.communicate()[0].decode().split() for job in jobs]
    assert [job.returncode for job in jobs] == [0] * 6
    assert sum(words.count("in") for words in said) >= 6
    assert list((tmp_path / "shared").iterdir()) == []
