"""Alertmanager is told by `tallyfold check` what fires, again in time, and what is over."""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from servers import Alertmanager
from test_command import COMMAND, service

#: The sandbox has an incident every few days.
RANGE = "8d"
#: How long after the end of an incident its alert is certainly over.
OVER = timedelta(hours=2)
RULES = """
dimensions = ["integration"]

[[rule]]
name = "integrations fail"
kind = "threshold"
measure = "error_rate"
by = ["integration"]
above = "10%"
severity = "critical"
labels = { team = 'data "é"' }
"""
#: A rule that never fires.
OTHER = RULES.replace("integrations fail", "all fail").replace("10%", "99.9%")


@pytest.fixture(name="variables", scope="module")
def _variables() -> Iterator[dict[str, str]]:
    with service() as variables:
        yield variables


class Job:
    """A cron job."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        self.rules = folder / "health.toml"
        self.rules.write_text(RULES)
        self._folder = folder
        self._variables = variables

    def run(self, *arguments: str) -> tuple[int, Any]:
        """Gives the exit code, and what it prints."""
        command = [str(COMMAND), "check", "--format", "json", *arguments]
        done = subprocess.run(command, cwd=self._folder, env=self._variables, capture_output=True, text=True, check=False)
        assert done.returncode in {0, 1, 4}, done.stderr
        return done.returncode, json.loads(done.stdout)


def instant(text: str) -> datetime:
    """Reads an instant."""
    return datetime.fromisoformat(text)


def shown(at: datetime) -> str:
    """Writes an instant."""
    return at.isoformat().replace("+00:00", "Z")


@pytest.fixture(name="incident", scope="module")
def _incident(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> dict[str, Any]:
    _, replayed = Job(tmp_path_factory.mktemp("replay"), variables).run("--replay", "--since", RANGE)
    (cluster,) = replayed["clusters"]
    # A check of the future would fail: an hour is left for the tests themselves.
    latest = datetime.now(UTC) - OVER - timedelta(hours=1)
    lasting = [
        one
        for one in cluster["findings"]
        if "resolved" in one and instant(one["resolved"]) < latest and instant(one["resolved"]) - instant(one["fired"]) >= timedelta(minutes=30)
    ]
    # Two integrations may fail at the same time.
    alone = [
        one
        for one in lasting
        if not any(
            other is not one and instant(other["fired"]) <= instant(one["resolved"]) and instant(other.get("resolved", other["fired"])) >= instant(one["fired"])
            for other in cluster["findings"]
        )
    ]
    assert alone, "the sandbox has no incident in this time"
    return dict(alone[-1])


def test_fires_is_sent_again_and_ends(tmp_path: Path, variables: dict[str, str], incident: dict[str, Any]) -> None:
    alertmanager = Alertmanager(tmp_path / "alertmanager")
    with alertmanager.running():
        job = Job(tmp_path / "job", variables)
        # The checks are made as if it were then, but the alerts last from now on.
        target = ("--alertmanager", f"http://127.0.0.1:{alertmanager.port}", "--alert-for", "1h")
        ends = []
        for later in (timedelta(minutes=1), timedelta(minutes=16)):
            before = datetime.now(UTC)
            code, _ = job.run("--at", shown(instant(incident["fired"]) + later), *target)
            assert code == 1
            (alert,) = [one for one in alertmanager.alerts() if one["labels"].get("integration") == incident["group"]["integration"]]
            assert alert["labels"]["alertname"] == "integrations fail"
            assert alert["labels"]["severity"] == "critical"
            assert alert["labels"]["team"] == 'data "é"'
            assert "attempts failed" in alert["annotations"]["summary"]
            assert alert["status"]["state"] == "active"
            assert instant(alert["startsAt"]) == instant(incident["since"])
            ends.append(instant(alert["endsAt"]))
            # Alertmanager keeps milliseconds.
            assert before - timedelta(milliseconds=1) <= ends[-1] - timedelta(hours=1) <= datetime.now(UTC)
        assert ends[0] < ends[1]
        job.run("--at", shown(instant(incident["resolved"]) + OVER), *target)
        assert not [one for one in alertmanager.alerts() if one["labels"].get("integration") == incident["group"]["integration"]]


def test_an_alert_whose_rule_is_gone_ends(tmp_path: Path, variables: dict[str, str], incident: dict[str, Any]) -> None:
    alertmanager = Alertmanager(tmp_path / "alertmanager")
    with alertmanager.running():
        job = Job(tmp_path / "job", variables)
        target = ("--alertmanager", f"http://127.0.0.1:{alertmanager.port}/", "--alert-for", "1h")
        at = shown(instant(incident["fired"]) + timedelta(minutes=1))
        job.run("--at", at, *target)
        assert len(alertmanager.alerts()) == 1
        job.rules.write_text(OTHER)
        code, _ = job.run("--at", at, *target)
        assert code == 0
        assert alertmanager.alerts() == []


def test_what_was_not_taken_is_sent_by_the_next_run(tmp_path: Path, variables: dict[str, str], incident: dict[str, Any]) -> None:
    alertmanager = Alertmanager(tmp_path / "alertmanager")
    job = Job(tmp_path / "job", variables)
    target = ("--alertmanager", f"http://127.0.0.1:{alertmanager.port}", "--alert-for", "1h")
    at = instant(incident["fired"]) + timedelta(minutes=1)
    code, _ = job.run("--at", shown(at), *target)
    assert code == 4
    with alertmanager.running():
        code, _ = job.run("--at", shown(at + timedelta(minutes=1)), *target)
        assert code == 1
        assert len(alertmanager.alerts()) == 1
