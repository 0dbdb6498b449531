"""Runs contenders in turns, and prints measurements as lines of JSON for `tallyfold-bench report`."""

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

Contender = Callable[[], object]
Target = dict[str, float] | None


def at_least(ratio: float) -> Target:
    """The target: at least `ratio` times as fast as the peer."""
    return {"at_least": ratio}


def at_most(ratio: float) -> Target:
    """The target: at most `ratio` times the cost of the peer."""
    return {"at_most": ratio}


def take_turns(rounds: int, repeats: int, contenders: Sequence[Contender]) -> list[list[float]]:
    """Seconds by contender and round. A first round warms up and is not counted."""
    times: list[list[float]] = [[] for _ in contenders]
    for number in range(rounds + 1):
        for contender, of_contender in zip(contenders, times, strict=True):
            start = time.perf_counter()
            for _ in range(repeats):
                contender()
            seconds = time.perf_counter() - start
            if number > 0:
                of_contender.append(seconds / repeats)
    return times


def compare(
    work: str,
    ours: Contender,
    peers: Mapping[str, tuple[Contender, Target]],
    *,
    rounds: int,
    repeats: int = 1,
    body_bytes: int | None = None,
) -> None:
    """Measures ours against each peer, and prints how many times as long each peer takes."""
    contenders = [ours, *(contender for contender, _ in peers.values())]
    our_times, *all_times = take_turns(rounds, repeats, contenders)
    for (peer, (_, target)), times in zip(peers.items(), all_times, strict=True):
        ratios = [theirs / ours for ours, theirs in zip(our_times, times, strict=True)]
        medians = statistics.median(our_times), statistics.median(times)
        tell(work, peer, medians, "seconds", statistics.median(ratios), target, body_bytes)


def tell(
    work: str,
    peer: str,
    medians: tuple[float, float],
    unit: str,
    ratio: float,
    target: Target,
    body_bytes: int | None = None,
) -> None:
    """Prints a measurement to standard output."""
    measurement = {
        "language": "Python",
        "work": work,
        "peer": peer,
        "medians": medians,
        "unit": unit,
        "body_bytes": body_bytes,
        "ratio": ratio,
        "target": target,
    }
    print(json.dumps(measurement), flush=True)
