"""What a collect keeps, how much memory that takes, and checkpoints of ranges that move."""

import asyncio
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars
import pytest
from service import DAY, Service, busy_day, truth
from support import record

import tallyfold

DIMENSIONS: list[tallyfold.DimensionName] = ["integration"]


def collect(service: Service, **options: Any) -> tallyfold.CountTable:
    start, end = options.pop("range", DAY)
    with service.client() as client:
        return client.collect("event_delivery", start, end, DIMENSIONS, **options)


def acollect(service: Service, **options: Any) -> tallyfold.CountTable:
    start, end = options.pop("range", DAY)

    async def main() -> tallyfold.CountTable:
        async with service.async_client() as client:
            return await client.collect("event_delivery", start, end, DIMENSIONS, **options)

    return asyncio.run(main())


BOTH = pytest.mark.parametrize("run", [collect, acollect])


@BOTH
@pytest.mark.parametrize(
    ("keep", "windows"),
    [("windows", 96), ("6h", 4), (datetime.timedelta(hours=1), 24), ("1d", 1), ("total", 1)],
)
def test_windows_are_added_up_to_what_is_kept(run: Any, keep: Any, windows: int) -> None:
    sandbox = busy_day()
    table = run(Service(sandbox), keep=keep)
    assert len(table.windows) == windows
    assert list(table) == truth(sandbox, *DAY)
    assert table.coverage == [tallyfold.Window(*DAY)]
    assert table.provisional == []


@pytest.mark.parametrize("keep", ["10m", "all", "", 5])
def test_what_can_not_be_kept_is_refused(keep: Any) -> None:
    service = Service(busy_day())
    with pytest.raises(tallyfold.ConfigError, match="keep"):
        collect(service, keep=keep)
    assert service.asked == []


@BOTH
def test_too_much_memory_names_keep(run: Any) -> None:
    with pytest.raises(tallyfold.ConfigError, match=r"memory_limit, 2000 bytes.* keep,") as caught:
        run(Service(busy_day()), memory_limit=2000)
    assert caught.value.code == "memory_limit"
    assert caught.value.partial is not None
    assert 0 < len(caught.value.partial.windows) < 96


@BOTH
def test_a_window_that_needs_more_than_its_share_is_read_alone(run: Any) -> None:
    sandbox = tallyfold.Sandbox()
    for number in range(20_000):
        for minute in (1, 31):
            record(sandbox, "success", f"integration {number}", at=f"2026-01-01T00:{minute:02}:00Z")
    hour = (DAY[0], "2026-01-01T01:00:00Z")
    service = Service(sandbox)
    table = run(service, range=hour, window="15m", keep="total", memory_limit=8 << 20)
    assert list(table) == truth(sandbox, *hour)
    assert len(service.asked) > 4
    # What does not fit even alone ends the collect with the limit's own error.
    with pytest.raises(tallyfold.ConfigError) as caught:
        run(Service(sandbox), range=hour, window="15m", keep="total", memory_limit=2 << 20)
    assert caught.value.code == "memory_limit"
    assert caught.value.partial is not None


@BOTH
def test_a_window_of_today_is_provisional_and_read_again(run: Any, hour: datetime.datetime) -> None:
    start, end = hour - datetime.timedelta(hours=4), hour
    service = Service(tallyfold.Sandbox(seed=4))
    table = run(service, range=(start, end), window="1h")
    (last,) = table.provisional
    assert last.end == end
    assert len(table.windows) == 4
    # Saved and loaded, it is known still.
    loaded = tallyfold.CountTable.from_json(table.to_json())
    assert loaded == table
    assert loaded.provisional == [last]
    assert json.loads(table.to_json())["windows"][3]["provisional"] is True
    service.asked.clear()
    again = run(service, range=(start, end), window="1h", have=loaded)
    assert service.asked == [last.start_text]
    assert list(again) == list(table)


def test_a_single_call_and_a_follow_tell_what_is_provisional(hour: datetime.datetime) -> None:
    start, end = hour - datetime.timedelta(hours=1), hour
    with Service(tallyfold.Sandbox(seed=4)).client() as client:
        assert len(client.event_delivery(start, end, DIMENSIONS).provisional) == 1
        before = start - datetime.timedelta(hours=1)
        assert client.event_delivery(before, start, DIMENSIONS).provisional == []
        follow = client.follow("event_delivery", start, DIMENSIONS, window="1h", end=end)
        with follow as revisions:
            first = next(revisions)
        assert (first.settled, len(first.table.provisional)) == (False, 1)


