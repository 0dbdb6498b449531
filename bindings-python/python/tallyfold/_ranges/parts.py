"""A collect in the workers of an executor: what they get, what they return, what the caller keeps.

The caller's `Collect` assigns adjacent windows, the parts, to workers. Each worker reads its part
by a collect of its own, and its table comes back in a compact form. So the caller alone stores
segments of the checkpoint, counts windows and obtains tokens.
"""

import concurrent.futures
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tallyfold._arguments import CollectArguments, Dimensions
from tallyfold._calls.facade import Settings
from tallyfold._calls.steps import Drive
from tallyfold._errors import (
    AuthError,
    ConfigError,
    ServiceError,
    TallyfoldError,
    check_number,
    invalid,
    wrong_type,
)
from tallyfold._names import MetricName
from tallyfold._ranges.collect_run import CollectRun
from tallyfold._ranges.values import Progress
from tallyfold._tallyfold import Collect, CountTable
from tallyfold._time import Now, Window
from tallyfold._values import Attempt

__all__ = ["Assignment", "Outcome", "PartsRun", "Spread", "decoded", "encoded"]

MOST_WINDOWS = 96
"""The maximum number of windows in a part: a day of windows of 15 minutes. A worker that dies loses
at most these."""

PARTS_FOR_EACH = 4
"""How many parts each worker reads if there are enough windows, so that all workers end at about
the same time."""

GRACE = 2.0
"""How many seconds after the deadline the results of parts may still arrive."""

ONLY_HERE = {"part", "concurrency", "have", "drop_old", "probe", "deadline"}
"""The options that only the caller's collect has. Each worker's collect has the others, too."""


class Part(NamedTuple):
    """Adjacent windows that a worker reads."""

    task: int
    start: str
    end: str
    windows: int

    @property
    def window(self) -> Window:
        """The time of all windows."""
        return Window(self.start, self.end)

    def __str__(self) -> str:
        return f"the part [{self.start}, {self.end}) of {self.windows} windows"


