from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import GenericAlias
from typing import (
    ClassVar,
    Final,
    Generic,
    Literal,
    Never,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
)

from typing_extensions import Buffer, CapsuleType, Unpack, disjoint_base

from tallyfold._arguments import (
    AggregatorArguments,
    CollectArguments,
    Dimensions,
    EventArguments,
    ExplainArguments,
    ExportArguments,
    FaultArguments,
    FollowArguments,
    Instant,
    LimitsArguments,
    MachineArguments,
    PagesArguments,
    PushArguments,
    SandboxArguments,
    Step,
)
from tallyfold._client.steps import Blocked, Done, Drive, Idle, ProvideToken, Send, Wait
from tallyfold._errors import ErrorKind
from tallyfold._export.exporting import Note
from tallyfold._export.report import PushReport
from tallyfold._health.results import Check, Explanation, Need, Replay
from tallyfold._names import (
    ApiName,
    CountName,
    DimensionName,
    EndpointName,
    ErrorCode,
    ExportFormat,
    FaultKind,
    Measure,
    MetricName,
)
from tallyfold._ranges.values import Additivity, Revision
from tallyfold._sandbox.sandbox import SandboxResponse
from tallyfold._time import SeriesWindow, Window
from tallyfold._values import (
    Attempt,
    ComparisonRow,
    Counts,
    Deltas,
    Notes,
    Rates,
    Reconciliation,
    Row,
    SeriesRow,
)

__all__ = [
    "Aggregator",
    "Call",
    "Collect",
    "Columns",
    "Comparison",
    "CountTable",
    "Finished",
    "Follow",
    "Frame",
    "Held",
    "Machine",
    "Message",
    "Pending",
    "Pieces",
    "Plan",
    "Probe",
    "Push",
    "Request",
    "RuleSet",
    "Sandbox",
    "Series",
    "Totals",
    "__version__",
    "compare",
    "count_rates",
    "error_codes",
    "explain",
    "failed_answer",
    "good_answer",
    "limits_of",
    "page_question",
    "pages_options",
    "sealed",
    "segment_name",
    "unsealed",
]

__version__: Final[str]

_T_co = TypeVar("_T_co", covariant=True)
_Row_co = TypeVar("_Row_co", covariant=True)

def compare(before: CountTable, after: CountTable) -> Comparison: ...
def explain(
    before: CountTable,
    now: CountTable,
    measure: Measure,
    /,
    **options: Unpack[ExplainArguments],
) -> Explanation: ...
def count_rates(success: int, errors: int, filtered: int) -> Rates: ...
def error_codes() -> dict[ErrorCode, ErrorKind]: ...
def limits_of(**limits: Unpack[LimitsArguments]) -> dict[str, int]: ...
def segment_name(number: int) -> str: ...

_Asked: TypeAlias = (
    tuple[MetricName, tuple[str, str, list[DimensionName]], tuple[str, bool]]
    | tuple[Literal["token"], tuple[ApiName], tuple[()]]
    | tuple[Literal["audit_logs"], tuple[int | None, int | None], tuple[()]]
)
_Answer: TypeAlias = tuple[int, list[tuple[str, str]], bytes]

def pages_options(**options: Unpack[PagesArguments]) -> tuple[float, int, int]: ...
def page_question(
    service: str,
    method: str,
    target: str,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    is_allowed: bool,
    now: tuple[int, int],
    **options: Unpack[PagesArguments],
) -> _Asked: ...
def good_answer(body: bytes) -> _Answer: ...
def failed_answer(
    code: str, status: int | None, message: str, retry_after: int | None
) -> _Answer: ...
def sealed(key: str, body: bytes) -> bytes: ...
def unsealed(key: str, kept: bytes) -> bytes | None: ...

