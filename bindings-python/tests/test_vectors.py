"""The vectors that every language runs (tests/vectors/README.md)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tallyfold
from tallyfold import (
    Blocked,
    Call,
    Counts,
    Deltas,
    Done,
    ProvideToken,
    Rates,
    Row,
    Send,
    Shares,
    Wait,
    _tallyfold,
)

VECTORS = Path(__file__).parents[2] / "tests" / "vectors"
EPOCH_MS = 1_767_225_600_000

Case = dict[str, Any]
Output = tallyfold.CountTable | bytes
Made = tallyfold.Series | tallyfold.Comparison


def load(name: str) -> Case:
    file: Case = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return file


def run(name: str, check: Callable[[Case], None]) -> None:
    file = load(name)
    ran = 0
    for case in file["cases"]:
        try:
            check(case)
        except BaseException as error:
            error.add_note(f"in the case {case['name']!r} of {name}.json")
            raise
        ran += 1
    assert ran == file["count"]


def test_responses() -> None:
    run("responses", check_response)


def test_exchanges() -> None:
    run("exchanges", check_exchange)


def test_tables() -> None:
    run("tables", check_table)


def test_series() -> None:
    run("series", check_series)


def test_rates() -> None:
    run("rates", check_table_rates)


def test_comparisons() -> None:
    run("comparisons", check_comparison)


def test_error_log() -> None:
    run("error_log", check_error_log)


def check_error_log(case: Case) -> None:
    log = _tallyfold.ErrorLog()
    for note in case["notes"]:
        found = log.note(note["text"], note["at_ms"], note["random"])
        assert found == (note["reference"], note["line"])


def test_every_code_has_a_vector() -> None:
    def codes(value: object) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(codes, value))
        if not isinstance(value, dict):
            return set()
        own = {value["error"]["code"]} if isinstance(value.get("error"), dict) else set()
        return own.union(*map(codes, value.values()))

    names = ("responses", "exchanges", "tables", "series", "collects", "health")
    seen = set().union(*(codes(load(name)) for name in names))
    # No vector takes all the memory there is.
    # Those of exports are raised in test_export.py.
    others = {
        "out_of_memory",
        "crashed",
        "wasm_forbidden",
        "inexact_count",
        "unsupported_by_format",
    }
    assert seen | others == set(_tallyfold.error_codes())


def check_response(case: Case) -> None:
    body = case["body"].encode() if "body" in case else bytes.fromhex(case["body_hex"])
    check(case, lambda: fold(case, [body]))
    check(case, lambda: fold(case, [body[at : at + 1] for at in range(len(body))]))


def fold(case: Case, chunks: list[bytes]) -> tallyfold.CountTable:
    aggregator = tallyfold.Aggregator(
        case["dimensions"],
        case.get("group_by"),
        window=tuple(case["window"]) if "window" in case else None,
        limits=tallyfold.Limits(**case.get("limits", {})),
        tolerate=case.get("tolerate", ()),
    )
    try:
        for chunk in chunks:
            aggregator.push(chunk)
        table = aggregator.finish()
    except tallyfold.TallyfoldError as error:
        check_repeated(aggregator, error)
        raise
    return aggregator.finish() if "finish_twice" in case else table


def check_repeated(aggregator: tallyfold.Aggregator, error: tallyfold.TallyfoldError) -> None:
    for again in (lambda: aggregator.push(b" "), aggregator.finish):
        with pytest.raises(type(error)) as caught:
            again()
        assert (str(caught.value), vars(caught.value)) == (str(error), vars(error))


def check_exchange(case: Case) -> None:
    clock = Clock()
    made: list[tallyfold.Machine] = []
    for call in case["calls"]:
        steps = iter(call["steps"])

        def drive_call(call: Case = call, steps: Iterator[Case] = steps) -> Output:
            if not made:
                made.append(tallyfold.Machine(**options_of(case)))
            return drive(start(made[0], dict(call["call"])), steps, clock)

        check(call, drive_call)
        assert list(steps) == [], "all steps were used"


def options_of(case: Case) -> Case:
    options = dict(case["options"])
    if "longest_retry_wait_ms" in options:
        options["longest_retry_wait"] = options.pop("longest_retry_wait_ms") / 1000
    return options


def start(machine: tallyfold.Machine, call: Case) -> Call[tallyfold.CountTable] | Call[bytes]:
    method: Callable[..., Call[tallyfold.CountTable] | Call[bytes]]
    method = getattr(machine, call.pop("method"))
    if "deadline_ms" in call:
        call["deadline"] = call.pop("deadline_ms") / 1000
    return method(**call)


class Clock:
    """Minutes on both clocks, until a step says otherwise."""

    minutes = 0
    waited_ms = 0

    def at(self, script: Case | None) -> tallyfold.Now:
        self.minutes = (script or {}).get("at", self.minutes)
        wall = (script or {}).get("wall", self.minutes)
        monotonic_ms = self.minutes * 60_000 + self.waited_ms
        return tallyfold.Now(monotonic_ms, EPOCH_MS + wall * 60_000 + self.waited_ms)


def drive(
    call: Call[tallyfold.CountTable] | Call[bytes], steps: Iterator[Case], clock: Clock
) -> Output:
    script = next(steps, None)
    while True:
        match call.step(clock.at(script)):
            case Send(request=request):
                assert script is not None, f"unexpected {request}"
                sent = {
                    "method": request.method,
                    "url": request.url,
                    "headers": [list(header) for header in request.headers],
                    "body": None if request.body is None else request.body.decode(),
                }
                assert sent == script["send"]
                used, script = script, next(steps, None)
                respond(call, used)
            case ProvideToken(api=api):
                assert script is not None, f"unexpected token for {api}"
                assert script["provide_token"] == api
                used, script = script, next(steps, None)
                if used["token"] is None:
                    call.token_failed()
                else:
                    call.token(used["token"], used.get("lifetime"))
            case Blocked():
                pytest.fail("one call at a time is never blocked")
            case Wait(ms=ms):
                assert script is not None, f"unexpected wait of {ms} ms"
                wait = script["wait"]
                assert wait["at_least"] <= ms <= wait["at_most"]
                clock.waited_ms += ms - 1
                early = call.step(clock.at(script))
                assert isinstance(early, Wait)
                assert early.ms == 1
                clock.waited_ms += 1
                script = next(steps, None)
            case Done():
                return call.output()


def respond(call: Call[tallyfold.CountTable] | Call[bytes], script: Case) -> None:
    if "fail" in script:
        fail = script["fail"]
        call.failed(script["detail"], timed_out=fail == "timeout", stale=fail == "stale")
        return
    response = script["respond"]
    if call.head(response["status"], [tuple(header) for header in response["headers"]]):
        body = response["body"].encode()
        for at in range(0, len(body), 7):
            call.chunk(body[at : at + 7])
        call.end()


def check_table(case: Case) -> None:
    def given() -> tallyfold.CountTable:
        return saved(case["given"])

    if "top" in case:
        if "error" in case:
            check(case, lambda: bytes(len(given().top(**case["top"]))))
        else:
            rows = list(given())
            assert [rows.index(row) for row in given().top(**case["top"])] == case["rows"]
    elif "reconciliation" in case:
        found = given().reconciliation
        assert found.verdict == case["verdict"]
        if found.verdict == "unbalanced":
            differences = {name: str(getattr(found, name)) for name in case["differences"]}
            assert differences == case["differences"]
            assert len(differences) == 3
    elif "coverage" in case:
        found_windows = [[window.start_text, window.end_text] for window in given().coverage]
        assert found_windows == case["windows"]
    else:
        check(case, lambda: operate(case, given()))


def operate(case: Case, given: tallyfold.CountTable) -> tallyfold.CountTable:
    if "group_by" in case:
        return given.group_by(*case["group_by"])
    if "filter" in case:
        return given.filter(**case["filter"])
    if "between" in case:
        return given.between(*case["between"])
    if "merge" in case:
        return given.merge(saved(case["merge"]), replace=case.get("replace", False))
    return given


def check_series(case: Case) -> None:
    def series() -> tallyfold.Series:
        table, *others = map(saved, case["tables"])
        for other in others:
            table = table.merge(other)
        table = table.filter(**case.get("filter", {}))
        if "group_by" in case:
            table = table.group_by(*case["group_by"])
        series = table.by_window(case["step"], case.get("zone"))
        series = series.fill_zeros() if "filled" in case else series
        return series.between(*case["between"]) if "between" in case else series

    def compare_rows(series: tallyfold.Series) -> None:
        expected = case["series"]
        windows = series.windows
        found = [(of.start_text, of.end_text, of.complete, of.provisional) for of in windows]
        assert found == [
            (of["start"], of["end"], of["complete"], of.get("provisional", False))
            for of in expected["windows"]
        ]
        assert list(series.dimensions) == expected["dimensions"]
        assert (series.metric, series.step) == (expected["metric"], expected["step"])
        assert series.zone == expected.get("zone")
        assert digits(series.totals) == expected["totals"]
        rows = [
            (windows.index(row.window), {"values": list(row.values), **digits(row)})
            for row in series
        ]
        assert rows == [
            (number, row)
            for number, window in enumerate(expected["windows"])
            for row in window["rows"]
        ]
        assert all(row.complete == row.window.complete for row in series)
        assert all(row.provisional == row.window.provisional for row in series)
        assert len(series) == len(rows)

    check_made(case, series, case.get("series"), compare_rows)


def check_table_rates(case: Case) -> None:
    table = saved(case["given"])
    rates = [row.rates for row in table]
    assert rates == [Rates(**floats(rate)) for rate in case["rates"]]
    assert table.totals.rates == Rates(**floats(case["totals"]))
    counts = [Counts(row.success, row.errors, row.filtered) for row in table]
    assert [each.rates for each in counts] == rates
    assert [row.rates for row in table.by_window()] == rates


def check_comparison(case: Case) -> None:
    def comparison() -> tallyfold.Comparison:
        return tallyfold.compare(saved(case["before"]), saved(case["after"]))

    def top() -> tallyfold.Comparison:
        made = comparison()
        top = made.top(**case["top"])
        rows = list(made)
        assert [rows.index(row) for row in top] == case["rows"]
        return made

    def compare_rows(comparison: tallyfold.Comparison) -> None:
        expected = case["comparison"]
        assert list(comparison.dimensions) == expected["dimensions"]
        assert comparison.metric == expected["metric"]
        for side, covered, totals in [
            ("before", comparison.before_coverage, comparison.before_totals),
            ("after", comparison.after_coverage, comparison.after_totals),
        ]:
            edges = [{"start": window.start_text, "end": window.end_text} for window in covered]
            assert {"coverage": edges, "totals": digits(totals)} == expected[side]
        assert digits(comparison.total_delta) == expected["delta"]
        rows = list(comparison)
        assert [row_of_comparison(row) for row in rows] == expected["rows"]
        assert comparison.new == [row for row in rows if row.presence == "new"]
        assert comparison.vanished == [row for row in rows if row.presence == "vanished"]
        shares = [Shares(**floats(share)) for share in case["shares"]]
        assert [row.share for row in rows] == shares
        # Equality can't tell -0 from 0, which no share is.
        assert repr([row.share for row in rows]) == repr(shares)

    if "top" in case:
        check_made(case, top, None, lambda _: None)
    else:
        check_made(case, comparison, case.get("comparison"), compare_rows)


def row_of_comparison(row: tallyfold.ComparisonRow) -> Case:
    return {
        "values": list(row.values),
        "presence": row.presence,
        "before": row.before and digits(row.before),
        "after": row.after and digits(row.after),
        "delta": digits(row.delta),
    }


def check_made(
    case: Case, make: Callable[[], Made], expected: object, compare_rows: Callable[[Any], None]
) -> None:
    try:
        made = make()
    except tallyfold.TallyfoldError as error:
        check_error(case, error)
        return
    assert "error" not in case, f"{made!r} where {case['error']} was expected"
    if expected is not None:
        assert json.loads(made.to_json()) == expected
        compare_rows(made)


def saved(table: Case) -> tallyfold.CountTable:
    return tallyfold.CountTable.from_json(json.dumps(table))


def digits(counts: Counts | Deltas | Row) -> dict[str, str]:
    values = {name: getattr(counts, name) for name in ("success", "errors", "filtered")}
    assert all(type(value) is int for value in values.values())
    return {name: str(value) for name, value in values.items()}


def floats(decimals: dict[str, str | None]) -> dict[str, float | None]:
    return {name: None if decimal is None else float(decimal) for name, decimal in decimals.items()}


def check(case: Case, act: Callable[[], Output]) -> None:
    try:
        output = act()
    except tallyfold.TallyfoldError as error:
        check_error(case, error)
        return
    assert "error" not in case, f"{output!r} where {case['error']} was expected"
    if isinstance(output, bytes):
        assert output == case["json"].encode()
        return
    assert json.loads(output.to_json()) == case["table"]
    assert tallyfold.CountTable.from_json(output.to_json()) == output


def check_error(case: Case, error: tallyfold.TallyfoldError) -> None:
    context = {name: getattr(error, name) for name in case.get("error", {})}
    assert context == case.get("error"), str(error)
    assert len(context) == 8
    assert "canary" not in str(error) + repr(error) + repr(vars(error))
