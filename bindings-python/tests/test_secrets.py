"""Three canaries, looked for wherever text can come out."""

import asyncio
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator

import httpx2
import pytest
from canaries import search, search_error, search_object
from support import ADDRESS, END, START

import tallyfold

CANARIES = SECRET, TOKEN, HOST_TOKEN = "canary-secret", "canary-access-token", "canary-host-token"
JSON = {"content-type": "application/json"}
GRANT = f'{{"access_token": "{TOKEN}", "expires_in": 86400, "token_type": "Bearer"}}'.encode()

Answer = Callable[[httpx2.Request], httpx2.Response]


def respond(status: int, body: bytes, headers: dict[str, str] = JSON) -> Answer:
    return lambda _: httpx2.Response(status, headers=headers, content=body)


def fail(error: Callable[[str], BaseException]) -> Answer:
    """Raises what quotes the request, as some HTTP libraries do."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        raise error(f"{request.headers.raw!r} {request.content!r} {CANARIES}")

    return answer


def after_the_token(answer: Answer) -> Answer:
    """Grants the canary token, then answers as told."""
    grant = respond(200, GRANT)
    return lambda request: (grant if "oauth" in request.url.path else answer)(request)


FAILURES: dict[str, Answer] = {
    "token: refused": respond(401, f'{{"secret": "{SECRET}"}}'.encode()),
    "token: server error": respond(500, SECRET.encode()),
    "token: html": respond(200, f"<html>{SECRET}".encode(), {"content-type": "text/html"}),
    "token: no json": respond(200, GRANT[:-1] + SECRET.encode()),
    "token: cut": respond(200, GRANT[:-1]),
    "token: lifetime": respond(200, GRANT.replace(b"86400", b"-1")),
    "token: lifetime as text": respond(200, GRANT.replace(b"86400", f'"{SECRET}"'.encode())),
    "token: not for a header": respond(200, GRANT.replace(b"canary-", b"canary-access-token\\n")),
    "token: a list": respond(200, f'["{SECRET}"]'.encode()),
    "token: network": fail(httpx2.ConnectError),
    "token: protocol": fail(httpx2.LocalProtocolError),
    "token: timeout": fail(httpx2.ReadTimeout),
    "token: any exception of the network": fail(OSError),
    "token: interrupted": fail(KeyboardInterrupt),
    "call: rejected": after_the_token(respond(401, TOKEN.encode())),
    "call: server error": after_the_token(respond(503, TOKEN.encode())),
    "call: network": after_the_token(fail(httpx2.ReadError)),
    "call: any exception of the network": after_the_token(fail(OSError)),
    "call: interrupted": after_the_token(fail(KeyboardInterrupt)),
    "call: echo": after_the_token(
        lambda request: respond(200, repr(request.headers.raw).encode())(request)
    ),
    "call: echo as a key": after_the_token(respond(200, f'{{"{TOKEN}": tru }}'.encode())),
    "call: echo as a dimension": after_the_token(
        respond(200, f'{{"counts": [{{"dimensions": {{"{TOKEN}": 1}}}}]}}'.encode())
    ),
    "call: redirect": after_the_token(respond(302, b"", {"location": f"/?{TOKEN}"})),
}


@pytest.fixture(autouse=True)
def logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Looks through everything that was logged in each test here."""
    caplog.set_level(logging.DEBUG)
    yield
    search(caplog.text, *(str(vars(record)) for record in caplog.get_records("call")))


class Unprintable:
    """No number of seconds, and no text either."""

    def __str__(self) -> str:
        raise ValueError

    def __repr__(self) -> str:
        return "<Unprintable>"


def make(answer: Answer) -> tallyfold.Client:
    return tallyfold.Client(
        cluster_endpoint=ADDRESS,
        client_id="id",
        client_secret=SECRET,
        control_audience="control",
        transport=httpx2.MockTransport(answer),
        longest_retry_wait=0,
    )


def amake(answer: Answer) -> tallyfold.AsyncClient:
    return tallyfold.AsyncClient(
        cluster_endpoint=ADDRESS,
        client_id="id",
        client_secret=SECRET,
        control_audience="control",
        transport=httpx2.MockTransport(answer),
        longest_retry_wait=0,
    )