@final
class RuleSet:
    standard: ClassVar[str]
    def __new__(cls, text: str) -> Self: ...
    @property
    def names(self) -> list[str]: ...
    def needs(self) -> list[Need]: ...
    def check(
        self,
        delivery: CountTable | None,
        ingestion: CountTable | None,
        state: str | Buffer | None,
        now: Instant,
    ) -> tuple[Check, str]: ...
    def replay(
        self,
        delivery: CountTable | None,
        ingestion: CountTable | None,
        start: Instant,
        end: Instant,
    ) -> Replay: ...

@final
class Pieces:
    def __new__(
        cls,
        counts: CountTable | Series | Revision,
        now_ms: int,
        /,
        *,
        format: ExportFormat,  # noqa: A002
        labels: Mapping[str, str] | None = None,
        **options: Unpack[ExportArguments],
    ) -> Self: ...
    @property
    def media_type(self) -> str: ...
    @property
    def is_messages(self) -> bool: ...
    @property
    def notes(self) -> list[Note]: ...
    def again(self) -> Pieces: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...

@final
class Columns:
    def __new__(
        cls,
        counts: CountTable | Series | Revision,
        /,
        *,
        format: ExportFormat,  # noqa: A002
        labels: Mapping[str, str] | None = None,
        **options: Unpack[ExportArguments],
    ) -> Self: ...
    @property
    def notes(self) -> list[Note]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...

@final
class Totals:
    media_type: ClassVar[str]
    def __new__(cls, saved: str | bytes | None = None) -> Self: ...
    @property
    def state(self) -> str | None: ...
    @property
    def settled_until(self) -> tuple[str, int] | None: ...
    @property
    def inexact(self) -> str | None: ...
    def added(self, revision: Revision, state: str) -> Totals: ...
    def to_json(self) -> str: ...
    def counters(
        self, labels: Mapping[str, str] | None = None, name: str | None = None
    ) -> list[tuple[str, str, list[str], list[tuple[list[str], int]]]]: ...
    def openmetrics(
        self, labels: Mapping[str, str] | None = None, name: str | None = None
    ) -> str: ...

@final
class Held:
    def __new__(cls, saved: str | bytes | None = None) -> Self: ...
    def put(self, revision: Revision, state: str, format: ExportFormat) -> Held: ...  # noqa: A002
    def finished(self, format: ExportFormat) -> int | None: ...  # noqa: A002
    def pending(self, format: ExportFormat) -> tuple[Pending, int] | None: ...  # noqa: A002
    def finish(self, samples: int) -> Held: ...
    def clear(self) -> Held: ...
    @property
    def state(self) -> str | None: ...
    def to_json(self) -> str: ...

@final
class Pending: ...

@final
class Push:
    def __new__(
        cls,
        counts: CountTable | Series | Revision,
        now_ms: int,
        finished: int,
        /,
        *,
        format: ExportFormat,  # noqa: A002
        url: str,
        labels: Mapping[str, str] | None = None,
        **options: Unpack[PushArguments],
    ) -> Self: ...
    @property
    def notes(self) -> list[Note]: ...
    @property
    def finished(self) -> int: ...
    def step(self, now: tuple[int, int]) -> Message | Wait | Finished | Done: ...
    def head(self, status: int, headers: Sequence[tuple[str, str]]) -> bool: ...
    def chunk(self, data: Buffer) -> bool: ...
    def end(self) -> None: ...
    def sent(self) -> None: ...
    def failed(self, detail: str, *, timed_out: bool = False) -> None: ...
    def report(self) -> PushReport: ...

@final
class Message:
    @property
    def method(self) -> Literal["POST"]: ...
    @property
    def url(self) -> str: ...
    @property
    def headers(self) -> list[tuple[str, str]]: ...
    @property
    def body(self) -> bytes: ...
    @property
    def is_datagram(self) -> bool: ...

@final
class Finished:
    @property
    def samples(self) -> int: ...

_Settled: TypeAlias = Literal[
    "kept", "provisional", "halved", "failed", "given_back", "postponed", "probed"
]

class _Wanted(TypedDict, total=False):
    event_name: str | Iterable[str]
    write_key: str | Iterable[str]
    integration: str | Iterable[str]
    reason: str | Iterable[str]

