"""Measures what `tallyfold check` costs after its first run, with a long history.

The standard rules judge the traffic of the command's own sandbox. A window has about 2,300 rows by all four dimensions, and the rules judge
about 1,800 groups of delivery. The history has ten and a half weeks in windows of 15 minutes.
"""

import statistics
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from command import COMMAND, Cost, cost, served
from measuring import at_most, tell

ROUNDS = 8
WORK = "`tallyfold check` with ten and a half weeks of history"
CPU_SECONDS, PEAK_BYTES = 0.5, 64 << 20


def main() -> None:
    now = datetime.now(UTC)
    # All windows are settled, and each run reads one more.
    start = now - timedelta(hours=6, minutes=now.minute % 15, seconds=now.second)
    times = [start + timedelta(minutes=15 * number) for number in range(ROUNDS + 2)]
    with served() as environment, tempfile.TemporaryDirectory() as folder:
        first, _, *later = [check(at, environment, Path(folder)) for at in times]
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    print(
        f"first run: {first.seconds:.0f} s, {first.cpu:.0f} s of processor time, {first.peak / 2**20:.0f} MiB; {size / 2**20:.0f} MiB on disk", file=sys.stderr
    )
    cpu = statistics.median(one.cpu for one in later)
    tell(WORK, "half a second of processor time", (cpu, CPU_SECONDS), "seconds", cpu / CPU_SECONDS, at_most(1))
    peak = statistics.median(one.peak for one in later)
    tell(WORK, "64 MiB", (peak, PEAK_BYTES), "bytes", peak / PEAK_BYTES, at_most(1))


def check(at: datetime, environment: dict[str, str], folder: Path) -> Cost:
    arguments = [str(COMMAND), "check", "--quiet", "--at", at.strftime("%Y-%m-%dT%H:%M:%SZ")]
    arguments += ["--state", str(folder / "health.state"), "--history", str(folder / "health.history")]
    # The port of the sandbox differs between runs, so the identity must not depend on the address.
    identified = {**environment, "TALLYFOLD_IDENTITY": "sandbox"}
    return cost(arguments, identified, codes=(0, 1))


if __name__ == "__main__":
    main()
