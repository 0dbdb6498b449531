"""Converts exceptions of an HTTP stack to names for the core, and hides their secrets from callers.

The core knows these names, and describes them in its messages (`core/src/calls/broken.rs`).
"""

import contextlib
import errno
import os
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import httpcore2
import httpx2

__all__ = [
    "by_way_of",
    "callers_part",
    "cause_of",
    "is_of_the_network",
    "is_unconnected",
    "name_of",
]

CERTIFICATES = {
    9: "CERT_NOT_YET_VALID",
    10: "CERT_HAS_EXPIRED",
    18: "DEPTH_ZERO_SELF_SIGNED_CERT",
    19: "SELF_SIGNED_CERT_IN_CHAIN",
    20: "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    21: "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    23: "CERT_REVOKED",
    62: "CERT_HOSTNAME_MISMATCH",
    64: "CERT_HOSTNAME_MISMATCH",
}
"""The names for OpenSSL's numbers of certificate errors (X509_V_ERR)."""

NETWORK = (
    httpx2.HTTPError,
    httpx2.StreamError,
    httpcore2.ConnectError,
    httpcore2.ConnectionNotAvailable,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
    OSError,
    EOFError,
)
"""The exceptions that a transport raises if an exchange fails."""


def is_of_the_network(error: BaseException) -> bool:
    """Whether an exception means that an exchange has failed, and not that a transport has a bug.

    This is also true for an exception that a library raises from one of `NETWORK`. It is not true
    for an exception that is only raised while one of `NETWORK` is being handled.
    """
    link: BaseException | None = error
    while link is not None and not isinstance(link, NETWORK):
        link = link.__cause__
    return link is not None


UNCONNECTED = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpcore2.ConnectError,
    httpcore2.ConnectTimeout,
    httpcore2.ConnectionNotAvailable,
    httpcore2.PoolTimeout,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)
"""The exceptions that a transport raises before it sends the first byte of a request."""


def is_unconnected(error: BaseException) -> bool:
    """Whether an exchange has failed before there was a connection for it."""
    return isinstance(error, UNCONNECTED)


def name_of(error: BaseException) -> str:
    """Returns the core's name for what happened, or else the name of the exception's class."""
    links = list(_chain(error))
    names = (_name_of_system_error(link) for link in reversed(links) if isinstance(link, OSError))
    name = next((name for name in names if name is not None), None)
    if any(isinstance(link, (httpx2.ProxyError, httpcore2.ProxyError)) for link in links):
        return f"PROXY_{name}" if name in UNREACHED else "ProxyError"
    return type(error).__name__ if name is None else name


UNREACHED = {"ECONNREFUSED", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND"}
"""The names of errors that mean that there is no connection to a server, or to a proxy."""


@contextlib.contextmanager
def by_way_of(proxy: object) -> Iterator[None]:
    """Raises `ProxyError` instead of `ConnectError` if a proxy can't be reached."""
    try:
        yield
    except httpcore2.ConnectError as error:
        is_tls = any(isinstance(link, ssl.SSLError) for link in _chain(error))
        if proxy is None or is_tls:
            raise
        raise httpcore2.ProxyError from error


def _name_of_system_error(error: OSError) -> str | None:
    match error:
        case ssl.SSLCertVerificationError():
            return CERTIFICATES.get(error.verify_code, "CERT_UNTRUSTED")
        case ssl.SSLError():
            return "SSLError"
        case socket.gaierror():
            return "EAI_AGAIN" if error.errno == socket.EAI_AGAIN else "ENOTFOUND"
    name = errno.errorcode.get(_number_of(error) or 0)
    # Windows has its own numbers for socket errors, whose names begin with `WSA`.
    return name and name.removeprefix("WSA")


def _number_of(error: OSError) -> int | None:
    if error.errno is not None:
        return error.errno
    # asyncio puts the errors for several addresses into the text of one exception.
    number = re.search(r"\[Errno (\d+)\]", str(error))
    return None if number is None else int(number[1])


def cause_of(error: BaseException) -> OSError | None:
    """Returns the exception of the operating system or of TLS that caused another one.

    It has no traceback. Other causes are not shown, because they may hold the request, or quote the
    request or the response.
    """
    for link in reversed(list(_chain(error))):
        if type(link) in {ssl.SSLError, ssl.SSLCertVerificationError, socket.gaierror}:
            assert isinstance(link, OSError)  # noqa: S101 - for mypy
            link.__cause__ = link.__context__ = None
            return link.with_traceback(None)
        number = _number_of(link) if isinstance(link, OSError) else None
        if number is not None and number in errno.errorcode:
            # Uses the system's text for the number: the exception's own text may quote anything.
            return OSError(number, os.strerror(number))
    return None


def callers_part(traceback: TracebackType | None) -> TracebackType | None:
    """Removes the frames of this package, httpx2 and httpcore2 from the beginning of a traceback.

    Their locals may hold a token or the secret. The rest begins in the caller's own code.
    """
    while traceback is not None and _is_inner(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    return traceback


_INNER = tuple(
    f"{folder}{os.sep}"
    for folder in (
        Path(__file__).parents[1],
        Path(httpx2.__file__).parent,
        Path(httpcore2.__file__).parent,
    )
)


def _is_inner(filename: str) -> bool:
    return filename.startswith(_INNER)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields an exception and its causes, even if a connection pool hides them (`from None`)."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        seen.append(link)
        yield link
        link = link.__cause__ or link.__context__
