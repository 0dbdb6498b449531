"""The endpoints: their names, and the calls of a machine.

Written by scripts/declare.py from what the Rust crates declare. Change it there.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tallyfold._arguments import Dimensions, Instant
    from tallyfold._tallyfold import Call, CountTable

__all__ = [
    "EndpointName",
    "TargetName",
]

EndpointName = Literal[
    "control_token", "orchestration_token", "event_delivery", "event_ingestion", "audit_logs"
]
"""An endpoint of the sandbox. All of them share one origin, so the sandbox's address serves as
`cluster_endpoint`, `base_url` and `auth_url` alike.
"""

TargetName = Literal["token", "event_delivery", "event_ingestion", "audit_logs"]
"""The destination of a request: a token endpoint, or an endpoint of an API."""

if TYPE_CHECKING:

    class Calls:
        """The calls of a `Machine`, as types: its methods are in Rust."""

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