@BOTH
@pytest.mark.parametrize("keep", ["windows", "1h"])
def test_a_range_that_moves_reads_what_is_new(tmp_path: Path, run: Any, keep: str) -> None:
    sandbox = busy_day()
    service = Service(sandbox)
    for number, (start, end) in enumerate(((0, 12), (3, 15), (6, 18), (6, 18))):
        service.asked.clear()
        hours = f"2026-01-01T{start:02}:00:00Z", f"2026-01-01T{end:02}:00:00Z"
        table = run(service, range=hours, keep=keep, checkpoint=tmp_path, drop_old=True)
        assert list(table) == truth(sandbox, *hours)
        assert len(service.asked) == (48, 12, 12, 0)[number]
    first = run(service, range=("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"), keep=keep)
    assert len(first.windows) == (4 if keep == "windows" else 1)
    stored = [json.loads(path.read_bytes()) for path in tmp_path.glob("segment-*.json")]
    kept = [window["start"] for of in stored if of["table"] for window in of["table"]["windows"]]
    # A segment of hours is dropped hour by hour, one of single windows when all of it is old.
    assert (min(kept) >= "2026-01-01T06") == (keep == "1h")


MEMORY = """
import json, sys
import httpx2, tallyfold

KEEP, DAYS = sys.argv[1], int(sys.argv[2])
ROWS = [
    {"success": str(7 * n + 40_000), "errors": str(n % 90), "filtered": "3", "dimensions": {
        "integration": f"integration {n % 40}", "reason": f"a reason of failure, number {n // 40}",
        "event_name": f"Event {n % 17}", "write_key": f"wk_{n % 5}"}}
    for n in range(1_200)
]
SUCCESS = sum(int(row["success"]) for row in ROWS)
REST = json.dumps(ROWS)[1:]


class Answers(httpx2.BaseTransport):
    def handle_request(self, request):
        if request.url.path.endswith("/oauth/token"):
            token = {"access_token": "t", "token_type": "Bearer", "expires_in": 86_400}
            return httpx2.Response(200, json=token)
        asked = json.loads(request.content)
        errors = str(sum(int(row["errors"]) for row in ROWS))
        totals = {"totalDelivered": str(SUCCESS), "totalErrors": errors, "totalFiltered": "3600"}
        head = json.dumps({"start": asked["start"], "end": asked["end"], **totals})
        body = head[:-1] + ', "counts": [' + REST + "}"
        headers = {"content-type": "application/json"}
        return httpx2.Response(200, headers=headers, content=body.encode())


def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024


client = tallyfold.Client(
    cluster_endpoint="https://cluster.example", client_id="i", client_secret="s",
    control_audience="c", transport=Answers(),
)
dimensions = ["integration", "reason", "event_name", "write_key"]
client.collect("event_delivery", "2025-01-01T00:00:00Z", "2025-01-01T04:00:00Z", dimensions)
idle = resident("VmRSS")
month = f"2025-01-{DAYS + 1:02}T00:00:00Z"
table = client.collect("event_delivery", "2025-01-01T00:00:00Z", month, dimensions, keep=KEEP)
assert table.totals.success == SUCCESS * 96 * DAYS
grown = resident("VmHWM") - idle
print(json.dumps({"windows": len(table.windows), "grown": grown}))
"""


# A busy machine takes several times as long as others.
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("keep", "windows", "most"), [("windows", 2_880, 100), ("1d", 30, 30)])
def test_a_month_of_1200_groups_takes_little_memory(keep: str, windows: int, most: int) -> None:
    """At most 100 MiB for 3,456,000 rows, each of which takes at most 16 bytes."""
    job = subprocess.run(
        [sys.executable, "-c", MEMORY, keep, "30"], check=True, capture_output=True, text=True
    )
    result = json.loads(job.stdout)
    assert result["windows"] == windows
    assert result["grown"] < most


def test_what_lies_in_the_future_is_a_gap(hour: datetime.datetime) -> None:
    start, end = hour - datetime.timedelta(hours=4), hour + datetime.timedelta(hours=4)
    service = Service(tallyfold.Sandbox())
    record(service.sandbox, "success", "email", at=f"{start:%Y-%m-%dT%H:%M:%SZ}")
    with service.client() as client:
        table = client.collect("event_delivery", start, end, ["integration"], window="1h")
    (gap,) = table.gaps(start, end)
    assert (gap.start, gap.end) == (hour, end)
    hours = table.by_window("1h")
    assert [window.complete for window in hours.windows][:4] == [True] * 4
    assert not any(window.complete for window in hours.windows[5:])
    # The last hour before this one ended less than `settle` ago.
    settled = polars.DataFrame(hours.fill_zeros())["settled"].to_list()
    assert settled[:3] == [True] * 3
    assert not any(settled[4:])
