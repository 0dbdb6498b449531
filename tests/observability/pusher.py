"""The pushing process, `export/examples/push.rs`, and what it is told."""

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import tallyfold
from servers import COUNTS

ROOT = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "examples" / "push"
NOTHING = (0, 0, 0)


class Refused(Exception):
    """An order that failed."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer["error"])
        self.code: str | None = answer["code"]
        self.answer = answer


class Pusher:
    """A process that exports and pushes, one order after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def begin(self, **order: Any) -> None:
        """Gives an order."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """Waits for its answer.

        Raises:
            Refused: it failed.
            EOFError: the process was killed.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Refused(answer)
        return answer

    def order(self, **order: Any) -> dict[str, Any]:
        """Gives an order and waits for its answer."""
        self.begin(**order)
        return self.end()

    def export(self, counts: Mapping[str, Any], form: str, labels: Mapping[str, str] | None = None, **more: Any) -> list[bytes]:
        """Gives the pieces of an export."""
        answer = self.order(order="export", counts=counts, export=exported(form, labels, **more))
        return [bytes.fromhex(piece) for piece in answer["pieces"]]

    def push(self, counts: Mapping[str, Any] | None, form: str, url: str, **more: Any) -> dict[str, Any]:
        """Pushes counts."""
        return self.order(**pushed(counts, form, url, **more))

    def kill(self) -> None:
        """Ends the process at once."""
        self._process.send_signal(signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Waits for its end."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self.close()


def exported(form: str, labels: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Says what to export."""
    return {"format": form, "labels": list((labels or {}).items()), **more}


def pushed(
    counts: Mapping[str, Any] | None,
    form: str,
    url: str,
    *,
    outbox: Path | None = None,
    state: str = "",
    labels: Mapping[str, str] | None = None,
    max_bytes: int | None = None,
    **target: Any,
) -> dict[str, Any]:
    """Says what to push."""
    return {
        "order": "push",
        "export": exported(form, labels, max_bytes=max_bytes),
        "counts": counts,
        "target": {"url": url, **target},
        "outbox": None if outbox is None else str(outbox),
        "state": state,
    }


def changes_of(revision: tallyfold.Revision) -> dict[str, Any]:
    """Gives the changes of a revision."""
    rows = [(0, row.values, triple(row.after), triple(row.before)) for row in revision.changes]
    return {
        "metric": "event_delivery",
        "dimensions": revision.changes.dimensions,
        "windows": [(revision.window.start_text, revision.window.end_text, revision.settled)],
        "rows": rows,
        "revision": revision.number,
    }


def counts_of(tables: Iterable[tallyfold.CountTable], *, settled: bool = True) -> dict[str, Any]:
    """Gives the counts of tables that have one window each, in the order of time."""
    windows: list[tuple[str, str, bool]] = []
    rows: list[tuple[object, ...]] = []
    for number, table in enumerate(tables):
        (window,) = table.coverage
        windows.append((window.start_text, window.end_text, settled))
        rows.extend((number, row.values, triple(row), None) for row in table)
    return {
        "metric": table.metric,
        "dimensions": table.dimensions,
        "windows": windows,
        "rows": rows,
        "revision": None,
    }


def triple(counts: tallyfold.Counts | tallyfold.Row | None) -> tuple[int, int, int]:
    """Gives the three counts."""
    if counts is None:
        return NOTHING
    success, errors, filtered = (getattr(counts, name) for name in COUNTS)
    return success, errors, filtered
