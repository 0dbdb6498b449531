"""Counts of the last hour by integration and by reason, and the newest audit logs.

Reads the addresses and the credentials of the service from the environment, as a job would
(TALLYFOLD_CLUSTER_ENDPOINT and so on). The end of the hour is the first argument, or now.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import tallyfold


def rate(part: int, whole: int) -> str:
    """A share in percent with one decimal, rounded down; exact for any counts."""
    if whole == 0:
        return "-"
    tenths = part * 1000 // whole
    return f"{tenths // 10}.{tenths % 10}%"


def line(name: str, counts: tallyfold.Counts | tallyfold.Row) -> str:
    """One line of a table: a name, its counts and the share that was delivered."""
    whole = counts.success + counts.errors + counts.filtered
    numbers = f"{counts.success:>12}{counts.errors:>12}{counts.filtered:>12}"
    return f"  {name:<32}{numbers}{rate(counts.success, whole):>10}"


def report(title: str, table: tallyfold.CountTable) -> None:
    """Prints a table by each of its dimensions, and its totals."""
    (window,) = table.coverage
    print(f"{title}, {window.start:%Y-%m-%dT%H:%M:%SZ} to {window.end:%Y-%m-%dT%H:%M:%SZ}")
    for dimension in table.dimensions:
        print(f"  {'by ' + dimension:<32}{'delivered':>12}{'errors':>12}{'filtered':>12}{'rate':>10}")
        for row in table.group_by(dimension).top(8, by="success"):
            print(line(row.dimensions[dimension] or "(none)", row))
    print(line("total", table.totals))
    print(f"  reported totals: {table.reconciliation.verdict}\n")


def main() -> None:
    end = datetime.fromisoformat(sys.argv[1]) if len(sys.argv) > 1 else datetime.now(UTC)
    end = end.replace(second=0, microsecond=0)
    start = end - timedelta(hours=1)
    with tallyfold.Client.from_env() as client:
        delivery = client.event_delivery(start, end, ["integration", "reason"])
        ingestion = client.event_ingestion(start, end, ["integration"])
        logs = client.audit_logs(page=1, per_page=3)
    report("event delivery", delivery)
    report("event ingestion", ingestion)
    print("audit logs")
    # The reference does not show the shape of a record; this is the sandbox's.
    for record in logs["auditLogs"]:
        print(f"  {record['timestamp']}  {record['actor']}  {record['action']}")
    if "TALLYFOLD_SAVE" in os.environ:
        Path(os.environ["TALLYFOLD_SAVE"]).write_text(delivery.to_json(), encoding="utf-8")
    if "TALLYFOLD_CSV" in os.environ:
        csv = tallyfold.export(delivery.group_by("integration"), "csv")
        Path(os.environ["TALLYFOLD_CSV"]).write_bytes(b"".join(csv))


if __name__ == "__main__":
    main()
