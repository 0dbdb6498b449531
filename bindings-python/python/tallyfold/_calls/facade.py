"""What `Client` and `AsyncClient` share: reading arguments, and hiding secrets."""

import inspect
import os
import ssl
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, NoReturn, Self, TypeVar, Unpack, cast, get_args

from tallyfold._arguments import ENVIRONMENT, ClientArguments
from tallyfold._errors import (
    AuthError,
    ConfigError,
    ServiceError,
    TallyfoldError,
    invalid,
    wrong_type,
)
from tallyfold._http.network import Certificates, Network, network_of, pem
from tallyfold._http.network_error import callers_part, cause_of, is_of_the_network, name_of
from tallyfold._http.transport import StaleError, timed_out
from tallyfold._names import ApiName
from tallyfold._tallyfold import Call, Machine
from tallyfold._time import Now
from tallyfold._values import Attempt

__all__ = [
    "Broken",
    "ClockWarning",
    "Facade",
    "Settings",
    "checked_transport",
    "cleared",
    "given_api",
    "hand_in",
    "token_failed",
    "waited_too_long",
    "without_own_frame",
]

T = TypeVar("T")
TokenT = TypeVar("TokenT")
TransportT = TypeVar("TransportT")

NOT_ELSEWHERE = {"client_secret", "base_url", "auth_url", "orchestration_audience"}
"""The arguments that a client in another process does not get."""


class ClockWarning(UserWarning):
    """This computer's clock and the service's clock differ by more than five minutes.

    Each client warns once.

    >>> issubclass(tallyfold.ClockWarning, UserWarning)
    True
    """


