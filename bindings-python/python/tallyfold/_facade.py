"""What `Client` and `AsyncClient` share: reading arguments, and hiding secrets."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, NoReturn, TypeVar, Unpack

from tallyfold._arguments import ClientArguments
from tallyfold._errors import (
    ArgumentTypeError,
    AuthError,
    ConfigError,
    ServiceError,
    TallyfoldError,
)
from tallyfold._tallyfold import Call, Machine
from tallyfold._transport import timed_out
from tallyfold._trouble import callers_part, cause_of, is_of_the_network, name_of
from tallyfold._values import Attempt

__all__ = [
    "Broken",
    "Facade",
    "checked_transport",
    "cleared",
    "hand_in",
    "parsed",
    "token_failed",
    "waited_too_long",
    "without_own_frame",
]

T = TypeVar("T")
TokenT = TypeVar("TokenT")
TransportT = TypeVar("TransportT")


class Facade(Generic[TokenT, TransportT]):
    """A machine, which is the only holder of the secret, and what it needs from its host."""

    __slots__ = (
        "__weakref__",
        "_access_token",
        "_address",
        "_addresses",
        "_closed",
        "_has_own_transport",
        "_machine",
        "_on_attempt",
        "_process",
        "_timeout",
        "_transport",
    )
    _access_token: TokenT | None
    _transport: TransportT

    def __init__(
        self,
        *,
        access_token: TokenT | None = None,
        transport: TransportT | None = None,
        on_attempt: Callable[[Attempt], object] | None = None,
        **options: Unpack[ClientArguments],
    ) -> None:
        """Checks the arguments; sends nothing."""
        try:
            self._machine = Machine._of_client(  # noqa: SLF001
                ["access_token", "transport", "on_attempt"],
                host_tokens=access_token is not None,
                **options,
            )
            self._timeout = self._machine.timeout
            wanted = "want a function that returns a token and its seconds"
            error = self._refusal("access_token", access_token, wanted)
            error = error or self._refusal("on_attempt", on_attempt, "want a function")
            if error is not None:
                # Not in a function of its own, whose frame would hold what was given.
                raise error  # noqa: TRY301
            self._access_token = access_token
            self._on_attempt = on_attempt
            addresses = map(options.get, ("cluster_endpoint", "base_url", "auth_url"))
            self._addresses = [text for text in addresses if isinstance(text, str)]
            self._address = str(options.get("cluster_endpoint"))
            self._closed = False
            self._process = os.getpid()
            self._has_own_transport = transport is None
            self._open(transport)
        except BaseException:
            # A traceback that shows the locals of this frame would show the secret, an address
            # with a password in it, or a token that was given in place of a function.
            del options, access_token
            raise

    def _open(self, transport: TransportT | None) -> None:
        raise NotImplementedError

    def _refusal(self, name: str, value: object, wanted: str) -> TallyfoldError | None:
        raise NotImplementedError

    def __repr__(self) -> str:
        """Names the addresses, which hold no secret."""
        # The attribute may be missing: a debugger may show a client whose arguments were refused.
        addresses = ", ".join(dict.fromkeys(getattr(self, "_addresses", ["nothing"])))
        return f"<{type(self).__name__} of {addresses}>"

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled or copied."""
        name = type(self).__name__
        raise TypeError(f"a {name} holds a secret and connections: it can't be pickled or copied")

    def _check_usable(self) -> None:
        """Raises unless a call may begin. It is called before any lock or connection is used."""
        name = type(self).__name__
        if self._in_other_process():
            # Two processes on one connection would take each other's answers, and a lock that
            # another thread held stays locked here for ever.
            raise RuntimeError(f"this {name} was made before a fork: make one in each process")
        self._check_open()
        if any(provision.serves(self) for provision in _provisions.get()):
            message = "out_of_order: access_token called the client that waits for its token"
            raise ConfigError(message, code="out_of_order", argument="access_token")

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"this {type(self).__name__} is closed")

    def _report(self, call: Call[T]) -> object:
        """Calls `on_attempt` for the request that has just ended, if one has; gives its result."""
        if self._on_attempt is None or (attempt := call.attempt()) is None:
            return None
        return self._on_attempt(attempt)

    def _in_other_process(self) -> bool:
        return os.getpid() != self._process

    @contextmanager
    def _provision(self) -> Iterator[None]:
        """Marks what happens inside as the work of `access_token`."""
        provision = _Provision(self)
        token = _provisions.set((*_provisions.get(), provision))
        try:
            yield
        finally:
            provision.over = True
            _provisions.reset(token)


