"""Response bytes in chunks of any size."""

import sys
import threading
import time

import pytest
from support import END, LARGE, START, body

import tallyfold

DIMENSIONS: list[tallyfold.DimensionName] = ["integration", "reason"]


def fold(*chunks: bytes) -> tallyfold.CountTable:
    aggregator = tallyfold.Aggregator(DIMENSIONS)
    for chunk in chunks:
        aggregator.push(chunk)
    return aggregator.finish()


def test_a_split_at_any_byte_makes_no_difference() -> None:
    whole = fold(LARGE)
    assert len(LARGE) > 2000
    assert len(whole) == 20
    for at in range(len(LARGE) + 1):
        assert fold(LARGE[:at], LARGE[at:]) == whole
    assert fold(*(LARGE[at : at + 1] for at in range(len(LARGE)))) == whole


def test_a_cut_at_any_byte_is_the_same_error() -> None:
    codes = set()
    for at in range(len(LARGE)):
        with pytest.raises(tallyfold.ResponseError) as caught:
            fold(LARGE[:at])
        codes.add(caught.value.code)
        assert caught.value.code == ("truncated_body" if at else "empty_body")
        assert caught.value.offset == at
    assert codes == {"empty_body", "truncated_body"}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_like_object_is_a_chunk(kind: type) -> None:
    assert fold(kind(LARGE)) == fold(LARGE)


def test_text_is_no_chunk() -> None:
    with pytest.raises(TypeError):
        tallyfold.Aggregator(DIMENSIONS).push("{}")  # type: ignore[arg-type]


def test_an_error_stays() -> None:
    aggregator = tallyfold.Aggregator(DIMENSIONS)
    for act in (lambda: aggregator.push(b"[]"), lambda: aggregator.push(LARGE), aggregator.finish):
        with pytest.raises(tallyfold.ResponseError) as caught:
            act()
        assert caught.value.code == "wrong_type"
        assert caught.value.path == "$"


def test_a_table_is_given_once() -> None:
    aggregator = tallyfold.Aggregator(DIMENSIONS)
    aggregator.push(LARGE)
    aggregator.finish()
    with pytest.raises(tallyfold.ConfigError) as caught:
        aggregator.finish()
    assert caught.value.code == "out_of_order"


def test_counts_are_exact_up_to_the_largest() -> None:
    entries = [({"integration": "a"}, 2**64 - 1, 2**53 + 1, 0)]
    aggregator = tallyfold.Aggregator(["integration"])
    aggregator.push(body(entries))
    assert aggregator.finish().totals == tallyfold.Counts(2**64 - 1, 2**53 + 1, 0)


def test_options_reach_the_core() -> None:
    entry = ({"integration": "a", "reason": "b"}, 1, 1, 1)
    aggregator = tallyfold.Aggregator(
        DIMENSIONS,
        ["reason"],
        metric="event_delivery",
        window=(START, END),
        limits=tallyfold.Limits(groups=1),
        tolerate=["repeated_combination"],
    )
    aggregator.push(body([entry, entry]))
    table = aggregator.finish()
    assert table.dimensions == ("reason",)
    assert table.metric == "event_delivery"
    assert table.totals == tallyfold.Counts(2, 2, 2)

    limited = tallyfold.Aggregator(DIMENSIONS, limits=tallyfold.Limits(groups=1))
    with pytest.raises(tallyfold.ResponseError) as caught:
        limited.push(LARGE)
    assert caught.value.code == "group_limit"

    tolerant = tallyfold.Aggregator(DIMENSIONS, tolerate=["repeated_combination"])
    tolerant.push(body([entry, entry]))
    assert tolerant.finish().notes == tallyfold.Notes(1, 0)


@pytest.mark.parametrize(
    ("arguments", "code", "argument"),
    [
        ({"dimensions": []}, "no_dimensions", "dimensions"),
        ({"dimensions": ["colour"]}, "unknown_dimension", "dimensions"),
        ({"dimensions": ["reason", "reason"]}, "repeated_dimension", "dimensions"),
        ({"dimensions": ["reason"], "group_by": ["integration"]}, "unknown_dimension", "group_by"),
        ({"dimensions": ["reason"], "metric": "sessions"}, "invalid_argument", "metric"),
        ({"dimensions": ["reason"], "tolerate": ["all"]}, "invalid_argument", "tolerate"),
        ({"dimensions": ["reason"], "window": (END, START)}, "invalid_window", "start"),
    ],
)
def test_arguments_are_refused_by_name(
    arguments: dict[str, object], code: str, argument: str
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        tallyfold.Aggregator(**arguments)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.argument) == (code, argument)


def test_one_text_is_no_list_of_dimensions() -> None:
    with pytest.raises(TypeError):
        tallyfold.Aggregator("reason")  # type: ignore[arg-type]


def test_a_small_body_is_folded_without_a_break() -> None:
    ran, running, ended = 0, threading.Event(), threading.Event()

    def work() -> None:
        nonlocal ran
        while not ended.is_set():
            ran += 1
            running.set()
            # Gives way, and goes on as soon as the main thread does.
            time.sleep(0)

    def fold_and_regroup() -> None:
        table = fold(LARGE)
        table.group_by("integration").by_window("1h").to_json()
        tallyfold.compare(table, tallyfold.CountTable.from_json(table.to_json())).top(1)

    # What is made once for the whole process may give way while it is made.
    fold_and_regroup()
    usual = sys.getswitchinterval()
    # Nobody is interrupted now: the other thread runs only when this one gives way by itself.
    sys.setswitchinterval(100)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        running.wait()
        before = ran
        for _ in range(200):
            fold_and_regroup()
        breaks = ran - before
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(usual)
    assert breaks == 0


def test_other_threads_run_while_it_folds() -> None:
    entries = [({"integration": str(number)}, number, 0, 0) for number in range(50_000)]
    chunk = body(entries)

    def work() -> None:
        aggregator = tallyfold.Aggregator(["integration"])
        started.set()
        aggregator.push(chunk)
        finished.set()

    usual = sys.getswitchinterval()
    # Nobody is interrupted now: this thread runs on only when the other one gives way by itself.
    sys.setswitchinterval(100)
    try:
        # On a busy machine, this thread may get a processor only when the other one has finished.
        for _ in range(10):
            started, finished = threading.Event(), threading.Event()
            thread = threading.Thread(target=work)
            thread.start()
            started.wait()
            folding = not finished.is_set()
            thread.join()
            if folding:
                break
    finally:
        sys.setswitchinterval(usual)
    assert folding
