"""Exports: what `export` gives is read back by other readers, and files are whole or not there."""

import io
import os
import pathlib
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed
from support import END, START, body, record

import tallyfold

FIRST = "2026-01-01T00:05:00Z"
AT_MID, AT_END = 1767225899.999, 1767226499.999

Samples = dict[tuple[str, frozenset[tuple[str, str]], float], float]


def text(export: tallyfold.Export) -> str:
    return b"".join(export).decode()


def samples(text: str) -> Samples:
    """Reads OpenMetrics as a scraper does."""
    found: Samples = {}
    for family in parsed(text):  # type: ignore[no-untyped-call]
        assert (family.type, family.unit) == ("gauge", "events")
        for sample in family.samples:
            assert sample.timestamp is not None
            key = (sample.name, frozenset(sample.labels.items()), float(sample.timestamp))
            assert key not in found
            found[key] = sample.value
    return found


def expected(
    table: tallyfold.CountTable, stem: str, labels: dict[str, str] | None = None
) -> Samples:
    """What a table's windows hold, as samples."""
    found: Samples = {}
    for row in table.by_window():
        values = {name: value for name, value in row.dimensions.items() if value}
        for count in ("success", "errors", "filtered"):
            of = frozenset([*values.items(), *(labels or {}).items()])
            at = row.window.end.timestamp() - 0.001
            found[f"{stem}_{count}_events", of, round(at, 3)] = getattr(row, count)
    return found


def counted(*bodies: bytes, dimensions: tuple[str, ...] = ("integration",)) -> tallyfold.CountTable:
    tables = []
    for one in bodies:
        aggregator = tallyfold.Aggregator(list(dimensions))
        aggregator.push(one)
        tables.append(aggregator.finish())
    return tallyfold.CountTable.merge_all(tables)


def moved(one: bytes, hours: int) -> bytes:
    """The same result of a later window."""
    return one.replace(START.encode(), f"2026-01-01T{hours:02}:00:00Z".encode()).replace(
        END.encode(), f"2026-01-01T{hours:02}:15:00Z".encode()
    )


def test_a_table_is_read_by_prometheus(table: tallyfold.CountTable) -> None:
    export = tallyfold.export(table, "openmetrics", {"cluster": "eu-1"})
    stem = "tallyfold_event_delivery_by_integration_reason"
    wanted = expected(table, stem, {"cluster": "eu-1"})
    assert len(wanted) == 12
    assert samples(text(export)) == wanted


def test_a_series_is_exported_by_its_windows() -> None:
    one = body([({"integration": "a"}, 1, 2, 3), ({"integration": "b"}, 4, 5, 6)])
    table = counted(*(moved(one, hours) for hours in range(4)))
    series = table.by_window("12h")
    with pytest.warns(tallyfold.WindowsLeftOutWarning):
        assert samples(text(tallyfold.export(series, "openmetrics"))) == {}
    found = samples(text(tallyfold.export(series, "openmetrics", windows="all")))
    assert {at for *_, at in found} == {1767268799.999}
    assert sum(found.values()) == 4 * 21


def test_revisions_are_signed_changes_with_a_number(sandbox: tallyfold.Sandbox) -> None:
    client = tallyfold.Client(
        cluster_endpoint="https://sandbox.example",
        transport=sandbox.transport(),
        **sandbox.credentials,
    )
    with client:
        revision, *_ = client.follow(
            "event_delivery", START, ["integration"], window="15m", end=END
        )
    found = samples(text(tallyfold.export(revision, "openmetrics")))
    changes = {row.dimensions["integration"]: row.delta.errors for row in revision.changes}
    stem = "tallyfold_event_delivery_by_integration_errors_events"
    assert {
        dict(labels)["integration"]: value
        for (name, labels, at), value in found.items()
        if name == stem and at == AT_END and dict(labels)["revision"].isdecimal()
    } == {name: change for name, change in changes.items() if change}


def test_a_comparison_is_refused_with_a_way_out(table: tallyfold.CountTable) -> None:
    comparison: Any = tallyfold.compare(table, table)
    with pytest.raises(tallyfold.ConfigError, match=r"counts: .*Revision.*not Comparison"):
        tallyfold.export(comparison, "openmetrics")


