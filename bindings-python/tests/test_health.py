"""Health: what explains a change and what rules find, which is the same in every language."""

import dataclasses
import json
import pickle
import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tallyfold

VECTORS = json.loads(
    (Path(__file__).parents[2] / "tests/vectors/health.json").read_text(encoding="utf-8")
)
CASES = VECTORS["cases"]


def table(name: str | None) -> Any:
    return name and tallyfold.CountTable.from_json(json.dumps(VECTORS["tables"][name]))


def run(given: dict[str, Any]) -> Any:
    """Gives what a case gives: one result, or one for each check."""
    ((kind, of),) = given.items()
    if kind == "parse":
        rules = tallyfold.Rules.parse(VECTORS["rules"][of])
        assert rules.text == VECTORS["rules"][of]
        return {"names": rules.names, "needs": rules.needs(), "budgets": rules.budgets()}
    if kind == "explain":
        tables = table(of["before"]), table(of["now"])
        return tallyfold.explain(*tables, of["measure"], **of["options"])
    if kind == "usual":
        range_ = of["start"], of["end"]
        return tallyfold.usual(table(of["table"]), of["measure"], *range_, step=of["step"])
    rules = tallyfold.Rules.parse(VECTORS["rules"][of["rules"]])
    counts = {"delivery": table(of["delivery"]), "ingestion": table(of.get("ingestion"))}
    if kind == "replay":
        return rules.replay(of["start"], of["end"], **counts)
    state, results = of.get("state"), []
    for now in of["at"]:
        check = rules.check(**counts, state=state, now=now)
        state = check.state
        results.append({"check": check, "state": state})
    return results


def fields(actual: object) -> dict[str, Any]:
    """The fields of a result by the names of the vectors, but for those that are absent."""
    if isinstance(actual, dict):
        return actual
    if isinstance(actual, tallyfold.Window):
        return {"start": actual.start_text, "end": actual.end_text}
    found = {}
    for field in dataclasses.fields(actual):  # type: ignore[arg-type]
        value = getattr(actual, field.name)
        name = re.sub(r"_(\w)", lambda letter: letter[1].upper(), field.name)
        if isinstance(actual, tallyfold.Need) and name == "back":
            name, value = "backMs", value * 1000
        # What is absent is `None`. The state stands beside the check.
        if value is not None and name != "state":
            found[name] = value
    return found


