"""Prints what is wrong according to the rules in rules.toml.

Also prints what explains the difference between the last hour and the hour before. Reads the
addresses and the credentials of the service from the environment, as a job would
(TALLYFOLD_CLUSTER_ENDPOINT and so on). The newest timestamp is the first argument, or now. The
state for the next check is in the file that TALLYFOLD_STATE names, or in health.json.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import tallyfold

QUARTER = timedelta(minutes=15)
HOUR = timedelta(hours=1)


def main() -> None:
    now = datetime.fromisoformat(sys.argv[1]) if len(sys.argv) > 1 else datetime.now(UTC)
    end = now - (now - datetime(2000, 1, 1, tzinfo=UTC)) % QUARTER
    rules = tallyfold.Rules.parse(Path(__file__).with_name("rules.toml").read_text("utf-8"))
    counts = {}
    with tallyfold.Client.from_env() as client:
        for need in rules.needs():
            start = end - timedelta(seconds=need.back)
            counts[need.metric] = client.collect(need.metric, start, end, need.dimensions, window=need.window, progress=False)
        dimensions = ["write_key", "integration", "reason"]
        before = client.event_delivery(end - 2 * HOUR, end - HOUR, dimensions)
        last = client.event_delivery(end - HOUR, end, dimensions)

    state = Path(os.environ.get("TALLYFOLD_STATE", "health.json"))
    check = rules.check(
        delivery=counts["event_delivery"],
        ingestion=counts["event_ingestion"],
        state=state.read_text("utf-8") if state.exists() else None,
        now=now,
    )
    state.write_text(check.state, "utf-8")
    for finding in check.findings:
        print(f"{finding.severity}, {finding.status}: {finding.sentence}")
    print(f"{check.judged} windows of groups were judged, healthy: {'yes' if check.healthy else 'no'}")
    print(tallyfold.explain(before, last, "filtered_rate").sentence)


if __name__ == "__main__":
    main()
