"""Real Prometheus servers answer each query of the ready-made dashboards and rules, and the answers are the truth."""

import dataclasses
import json
import re
import signal
import subprocess
import time
from pathlib import Path

import httpx2
import pytest
import tallyfold
import week
from servers import COUNTS, Prometheus, binary
from test_command import COMMAND, Exporter, service

ROOT = Path(__file__).parents[2]
WINDOWS = 96
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
END_MS = week.START_MS + WINDOWS * week.QUARTER_MS
#: All windows are settled by then.
OVER_MS = END_MS + 2 * HOUR_MS
LABELS = {"cluster": "eu-1"}
BY = ",".join(week.DIMENSIONS)
#: For two hours, each attempt to send to it fails.
FAILING, FROM_MS, UNTIL_MS = "email", week.START_MS + 40 * week.QUARTER_MS, week.START_MS + 48 * week.QUARTER_MS
TITLES = {"success": "Delivered", "errors": "Failed", "filtered": "Filtered"}

Sums = dict[str, int]
Scrapes = dict[int, str]
Points = list[tuple[dict[str, str], list[float]]]


def printed(*flags: str) -> str:
    """Gives what the command prints."""
    return subprocess.run([str(COMMAND), "serve", *flags], capture_output=True, text=True, check=True, env={}).stdout


@pytest.fixture(scope="module")
def day() -> list[week.Event]:
    """Gives a day with late counts, corrections and an incident."""

    def lived(event: week.Event) -> week.Event:
        if event.group[0] != FAILING or not FROM_MS <= event.at_ms < UNTIL_MS:
            return event
        return dataclasses.replace(event, first="errors", last="errors", group=(FAILING, "", "web"))

    drawn = week.events(seed=21, windows=WINDOWS)
    assert sum(lived(event) != event for event in drawn) > 10
    return [lived(event) for event in drawn]


@pytest.fixture(scope="module")
def truth(day: list[week.Event]) -> dict[str, Sums]:
    """Gives each count by integration."""
    found = {count: dict.fromkeys(week.INTEGRATIONS, 0) for count in COUNTS}
    for event in day:
        found[event.last][event.group[0]] += event.count
    return found  # type: ignore[return-value]