def same(actual: Any, expected: Any, path: str = "$") -> None:
    """Asserts that they are the same, down to the bits of floats and the order of names."""
    if isinstance(expected, dict):
        own = fields(actual)
        assert list(own) == list(expected), path
        for name, value in expected.items():
            same(own[name], value, f"{path}.{name}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), path
        for at, (one, other) in enumerate(zip(actual, expected, strict=True)):
            same(one, other, f"{path}[{at}]")
    elif isinstance(actual, int) and not isinstance(actual, bool):
        assert str(actual) == expected, path
    elif isinstance(expected, float):
        assert isinstance(actual, float), path
        assert actual.hex() == expected.hex(), path
    else:
        assert type(actual) is type(expected), path
        assert actual == expected, path


@pytest.mark.parametrize("case", CASES, ids=lambda case: json.dumps(case["given"])[:100])
def test_vectors(case: dict[str, Any]) -> None:
    if "error" not in case:
        same(run(case["given"]), case["expected"])
        return
    with pytest.raises(tallyfold.TallyfoldError) as caught:
        run(case["given"])
    wanted = case["error"]
    assert (caught.value.code, caught.value.argument) == (wanted["code"], wanted["argument"])
    assert str(caught.value) == wanted["message"]


def test_it_ran_all_vectors() -> None:
    assert len(CASES) == VECTORS["count"] > 40


def test_results_are_values() -> None:
    explained = tallyfold.explain(table("before"), table("integration fails"), "errors")
    assert pickle.loads(pickle.dumps(explained)) == explained
    assert json.loads(json.dumps(dataclasses.asdict(explained)))["change"] == 4638
    with pytest.raises(dataclasses.FrozenInstanceError):
        explained.change = 5  # type: ignore[misc]


def test_rules_can_be_pickled_and_shared_by_threads() -> None:
    rules = pickle.loads(pickle.dumps(tallyfold.Rules.parse(VECTORS["rules"]["all kinds"])))
    counts, now = table("delivery"), datetime(2026, 2, 24, tzinfo=UTC)
    checks = []

    def check() -> None:
        checks.append(rules.check(delivery=counts, now=now))

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(checks) == 4
    assert all(one == checks[0] for one in checks)
    assert repr(rules).startswith("<Rules: fails, filtered, ")


def test_a_state_may_be_bytes() -> None:
    rules = tallyfold.Rules.parse(VECTORS["rules"]["limits"])
    counts = table("delivery")
    first = rules.check(delivery=counts)
    again = rules.check(delivery=counts, state=first.state.encode())
    assert again.judged == 0
    assert again.state == first.state


def test_an_incident_that_somebody_knows_of_is_silenced() -> None:
    rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
    text = f"window = '1d'\nrule = [{rule}]"
    rules = tallyfold.Rules.parse(text)
    counts = table("integration fails")
    now = counts.coverage[-1].end
    first = rules.check(delivery=counts, now=now)
    (incident,) = first.incidents
    assert not first.healthy

    def later(state: str) -> tallyfold.Check:
        return rules.check(delivery=counts, state=state, now=now)

    known = later(tallyfold.acknowledge(first.state, incident.id[:8], note="on it"))
    assert known.healthy
    assert known.incidents[0].silenced
    assert known.incidents[0].hold == tallyfold.IncidentHold(until=None, note="on it")
    assert later(known.state).healthy
    assert not later(tallyfold.unsilence(known.state, incident.id)).healthy
    soon, past = now + timedelta(hours=1), now - timedelta(hours=1)
    assert later(tallyfold.silence(first.state, incident.id, soon)).healthy
    with pytest.raises(tallyfold.ConfigError, match="until: this is in the past"):
        tallyfold.silence(first.state, incident.id, past)


def test_without_counts_nothing_is_judged() -> None:
    rules = tallyfold.Rules.standard()
    check = rules.check()
    assert not check.healthy
    assert [one.rule for one in check.unjudged] == rules.names


RULES = tallyfold.Rules.parse(VECTORS["rules"]["limits"])
TABLE = table("before")
ANY: Any = None
INVALID = "invalid_argument"


@pytest.mark.parametrize(
    ("act", "argument", "code"),
    [
        (lambda: tallyfold.explain(5, TABLE, "errors"), "before", INVALID),  # type: ignore[arg-type]
        (lambda: tallyfold.explain(TABLE, ANY, "errors"), "now", INVALID),
        (lambda: tallyfold.explain(TABLE, TABLE.by_window(), "errors"), "now", INVALID),
        (lambda: tallyfold.explain(TABLE, TABLE, "error"), "measure", INVALID),  # type: ignore[arg-type]
        (lambda: tallyfold.explain(TABLE, TABLE, ANY), "measure", INVALID),
        (lambda: tallyfold.explain(TABLE, TABLE, "errors", most=-1), "most", INVALID),
        (lambda: tallyfold.explain(TABLE, TABLE, "errors", mots=1), "mots", "unknown_argument"),  # type: ignore[call-arg]
        (lambda: tallyfold.Rules.parse(ANY), "text", INVALID),
        (lambda: tallyfold.Rules.parse("rule = 1"), "text", "invalid_rules"),
        (lambda: RULES.check(delivery=5), "delivery", INVALID),  # type: ignore[arg-type]
        (lambda: RULES.check(ingestion=TABLE.by_window()), "ingestion", INVALID),
        (lambda: RULES.check(now="today"), "now", "invalid_timestamp"),
        (lambda: RULES.check(now=datetime(2026, 1, 1)), "now", "invalid_timestamp"),  # noqa: DTZ001
        (lambda: RULES.check(now=5), "now", INVALID),  # type: ignore[arg-type]
        (lambda: RULES.check(state="{}"), "state", "invalid_checkpoint"),
        (lambda: RULES.check(state=5), "state", INVALID),  # type: ignore[arg-type]
        (lambda: tallyfold.acknowledge("{}", "a"), "state", "invalid_checkpoint"),
        (lambda: tallyfold.acknowledge(RULES.check().state, "a"), "incident", INVALID),
        (lambda: tallyfold.unsilence(RULES.check().state, ANY), "incident", INVALID),
        (lambda: tallyfold.silence(RULES.check().state, "a", "x"), "until", "invalid_timestamp"),
        (lambda: tallyfold.silence(RULES.check().state, "a", ANY), "until", INVALID),
        (lambda: tallyfold.acknowledge(RULES.check().state, "a", note="x" * 1001), "note", INVALID),
        (lambda: RULES.replay(ANY, "2026-01-01T00:00:00Z"), "start", INVALID),
        (lambda: RULES.replay("2026-01-01T00:00:00Z", "x"), "end", "invalid_timestamp"),
    ],
)
def test_wrong_arguments_are_named(act: Any, argument: str, code: str) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        act()
    assert (caught.value.argument, caught.value.code) == (argument, code)