class Settings:
    """The arguments for a client in another process that reads the same counts.

    They contain neither the secret nor a token. The object has no printable form, because headers
    and the address of a proxy may contain passwords.
    """

    __slots__ = ("_arguments",)

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """Keeps the arguments."""
        self._arguments = dict(arguments)

    @classmethod
    def of(cls, options: ClientArguments, **network: object) -> Self:
        """The settings of a client."""
        found = {name: value for name, value in options.items() if name not in NOT_ELSEWHERE}
        if isinstance(headers := found.get("headers"), Mapping):
            found["headers"] = dict(headers)
        return cls({**found, **network})

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments."""
        return dict(self._arguments)


class Facade(Generic[TokenT, TransportT]):
    """A machine, and what it needs from its host. Only the machine keeps the secret."""

    __slots__ = (
        "__weakref__",
        "_access_token",
        "_addresses",
        "_closed",
        "_given",
        "_machine",
        "_on_attempt",
        "_process",
        "_timeout",
        "_transport",
        "_warned",
    )
    _access_token: TokenT | None
    _transport: TransportT
    _function: Callable[..., Any]
    """Checks a function that the caller has passed."""

    def __init__(
        self,
        *,
        access_token: TokenT | None = None,
        transport: TransportT | None = None,
        on_attempt: Callable[[Attempt], object] | None = None,
        ca: Certificates | None = None,
        proxy: str | None = None,
        trust_env: bool = False,
        **options: Unpack[ClientArguments],
    ) -> None:
        """Checks the arguments; sends nothing."""
        try:
            self._machine = Machine._of_client(  # noqa: SLF001
                ["access_token", "transport", "on_attempt", "ca", "proxy", "trust_env"],
                host_tokens=access_token is not None,
                **options,
            )
            self._timeout = self._machine.timeout
            wanted = "want a function that returns a token and its seconds"
            self._access_token = self._function("access_token", access_token, wanted)
            self._on_attempt = self._function("on_attempt", on_attempt)
            http_too = bool(options.get("dangerously_allow_http"))
            network = network_of(
                transport, ca=ca, proxy=proxy, trust_env=trust_env, http_too=http_too
            )
            addresses = map(options.get, ("cluster_endpoint", "base_url", "auth_url"))
            self._addresses = [text for text in addresses if isinstance(text, str)]
            given = Settings.of(options, ca=ca, proxy=proxy, trust_env=trust_env)
            self._given = given if transport is None else None
            self._closed = False
            self._warned = False
            self._process = os.getpid()
            if network is not None:
                self._open(self._direct(network))
            elif transport is not None:
                self._open(transport)
        except BaseException as error:
            # A traceback that shows the locals of frames would show the secret, an address with a
            # password in it, or a token that was given instead of a function.
            cleared(error)
            del options, access_token, proxy
            raise

    @classmethod
    def from_env(
        cls,
        env: Mapping[str, str] | None = None,
        *,
        access_token: TokenT | None = None,
        transport: TransportT | None = None,
        on_attempt: Callable[[Attempt], object] | None = None,
        ca: Certificates | None = None,
        proxy: str | None = None,
        trust_env: bool = False,
        **options: Unpack[ClientArguments],
    ) -> Self:
        """Makes a client with the addresses and credentials in the environment.

        The variables are `TALLYFOLD_CLUSTER_ENDPOINT`, `TALLYFOLD_CLIENT_ID`,
        `TALLYFOLD_CLIENT_SECRET` and `TALLYFOLD_CONTROL_AUDIENCE`; for the Orchestration API,
        `TALLYFOLD_BASE_URL`, `TALLYFOLD_AUTH_URL` and `TALLYFOLD_ORCHESTRATION_AUDIENCE`. An empty
        variable counts as missing.

        Args:
            env: a mapping to read instead of `os.environ`.
            access_token: as for the client. With it, the secret and the audiences aren't needed.
            transport: as for the client.
            on_attempt: as for the client.
            ca: as for the client.
            proxy: as for the client.
            trust_env: as for the client.
            **options: all other arguments of the client. An argument takes precedence over its
                environment variable.

        Raises:
            ConfigError: with the names of all variables that are missing, or of the one that can't
                be used.

        >>> env = {"TALLYFOLD_CLUSTER_ENDPOINT": "https://cluster.example"}
        >>> tallyfold.Client.from_env(env, access_token=lambda api: ("a-token", 3600))
        <Client of https://cluster.example>
        """
        env = os.environ if env is None else env
        if not isinstance(env, Mapping):
            raise wrong_type("env", "want a mapping", env)
        other = next((name for name in env if not isinstance(name, str)), None)
        if other is not None:
            error = wrong_type("env", "want names of variables that are str", other)
            # A traceback that shows locals would show secrets.
            del env, options, access_token, proxy
            raise error
        given = {
            name: value
            for name, value in options.items()
            if value is not None or name not in ENVIRONMENT
        }
        found: dict[str, Any] = {
            name: env[variable]
            for name, variable in ENVIRONMENT.items()
            if name not in given and env.get(variable)
        }
        if access_token is not None:
            found.pop("client_secret", None)
        arguments: dict[str, Any] = {
            **given,
            "access_token": access_token,
            "transport": transport,
            "on_attempt": on_attempt,
            "ca": ca,
            "proxy": proxy,
            "trust_env": trust_env,
        }
        try:
            return cls(**found, **arguments)
        except ConfigError as error:
            name = error.argument
            if name is not None and name in found:
                error.args = (str(error).replace(name, ENVIRONMENT[name], 1),)
                raise
            if error.code != "missing_argument" or name not in ENVIRONMENT.keys() - found:
                raise
            has_tokens = access_token is not None
            missing = Machine._missing([*found, *given], has_tokens)  # noqa: SLF001
            raise _lacking(missing, env) from None
        finally:
            # A traceback that shows locals would show secrets.
            del env, found, given, arguments, options, access_token, proxy

    def _direct(self, network: Network) -> TransportT:
        """Makes the client's own transport."""
        raise NotImplementedError

    def _open(self, transport: TransportT) -> None:
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

    def _settings(self) -> Settings:
        """Returns the arguments with which a client in another process reads the same counts.

        Raises:
            ConfigError: for a client with a `transport`, or with an `ssl.SSLContext` as `ca`, which
                can't be sent to another process.
        """
        if self._given is None:
            message = (
                "the client has a transport of its own, which can't be sent to workers; "
                "give it `ca` or `proxy` instead"
            )
            raise invalid(ConfigError, "executor", message)
        arguments = self._given.arguments()
        if isinstance(arguments["ca"], ssl.SSLContext):
            message = "the client's `ca` is an ssl.SSLContext; want a path or PEM text for workers"
            raise invalid(ConfigError, "executor", message)
        if arguments["ca"] is not None:
            # Sends the text, because the file may not exist on the workers' machines.
            arguments["ca"] = pem(arguments["ca"])
        return Settings(arguments)

    def _limits_of(self, call: Call[T]) -> tuple[float | None, bool]:
        """Returns how many seconds a step may take, and whether the deadline sets this limit."""
        left = call.time_left(Now.read())
        if left is None or (self._timeout is not None and self._timeout * 1000 < left):
            return self._timeout, False
        return left / 1000, True

    def _check_usable(self) -> None:
        """Raises unless a call may begin. It is called before any lock or connection is used."""
        name = type(self).__name__
        if self._in_other_process():
            # Two processes on one connection would read each other's responses. A lock that another
            # thread held during the fork stays locked forever in this process.
            raise RuntimeError(f"this {name} was made before a fork: make one in each process")
        self._check_open()
        if any(provision.serves(self) for provision in _provisions.get()):
            message = "out_of_order: access_token called the client that waits for its token"
            raise ConfigError(message, code="out_of_order", argument="access_token")

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"this {type(self).__name__} is closed")

    def _report(self, call: Call[T]) -> object:
        """Calls `on_attempt` if a request has just ended. Returns the result of `on_attempt`."""
        if (attempt := call.attempt()) is None:
            return None
        if attempt.clock is not None and attempt.clock.is_alarming and not self._warned:
            self._warned = True
            warnings.warn(attempt.clock.message, ClockWarning, stacklevel=2)
        return None if self._on_attempt is None else self._on_attempt(attempt)

    def _in_other_process(self) -> bool:
        return os.getpid() != self._process

    @contextmanager
    def _provision(self) -> Iterator[None]:
        """Marks the work in the block as the work of `access_token`."""
        provision = _Provision(self)
        token = _provisions.set((*_provisions.get(), provision))
        try:
            yield
        finally:
            provision.over = True
            _provisions.reset(token)