def test_unknown_formats_and_options_are_named(table: tallyfold.CountTable) -> None:
    wrong: Any = "prometheus"
    with pytest.raises(tallyfold.ConfigError, match="format: want openmetrics"):
        tallyfold.export(table, wrong)
    more: Any = {"window": "all"}
    with pytest.raises(tallyfold.ConfigError, match=r"window: .*did you mean windows"):
        tallyfold.export(table, "openmetrics", **more)


def test_labels_of_any_text_come_back() -> None:
    letters = ['"', "\\", "\n", "\r", "\t", "\0", "=", ",", "{", "}", " ", "#", "%", "n", "é", "中"]
    letters += ["\u2028", "\u0085", "\ufeff", "😀", "\U0010ffff", "\x7f"]
    chosen = random.Random(13)
    values = {"".join(chosen.choices(letters, k=chosen.randint(1, 12))) for _ in range(500)}
    table = counted(body(({"integration": value}, 1, 2, 3) for value in sorted(values)))
    own = "".join(letters)
    found = samples(text(tallyfold.export(table, "openmetrics", {"cluster": own})))
    assert len(found) == 3 * len(values)
    assert {dict(labels)["integration"] for _, labels, _ in found} == values
    assert {dict(labels)["cluster"] for _, labels, _ in found} == {own}


def test_what_is_inexact_is_a_warning_or_an_error() -> None:
    table = counted(body([({"integration": "a"}, 2**53 + 1, 0, 0)]))
    with pytest.warns(tallyfold.InexactCountWarning, match=r"9007199254740993.*2\^53") as caught:
        export = tallyfold.export(table, "openmetrics")
    assert caught[0].filename == __file__
    assert [note.kind for note in export.notes] == ["inexact_count"]
    assert export.notes[0].message == str(caught[0].message)
    with pytest.raises(tallyfold.ResponseError) as error:
        tallyfold.export(table, "openmetrics", exact=True)
    assert error.value.code == "inexact_count"
    exact = counted(body([({"integration": "a"}, 2**53, 0, 0)]))
    assert tallyfold.export(exact, "openmetrics", exact=True).notes == ()


def test_a_value_that_is_too_long_for_a_reader_is_a_warning() -> None:
    table = counted(body([({"integration": "x" * 4097}, 1, 0, 0)]))
    with pytest.warns(tallyfold.LongValueWarning, match="integration has 4097 bytes"):
        export = tallyfold.export(table, "openmetrics")
    assert [note.kind for note in export.notes] == ["long_value"]
    assert tallyfold.export(table, "csv").notes == ()


def test_windows_that_may_change_are_left_out_with_a_warning(sandbox: tallyfold.Sandbox) -> None:
    now = int(time.time()) // 900 * 900
    instants = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (now - 900, now)]
    record(sandbox, "success", "email", at=instants[0])
    client = tallyfold.Client(
        cluster_endpoint="https://sandbox.example",
        transport=sandbox.transport(),
        **sandbox.credentials,
    )
    with client:
        table = client.event_delivery(instants[0], instants[1], ["integration"])
    assert len(table.provisional) == 1
    with pytest.warns(tallyfold.WindowsLeftOutWarning, match="1 window .*windows.*all"):
        export = tallyfold.export(table, "openmetrics")
    assert [note.kind for note in export.notes] == ["windows_left_out"]
    assert text(export) == "# EOF\n"
    everything = tallyfold.export(table, "openmetrics", windows="all")
    assert everything.notes == ()
    assert len(samples(text(everything))) == 3


def many(rows: int) -> tallyfold.CountTable:
    return counted(body(({"integration": f"n{number:07}"}, number, 1, 0) for number in range(rows)))


def test_pieces_have_about_the_wanted_size() -> None:
    table = many(2000)
    whole = text(tallyfold.export(table, "openmetrics"))
    pieces = list(tallyfold.export(table, "openmetrics", max_bytes=10_000))
    assert b"".join(pieces).decode() == whole
    assert max(map(len, pieces)) <= 10_000
    assert len(pieces) > len(whole) / 10_000


