# The calls of a machine to endpoints, as types.
#
# Written by scripts/declare.py from what the Rust crates declare. Change it there.

from tallyfold._arguments import Dimensions, Instant
from tallyfold._tallyfold import Call, CountTable

# The calls of a `Machine`, whose methods are in Rust.
class Calls:
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