def _lacking(missing: list[str], env: Mapping[str, str]) -> ConfigError:
    wanted = ", ".join(ENVIRONMENT[name] for name in missing)
    message = f"missing_argument: {missing[0]}: not set in the environment, or empty: {wanted}"
    known = ENVIRONMENT.values()
    others = [name for name in env if name.startswith("TALLYFOLD_") and name not in known]
    if others:
        message += f"; these are set, but unknown: {', '.join(others)}"
    return ConfigError(message, code="missing_argument", argument=missing[0])


class _Provision:
    """One run of a client's `access_token`."""

    def __init__(self, client: object) -> None:
        self._client = client
        # A task that `access_token` starts has this in its context, and may outlive the run.
        self.over = False

    def serves(self, client: object) -> bool:
        return self._client is client and not self.over


_provisions: ContextVar[tuple[_Provision, ...]] = ContextVar("tallyfold_provisions", default=())


class Broken:
    """A failed exchange, as it is reported to its call.

    Interrupts, the call's own errors, and bugs in a transport (the caller's or the client's own)
    are not failures of an exchange, so they are raised again.
    """

    def __init__(self, error: BaseException, *, is_over: bool = False) -> None:
        """Drops the text, which may quote a header, and the exception, which holds the request."""
        if isinstance(error, TallyfoldError) or not isinstance(error, Exception):
            # The exception that caused this one may hold the request.
            error.__cause__ = error.__context__ = None
            raise error
        # Closing a connection during a transfer may make the transfer fail in any way.
        if not is_over and not is_of_the_network(error):
            raise error
        self.name, self.late, self.cause = name_of(error), timed_out(error), cause_of(error)
        self.stale = isinstance(error, StaleError)

    def report(self, call: Call[T]) -> None:
        """Reports the failure to the call. Raises the error if that ends the call."""
        try:
            call.failed(self.name, timed_out=self.late, stale=self.stale)
        except ServiceError as failure:
            if failure.code in {"network_failed", "timed_out"}:
                raise failure from self.cause
            raise


def cleared(error: BaseException) -> BaseException:
    """Removes the frames from an exception whose locals hold requests and response bytes.

    A traceback that shows locals would show secrets. If the exception comes from a bug in the
    caller's own code, the caller's frames are kept.
    """
    is_mistake = isinstance(error, Exception) and not isinstance(error, TallyfoldError)
    return error.with_traceback(callers_part(error.__traceback__) if is_mistake else None)


def checked_transport(transport: object, kind: type[TransportT], such_as: str) -> TransportT:
    """Returns the caller's transport, if it has the right type for this client."""
    if isinstance(transport, kind):
        return transport
    wanted = f"want an httpx2.{kind.__name__}, such as {such_as}"
    raise wrong_type("transport", wanted, transport)


def hand_in(call: Call[T], answer: tuple[str, int | None]) -> None:
    """Passes the result of `access_token` to the call."""
    match answer:
        case [str() as token, lifetime]:
            call.token(token, lifetime)
        case _:
            if inspect.iscoroutine(answer):
                answer.close()
            got = "another pair" if isinstance(answer, tuple | list) else type(answer).__name__
            message = "access_token: want a pair of the token, a str, and its seconds or None, not "
            token_failed(call, TypeError(message + got), message + got)


def token_failed(call: Call[T], cause: Exception, why: str | None = None) -> None:
    """Reports that the host has no token. Raises an error unless an older token is valid."""
    try:
        call.token_failed()
    except AuthError as failure:
        if why is not None:
            failure.args = (f"{failure.code}: {why}",)
        raise failure from cause


def without_own_frame(error: Exception) -> Exception:
    """Removes this package's frame, whose locals may hold a token, from a traceback."""
    own = error.__traceback__
    return error.with_traceback(None if own is None else own.tb_next)


def waited_too_long() -> ServiceError:
    """The error of a call that has waited too long for the token that another call fetches."""
    message = "timed_out: another call, which fetches the token for this one, took too long"
    return ServiceError(message, code="timed_out")


def given_api(api: object) -> ApiName:
    """One of the two APIs, as the caller has named it."""
    wanted = "want control or orchestration"
    for name in get_args(ApiName):
        if api == name:
            return cast("ApiName", name)
    if isinstance(api, str):
        raise invalid(ConfigError, "api", wanted)
    raise wrong_type("api", wanted, api)