class _Provision:
    """One run of a client's `access_token`."""

    def __init__(self, client: object) -> None:
        self._client = client
        # A task that was started inside has this in its context, and may run longer than this.
        self.over = False

    def serves(self, client: object) -> bool:
        return self._client is client and not self.over


_provisions: ContextVar[tuple[_Provision, ...]] = ContextVar("tallyfold_provisions", default=())


class Broken:
    """What a failed exchange is, for its call.

    Interrupts, the call's own errors and mistakes in the caller's transport are not failures of an
    exchange, so they are raised again.
    """

    def __init__(self, error: BaseException, *, in_own_transport: bool) -> None:
        """Keeps only a name: the text may quote a header, and the exception holds the request."""
        if isinstance(error, TallyfoldError) or not isinstance(error, Exception):
            # The exception that it was raised from may hold the request.
            error.__cause__ = error.__context__ = None
            raise error
        if not in_own_transport and not is_of_the_network(error):
            raise error
        self._name, self._late, self._cause = name_of(error), timed_out(error), cause_of(error)

    def report(self, call: Call[T]) -> None:
        """Tells the call, and raises the error that ends it, if one does."""
        try:
            call.failed(self._name, timed_out=self._late)
        except ServiceError as failure:
            if failure.code in {"network_failed", "timed_out"}:
                raise failure from self._cause
            raise


def cleared(error: BaseException) -> BaseException:
    """An exception without the frames that hold requests and response bytes in their locals.

    A traceback that shows locals would show secrets. Of a mistake in the caller's own code, the
    caller's frames are kept.
    """
    is_mistake = isinstance(error, Exception) and not isinstance(error, TallyfoldError)
    return error.with_traceback(callers_part(error.__traceback__) if is_mistake else None)


def checked_transport(transport: object, kind: type[TransportT], such_as: str) -> TransportT:
    """The caller's transport, if it is one for this client."""
    if isinstance(transport, kind):
        return transport
    wanted = f"want an httpx2.{kind.__name__}, such as {such_as}"
    message = f"invalid_argument: transport: {wanted}, not {type(transport).__name__}"
    raise ArgumentTypeError(message, code="invalid_argument", argument="transport")


def hand_in(call: Call[T], answer: tuple[str, int | None]) -> None:
    """Gives the result of `access_token` to the call."""
    match answer:
        case [str() as token, lifetime]:
            call.token(token, lifetime)
        case _:
            message = "access_token is to return a pair: the token, and its seconds or None"
            token_failed(call, TypeError(message))


def token_failed(call: Call[T], cause: Exception) -> None:
    """Reports that the host has no token; raises unless an older one is still valid."""
    try:
        call.token_failed()
    except AuthError as failure:
        raise failure from cause


def without_own_frame(error: Exception) -> Exception:
    """Removes this package's frame, whose locals may hold a token, from a traceback."""
    own = error.__traceback__
    return error.with_traceback(None if own is None else own.tb_next)


def waited_too_long() -> ServiceError:
    """The error of a call that has waited too long for another call's token."""
    message = "timed_out: another call, which fetches the token for this one, took too long"
    return ServiceError(message, code="timed_out")


def parsed(document: bytes) -> Any:  # noqa: ANN401
    """The values of a JSON document that the core has checked, its numbers too."""
    return json.loads(document)
