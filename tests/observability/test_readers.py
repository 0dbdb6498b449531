"""Label values of any text come back equal from readers that others have written."""

import json
import random
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx2
import pytest
import readers
import tallyfold
import week
from readers import Samples
from servers import COUNTS, InfluxDB, Prometheus, Server, VictoriaMetrics, binary

START, END = "2026-01-05T00:00:00Z", "2026-01-05T00:15:00Z"
AT_MS = week.ms(END) - 1
DIMENSIONS: tuple[tallyfold.DimensionName, ...] = ("integration", "write_key")
STEM = "by_integration_write_key"

#: What some format has to escape, or may trip over.
AWKWARD = [
    "",
    " ",
    "%",
    "%41",
    "%00",
    "\\",
    "a\\",
    "\\\\",
    '"',
    '\\"',
    "'",
    ",",
    "=",
    "a=b,c d",
    "|",
    "#",
    "@0.5",
    ":",
    "{}",
    "\n",
    "\\n",
    "\r",
    "\r\n",
    "\t",
    "\x00",
    "a\x00b",
    "\x00%00",
    "\x1b[0m",
    "\x7f",
    "\x85",
    "\u2028",
    "\u200b",
    "\ufeff",
    "\ufffd",
    "\uffff",
    "😀",
    "e\u0301",
    "é",
    " leading",
    "trailing ",
    "null",
    "=1+1",
    "<b>&amp;",
    "x" * 3000,
    "ü" * 1000 + "\\",
]
CHARACTERS = "".join(chr(code) for code in range(0x80)) + "äß€😀\u0300\u202e\u2029\ud7ff\ue000\U0010ffff"


def values(seed: int, many: int) -> list[tuple[str, str]]:
    """Draws pairs of values."""
    draw = random.Random(seed)

    def value() -> str:
        if draw.random() < 0.2:
            return draw.choice(AWKWARD)
        return "".join(draw.choices(CHARACTERS, k=draw.choice((1, 2, 3, 8, 40))))

    pairs = {(one, draw.choice(AWKWARD[:9])) for one in AWKWARD}
    while len(pairs) < many:
        pairs.add((value(), value()))
    return sorted(pairs)


PAIRS = values(13, 400)


@pytest.fixture(scope="module")
def table() -> tallyfold.CountTable:
    """Gives a table with such values, as a response carries them."""
    entries = [
        {
            "success": str(position + 1),
            "errors": str(2**40 + position),
            "filtered": "0",
            "dimensions": dict(zip(DIMENSIONS, pair, strict=True)),
        }
        for position, pair in enumerate(PAIRS)
    ]
    body = {
        "start": START,
        "end": END,
        "totalDelivered": str(sum(int(entry["success"]) for entry in entries)),  # type: ignore[call-overload]
        "totalErrors": str(sum(int(entry["errors"]) for entry in entries)),  # type: ignore[call-overload]
        "totalFiltered": "0",
        "counts": entries,
    }
    aggregator = tallyfold.Aggregator(DIMENSIONS)
    aggregator.push(json.dumps(body).encode())
    table = aggregator.finish()
    assert [row.values for row in table] == PAIRS
    return table


LABELS = {"cluster": 'eu "1"\\, %=|#\n\x01ü', "zone": ""}


def wanted(table: tallyfold.CountTable, name: Callable[[str], str], *, empty: bool) -> Samples:
    """Gives the samples that a reader must find. Many formats have no empty value."""
    found: Samples = {}
    for row in table:
        labels: dict[str, str] = dict(row.dimensions) | LABELS
        kept = frozenset((key, value) for key, value in labels.items() if value or empty)
        for count in COUNTS:
            found[name(count), kept, AT_MS] = getattr(row, count)
    return found


def with_unit(count: str) -> str:
    return f"tallyfold_{STEM}_{count}_events"


def dotted(count: str) -> str:
    return f"tallyfold.{STEM}.{count}"