@pytest.mark.parametrize("name", FAILURES)
def test_errors_of_the_client(name: str) -> None:
    client = make(FAILURES[name])
    expected = KeyboardInterrupt if "interrupted" in name else tallyfold.TallyfoldError
    with pytest.raises(expected) as caught:
        client.event_delivery(START, END, ["reason"])
    if expected is tallyfold.TallyfoldError:
        search_error(caught.value)
        # Nothing else hangs on it: an HTTP library's exception would hold the request.
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    else:
        # What a transport says when it is interrupted is its own; the frames below it are not ours.
        for frame, _ in traceback.walk_tb(caught.value.__traceback__):
            assert not frame.f_code.co_filename.endswith(("transport.py", "mock.py"))
    search_object(client)


@pytest.mark.parametrize("name", [name for name in FAILURES if "interrupted" not in name])
def test_errors_of_the_async_client(name: str) -> None:
    client = amake(FAILURES[name])

    async def main() -> None:
        await client.event_delivery(START, END, ["reason"])

    with pytest.raises(tallyfold.TallyfoldError) as caught:
        asyncio.run(main(), debug=True)
    search_error(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    search_object(client)


def test_a_cancelled_call() -> None:
    class Hanging(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            body = (await request.aread()).decode()
            assert SECRET in body
            reached.set()
            await asyncio.Future()
            return httpx2.Response(200)

    reached = asyncio.Event()

    async def main() -> BaseException:
        client = tallyfold.AsyncClient(
            cluster_endpoint=ADDRESS,
            client_id="id",
            client_secret=SECRET,
            control_audience="control",
            transport=Hanging(),
        )
        task = asyncio.create_task(client.event_delivery(START, END, ["reason"]))
        await reached.wait()
        search(repr(task))
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return error
        raise AssertionError

    error = asyncio.run(main())
    files = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)}
    search(*traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert any("tallyfold" in file for file in files)


CONSTRUCTORS: list[dict[str, object]] = [
    {"control_audience": None},
    {"timeout": -1},
    {"cluster_endpoint": "http://sandbox.example"},
    {"cluster_endpoint": f"https://user:{SECRET}@sandbox.example"},
    {"base_url": f"https://user:{SECRET}@sandbox.example"},
    {"auth_url": f"https://sandbox.example\ud800?{SECRET}"},
    {"client_secret": SECRET.encode()},
    {"client_secret": SECRET + "\ud800"},
    {"default_token_lifetime": "a day"},
    {"access_token": HOST_TOKEN},
    {"limits": 5},
]


@pytest.mark.parametrize("options", CONSTRUCTORS)
@pytest.mark.parametrize("make", [tallyfold.Client, tallyfold.AsyncClient, tallyfold.Machine])
def test_arguments_that_can_not_be(make: type, options: dict[str, object]) -> None:
    given = {"cluster_endpoint": ADDRESS, "client_id": "id", "client_secret": SECRET}
    if make is tallyfold.Machine and "timeout" in options:
        return
    with pytest.raises((tallyfold.ConfigError, TypeError)) as caught:
        make(**{**given, "control_audience": "control", **options})
    search_error(caught.value)
    search(*traceback.format_exception(caught.value))


def test_secrets_that_are_no_text() -> None:
    for secret in (SECRET + "\ud800", SECRET.encode(), [SECRET]):
        for make in (tallyfold.Client, tallyfold.Sandbox):
            options: dict[str, object] = {"client_secret": secret}
            if make is tallyfold.Client:
                options |= {"cluster_endpoint": ADDRESS, "client_id": "id"}
            with pytest.raises(tallyfold.ConfigError) as caught:
                make(**options)  # type: ignore[arg-type]
            code, argument = caught.value.code, caught.value.argument
            assert (code, argument) == ("invalid_argument", "client_secret")
            search_error(caught.value)


def while_handling(raised: BaseException) -> Answer:
    """Raises inside an `except` whose exception quotes the request, as its context then does."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        try:
            raise ValueError(f"{request.headers.raw!r} {request.content!r}")  # noqa: TRY301
        except ValueError:
            raise raised  # noqa: B904 - it is the point

    return answer


INTERRUPTS = [
    KeyboardInterrupt(),
    SystemExit(3),
    asyncio.CancelledError(),
    tallyfold.ServiceError("server_error: …", code="server_error"),
]


@pytest.mark.parametrize("raised", INTERRUPTS)
@pytest.mark.parametrize("of_the_call", [False, True])
def test_what_interrupts_leaves_alone(raised: BaseException, *, of_the_call: bool) -> None:
    answer = while_handling(raised)
    client = make(after_the_token(answer) if of_the_call else answer)
    with pytest.raises(type(raised)) as caught:
        client.event_delivery(START, END, ["reason"])
    assert caught.value is raised
    assert (raised.__cause__, raised.__context__) == (None, None)
    search_error(raised)


def test_what_interrupts_a_task_leaves_alone() -> None:
    async def answer(request: httpx2.Request) -> httpx2.Response:
        try:
            raise ValueError(f"{request.content!r}")  # noqa: TRY301
        except ValueError:
            reached.set()
            await asyncio.Future()
        return httpx2.Response(404)

    async def main() -> BaseException:
        client = tallyfold.AsyncClient(
            cluster_endpoint=ADDRESS,
            client_id="id",
            client_secret=SECRET,
            control_audience="control",
            transport=httpx2.MockTransport(answer),
        )
        call = client.event_delivery(START, END, ["reason"])
        task = asyncio.create_task(call)
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value

    reached = asyncio.Event()
    error = asyncio.run(main())
    assert error.__context__ is None
    search_error(error)


@pytest.mark.parametrize(
    "answer",
    [
        (HOST_TOKEN, 0),
        (HOST_TOKEN + "\ud800", 3600),
        (HOST_TOKEN, HOST_TOKEN),
        (HOST_TOKEN + "\n", 3600),
        (HOST_TOKEN.encode(), 3600),
        HOST_TOKEN,
        {"access_token": HOST_TOKEN},
        (HOST_TOKEN, 3600, HOST_TOKEN),
        (HOST_TOKEN, Unprintable()),
    ],
)
def test_tokens_of_the_host(answer: object) -> None:
    client = tallyfold.Client(
        cluster_endpoint=ADDRESS,
        access_token=lambda _: answer,  # type: ignore[arg-type, return-value]
    )
    with client, pytest.raises(tallyfold.AuthError) as caught:
        client.event_delivery(START, END, ["reason"])
    search_error(caught.value)
    search_object(client)


def test_the_machine_and_its_steps() -> None:
    machine = tallyfold.Machine(
        cluster_endpoint=ADDRESS, client_id="id", client_secret=SECRET, control_audience="control"
    )
    call = machine.event_delivery(START, END, ["reason"])
    step = call.step(tallyfold.Now(0, 0))
    assert isinstance(step, tallyfold.Send)
    request = step.request
    assert request.body is not None
    assert SECRET.encode() in request.body
    for value in (machine, call, step, request):
        search(repr(value), str(value))
        with pytest.raises(TypeError):
            pickle.dumps(value)

    call.head(200, list(JSON.items()))
    call.chunk(GRANT)
    call.end()
    step = call.step(tallyfold.Now(0, 0))
    assert isinstance(step, tallyfold.Send)
    assert ("authorization", f"Bearer {TOKEN}") in step.request.headers
    for value in (machine, call, step, step.request):
        search(repr(value), str(value))


@pytest.mark.parametrize("in_tasks", [False, True])
def test_logs_of_real_exchanges(caplog: pytest.LogCaptureFixture, *, in_tasks: bool) -> None:
    sandbox = tallyfold.Sandbox(client_secret=SECRET)
    search(repr(sandbox), str(sandbox))
    with tallyfold.serve(sandbox) as server:
        options = {"cluster_endpoint": server.url, **sandbox.credentials}

        async def tasks() -> None:
            async with tallyfold.AsyncClient(**options) as client:  # type: ignore[arg-type]
                await client.event_delivery(START, END, ["reason"])

        if in_tasks:
            asyncio.run(tasks(), debug=True)
        else:
            with tallyfold.Client(**options) as client:  # type: ignore[arg-type]
                client.event_delivery(START, END, ["reason"])
    assert "httpcore2" in caplog.text, "the HTTP stack did log"
    # The sandbox's own tokens all begin so.
    assert "sandbox.control." not in caplog.text


def test_the_search_finds_canaries() -> None:
    with pytest.raises(AssertionError):
        search_object({"a": [SECRET]})

    def frame_with_a_secret(secret: str) -> None:
        raise ValueError(len(secret))

    with pytest.raises(ValueError, match="13") as caught:
        frame_with_a_secret(SECRET)
    with pytest.raises(AssertionError):
        search_error(caught.value)
