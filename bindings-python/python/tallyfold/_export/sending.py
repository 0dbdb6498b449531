"""What both senders of pushed messages share."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tallyfold._client.facade import Broken
from tallyfold._errors import ConfigError, ServiceError, invalid, wrong_type
from tallyfold._http.network import Certificates, Network
from tallyfold._tallyfold import Message, Notifications, Push

__all__ = [
    "EXCERPT_SECONDS",
    "REFUSED",
    "address_of",
    "network_of",
    "raised_from",
    "report",
    "seconds_of",
]

EXCERPT_SECONDS = 5.0
"""How long a refusal waits for its body, which is only quoted."""

REFUSED = 300
"""The first status with which a receiver does not take a message."""


def network_of(
    transport: object,
    *,
    ca: Certificates | None,
    proxy: str | None,
    trust_env: bool,
    options: Mapping[str, Any],
) -> Network | None:
    """The way to a receiver; `None` if the caller's own transport knows it."""
    if transport is None:
        http_too = bool(options.get("allow_http"))
        return Network(ca=ca, proxy=proxy, trust_env=trust_env, http_too=http_too)
    for name, value in {"ca": ca, "proxy": proxy, "trust_env": trust_env or None}.items():
        if value is not None:
            raise invalid(ConfigError, name, "give it to your transport instead")
    return None


def seconds_of(timeout: object) -> float | None:
    """A time limit, checked."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise wrong_type("timeout", "want a number of seconds, or None", timeout)
    if not timeout > 0:
        raise invalid(ConfigError, "timeout", "want a number of seconds above 0, or None")
    return float(timeout)


def address_of(message: Message) -> tuple[str, int]:
    """Host and port of the receiver of a datagram."""
    parts = urlsplit(message.url)
    return parts.hostname or "", parts.port or 0


def report(push: Push | Notifications, failure: Broken) -> None:
    """Tells a push that an exchange failed."""
    push.failed(failure.name, timed_out=failure.late)


def raised_from(error: ServiceError, failure: Broken | None) -> ServiceError:
    """The error that ended a push, with the exception of the operating system as its cause."""
    if failure is not None and error.code in {"network_failed", "timed_out"}:
        error.__cause__ = failure.cause
    return error
