"""Readers of each format, by other people's parsers where there are some.

Each gives the samples that it finds: the name of the metric, the labels, and the end of the window in milliseconds, with
the value.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import cramjam
import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
)
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from servers import COUNTS

Sample = tuple[str, frozenset[tuple[str, str]], int]
Samples = dict[Sample, int]
Reader = Callable[[Iterable[bytes]], Samples]
Field = tuple[str, int, str]
FIELD = descriptor_pb2.FieldDescriptorProto


def declared(file: str, messages: dict[str, list[Field]]) -> Callable[[str], Any]:
    """Declares messages of protobuf by the published names, numbers and types of their fields."""
    described = descriptor_pb2.FileDescriptorProto(name=file, package=file, syntax="proto3")
    for name, fields in messages.items():
        message = described.message_type.add(name=name)
        for field, number, kind in fields:
            repeated = kind.startswith("repeated ")
            kind = kind.removeprefix("repeated ")
            added = message.field.add(
                name=field,
                number=number,
                label=FIELD.LABEL_REPEATED if repeated else FIELD.LABEL_OPTIONAL,
            )
            if kind in messages:
                added.type, added.type_name = FIELD.TYPE_MESSAGE, f".{file}.{kind}"
            else:
                added.type = getattr(FIELD, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(described)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file}.{name}"))


#: `prompb/types.proto` and `remote.proto` of Prometheus.
WRITE_1 = declared(
    "prometheus",
    {
        "WriteRequest": [("timeseries", 1, "repeated TimeSeries")],
        "TimeSeries": [("labels", 1, "repeated Label"), ("samples", 2, "repeated Sample")],
        "Label": [("name", 1, "string"), ("value", 2, "string")],
        "Sample": [("value", 1, "double"), ("timestamp", 2, "int64")],
    },
)
#: `prompb/io/prometheus/write/v2/types.proto`.
WRITE_2 = declared(
    "io.prometheus.write.v2",
    {
        "Request": [("symbols", 4, "repeated string"), ("timeseries", 5, "repeated TimeSeries")],
        "TimeSeries": [
            ("labels_refs", 1, "repeated uint32"),
            ("samples", 2, "repeated Sample"),
            ("metadata", 5, "Metadata"),
        ],
        "Sample": [("value", 1, "double"), ("timestamp", 2, "int64")],
        "Metadata": [("type", 1, "int32"), ("help_ref", 3, "uint32"), ("unit_ref", 4, "uint32")],
    },
)


def parsed(kind: Any, message: bytes) -> Any:
    """Reads a message, all of whose fields are known."""
    read = kind()
    read.ParseFromString(message)
    again = kind()
    json_format.Parse(json_format.MessageToJson(read), again)
    assert again == read
    return read


def remote_write(pieces: Iterable[bytes]) -> Samples:
    found: Samples = {}
    for piece in pieces:
        message = parsed(WRITE_1("WriteRequest"), unsnapped(piece))
        for series in message.timeseries:
            add_series(found, [(one.name, one.value) for one in series.labels], series.samples)
    return found


def remote_write_2(pieces: Iterable[bytes]) -> Samples:
    found: Samples = {}
    for piece in pieces:
        message = parsed(WRITE_2("Request"), unsnapped(piece))
        symbols = message.symbols
        assert symbols[0] == ""
        assert len(set(symbols)) == len(symbols)
        for series in message.timeseries:
            names = [symbols[reference] for reference in series.labels_refs]
            add_series(found, list(zip(names[::2], names[1::2], strict=True)), series.samples)
            assert symbols[series.metadata.unit_ref] == "events"
            assert series.metadata.type == 2, "want a gauge"
    return found


def unsnapped(piece: bytes) -> bytes:
    return bytes(cramjam.snappy.decompress_raw(piece))


def add_series(found: Samples, pairs: list[tuple[str, str]], samples: Iterable[Any]) -> None:
    """Both versions want labels that are sorted, and samples that are sorted."""
    assert pairs == sorted(pairs)
    labels = dict(pairs)
    assert len(labels) == len(pairs)
    assert "" not in labels.values()
    name = labels.pop("__name__")
    times = [sample.timestamp for sample in samples]
    assert times == sorted(set(times))
    for sample in samples:
        add(found, name, labels, sample.timestamp, sample.value)


def openmetrics(pieces: Iterable[bytes]) -> Samples:
    found: Samples = {}
    text = b"".join(pieces).decode()
    for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call]
        assert (family.type, family.unit) == ("gauge", "events")
        for sample in family.samples:
            at = round(float(sample.timestamp) * 1000)
            add(found, sample.name, sample.labels, at, sample.value)
    return found


def otlp(pieces: Iterable[bytes]) -> Samples:
    return otlp_messages(parsed(metrics_service_pb2.ExportMetricsServiceRequest, piece) for piece in pieces)


def otlp_totals(message: bytes) -> Iterator[tuple[str, dict[str, str], int, int, int]]:
    """Gives the points of cumulative sums: name, labels, start, time and value."""
    request = parsed(metrics_service_pb2.ExportMetricsServiceRequest, message)
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    for metric in scope.metrics:
        of = metric.sum
        assert of.aggregation_temporality == metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
        assert of.is_monotonic
        assert metric.unit == "{event}"
        for point in of.data_points:
            labels = {one.key: one.value.string_value for one in point.attributes}
            assert len(labels) == len(point.attributes)
            assert point.start_time_unix_nano < point.time_unix_nano
            yield metric.name, labels, point.start_time_unix_nano, point.time_unix_nano, point.as_int


def otlp_json(pieces: Iterable[bytes]) -> Samples:
    return otlp_messages(json_format.Parse(piece, metrics_service_pb2.ExportMetricsServiceRequest()) for piece in pieces)


def otlp_messages(messages: Iterable[Any]) -> Samples:
    found: Samples = {}
    for message in messages:
        for resource in message.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    of = metric.sum
                    assert of.aggregation_temporality == metrics_pb2.AGGREGATION_TEMPORALITY_DELTA
                    for point in of.data_points:
                        assert point.WhichOneof("value") == "as_int"
                        assert point.as_int >= 0 or not of.is_monotonic
                        labels = {one.key: one.value.string_value for one in point.attributes}
                        assert len(labels) == len(point.attributes)
                        assert point.start_time_unix_nano < point.time_unix_nano
                        at = point.time_unix_nano // 1_000_000 - 1
                        add(found, metric.name, labels, at, point.as_int)
    return found


def dogstatsd(pieces: Iterable[bytes]) -> Samples:
    """Reads datagrams by the published grammar, protocol 1.3.

    `<NAME>:<VALUE>|c|#<TAG>:<VALUE>,<TAG>:<VALUE>|T<TIMESTAMP>`
    """
    found: Samples = {}
    for piece in pieces:
        for line in piece.decode().rstrip("\n").split("\n"):
            head, *parts = line.split("|")
            name, _, value = head.partition(":")
            kind, *rest = parts
            assert kind == "c"
            sections = {section[0]: section[1:] for section in rest}
            assert set(sections) <= {"#", "T"}
            assert len(sections) == len(rest)
            tags = [tag.partition(":") for tag in sections.get("#", "").split(",") if tag]
            labels = {key: unquote(text, errors="strict") for key, _, text in tags}
            assert len(labels) == len(tags)
            add(found, name, labels, int(sections["T"]) * 1000 + 999, int(value))
    return found


def datadog(pieces: Iterable[bytes]) -> Samples:
    found: Samples = {}
    for piece in pieces:
        assert len(piece) <= 500_000
        for series in json.loads(piece)["series"]:
            tags = [tag.partition(":") for tag in series["tags"]]
            labels = {key: text for key, _, text in tags}
            assert (series["type"], series["interval"]) == (1, 900)
            for point in series["points"]:
                add(found, series["metric"], labels, point["timestamp"] * 1000 + 999, point["value"])
    return found


def csv_text(pieces: Iterable[bytes]) -> Samples:
    text = io.StringIO(b"".join(pieces).decode(), newline="")
    return rows_of(csv.DictReader(text, strict=True))


def ndjson(pieces: Iterable[bytes]) -> Samples:
    lines = b"".join(pieces).decode().removesuffix("\n").split("\n")
    return rows_of(json.loads(line) for line in lines)


def parquet(pieces: Iterable[bytes]) -> Samples:
    return rows_of(pq.read_table(io.BytesIO(b"".join(pieces))).to_pylist())


def arrow(pieces: Iterable[bytes]) -> Samples:
    return rows_of(pa.ipc.open_stream(b"".join(pieces)).read_all().to_pylist())


def rows_of(rows: Iterable[dict[str, Any]]) -> Samples:
    """Reads rows whose columns are named."""
    found: Samples = {}
    for row in rows:
        labels = {name: value for name, value in row.items() if name not in {*COUNTS, "window_start", "window_end", "settled"}}
        end = row["window_end"] if isinstance(row["window_end"], datetime) else datetime.fromisoformat(row["window_end"])
        at = round(end.timestamp() * 1000) - 1
        for count in COUNTS:
            add(found, count, labels, at, int(row[count]))
    return found


def add(found: Samples, name: str, labels: dict[str, str], at: int, value: float) -> None:
    assert float(value).is_integer()
    sample = name, frozenset(labels.items()), at
    assert sample not in found, sample
    found[sample] = int(value)
