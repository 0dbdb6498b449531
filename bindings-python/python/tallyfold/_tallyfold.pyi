from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from types import GenericAlias
from typing import (
    ClassVar,
    Final,
    Generic,
    Self,
    SupportsIndex,
    TypedDict,
    TypeVar,
    final,
    overload,
)

from typing_extensions import Buffer, CapsuleType, Unpack, disjoint_base

from tallyfold._errors import ErrorCode, ErrorKind
from tallyfold._facade import ApiName
from tallyfold._sandbox import EndpointName
from tallyfold._values import (
    CountName,
    Counts,
    DimensionName,
    MetricName,
    Notes,
    Reconciliation,
    Row,
    Tolerance,
    Window,
)

__all__ = [
    "Aggregator",
    "Blocked",
    "Call",
    "CountTable",
    "Done",
    "Limits",
    "Machine",
    "ProvideToken",
    "Request",
    "RowIterator",
    "Sandbox",
    "SandboxResponse",
    "Send",
    "__version__",
    "error_codes",
]

__version__: Final[str]

_T_co = TypeVar("_T_co", covariant=True)

def error_codes() -> dict[ErrorCode, ErrorKind]: ...

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

@final
class CountTable:
    @property
    def dimensions(self) -> tuple[DimensionName, ...]: ...
    @property
    def metric(self) -> MetricName | None: ...
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
    def notes(self) -> Notes: ...
    def group_by(self, *names: DimensionName) -> CountTable: ...
    def filter(self, **wanted: Unpack[_Wanted]) -> CountTable: ...
    def top(self, n: int, by: CountName = "errors") -> list[Row]: ...
    def merge(self, other: CountTable, *, replace: bool = False) -> CountTable: ...
    def to_json(self) -> str: ...
    @classmethod
    def from_json(cls, data: str | Buffer) -> CountTable: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Row: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[Row]: ...
    def __iter__(self) -> Iterator[Row]: ...
    def __reversed__(self) -> Iterator[Row]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class RowIterator(Iterator[Row]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> Row: ...

@final
class Aggregator:
    def __new__(
        cls,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
        *,
        metric: MetricName | None = None,
        window: tuple[datetime | str, datetime | str] | None = None,
        limits: Limits | None = None,
        tolerate: Sequence[Tolerance] = ...,
    ) -> Self: ...
    def push(self, chunk: Buffer) -> None: ...
    def finish(self) -> CountTable: ...

@final
class Limits:
    def __new__(
        cls,
        *,
        depth: int | None = None,
        string_bytes: int | None = None,
        keys: int | None = None,
        body_bytes: int | None = None,
        groups: int | None = None,
    ) -> Self: ...
    @property
    def depth(self) -> int: ...
    @property
    def string_bytes(self) -> int: ...
    @property
    def keys(self) -> int: ...
    @property
    def body_bytes(self) -> int: ...
    @property
    def groups(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Machine:
    def __new__(
        cls,
        *,
        cluster_endpoint: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        control_audience: str | None = None,
        base_url: str | None = None,
        auth_url: str | None = None,
        orchestration_audience: str | None = None,
        host_tokens: bool = False,
        in_browser: bool = False,
        dangerously_allow_browser: bool = False,
        dangerously_allow_http: bool = False,
        default_token_lifetime: int | None = None,
        limits: Limits | None = None,
        tolerate: Sequence[Tolerance] = ...,
    ) -> Self: ...
    def event_delivery(
        self,
        start: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> Call[CountTable]: ...
    def event_ingestion(
        self,
        start: datetime | str,
        end: datetime | str,
        dimensions: Sequence[DimensionName],
        group_by: Sequence[DimensionName] | None = None,
    ) -> Call[CountTable]: ...
    def audit_logs(self, page: int | None = None, per_page: int | None = None) -> Call[bytes]: ...
    def token_epoch(self) -> int: ...

@final
class Call(Generic[_T_co]):
    @classmethod
    def __class_getitem__(cls, key: object) -> GenericAlias: ...
    def step(self, now: tuple[int, int]) -> Send | ProvideToken | Blocked | Done: ...
    def head(self, status: int, headers: Sequence[tuple[str, str]]) -> bool: ...
    def chunk(self, data: Buffer) -> None: ...
    def end(self) -> None: ...
    def failed(self, detail: str, *, timed_out: bool = False) -> None: ...
    def token(self, value: str, lifetime: int | None = None) -> None: ...
    def token_failed(self) -> None: ...
    def output(self) -> _T_co: ...
    def close(self) -> None: ...

@final
class Send:
    __match_args__: Final = ("request",)
    @property
    def request(self) -> Request: ...

@final
class ProvideToken:
    __match_args__: Final = ("api",)
    @property
    def api(self) -> ApiName: ...

@final
class Blocked:
    __match_args__: Final = ("epoch",)
    @property
    def epoch(self) -> int: ...

@final
class Done: ...

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
    def __new__(
        cls,
        *,
        seed: int | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        control_audience: str | None = None,
        orchestration_audience: str | None = None,
        token_lifetime: int | None = None,
    ) -> Self: ...
    @property
    def credentials(self) -> _Credentials: ...
    @property
    def stats(self) -> dict[EndpointName, int]: ...
    def record(
        self,
        timestamp: datetime | str,
        outcome: CountName,
        *,
        event_name: str,
        write_key: str,
        integration: str,
        reason: str = "",
        count: int = 1,
    ) -> None: ...
    def handle(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | bytearray | memoryview,
        now: tuple[int, int],
    ) -> SandboxResponse: ...
    def inject_json(self, fault: str) -> None: ...
    def revoke_tokens(self) -> None: ...

@final
class SandboxResponse:
    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> list[tuple[str, str]]: ...
    @property
    def body(self) -> bytes: ...
    @property
    def delay_ms(self) -> int: ...
    @property
    def cut_at(self) -> int | None: ...