class _Credentials(TypedDict):
    client_id: str
    client_secret: str
    control_audience: str
    orchestration_audience: str

@disjoint_base
class Frame(Generic[_Row_co]):
    @property
    def dimensions(self) -> tuple[DimensionName, ...]: ...
    @property
    def metric(self) -> MetricName | None: ...
    def top(self, n: int, by: CountName = ...) -> list[_Row_co]: ...
    def to_json(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __array__(self, dtype: object | None = None, copy: object | None = None) -> Never: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> _Row_co: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[_Row_co]: ...
    def __iter__(self) -> Iterator[_Row_co]: ...
    def __reversed__(self) -> Iterator[_Row_co]: ...

@final
class CountTable(Frame[Row]):
    @property
    def totals(self) -> Counts: ...
    @property
    def reported(self) -> Counts | None: ...
    @property
    def reconciliation(self) -> Reconciliation: ...
    @property
    def coverage(self) -> list[Window]: ...
    @property
    def windows(self) -> list[Window]: ...
    @property
    def provisional(self) -> list[Window]: ...
    @property
    def notes(self) -> Notes: ...
    def group_by(self, *names: DimensionName | str) -> CountTable: ...
    def filter(self, **wanted: Unpack[_Wanted]) -> CountTable: ...
    def merge(self, other: CountTable, *, replace: bool = False) -> CountTable: ...
    @staticmethod
    def merge_all(tables: Iterable[CountTable]) -> CountTable: ...
    def gaps(self, start: Instant | None = None, end: Instant | None = None) -> list[Window]: ...
    def by_window(self, step: Step | None = None) -> Series: ...
    @classmethod
    def from_json(cls, data: str | Buffer) -> CountTable: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Series(Frame[SeriesRow]):
    @property
    def step(self) -> str | None: ...
    @property
    def windows(self) -> list[SeriesWindow]: ...
    @property
    def complete(self) -> bool: ...
    @property
    def totals(self) -> Counts: ...
    def fill_zeros(self) -> Series: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Comparison(Frame[ComparisonRow]):
    @property
    def before_coverage(self) -> list[Window]: ...
    @property
    def after_coverage(self) -> list[Window]: ...
    @property
    def before_totals(self) -> Counts: ...
    @property
    def after_totals(self) -> Counts: ...
    @property
    def total_delta(self) -> Deltas: ...
    @property
    def new(self) -> list[ComparisonRow]: ...
    @property
    def vanished(self) -> list[ComparisonRow]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Plan:
    def __new__(cls, start: Instant, end: Instant, window: Step) -> Self: ...
    @property
    def range(self) -> Window: ...
    @property
    def step(self) -> str: ...
    def part(self, index: int, of: int) -> Plan: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Window: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[Window]: ...
    def __iter__(self) -> Iterator[Window]: ...
    def __reversed__(self) -> Iterator[Window]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Aggregator:
    def __new__(
        cls,
        dimensions: Dimensions,
        group_by: Dimensions | None = None,
        **options: Unpack[AggregatorArguments],
    ) -> Self: ...
    def push(self, chunk: Buffer) -> None: ...
    def finish(self) -> CountTable: ...

@final
class Machine:
    def __new__(cls, **options: Unpack[MachineArguments]) -> Self: ...
    @staticmethod
    def _of_client(others: Sequence[str], **named: Unpack[MachineArguments]) -> Machine: ...
    @staticmethod
    def _missing(given: Sequence[str], has_tokens: bool) -> list[str]: ...
    def event_delivery(
        self,
        start: Instant,
        end: Instant,
        dimensions: Dimensions,
        group_by: Dimensions | None = None,
        *,
        deadline: float | None = None,
    ) -> Call[CountTable]: ...
    def event_ingestion(
        self,
        start: Instant,
        end: Instant,
        dimensions: Dimensions,
        group_by: Dimensions | None = None,
        *,
        deadline: float | None = None,
    ) -> Call[CountTable]: ...
    def audit_logs(
        self,
        page: int | None = None,
        per_page: int | None = None,
        *,
        deadline: float | None = None,
    ) -> Call[bytes]: ...
    def token(self, api: ApiName) -> Call[tuple[str, int]]: ...
    def collect(
        self,
        metric: MetricName,
        start: Instant,
        end: Instant,
        dimensions: Dimensions,
        **options: Unpack[CollectArguments],
    ) -> Collect: ...
    def _collect_of_client(
        self,
        others: Sequence[str],
        metric: MetricName,
        start: Instant,
        end: Instant,
        dimensions: Dimensions,
        **named: Unpack[CollectArguments],
    ) -> Collect: ...
    def follow(
        self,
        metric: MetricName,
        start: Instant,
        dimensions: Dimensions,
        **options: Unpack[FollowArguments],
    ) -> Follow: ...
    def _follow_of_client(
        self,
        others: Sequence[str],
        metric: MetricName,
        start: Instant,
        dimensions: Dimensions,
        **named: Unpack[FollowArguments],
    ) -> Follow: ...
    def probe_additivity(
        self,
        metric: MetricName,
        start: Instant,
        middle: Instant,
        end: Instant,
        dimensions: Dimensions,
    ) -> Probe: ...
    @property
    def timeout(self) -> float | None: ...
    def token_epoch(self) -> int: ...

@final
class Collect:
    def next(self, now: tuple[int, int]) -> Drive | Idle | Done: ...
    def settle(self, task: int, call: Call[CountTable], now: tuple[int, int]) -> _Settled: ...
    @property
    def concurrency(self) -> int: ...
    def progress(self) -> tuple[int, int, int, int]: ...
    @property
    def waiting(self) -> float | None: ...
    def provisional(self) -> list[Window]: ...
    def unsaved(self) -> tuple[str, bytes] | None: ...
    def load(self, name: str, data: str | Buffer) -> None: ...
    def finish(self) -> CountTable: ...

@final
class Follow:
    def next(self, now: tuple[int, int]) -> Drive | Wait | Done: ...
    def settle(
        self, task: int, call: Call[CountTable], now: tuple[int, int]
    ) -> Revision | None: ...
    @property
    def waiting(self) -> float | None: ...
    def state(self) -> str: ...
    def provisional(self) -> list[Window]: ...

@final
class Probe:
    def step(self) -> Drive | Idle | Done: ...
    def settle(self, task: int, call: Call[CountTable]) -> None: ...
    def finish(self) -> Additivity: ...

@final
class Call(Generic[_T_co]):
    @classmethod
    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    def step(self, now: tuple[int, int]) -> Send | ProvideToken | Blocked | Wait | Done: ...
    def time_left(self, now: tuple[int, int]) -> int | None: ...
    def head(self, status: int, headers: Sequence[tuple[str, str]]) -> bool: ...
    def chunk(self, data: Buffer) -> None: ...
    def end(self) -> None: ...
    def failed(self, detail: str, *, timed_out: bool = False) -> None: ...
    def token(self, value: str, lifetime: int | None = None) -> None: ...
    def token_failed(self) -> None: ...
    def output(self) -> _T_co: ...
    def attempt(self) -> Attempt | None: ...
    def close(self) -> None: ...

@final
class Request:
    @property
    def method(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def headers(self) -> list[tuple[str, str]]: ...
    @property
    def body(self) -> bytes | None: ...

@disjoint_base
class Sandbox:
    def __new__(cls, **options: Unpack[SandboxArguments]) -> Self: ...
    @property
    def credentials(self) -> _Credentials: ...
    @property
    def stats(self) -> dict[EndpointName, int]: ...
    def record(
        self, timestamp: Instant, outcome: CountName, **options: Unpack[EventArguments]
    ) -> None: ...
    def inject(self, kind: FaultKind, **options: Unpack[FaultArguments]) -> None: ...
    def handle(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | bytearray | memoryview,
        now: tuple[int, int],
    ) -> SandboxResponse: ...
    def revoke_tokens(self) -> None: ...