@pytest.fixture(scope="module")
def own_metrics(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Gives the metrics that a real exporter has of itself."""
    with service() as variables:
        exporter = Exporter(tmp_path_factory.mktemp("exporter"), variables)
        exporter.start()
        try:
            until = time.monotonic() + 60
            while True:
                text = exporter.get("/metrics", "application/openmetrics-text;version=1.0.0")
                # The requests of its first windows are counted by then.
                if "tallyfold_exporter_settled_lag_seconds " in text:
                    break
                assert time.monotonic() < until
                time.sleep(0.05)
        finally:
            exporter.stop(signal.SIGKILL)
    lines = [line for line in text.splitlines() if re.match(r"(# \w+ )?tallyfold_exporter_", line)]
    return "\n".join(lines).replace("{", '{cluster="eu-1",').replace(",}", "}")


@pytest.fixture(scope="module")
def scrapes(day: list[week.Event], own_metrics: str) -> Scrapes:
    """Gives what a scrape sees in each minute of the day and the hours after it."""
    ledger, seen, next_ms = tallyfold.Ledger(), {}, week.START_MS
    clock = week.Clock()
    for revision, state in week.follow(week.Service(day), windows=WINDOWS, clock=clock):
        now_ms = clock.now().unix_ms
        while next_ms < now_ms:
            seen[next_ms] = ledger.openmetrics(LABELS) + own_metrics
            next_ms += MINUTE_MS
        ledger.add(revision, state)
    while next_ms <= OVER_MS:
        seen[next_ms] = ledger.openmetrics(LABELS) + own_metrics
        next_ms += MINUTE_MS
    return seen


def scraped(directory: Path, scrapes: Scrapes) -> Prometheus:
    """Gives a server that has these scrapes in its blocks."""
    families: dict[str, tuple[list[str], list[str]]] = {}
    for at_ms, text in scrapes.items():
        name = ""
        for line in text.replace("# EOF\n", "").splitlines():
            if line.startswith("# "):
                name = line.split(" ")[2]
                headers, _ = families.setdefault(name, ([], []))
                if line not in headers:
                    headers.append(line)
            else:
                families[name][1].append(f"{line} {at_ms // 1000}")
    lines = [line for headers, samples in families.values() for line in (*headers, *samples)]
    directory.mkdir(exist_ok=True)
    (directory / "day.om").write_text("\n".join([*lines, "# EOF", ""]))
    made = subprocess.run(
        [binary("promtool"), "tsdb", "create-blocks-from", "openmetrics", "day.om", "data"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-1000:]
    return Prometheus(directory)


def queries(board: str) -> list[tuple[str, str, bool]]:
    """Gives the title, the expression, and whether it is asked for one moment, of each query of a dashboard."""
    panels = json.loads(board)["panels"]
    return [(panel["title"], target["expr"], target["instant"]) for panel in panels for target in panel.get("targets", [])]


def asked(server: Prometheus, expr: str, is_instant: bool, hours: int = 26) -> Points:
    """Asks as Grafana does for the hours until all is over, with all values chosen."""
    values = {"$__interval": "15m", "$__rate_interval": "15m", "$__range": f"{hours}h", "${__to:date:seconds}": str(OVER_MS // 1000)}
    for name in ("cluster", *week.DIMENSIONS):
        values[f"${name}"] = "(?s:.*)"
    for name, value in sorted(values.items(), reverse=True):
        expr = expr.replace(name, value)
    assert "$" not in expr
    end = OVER_MS // 1000
    if is_instant:
        found = server._ask("/api/v1/query", query=expr, time=str(end))["data"]["result"]
        return [(one["metric"], [float(one["value"][1])]) for one in found]
    start = end - hours * 3600 + 900
    found = server._ask("/api/v1/query_range", query=expr, start=str(start), end=str(end), step="900")["data"]["result"]
    return [(one["metric"], [float(value) for _, value in one["values"]]) for one in found]


def sum_of(found: Points, name: str = "integration") -> Sums:
    """Adds up the points of each series, which are whole numbers."""
    sums: Sums = {}
    for labels, points in found:
        total = sum(points, 0.0)
        assert total.is_integer()
        sums[labels.get(name, "")] = sums.get(labels.get(name, ""), 0) + int(total)
    return sums


def check(server: Prometheus, board: str, truth: dict[str, Sums], hours: int = 26) -> None:
    """Each query of a dashboard is answered. Those with counts give the truth."""
    compared = 0
    by_title: dict[str, list[Points]] = {}
    for title, expr, is_instant in queries(board):
        found = asked(server, expr, is_instant, hours)
        by_title.setdefault(title, []).append(found)
    for count, title in TITLES.items():
        ((_, [total]),) = by_title[title][0]
        assert total == sum(truth[count].values()), title
        for more in (f"{title} by integration",):
            if more in by_title:
                parts = [sum_of(found) for found in by_title[more]]
                added = {name: sum(part.get(name, 0) for part in parts) for name in truth[count]}
                assert added == truth[count], more
                compared += 1
    assert compared >= 2
    for count, found in zip(("errors", "filtered", "success"), by_title["Ranked by integration"], strict=True):
        assert sum_of(found) == truth[count]
    ((_, [share]),) = by_title["Failed share"][0]
    failed, delivered = (sum(truth[count].values()) for count in ("errors", "success"))
    assert share == pytest.approx(failed / (failed + delivered))
    # The incident is on the screen: in the two hours, all attempts of one integration failed.
    shares = {labels["integration"]: points for labels, points in by_title["Failed share by integration"][0]}
    assert max(shares[FAILING]) == 1
    reasons = sum_of([one for found in by_title["Filtered by reason"] for one in found], "reason")
    assert sum(reasons.values()) == sum(truth["filtered"].values())
    assert set(week.REASONS) <= set(reasons)


def test_the_board_of_counters_shows_the_truth(tmp_path: Path, scrapes: Scrapes, truth: dict[str, Sums]) -> None:
    board = printed("--by", BY, "--dashboard", "grafana")
    server = scraped(tmp_path, scrapes)
    with server.running():
        check(server, board, truth)
        # Each query for the health of the exporter is answered, too.
        for title, expr, is_instant in queries(board):
            assert asked(server, expr, is_instant) or title == "Failed readings", title


def test_totals_outlast_a_gap_in_the_scrapes(tmp_path: Path, scrapes: Scrapes, truth: dict[str, Sums]) -> None:
    board = printed("--by", BY, "--dashboard", "grafana")
    gap = range(week.START_MS + 9 * HOUR_MS, week.START_MS + 13 * HOUR_MS)
    server = scraped(tmp_path, {at: text for at, text in scrapes.items() if at not in gap})
    with server.running():
        expr = {title: expr for title, expr, _ in queries(board)}["Failed by integration"]
        assert sum_of(asked(server, expr, False)) == truth["errors"]


def test_a_server_that_scrapes_late_counts_from_its_first_scrape(tmp_path: Path, scrapes: Scrapes) -> None:
    board = printed("--by", BY, "--dashboard", "grafana")
    late = week.START_MS + 9 * HOUR_MS
    server = scraped(tmp_path, {at: text for at, text in scrapes.items() if at >= late})

    def failed_until(at: int) -> int:
        lines = re.findall(r"_errors_settled_events_total\{.*\} (\d+)", scrapes[at])
        return sum(map(int, lines))

    with server.running():
        expr = {title: expr for title, expr, is_instant in queries(board) if is_instant}["Failed"]
        ((_, [grown]),) = asked(server, expr, True)
        # Groups that were new after the first scrape began at zero, which no scrape has seen: they count from there, too.
        known = failed_until(OVER_MS) - failed_until(late)
        assert 0 < grown <= known


def test_the_board_of_windows_shows_the_truth(tmp_path: Path, day: list[week.Event], truth: dict[str, Sums], transport: httpx2.HTTPTransport) -> None:
    board = printed("--by", BY, "--dashboard", "grafana-windows")
    server = Prometheus.receiving(tmp_path, out_of_order="48h")
    with server.running():
        changed = dict.fromkeys(COUNTS, 0)
        for revision, _ in week.follow(week.Service(day), windows=WINDOWS):
            for row in revision.changes if revision.number > 0 else ():
                for count in COUNTS:
                    changed[count] += getattr(row.delta, count)
            tallyfold.push(revision, "remote-write", server.write_url, LABELS, transport=transport)
        check(server, board, truth)
        parts = {title: [asked(server, expr, False) for t, expr, i in queries(board) if t == title and not i] for title, _, _ in queries(board)}
        settled, provisional = parts["Failed by integration"]
        assert settled
        # All windows ended more than an hour before the end of the range.
        assert not provisional
        assert all(changed.values())
        assert [sum(sum_of(found).values()) for found in parts["Corrections"]] == [changed[count] for count in COUNTS]


@pytest.mark.parametrize("by", ["integration", "integration,reason", "event_name", ""])
def test_names_are_those_of_the_exporter(tmp_path: Path, by: str) -> None:
    """Every metric that a dashboard or a rule names is one that the exporter serves."""
    flags = ["--by", by] if by else []
    texts = [printed(*flags, "--dashboard", "grafana"), printed(*flags, "--rules")]
    with service() as variables:
        exporter = Exporter(tmp_path, variables)
        exporter._arguments += flags
        exporter.start()
        try:
            until = time.monotonic() + 60
            while "settled_lag_seconds " not in exporter.get("/metrics"):
                assert time.monotonic() < until
                time.sleep(0.05)
            served = set(re.findall(r"^# TYPE (\w+)", exporter.get("/metrics"), re.MULTILINE))
        finally:
            exporter.stop(signal.SIGKILL)
    named = {name for text in texts for name in re.findall(r"\btallyfold_\w+", text)}
    # These have no sample in a short healthy life.
    quiet = {"tallyfold_exporter_reading_failures_total"}
    assert named - quiet <= served
    assert len(named) > 10


@pytest.mark.parametrize(
    ("file", "flags"),
    [
        ("grafana-counters.json", ["--dashboard", "grafana"]),
        ("grafana-windows.json", ["--dashboard", "grafana-windows"]),
        ("datadog-windows.json", ["--dashboard", "datadog"]),
        ("prometheus.rules.yml", ["--rules"]),
    ],
)
def test_the_files_are_what_the_command_prints(file: str, flags: list[str]) -> None:
    assert (ROOT / "dashboards" / file).read_text() == printed("--by", "integration,reason", *flags)


STEM = "tallyfold_event_delivery_by_integration"
TEMPLATE = """
rule_files: [rules.yml]
evaluation_interval: 5m
tests:
  - interval: 5m
    input_series:
{series}
    alert_rule_test:
{expected}
"""


def series(name: str, labels: str, values: str) -> str:
    return f"      - series: '{name}{{{labels}}}'\n        values: '{values}'\n"


def counters(delivered: str, failed: str) -> str:
    labels = 'job="t",instance="i",integration="email"'
    other = 'job="t",instance="i",integration="web"'
    return (
        series(f"{STEM}_success_settled_events_total", labels, delivered)
        + series(f"{STEM}_errors_settled_events_total", labels, failed)
        + series(f"{STEM}_success_settled_events_total", other, "0+100x1200")
        + series(f"{STEM}_errors_settled_events_total", other, "0+1x1200")
    )


def own(name: str, values: str, more: str = "") -> str:
    return series(f"tallyfold_exporter_{name}", f'job="t",instance="i"{more}', values)


HEALTHY = own("build_info", "1x1200", ',version="1"') + own("healthy", "1x1200") + own("settled_lag_seconds", "4000x1200")
HEALTHY += own("contradictory_windows_total", "0x1200") + own("clock_ahead_seconds", "0x1200")
CALM = counters("0+100x1200", "0+1x1200") + HEALTHY
ALERTS = [
    "TallyfoldDeliveryLossFast",
    "TallyfoldDeliveryLossSlow",
    "TallyfoldDeliveryLossLong",
    "TallyfoldSilence",
    "TallyfoldExporterDown",
    "TallyfoldExporterUnhealthy",
    "TallyfoldExporterLag",
    "TallyfoldTotalsContradict",
    "TallyfoldClockWrong",
]


@pytest.mark.parametrize(
    ("fires", "fed"),
    [
        ([], CALM),
        # Half of the attempts fail for two hours.
        (ALERTS[:3], counters("0+100x1100 110050+50x24", "0+1x1100 1150+50x24") + HEALTHY),
        # One in five fails for six hours.
        (["TallyfoldDeliveryLossSlow", "TallyfoldDeliveryLossLong"], counters("0+100x1100 110080+80x72", "0+1x1100 1120+20x72") + HEALTHY),
        # 3% fail for days.
        (["TallyfoldDeliveryLossLong"], counters("0+97x1200", "0+3x1200") + HEALTHY),
        (["TallyfoldSilence"], counters("0+100x1100 110000x100", "0+1x1100 1100x100") + HEALTHY),
        # Nothing is known, so nothing is silent.
        (
            ["TallyfoldExporterLag"],
            counters("0+100x1100 110000x100", "0+1x1100 1100x100") + HEALTHY.replace("4000x1200", "4000x1100 4300+300x100"),
        ),
        (["TallyfoldExporterDown"], ""),
        (
            ["TallyfoldExporterUnhealthy"],
            CALM.replace('healthy{job="t",instance="i"}\'\n        values: \'1x1200', 'healthy{job="t",instance="i"}\'\n        values: \'1x1100 0x100'),
        ),
        (
            ["TallyfoldTotalsContradict"],
            CALM.replace("values: '0x1200'\n      - series: 'tallyfold_exporter_clock", "values: '0x1105 1x95'\n      - series: 'tallyfold_exporter_clock"),
        ),
        (
            ["TallyfoldClockWrong"],
            CALM.replace(
                'clock_ahead_seconds{job="t",instance="i"}\'\n        values: \'0x1200',
                'clock_ahead_seconds{job="t",instance="i"}\'\n        values: \'0x1100 -400x100',
            ),
        ),
    ],
)
def test_alerts_fire_when_they_should(tmp_path: Path, fires: list[str], fed: str) -> None:
    (tmp_path / "rules.yml").write_text(printed("--rules"))
    at = (1100 + (72 if "TallyfoldSilence" not in fires else 90)) * 5
    if fires[:1] == ["TallyfoldDeliveryLossFast"]:
        at = 1124 * 5
    if fires == ["TallyfoldTotalsContradict"]:
        at = 1110 * 5
    assert fired(tmp_path, fed, at) == sorted(fires)


def fired(directory: Path, fed: str, at: int) -> list[str]:
    """Gives the alerts that fire at a minute: `promtool` names those that it did not expect."""
    expected = "".join(f"      - eval_time: {at}m\n        alertname: {alert}\n" for alert in ALERTS)
    (directory / "test.yml").write_text(TEMPLATE.format(series=fed or "      []", expected=expected))
    done = subprocess.run([binary("promtool"), "test", "rules", "test.yml"], cwd=directory, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    found = sorted(set(re.findall(r"alertname: (\w+), time", text)))
    assert (done.returncode == 0) == (found == []), text
    return found


def test_runbooks_are_in_the_guide() -> None:
    guide = (ROOT / "docs/guides/dashboards-and-rules.md").read_text()
    rules = printed("--rules")
    assert set(re.findall(r"alert: (\w+)", rules)) == set(ALERTS)
    for alert, link in zip(ALERTS, re.findall(r"runbook_url: (\S+)", rules), strict=True):
        assert link == f"guides/dashboards-and-rules.html#{alert.lower()}"
        assert f"\n### {alert}\n" in guide