@dataclass(frozen=True, slots=True, repr=False)
class Assignment:
    """What is sent to a worker. It contains a token, so it has no printable form."""

    part: Part
    settings: Settings
    token: tuple[str, int] | None
    """The access token and the rest of its lifetime in seconds; `None` for a tokenless client."""
    query: tuple[Any, ...]
    """Metric, start, end and dimensions."""
    options: Mapping[str, Any]
    wants_attempts: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What comes back from a worker."""

    task: int
    table: bytes | None = field(repr=False)
    """The counts that were read, by `encoded`; `None` if no window was read."""
    error: TallyfoldError | None = None
    """Why windows are missing; `None` if none is missing."""
    has_ended: bool = False
    """Whether some of the missing windows were not tried, because they would fail, too."""
    needs_token: bool = False
    """Whether windows are missing because the token has expired or was refused."""
    attempts: Sequence[Attempt] = ()


def encoded(table: CountTable | None) -> bytes | None:
    """Encodes a table compactly, with a checksum."""
    return None if table is None else table._to_compact()  # noqa: SLF001


def decoded(data: bytes | None) -> CountTable | None:
    """Decodes a table that `encoded` has encoded.

    Raises:
        ResponseError: `invalid_table` for any other bytes.
    """
    return None if data is None else CountTable._from_compact(data)  # noqa: SLF001


class Spread:
    """How a collect is spread over the workers of an executor."""

    def __init__(self, executor: concurrent.futures.Executor | None, workers: int | None) -> None:
        """Checks the arguments."""
        if executor is None:
            raise invalid(ConfigError, "workers", "want an executor, too, whose workers they are")
        if not isinstance(executor, concurrent.futures.Executor):
            raise wrong_type("executor", "want a concurrent.futures.Executor", executor)
        if workers is not None:
            check_number("workers", "want a number of workers", workers)
            if workers < 1:
                raise invalid(ConfigError, "workers", "want 1 worker or more")
        self.executor = executor
        self._workers = workers

    def shares(self, concurrency: int) -> list[int]:
        """Returns how many requests each part may have under way, for the parts read together."""
        known = self._workers
        if known is None:
            # The pools of Python, loky and mpi4py have this attribute.
            known = getattr(self.executor, "_max_workers", None)
        at_once = min(known, concurrency) if isinstance(known, int) and known > 0 else concurrency
        each, more = divmod(concurrency, at_once)
        return [each + 1] * more + [each] * (at_once - more)


class PartsRun(CollectRun):
    """The state of a collect whose parts are read elsewhere. One thread or task uses it."""

    def __init__(
        self,
        machine: Collect,
        on_progress: Callable[[Progress], object] | None,
        spread: Spread,
        settings: Settings,
        query: tuple[MetricName, Dimensions, CollectArguments],
        *,
        progress: bool | None,
        has_checkpoint: bool,
        wants_attempts: bool,
    ) -> None:
        """Assigns nothing yet."""
        super().__init__(machine, on_progress, progress=progress, has_checkpoint=has_checkpoint)
        self._shares = spread.shares(machine.concurrency)
        self._at_once = len(self._shares)
        self._most: int | None = None
        self._parts: dict[int, tuple[int, int]] = {}
        self._errors: list[tuple[Part, TallyfoldError]] = []
        self._ended_by: tuple[Part, TallyfoldError] | None = None
        self._answered = False
        self._metric, self._dimensions, options = query
        self._options = {name: value for name, value in options.items() if name not in ONLY_HERE}
        self._settings = settings
        self._wants_attempts = wants_attempts
        self._generation = 0
        self.is_tokenless = bool(settings.arguments().get("tokenless"))
        self._deadline = options.get("deadline")
        self.wants_probe = bool(options.get("probe"))
        self.wants_token = False
        """Whether a window must be read here, so that a refused token is replaced."""
        self.attempts: list[Attempt] = []

    def seconds_left(self) -> float | None:
        """How long to wait for parts; `None` for no limit."""
        if self._deadline is None:
            return None
        return max(self._deadline + GRACE - (time.monotonic() - self._began), 0.0)

    def parts_due(self) -> list[Part]:
        """Returns the parts to submit, so that the wanted number of parts is under way."""
        due: list[Part] = []
        while not self.is_over and self.under_way < self._at_once:
            assigned = self._machine.assign(self._windows_of_a_part(), Now.read())
            if assigned is None:
                break
            self.under_way += 1
            due.append(Part(*assigned))
        return due

    def _windows_of_a_part(self) -> int:
        if self._most is None:
            planned, done, *_ = self._machine.progress()
            for_each = -(-(planned - done) // (self._at_once * PARTS_FOR_EACH))
            self._most = min(max(for_each, 1), MOST_WINDOWS)
        return self._most

    def assignment(self, part: Part, token: tuple[str, int] | None) -> Assignment:
        """Makes the assignment to submit for a part."""
        share = self._shares.pop()
        self._parts[part.task] = (self._generation, share)
        options = {**self._options, "concurrency": share}
        if self._deadline is not None:
            left = self._deadline - (time.monotonic() - self._began)
            options["deadline"] = max(left, 0.001)
        query = (self._metric, part.start, part.end, tuple(self._dimensions))
        return Assignment(part, self._settings, token, query, options, self._wants_attempts)

    def take(self, part: Part, outcome: Outcome, table: CountTable | None) -> None:
        """Takes what a worker has read.

        Raises:
            ConfigError: if the executor mixed results up.
        """
        generation = self._returned(part)
        is_refused = outcome.needs_token
        self._machine.settle_assigned(part.task, table, again=is_refused)
        self.attempts += outcome.attempts
        if table is not None and generation == self._generation:
            self._answered = True
        if is_refused:
            self._take_refusal(generation)
        elif outcome.error is not None:
            self._errors.append((part, outcome.error))
            if outcome.has_ended:
                self._ended_by = self._ended_by or (part, outcome.error)
                self.is_over = True
        if self.is_watched:
            elapsed = time.monotonic() - self._began
            self._reports.append(Progress(*self._machine.progress(), part.window, elapsed))

    def _take_refusal(self, generation: int) -> None:
        if generation < self._generation:
            # Another part was refused with the same token.
            return
        if generation > 0 and not self._answered:
            message = (
                "token_rejected: the service refuses the tokens of the workers, though it "
                "answers this process; do the workers reach the same service?"
            )
            self._fail(AuthError(message, code="token_rejected", status=401))
            return
        self._generation += 1
        self._answered = False
        self.wants_token = True

    def give_back(self, part: Part) -> None:
        """Takes back a part that was not read."""
        self._returned(part)
        self._machine.settle_assigned(part.task, None, again=True)

    def lose(self, part: Part, error: BaseException) -> None:
        """Ends the collect, because the executor has lost a part."""
        self.give_back(part)
        error.add_note(f"The executor has lost {part}. Collect again to read only what is missing.")
        self._fail(error)

    def _returned(self, part: Part) -> int:
        """Ends a part. Returns how often tokens had been refused when it was submitted."""
        generation, share = self._parts.pop(part.task)
        self._shares.append(share)
        self.under_way -= 1
        return generation

    def exceed(self) -> None:
        """Ends the collect at its deadline."""
        message = f"deadline_exceeded: the parts were not read within {self._deadline} seconds"
        self._fail(ServiceError(message, code="deadline_exceeded", argument="deadline"))

    def next_here(self) -> Drive | None:
        """Returns a window to read in this process, if there is one."""
        step = self._machine.next(Now.read())
        if not isinstance(step, Drive):
            return None
        self.under_way += 1
        return step

    def take_here(self, drive: Drive, failure: BaseException | None) -> bool:
        """Takes a window that was read in this process. Returns whether it was a probe's call."""
        return self._settle(drive, failure, Now.read()) == "probed"

    def hand_over_to(self, error: BaseException) -> None:
        """Adds what was read to an exception, as in the collect's own errors."""
        super().hand_over_to(error)
        known = vars(error).get("failures")
        if isinstance(known, list):
            known += self._failures()

    def _failures(self) -> list[tuple[Window, TallyfoldError]]:
        return [failure for _, error in self._errors for failure in error.failures]

    def finish(self) -> CountTable:
        """Returns the table of all windows, or raises the error of the missing windows."""
        try:
            return super().finish()
        except TallyfoldError as error:
            if not self._errors:
                raise
            partial, gaps, failures = error.partial, error.gaps, error.failures
        failures = sorted([*failures, *self._failures()], key=lambda failure: failure[0].start)
        by_time = sorted(self._errors, key=lambda failed: failed[0].window.start)
        part, first = self._ended_by or by_time[0]
        others = len(self._errors) - 1
        more = f", and {others} more" if others else ""
        first.args = (f"{first} (this is {part}{more})",)
        first.partial, first.gaps, first.failures = partial, gaps, failures
        raise first