READERS: dict[str, tuple[readers.Reader, Callable[[str], str], bool]] = {
    "openmetrics": (readers.openmetrics, with_unit, False),
    "remote-write": (readers.remote_write, with_unit, False),
    "remote-write-2": (readers.remote_write_2, with_unit, False),
    "otlp": (readers.otlp, dotted, False),
    "otlp-json": (readers.otlp_json, dotted, False),
    "dogstatsd": (readers.dogstatsd, dotted, False),
    "datadog": (readers.datadog, dotted, False),
    "csv": (readers.csv_text, str, True),
    "ndjson": (readers.ndjson, str, True),
    "parquet": (readers.parquet, str, True),
    "arrow": (readers.arrow, str, True),
}


@pytest.mark.parametrize("form", READERS)
def test_values_come_back(form: str, table: tallyfold.CountTable) -> None:
    read, name, empty = READERS[form]
    if form == "dogstatsd":
        # An agent would cut the lines of a group with very long values.
        with pytest.raises(tallyfold.ConfigError, match="8,?192"):
            list(tallyfold.export(table, "dogstatsd", LABELS, windows="all"))
        short = {value for pair in PAIRS for value in pair if len(value.encode()) <= 2000}
        table = table.filter(**dict.fromkeys(DIMENSIONS, sorted(short)))
    pieces = list(tallyfold.export(table, form, LABELS, windows="all"))  # type: ignore[arg-type]
    assert read(pieces) == wanted(table, name, empty=empty)
    # And the same if each piece is small.
    small = list(tallyfold.export(table, form, LABELS, windows="all", max_bytes=2000))  # type: ignore[arg-type]
    assert len(small) > 5
    assert read(small) == read(pieces)


def found_by(server: Prometheus | VictoriaMetrics) -> Samples:
    """Gives what a server of Prometheus' kind has of the window."""
    found: Samples = {}
    for count in COUNTS:
        # The name stays, because nothing is summed.
        for labels, value in server.instant(f"{with_unit(count)}", AT_MS):
            name = labels.pop("__name__")
            readers.add(found, name, labels, AT_MS, value)
    return found


def test_prometheus_reads_openmetrics(tmp_path: Path, table: tallyfold.CountTable) -> None:
    tallyfold.export(table, "openmetrics", LABELS, windows="all").write_to(tmp_path / "om")
    made = subprocess.run(
        [binary("promtool"), "tsdb", "create-blocks-from", "openmetrics", "om", "data"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-1000:]
    server = Prometheus(tmp_path)
    with server.running():
        assert found_by(server) == wanted(table, with_unit, empty=False)


@pytest.mark.parametrize("kind", [Prometheus, VictoriaMetrics])
def test_servers_take_any_value_by_remote_write(kind: type[Server], tmp_path: Path, table: tallyfold.CountTable, transport: httpx2.HTTPTransport) -> None:
    options = ("", "--web.enable-remote-write-receiver") if kind is Prometheus else ()
    server = kind(tmp_path, *options)
    assert isinstance(server, Prometheus | VictoriaMetrics)
    with server.running():
        tallyfold.push(table, "remote-write", server.write_url, LABELS, windows="all", transport=transport)
        assert found_by(server) == wanted(table, with_unit, empty=False)


def test_influxdb_reads_its_lines(tmp_path: Path, table: tallyfold.CountTable, transport: httpx2.HTTPTransport) -> None:
    server = InfluxDB(tmp_path)
    with server.running():
        tallyfold.push(table, "influx", server.write_url, LABELS, windows="all", transport=transport)
        sums = server.sums(f"tallyfold_{STEM}", (*DIMENSIONS, *LABELS), week.ms(START), week.ms(END))
    assert sums == {(*row.values, *LABELS.values()): (row.success, row.errors, row.filtered) for row in table}


def test_draws_hold_what_is_awkward() -> None:
    def has(wanted: str) -> Iterable[str]:
        return [value for pair in PAIRS for value in pair if wanted in value]

    for code in range(0x80):
        assert has(chr(code)), code
