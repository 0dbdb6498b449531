"""How files are created and replaced."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from service import DAY, busy_day
from support import connect

import tallyfold
from tallyfold._files.file import create, replace, replacing


def write(path: Path, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


BOTH = pytest.mark.parametrize("put", [write, replace])


@BOTH
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, put: Callable[[Path, bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"the disk is full.*state\.json") as caught:
            put(path, b"new")
        assert str(caught.value.filename).startswith(str(path))
    assert path.read_bytes() == b"old"
    put(path, b"new")
    assert path.read_bytes() == b"new"
    with pytest.raises(FileExistsError):
        create(path, b"other")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_relative_path_is_that_of_the_folder_where_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.chdir(first)
    ledger, outbox = tallyfold.Ledger("totals.json"), tallyfold.Outbox("outbox.json", "otlp-json")
    with connect(busy_day()) as client:
        follow = client.follow("event_delivery", DAY[0], ["reason"], window="1h", end=DAY[1])
        ledger.add(next(follow), follow.state())
        monkeypatch.chdir(second)
        for revision in follow:
            ledger.add(revision, follow.state())
        outbox.put(revision, follow.state())
        monkeypatch.chdir(first)
        client.collect(
            "event_delivery",
            *DAY,
            ["reason"],
            checkpoint="days",
            on_progress=lambda _: monkeypatch.chdir(second),
        )
    assert list(second.iterdir()) == []
    monkeypatch.chdir(first)
    assert tallyfold.Ledger("totals.json").openmetrics() == ledger.openmetrics()
    assert tallyfold.Outbox("outbox.json", "otlp-json").state == outbox.state
    assert {path.name for path in first.iterdir()} == {"totals.json", "outbox.json", "days"}


@BOTH
def test_an_error_names_the_file_and_not_its_temporary_file(
    tmp_path: Path, put: Callable[[Path, bytes], None]
) -> None:
    path = tmp_path / "missing" / "state.json"
    with pytest.raises(FileNotFoundError) as caught:
        put(path, b"new")
    assert caught.value.filename == str(path)


@BOTH
def test_a_file_system_that_becomes_read_only_is_reported_with_the_file(
    tmp_path: Path, put: Callable[[Path, bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: object, **_: object) -> None:
        raise OSError(errno.EROFS, "read-only", None if isinstance(path, int) else str(path))

    monkeypatch.setattr(os, "fsync", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    path = tmp_path / "state.json"
    with pytest.raises(OSError, match="read-only") as caught:
        put(path, b"new")
    assert caught.value.filename == str(path)


@BOTH
@pytest.mark.parametrize(("platform", "tries"), [("win32", 3), ("linux", 1)])
def test_on_windows_a_file_that_another_program_has_open_is_tried_again(
    tmp_path: Path,
    put: Callable[[Path, bytes], None],
    platform: str,
    tries: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, tried = tmp_path / "state.json", []
    rename = Path.replace

    def busy(new: Path, to: Path) -> Path:
        tried.append(new)
        if len(tried) < 3:
            raise PermissionError(errno.EACCES, "another program has it open")
        return rename(new, to)

    monkeypatch.setattr(Path, "replace", busy)
    monkeypatch.setattr(sys, "platform", platform)
    if platform == "win32":
        put(path, b"new")
        assert path.read_bytes() == b"new"
    else:
        with pytest.raises(PermissionError):
            put(path, b"new")
        assert list(tmp_path.iterdir()) == []
    assert len(tried) == tries
