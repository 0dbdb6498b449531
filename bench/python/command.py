"""Measures the command: how long it takes to start, how large it is, and what a month costs.

A month is read over loopback in windows of 15 minutes, eight at a time: by the command, by a program with the Python
client, and by short scripts with curl and jq, which check nothing. The service is the command's own sandbox.
"""

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import tallyfold
from measuring import at_least, at_most, tell

COMMAND = Path(sys.argv[1]).absolute()
RANGE = "2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z"
STARTS = 40
ROUNDS = 5
PYTHON = """
import sys, tallyfold
with tallyfold.Client.from_env() as client:
    table = client.collect("event_delivery", *sys.argv[1:], ["integration"], concurrency=8, keep="total")
for row in table:
    print(row.dimensions["integration"], row.success, row.errors, row.filtered, sep=",")
"""
FOR_EACH = """seq -f %05g 0 2879 | xargs -P 8 -I{} \\
  curl -sf "$(cat url)" -H 'content-type: application/json' -H @token -d @{}.question -o {}.json"""
PARALLEL = "curl -sf --no-progress-meter --parallel --parallel-max 8 -K requests"
SUMS = """
reduce (inputs | .counts[]) as $entry ({}; .[$entry.dimensions.integration] as $sum
  | .[$entry.dimensions.integration] = [
      ($sum[0] // 0) + ($entry.success | tonumber),
      ($sum[1] // 0) + ($entry.errors | tonumber),
      ($sum[2] // 0) + ($entry.filtered | tonumber)])
| to_entries | sort_by(.key)[] | "\\(.key),\\(.value[0]),\\(.value[1]),\\(.value[2])"
"""


class Cost(NamedTuple):
    """What a process took. The CPU time includes its child processes."""

    seconds: float
    cpu: float
    peak: float
    output: str


def main() -> None:
    size = COMMAND.stat().st_size
    tell("the command, stripped", "12.8 MB", (size, 12_800_000), "bytes", size / 12_800_000, at_most(1))
    starts = [(seconds_to_first_byte([COMMAND, "--help"]), seconds_to_first_byte(["curl", "--help"])) for _ in range(STARTS)]
    medians = statistics.median(own for own, _ in starts), statistics.median(other for _, other in starts)
    ratio = statistics.median(own / other for own, other in starts)
    tell("`tallyfold --help` to its first byte", "`curl --help`", medians, "seconds", ratio, at_most(1))
    with served() as environment, tempfile.TemporaryDirectory() as folder:
        measure_a_month(environment, Path(folder))


def seconds_to_first_byte(command: list[str | Path]) -> float:
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.read(1)
        seconds = time.perf_counter() - start
        process.stdout.read()
    return seconds


@contextmanager
def served() -> Iterator[dict[str, str]]:
    with subprocess.Popen([COMMAND, "sandbox", "--seed", "7"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        lines = iter(server.stdout.readline, "Ctrl-C stops it.\n")
        exports = [line.split("export ")[1].strip().split("=", 1) for line in lines if "export " in line]
        try:
            yield {**os.environ, **{name: value for name, value in exports}}
        finally:
            server.terminate()


def measure_a_month(environment: dict[str, str], folder: Path) -> None:
    start, end = RANGE
    command = [str(COMMAND), "collect", "--from", start, "--to", end, "--by", "integration", "--keep", "total"]
    ours = [*command, "--format", "csv"]
    python = [sys.executable, "-c", PYTHON, start, end]
    scripts = [["bash", str(script_of_curl_and_jq(environment, folder, how))] for how in (FOR_EACH, PARALLEL)]
    rounds = [[cost(arguments, environment) for arguments in (ours, python, *scripts)] for _ in range(ROUNDS)]
    for of_command, *others in rounds:
        rows = [",".join(line.split(",")[-4:]) for line in of_command.output.splitlines()[1:]]
        assert all(other.output.splitlines() == rows for other in others)
    work = "the command: 30 days in 2,880 windows, 8 at a time"
    compare(work, "the Python client's CPU time", rounds, 1, lambda cost: cost.cpu, "seconds", 3)
    compare(work, "the Python client's peak memory", rounds, 1, lambda cost: cost.peak, "bytes", 4)
    compare(work, "a curl for each window, and jq", rounds, 2, lambda cost: cost.seconds, "seconds", 10)
    compare(work, "one curl --parallel, and jq", rounds, 3, lambda cost: cost.seconds, "seconds", None)


def compare(work: str, peer: str, rounds: list[list[Cost]], place: int, of: Callable[[Cost], float], unit: str, aim: float | None) -> None:
    pairs = [(of(costs[0]), of(costs[place])) for costs in rounds]
    ours, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
    ratio = statistics.median(other / own for own, other in pairs)
    tell(work, peer, (ours, theirs), unit, ratio, None if aim is None else at_least(aim))


def cost(arguments: list[str], environment: dict[str, str], codes: tuple[int, ...] = (0,)) -> Cost:
    """Runs a process. Its peak memory is polled while it runs, because what the kernel reports afterwards includes this process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(arguments, env=environment, stdout=output) as process:
            peak = peak_of(process)
        seconds = time.perf_counter() - start
        assert process.returncode in codes
        output.seek(0)
        text = output.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, peak, text)


def peak_of(process: "subprocess.Popen[bytes]") -> int:
    """Waits until a process ends, and returns its peak memory in bytes."""
    peak = 0
    while process.poll() is None:
        with suppress(OSError):
            field = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text("ascii", "replace"))
            peak = max(peak, int(field[1]) * 1024 if field else 0)
        time.sleep(0.005)
    return peak


def script_of_curl_and_jq(environment: dict[str, str], folder: Path, how: str) -> Path:
    """Writes a script in which curl requests all windows, eight at a time, and one jq reads all bodies."""
    url = environment["TALLYFOLD_CLUSTER_ENDPOINT"]
    credentials = {name: environment[f"TALLYFOLD_{name.upper()}"] for name in ("client_id", "client_secret")}
    token_body = json.dumps({**credentials, "audience": environment["TALLYFOLD_CONTROL_AUDIENCE"]})
    windows = list(enumerate(tallyfold.Plan(*RANGE, "15m")))
    for number, window in windows:
        (folder / f"{number:05}.question").write_text(json.dumps(question(window)))
    requests = [
        "\n".join(
            [
                f'url = "{url}/v1.1/analytics/event_delivery"',
                f'data = "@{number:05}.question"',
                'header = "content-type: application/json"',
                'header = "@token"',
                f'output = "{number:05}.json"',
            ]
        )
        for number, _ in windows
    ]
    (folder / "requests").write_text("\nnext\n".join(requests))
    (folder / "sums.jq").write_text(SUMS)
    (folder / "url").write_text(f"{url}/v1.1/analytics/event_delivery")
    script = folder / f"{how.split()[0]}.sh"
    script.write_text(f"""
set -e
cd {folder}
curl -sf {url}/v1.1/oauth/token -H 'content-type: application/json' -d '{token_body}' |
  jq -r '"authorization: Bearer " + .access_token' >token
{how}
cat 0*.json | jq -nr -f sums.jq
""")
    return script


def question(window: tallyfold.Window) -> dict[str, object]:
    return {"start": window.start_text, "end": window.end_text, "dimensions": ["integration"]}


if __name__ == "__main__":
    main()