def by_threads(export: tallyfold.Export) -> list[bytes]:
    """Takes all pieces by eight threads at once."""
    taken: list[list[bytes]] = [[] for _ in range(8)]
    start = threading.Barrier(8)

    def take(own: list[bytes]) -> None:
        start.wait()
        own.extend(export)

    threads = [threading.Thread(target=take, args=[own]) for own in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(export) == []
    return [piece for own in taken for piece in own]


def test_threads_share_an_export() -> None:
    table = many(5000)
    whole = sorted(text(tallyfold.export(table, "openmetrics")).splitlines())
    pieces = by_threads(tallyfold.export(table, "openmetrics", max_bytes=1000))
    # Which thread gets the next piece is up to them; a piece ends with a line.
    assert sorted(b"".join(pieces).decode().splitlines()) == whole


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_threads_share_columns(name: Any, many_rows: tallyfold.CountTable) -> None:
    pieces = by_threads(tallyfold.export(many_rows, name, max_bytes=10_000))
    assert sorted(pieces) == sorted(tallyfold.export(many_rows, name, max_bytes=10_000))


def test_other_threads_run_while_an_export_begins(many_rows: tallyfold.CountTable) -> None:
    """The numbers of all rows are looked at before anything is written."""
    turns = 0
    over = threading.Event()

    def turn() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            time.sleep(0)

    thread = threading.Thread(target=turn)
    interval = sys.getswitchinterval()
    # A thread that asks for the interpreter does not get it from one that runs native code.
    sys.setswitchinterval(100)
    try:
        thread.start()
        while not turns:
            time.sleep(0.001)
        before = turns
        tallyfold.export(many_rows, "openmetrics")
        during = turns - before
    finally:
        over.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert during > 100


@pytest.fixture(scope="module")
def many_rows() -> tallyfold.CountTable:
    """Gives a table of a million rows."""
    dimensions = ("integration", "reason")
    entries = (
        (
            {"integration": f"integration-{number // 1000}", "reason": f"r{number % 1000}"},
            number,
            1,
            0,
        )
        for number in range(1_000_000)
    )
    return counted(body(entries), dimensions=dimensions)


def memory(name: str) -> int:
    """How many bytes of memory this process has (`VmRSS`), or has had at most (`VmHWM`)."""
    status = pathlib.Path("/proc/self/status").read_text("ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if name in line)


def test_memory_does_not_grow_with_rows(many_rows: tallyfold.CountTable) -> None:
    # From now on, the most is that of an export.
    pathlib.Path("/proc/self/clear_refs").write_text("5", "ascii")
    before = memory("VmHWM")
    assert before < memory("VmRSS") + 10_000_000
    total = sum(map(len, tallyfold.export(many_rows, "openmetrics")))
    assert total > 300_000_000
    assert memory("VmHWM") - before < 4_000_000


def test_a_file_is_written_whole(tmp_path: pathlib.Path, table: tallyfold.CountTable) -> None:
    export = tallyfold.export(table, "openmetrics")
    whole = text(tallyfold.export(table, "openmetrics")).encode()
    path = tmp_path / "counts.prom"
    next(export)
    assert export.write_to(path) == len(whole)
    assert export.write_to(str(path)) == len(whole)
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_replaced_file_keeps_its_permissions_and_links(
    tmp_path: pathlib.Path, table: tallyfold.CountTable
) -> None:
    path, link = tmp_path / "counts.prom", tmp_path / "link.prom"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    tallyfold.export(table, "openmetrics").write_to(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_bytes().endswith(b"# EOF\n")


def test_a_pipe_is_written_and_stays(tmp_path: pathlib.Path, table: tallyfold.CountTable) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    written = tallyfold.export(table, "openmetrics").write_to(path)
    reader.join()
    assert path.is_fifo()
    assert len(read[0]) == written


@pytest.mark.parametrize("old", [None, b"old"])
def test_nothing_half_done_stays(tmp_path: pathlib.Path, old: bytes | None) -> None:
    """The limit of a file's size stands for a full disk."""
    path = tmp_path / "counts.prom"
    if old is not None:
        path.write_bytes(old)
    export = tallyfold.export(many(5000), "openmetrics")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            export.write_to(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [own.read_bytes() for own in tmp_path.iterdir()] == ([] if old is None else [old])
    assert export.write_to(path) == path.stat().st_size > 200_000


def test_a_directory_is_not_replaced(tmp_path: pathlib.Path, table: tallyfold.CountTable) -> None:
    path = tmp_path / "directory"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        tallyfold.export(table, "openmetrics").write_to(path)
    assert list(tmp_path.iterdir()) == [path]


class Broken(io.BytesIO):
    """Fails after some bytes."""

    def write(self, data: Any, /) -> int:
        if self.tell() > 100_000:
            raise OSError(28, "No space left on device")
        return super().write(data)


class Slow(io.RawIOBase):
    """A raw file, which may take less than it is given."""

    def __init__(self) -> None:
        self.taken = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.taken += bytes(data[:1000])
        return min(len(data), 1000)


class Wrapped:
    """A file object that wraps a raw file, as those of `tempfile` do."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def test_a_file_object_that_wraps_a_raw_file() -> None:
    export = tallyfold.export(many(5000), "openmetrics")
    whole = text(tallyfold.export(many(5000), "openmetrics")).encode()
    slow = Slow()
    assert export.write_to(cast("BinaryIO", Wrapped(slow))) == len(whole)
    assert bytes(slow.taken) == whole
    with tempfile.NamedTemporaryFile(buffering=0) as file:
        assert export.write_to(cast("BinaryIO", file)) == len(whole)
        assert pathlib.Path(file.name).read_bytes() == whole


@pytest.mark.parametrize("taken", [None, -1, 10**9, "7", 7.0])
def test_a_file_object_that_does_not_say_what_it_took(taken: Any) -> None:
    file: Any = Wrapped(io.BytesIO())
    file.write = lambda _: taken
    with pytest.raises(OSError, match="write"):
        tallyfold.export(many(5), "openmetrics").write_to(file)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of files")
def test_a_file_object_whose_file_is_full() -> None:
    program = """
import resource, signal, sys, tempfile, tallyfold
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
sandbox = tallyfold.Sandbox(seed=7)
with tallyfold.Client(
    cluster_endpoint="https://c.example", transport=sandbox.transport(), **sandbox.credentials
) as client:
    table = client.event_delivery(
        "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ["integration", "reason"]
    )
with tempfile.NamedTemporaryFile(buffering=0) as file:
    try:
        sys.exit(f"wrote {tallyfold.export(table, 'csv').write_to(file)}")
    except OSError as error:
        print(error.strerror)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.stderr) == ("File too large\n", "")


def test_file_objects() -> None:
    export = tallyfold.export(many(5000), "openmetrics")
    whole = text(tallyfold.export(many(5000), "openmetrics")).encode()
    with pytest.raises(OSError, match="No space left"):
        export.write_to(Broken())
    buffer = io.BytesIO()
    assert export.write_to(buffer) == len(whole)
    assert buffer.getvalue() == whole
    slow = Slow()
    assert export.write_to(cast("BinaryIO", slow)) == len(whole)
    assert bytes(slow.taken) == whole
    text_file: Any = io.StringIO()
    with pytest.raises(tallyfold.ConfigError, match=r"target: want .*bytes.*not StringIO"):
        export.write_to(text_file)


def test_an_export_is_not_pickled(table: tallyfold.CountTable) -> None:
    with pytest.raises(TypeError, match="export the counts again"):
        pickle.dumps(tallyfold.export(table, "openmetrics"))


def test_an_export_outlives_its_table() -> None:
    export = tallyfold.export(many(10), "openmetrics")
    assert len(samples(text(export))) == 30


def test_an_empty_path_is_refused(table: tallyfold.CountTable) -> None:
    with pytest.raises(tallyfold.ConfigError, match="target: this is empty"):
        tallyfold.export(table, "openmetrics").write_to("")


def columns(export: tallyfold.Export, name: str) -> pa.Table:
    """Reads what was written as columns."""
    whole = b"".join(export)
    if name == "arrow":
        return pa.ipc.open_stream(whole).read_all()
    return pa.parquet.read_table(io.BytesIO(whole))


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_columns_are_those_of_csv(name: Any, table: tallyfold.CountTable) -> None:
    labels = {"cluster": "eu-1", "empty": ""}
    found = columns(tallyfold.export(table, name, labels), name)
    text = b"".join(tallyfold.export(table, "csv", labels))
    wanted = pyarrow.csv.read_csv(io.BytesIO(text))
    assert found.column_names == wanted.column_names
    assert found.schema.field("success").type == pa.uint64()
    assert found.schema.field("window_start").type == pa.timestamp("us", "UTC")
    rows = found.to_pylist()
    assert len(rows) == len(table)
    for row, other in zip(rows, wanted.to_pylist(), strict=True):
        # A reader of CSV takes an empty field for none.
        assert row == {key: "" if value is None else value for key, value in other.items()}


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_columns_hold_any_count_and_text(name: Any) -> None:
    values = ["", "\0", "a\nb", "😀", '"', "x" * 5000]
    most = [2**64 - 1, *[0] * (len(values) - 1)]
    entries = zip(values, most, strict=True)
    table = counted(body(({"integration": value}, count, 0, 1) for value, count in entries))
    rows = columns(tallyfold.export(table, name), name).to_pylist()
    assert {row["integration"] for row in rows} == set(values)
    assert {row["success"] for row in rows} == {2**64 - 1, 0}


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_columns_of_a_revision_have_a_sign(name: Any) -> None:
    before = counted(body([({"integration": "a"}, 5, 1, 0), ({"integration": "b"}, 1, 1, 1)]))
    after = counted(body([({"integration": "a"}, 3, 1, 0), ({"integration": "b"}, 1, 1, 1)]))
    changes = tallyfold.compare(before, after)
    window = tallyfold.Window(START, END)
    revision = tallyfold.Revision(window, after, changes, settled=False, number=7)
    (row,) = columns(tallyfold.export(revision, name), name).to_pylist()
    assert [row[count] for count in ("success", "errors", "filtered")] == [-2, 0, 0]
    assert (row["revision"], row["settled"]) == (7, False)
    huge = counted(body([({"integration": "a"}, 2**63 + 9, 0, 0)]))
    too_large = tallyfold.Revision(
        window, huge, tallyfold.compare(before, huge), settled=False, number=8
    )
    with pytest.raises(tallyfold.ResponseError, match="count_overflow"):
        tallyfold.export(too_large, name)


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_pieces_of_columns_as_small_as_can_be(table: tallyfold.CountTable, name: Any) -> None:
    whole = b"".join(tallyfold.export(table, name))
    pieces = list(tallyfold.export(table, name, max_bytes=0))
    assert b"".join(pieces) == whole
    assert {len(piece) for piece in pieces} == {1}


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_columns_are_written_in_batches(name: Any, many_rows: tallyfold.CountTable) -> None:
    export = tallyfold.export(many_rows, name, max_bytes=100_000)
    pieces = list(export)
    assert max(map(len, pieces)) <= 100_000
    found = columns(tallyfold.export(many_rows, name), name)
    assert found.num_rows == 1_000_000
    assert pa.compute.sum(found["success"]).as_py() == sum(range(1_000_000))
    assert export.write_to(io.BytesIO()) == sum(map(len, pieces))


def test_memory_of_columns_is_bounded(many_rows: tallyfold.CountTable) -> None:
    for _ in range(2):
        # Once to load what pyarrow needs.
        pathlib.Path("/proc/self/clear_refs").write_text("5", "ascii")
        before = memory("VmHWM")
        total = sum(map(len, tallyfold.export(many_rows, "arrow")))
        grown = memory("VmHWM") - before
    assert total > 40_000_000
    assert grown < total / 2


def test_without_pyarrow() -> None:
    program = """
import sys
sys.modules["pyarrow"] = None
import tallyfold
aggregator = tallyfold.Aggregator(["integration"])
aggregator.push(%r)
try:
    tallyfold.export(aggregator.finish(), "parquet")
except ModuleNotFoundError as error:
    assert "pip install 'tallyfold[arrow]'" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program % body([])], check=True)


def test_what_a_format_can_not_carry(table: tallyfold.CountTable) -> None:
    with pytest.raises(tallyfold.ConfigError) as error:
        tallyfold.export(table, "statsd")
    assert error.value.code == "unsupported_by_format"
    with pytest.raises(tallyfold.ConfigError, match=r"unsupported_by_format.*iterate") as written:
        tallyfold.export(many(2000), "otlp-json", max_bytes=1000).write_to(io.BytesIO())
    assert written.value.code == "unsupported_by_format"


def test_statsd_knows_the_time() -> None:
    now = int(time.time())
    instants = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (now - 60, now)]
    one = body([({"integration": "a"}, 1, 2, 3)])
    one = one.replace(START.encode(), instants[0].encode())
    one = one.replace(END.encode(), instants[1].encode())
    (datagram,) = tallyfold.export(counted(one), "statsd", windows="all")
    assert b":1|c" in datagram
