"""The server for web apps, asked by pages' clients and by plain requests."""

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from clock import Clock
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from support import ADDRESS, END, START

import tallyfold
from tallyfold.asgi import PageRequest, PageServer, Permission

PATH = "/tallyfold/v1.1/analytics/event_delivery"
QUERY = {"start": START, "end": END, "dimensions": ["integration"]}
JSON = {"content-type": "application/json"}
SITE = "http://app.example"


def allow(_request: PageRequest) -> bool:
    return True


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def client_of(sandbox: tallyfold.Sandbox, **options: Any) -> tallyfold.AsyncClient:
    transport = options.pop("transport", None) or sandbox.async_transport()
    return tallyfold.AsyncClient(
        **{
            **dict.fromkeys(["cluster_endpoint", "base_url", "auth_url"], ADDRESS),
            "transport": transport,
            "max_retries": 0,
            **sandbox.credentials,
            **options,
        }
    )


def page_of(app: Any, **options: Any) -> tallyfold.AsyncClient:
    address = options.pop("address", f"{SITE}/tallyfold")
    return tallyfold.AsyncClient(
        cluster_endpoint=address,
        tokenless=True,
        transport=httpx2.ASGITransport(app=app),
        dangerously_allow_http=True,
        max_retries=0,
        **options,
    )


async def post(
    app: Any, path: str, body: object = QUERY, headers: dict[str, str] = JSON
) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=SITE) as plain:
        return await plain.post(path, content=json.dumps(body), headers=headers)


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serves an app by uvicorn, on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def test_a_thousand_requests_of_pages_for_a_day_are_one_call_a_window() -> None:
    sandbox = tallyfold.Sandbox(seed=1)
    windows = list(tallyfold.Plan("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "15m"))
    with tallyfold.serve(sandbox) as upstream:
        client = tallyfold.AsyncClient(cluster_endpoint=upstream.url, **sandbox.credentials)
        app = Starlette(routes=[Mount("/tallyfold", PageServer(client, allow))])

        async def pages(address: str) -> list[tallyfold.CountTable]:
            page = tallyfold.AsyncClient(cluster_endpoint=f"{address}/tallyfold", tokenless=True)
            turns = asyncio.Semaphore(50)

            async def ask(window: tallyfold.Window) -> tallyfold.CountTable:
                async with turns:
                    return await page.event_delivery(window.start, window.end, ["integration"])

            async with page:
                asked = [ask(windows[number % len(windows)]) for number in range(1000)]
                return await asyncio.gather(*asked)

        with served(app) as address:
            tables = asyncio.run(pages(address))
    assert len(tables) == 1000
    assert sandbox.stats["event_delivery"] == len(windows)
    assert sandbox.stats["control_token"] == 1
    direct = tallyfold.Client(
        cluster_endpoint=ADDRESS, transport=sandbox.transport(), **sandbox.credentials
    )
    window = windows[3]
    assert tables[3] == direct.event_delivery(window.start, window.end, ["integration"])


def test_the_page_gets_the_bytes_that_the_service_has_sent(sandbox: tallyfold.Sandbox) -> None:
    sent: list[bytes] = []

    class Watching(httpx2.AsyncBaseTransport):
        inner = sandbox.async_transport()

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await self.inner.handle_async_request(request)
            sent.append(await response.aread())
            return response

    async def test() -> None:
        app = PageServer(client_of(sandbox, transport=Watching()), allow)
        response = await post(app, PATH)
        assert response.status_code == 200
        assert response.content == sent[-1]
        assert response.headers["content-type"] == "application/json"
        assert response.headers["cache-control"] == "no-store"

    run(test)


def test_what_authorize_does_not_allow_costs_the_service_nothing(
    sandbox: tallyfold.Sandbox,
) -> None:
    before = dict(sandbox.stats)

    async def later(_request: PageRequest) -> bool:
        return False

    async def test() -> None:
        for no in (lambda _: False, lambda _: None, lambda _: 1, lambda _: "yes", later):
            app = PageServer(client_of(sandbox), no, hand_out_tokens=True)  # type: ignore[arg-type]
            with pytest.raises(tallyfold.ServiceError) as refused:
                await page_of(app).event_delivery(START, END, ["integration"])
            assert (refused.value.code, refused.value.status) == ("forbidden", 403)
            assert (await post(app, "/token/control", {})).status_code == 403

        def broken(_request: PageRequest) -> bool:
            raise LookupError("the session store is down")

        with pytest.raises(LookupError):
            await post(PageServer(client_of(sandbox), broken), PATH)

    run(test)
    assert sandbox.stats == before


def test_authorize_sees_the_request(sandbox: tallyfold.Sandbox) -> None:
    seen: list[PageRequest] = []

    async def authorize(request: PageRequest) -> bool:
        seen.append(request)
        session = Request(request.scope).cookies.get("session")
        return session == request.cookies.get("session") == "right"

    async def test() -> None:
        app = PageServer(client_of(sandbox), authorize)
        for cookie, status in [("session=right", 200), ("session=wrong", 403), ("\x00=", 403)]:
            assert (await post(app, PATH, headers={**JSON, "Cookie": cookie})).status_code == status
        assert (seen[0].method, seen[0].path) == ("POST", PATH)
        assert seen[0].headers["content-type"] == "application/json"

    run(test)


def test_arguments_that_can_not_be_used(sandbox: tallyfold.Sandbox) -> None:
    client: Any = client_of(sandbox)
    options: Any
    for options, argument in [
        ({"client": client, "authorize": True}, "authorize"),
        ({"client": 5, "authorize": allow}, "client"),
        ({"client": client, "authorize": allow, "store": 5}, "store"),
        ({"client": client, "authorize": allow, "concurrency": 0}, "concurrency"),
        ({"client": client, "authorize": allow, "concurency": 1}, "concurency"),
        ({"client": client, "authorize": allow, "provisional": -1}, "provisional"),
    ]:
        with pytest.raises(tallyfold.ConfigError) as refused:
            PageServer(**options)
        assert refused.value.argument == argument
    with pytest.raises(TypeError):
        PageServer(client)  # type: ignore[call-arg]


def test_a_request_that_is_wrong_is_refused_before_anything_is_sent(
    sandbox: tallyfold.Sandbox,
) -> None:
    cases: list[tuple[int, str, object, dict[str, str]]] = [
        (400, PATH, {**QUERY, "dimensions": ["colour"]}, JSON),
        (400, PATH, {**QUERY, "end": START}, JSON),
        (400, PATH, {**QUERY, "more": 1}, JSON),
        (400, PATH, "x" * 100_000, JSON),
        (400, PATH, QUERY, {"content-type": "text/plain"}),
        (400, "/v1.1/oauth/token", {}, JSON),
        (400, "/token/control", {}, JSON),
        (403, PATH, QUERY, {**JSON, "sec-fetch-site": "cross-site"}),
        (403, PATH, QUERY, {**JSON, "origin": "https://evil.example"}),
        (200, PATH, QUERY, {**JSON, "origin": SITE}),
    ]

    async def test() -> None:
        app = PageServer(client_of(sandbox), allow)
        for status, path, body, headers in cases:
            response = await post(app, path, body, headers)
            assert response.status_code == status, (path, str(body)[:99])
            response.json()

    run(test)
    assert sandbox.stats["event_delivery"] == 1


@pytest.mark.parametrize(
    ("fault", "code", "status"),
    [
        ({"status": 503}, "server_error", 503),
        ({"status": 429, "retry_after": "7"}, "rate_limited", 429),
        ({"status": 403}, "forbidden", 403),
        ({"status": 418}, "unexpected_status", 418),
    ],
)
def test_errors_keep_their_code_kind_and_status(
    sandbox: tallyfold.Sandbox, fault: dict[str, Any], code: str, status: int
) -> None:
    sandbox.inject("status", endpoint="event_delivery", every=1, **fault)

    async def error_of(client: tallyfold.AsyncClient) -> tallyfold.TallyfoldError:
        with pytest.raises(tallyfold.TallyfoldError) as raised:
            await client.event_delivery(START, END, ["integration"])
        return raised.value

    async def test() -> None:
        client = client_of(sandbox)
        own = await error_of(client)
        seen = await error_of(page_of(PageServer(client, allow)))
        for error in (own, seen):
            assert (error.code, error.kind, error.status) == (code, "service", status)
        assert seen.retry_after == own.retry_after

    run(test)


def test_errors_without_a_status_of_the_api(sandbox: tallyfold.Sandbox) -> None:
    def down(_request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no way")

    async def test() -> None:
        options: Any
        for options, code, kind in [
            ({"client_secret": "wrong"}, "token_refused", "auth"),
            ({"transport": httpx2.MockTransport(down)}, "network_failed", "service"),
        ]:
            app = PageServer(client_of(sandbox, **options), allow)
            with pytest.raises(tallyfold.TallyfoldError) as raised:
                await page_of(app).event_delivery(START, END, ["integration"])
            assert (raised.value.code, raised.value.kind) == (code, kind)
            text = (await post(app, PATH)).text
            assert "wrong" not in text
            assert sandbox.credentials["client_id"] not in text

    run(test)


def test_a_failed_call_is_not_kept(sandbox: tallyfold.Sandbox) -> None:
    sandbox.inject("status", endpoint="event_delivery", status=503)

    async def test() -> None:
        app = PageServer(client_of(sandbox), allow)
        assert [(await post(app, PATH)).status_code for _ in range(3)] == [502, 200, 200]

    run(test)
    assert sandbox.stats["event_delivery"] == 2


def test_a_provisional_answer_is_kept_for_seconds(
    sandbox: tallyfold.Sandbox, clock: Callable[[int], None]
) -> None:
    now = time.time()
    start, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - ago)) for ago in (900, 0))
    recent = {**QUERY, "start": start, "end": end}

    async def test() -> None:
        app = PageServer(client_of(sandbox), allow, provisional=100)
        calls = []
        for seconds in (0, 50, 60, 3600, 80_000):
            clock(seconds)
            await post(app, PATH, recent)
            calls.append(sandbox.stats["event_delivery"])
        assert calls == [1, 1, 2, 3, 3]

    run(test)


@pytest.mark.filterwarnings("ignore::tallyfold.ClockWarning")
def test_an_answer_is_kept_for_good_only_if_it_is_settled_by_the_services_clock(
    sandbox: tallyfold.Sandbox, clock: Callable[[int], None]
) -> None:
    now = time.time()
    start, end = (
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - ago)) for ago in (8_100, 7_200)
    )
    # By this machine's clock, the window ended two hours ago; by the service's, it has not ended.
    sandbox.inject("date", milliseconds=7_500_000, every=1)

    async def test() -> None:
        store = Store()
        app = PageServer(client_of(sandbox), allow, provisional=100, store=store)
        for seconds, calls in ((0, 1), (50, 1), (101, 2)):
            clock(seconds)
            await post(app, PATH, {**QUERY, "start": start, "end": end})
            assert sandbox.stats["event_delivery"] == calls
        assert not store.kept

    run(test)


class Store:
    """A store, each of whose functions may be broken."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.saved = asyncio.Event()

    async def get(self, key: str) -> bytes | None:
        return self.kept.get(key)

    async def set(self, key: str, value: bytes) -> None:
        self.kept[key] = value
        self.saved.set()


def test_a_store_keeps_answers_for_another_server(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        store = Store()
        first = await post(PageServer(client_of(sandbox), allow, store=store), PATH)
        await store.saved.wait()
        second = await post(PageServer(client_of(sandbox), allow, store=store), PATH)
        assert first.content == second.content
        assert sandbox.stats["event_delivery"] == 1
        [(key, value)] = store.kept.items()
        client_id = sandbox.credentials["client_id"]
        assert key.startswith(f"{ADDRESS}, client {client_id}/v1.1/analytics/event_delivery ")
        secret = sandbox.credentials["client_secret"]
        assert secret not in key + value.decode()
        store.kept[key] = value[:-1]
        third = await post(PageServer(client_of(sandbox), allow, store=store), PATH)
        assert third.content == first.content
        assert sandbox.stats["event_delivery"] == 2

    run(test)


def test_a_shared_store_gives_nobody_the_answers_of_another() -> None:
    tenants: list[tuple[tallyfold.Sandbox, dict[str, Any]]] = [
        (tallyfold.Sandbox(seed=1), {}),
        (tallyfold.Sandbox(seed=2, client_id="tenant-b"), {}),
        (tallyfold.Sandbox(seed=3), {"headers": {"x-tenant": "c"}}),
        (tallyfold.Sandbox(seed=4), {"headers": {"x-tenant": "d"}}),
        (tallyfold.Sandbox(seed=5), {"identity": "e"}),
    ]

    async def test() -> None:
        store, seen = Store(), set()
        for sandbox, options in tenants:
            store.saved.clear()
            client = tallyfold.AsyncClient(
                cluster_endpoint=ADDRESS,
                transport=sandbox.async_transport(),
                **sandbox.credentials,
                **options,
            )
            seen.add((await post(PageServer(client, allow, store=store), PATH)).content)
            await store.saved.wait()
            assert sandbox.stats["event_delivery"] == 1
        assert len(seen) == len(store.kept) == len(tenants)

    run(test)


def test_a_store_needs_a_name_for_a_client_of_other_tokens() -> None:
    given: dict[str, Any] = {"cluster_endpoint": ADDRESS, "access_token": lambda: ("token", 3600)}
    client = tallyfold.AsyncClient(**given)
    with pytest.raises(tallyfold.ConfigError) as refused:
        PageServer(client, allow, store=Store())
    assert (refused.value.code, refused.value.argument) == ("missing_argument", "identity")
    PageServer(client, allow)
    PageServer(tallyfold.AsyncClient(**given, identity="tenant a"), allow, store=Store())


def test_a_store_that_fails_does_no_harm(sandbox: tallyfold.Sandbox) -> None:
    class Down:
        def get(self, _key: str) -> object:
            raise OSError

        def set(self, _key: str, _value: bytes) -> object:
            raise OSError

    class Odd(Down):
        def get(self, _key: str) -> object:
            return 7

    class Silent(Down):
        async def get(self, _key: str) -> object:
            return await asyncio.Event().wait()

    async def test() -> None:
        for store in (Down(), Odd(), Silent()):
            app = PageServer(client_of(sandbox), allow, store=store)
            assert (await post(app, PATH)).status_code == 200

    run(test)


def test_a_store_has_a_second_to_store_an_answer(
    sandbox: tallyfold.Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallyfold.asgi.STORE_PATIENCE", 0.05)
    stored: list[str] = []

    class Silent:
        def get(self, _key: str) -> object:
            return None

        async def set(self, _key: str, _value: bytes) -> object:
            try:
                return await asyncio.Event().wait()
            finally:
                stored.append("ended")

    async def test() -> None:
        app = PageServer(client_of(sandbox), allow, store=Silent())
        assert (await post(app, PATH)).status_code == 200
        async with asyncio.timeout(10):
            while not stored:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.001)

    run(test)


def test_answers_give_way_when_there_is_no_room(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        app = PageServer(client_of(sandbox), allow, memory_bytes=2500)
        for name in ["integration", "reason", "write_key", "event_name", "event_name"]:
            await post(app, PATH, {**QUERY, "dimensions": [name]})
        assert sandbox.stats["event_delivery"] == 4
        await post(app, PATH)
        assert sandbox.stats["event_delivery"] == 5

    run(test)


class Gate(httpx2.AsyncBaseTransport):
    """Holds metrics requests until it is opened."""

    def __init__(self, sandbox: tallyfold.Sandbox) -> None:
        self.inner = sandbox.async_transport()
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        self.under_way = self.most = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if "analytics" in str(request.url):
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.reached.set()
            await self.open.wait()
            self.under_way -= 1
        return await self.inner.handle_async_request(request)


def test_a_page_that_goes_away_takes_nothing_from_the_others(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        gate = Gate(sandbox)
        app = PageServer(client_of(sandbox, transport=gate), allow)
        first, second = (asyncio.create_task(post(app, PATH)) for _ in range(2))
        await gate.reached.wait()
        first.cancel()
        gate.open.set()
        assert (await second).status_code == 200
        assert first.cancelled()
        assert sandbox.stats["event_delivery"] == 1

    run(test)


def test_no_more_calls_than_allowed_are_under_way(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        gate = Gate(sandbox)
        app = PageServer(client_of(sandbox, transport=gate), allow, concurrency=3)
        plan = tallyfold.Plan("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "1h")
        queries = [{**QUERY, "start": f"{w.start:%FT%TZ}", "end": f"{w.end:%FT%TZ}"} for w in plan]
        asked = [asyncio.create_task(post(app, PATH, query)) for query in queries]
        await gate.reached.wait()
        gate.open.set()
        answers = await asyncio.gather(*asked)
        assert {answer.status_code for answer in answers} == {200}
        assert gate.most == 3

    run(test)


def test_tokens_and_audit_logs_only_if_that_is_switched_on(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        client = client_of(sandbox)
        app = PageServer(client, allow, hand_out_tokens=True, audit_logs=True)
        given = (await post(app, "/x/token/control", {})).json()
        assert (given["accessToken"], 86_390 < given["expiresIn"] <= 86_400) == (
            (await client.token("control"))[0],
            True,
        )
        page = page_of(app, base_url=f"{SITE}/tallyfold")
        logs = await page.audit_logs(page=1, per_page=2)
        assert logs == await client.audit_logs(page=1, per_page=2)

    run(test)
    assert sandbox.stats["control_token"] == 1


def test_other_kinds_of_scopes(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        app = PageServer(client_of(sandbox), allow)
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message["type"])

        events = iter(["lifespan.startup", "lifespan.shutdown", "http.disconnect"])

        async def receive() -> Any:
            return {"type": next(events)}

        await app({"type": "lifespan"}, receive, send)
        await app({"type": "websocket"}, receive, send)
        scope = {"type": "http", "method": "POST", "path": PATH, "headers": []}
        await app(scope, receive, send)
        assert sent == [
            "lifespan.startup.complete",
            "lifespan.shutdown.complete",
            "websocket.close",
        ]

    run(test)


@asynccontextmanager
async def both(sandbox: tallyfold.Sandbox) -> AsyncIterator[tallyfold.AsyncClient]:
    async with client_of(sandbox) as client:
        yield client


def test_a_token_comes_with_its_lifetime_once_for_all_who_ask(
    sandbox: tallyfold.Sandbox, clock: Callable[[int], None]
) -> None:
    async def test() -> None:
        async with both(sandbox) as client:
            tokens = await asyncio.gather(*(client.token("control") for _ in range(3)))
            assert len({token for token, _ in tokens}) == 1
            assert sandbox.stats["control_token"] == 1
            clock(1000)
            token, seconds = await client.token("control")
            assert token == tokens[0][0]
            assert 85_390 <= seconds <= 85_400
            clock(85_101)
            assert (await client.token("control"))[0] != token
            assert (await client.token("orchestration"))[0] != token

    run(test)
    with tallyfold.Client(
        cluster_endpoint=ADDRESS, transport=sandbox.transport(), **sandbox.credentials
    ) as client:
        (token, seconds), (again, then) = client.token("control"), client.token("control")
        # A second may pass between the two.
        assert again == token
        assert seconds - 1 <= then <= seconds
        with pytest.raises(tallyfold.ConfigError, match="api"):
            client.token("contrl")  # type: ignore[arg-type]
        with pytest.raises(tallyfold.ConfigError, match="base_url"):
            client.token("orchestration")


def test_a_client_without_tokens_sends_none() -> None:
    sent: list[httpx2.Request] = []

    def refuse(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(401)

    transport = httpx2.MockTransport(refuse)
    page = tallyfold.Client(cluster_endpoint=ADDRESS, tokenless=True, transport=transport)
    with pytest.raises(tallyfold.AuthError) as refused:
        page.event_delivery(START, END, ["integration"])
    assert refused.value.status == 401
    assert "authorization" not in sent[0].headers
    assert len(sent) == 1


def scope_of(path: str, *headers: tuple[str, str], query: str = "") -> dict[str, Any]:
    """The scope of a request as an ASGI server gives it: the path is decoded."""
    all_headers = [("content-type", "application/json"), *headers]
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in all_headers],
    }


async def ask_as(
    app: PageServer, scope: dict[str, Any], leaves: asyncio.Event | None = None
) -> list[Any]:
    """Gives what the app sends; the visitor leaves when the event is set."""
    sent: list[Any] = []
    asked = iter([{"type": "http.request", "body": json.dumps(QUERY).encode()}])

    async def receive() -> Any:
        if (message := next(asked, None)) is not None:
            return message
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


class Holding(httpx2.AsyncBaseTransport):
    """A service that answers when it is told to, and knows who is waiting."""

    def __init__(self, sandbox: tallyfold.Sandbox) -> None:
        self._inner = sandbox.async_transport()
        self.answers = asyncio.Event()
        self.under_way = self.ended = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/oauth/token"):
            return await self._inner.handle_async_request(request)
        self.under_way += 1
        try:
            await self.answers.wait()
            return await self._inner.handle_async_request(request)
        finally:
            self.under_way -= 1
            self.ended += 1


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.001)


def test_work_ends_when_its_last_visitor_leaves(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        service = Holding(sandbox)
        app = PageServer(client_of(sandbox, transport=service), allow, concurrency=1)
        events = [asyncio.Event() for _ in range(3)]
        asked = [asyncio.create_task(ask_as(app, scope_of(PATH), event)) for event in events]
        await until(lambda: service.under_way == 1)
        events[0].set()
        assert await asked[0] == []
        assert service.under_way == 1
        events[1].set()
        events[2].set()
        assert [await task for task in asked[1:]] == [[], []]
        await until(lambda: service.ended == 1)
        # The turn was given back.
        service.answers.set()
        assert (await ask_as(app, scope_of(PATH)))[0]["status"] == 200

    run(test)


def test_more_than_the_queue_holds_is_shed(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        service = Holding(sandbox)
        app = PageServer(client_of(sandbox, transport=service), allow, concurrency=1, queue=2)
        windows = list(tallyfold.Plan("2026-01-01T00:00:00Z", "2026-01-01T01:15:00Z", "15m"))
        bodies = [{**QUERY, "start": w.start_text, "end": w.end_text} for w in windows]
        asked = [asyncio.create_task(post(app, PATH, body)) for body in bodies]
        await until(lambda: sum(task.done() for task in asked) == 2)
        service.answers.set()
        responses = await asyncio.gather(*asked)
        assert sorted(response.status_code for response in responses) == [200] * 3 + [503] * 2
        shed = [response for response in responses if response.status_code == 503]
        assert {response.headers["retry-after"] for response in shed} == {"1"}

    run(test)


def test_requests_for_tokens_wait_for_their_turn(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        service = Holding(sandbox)
        options: dict[str, Any] = {"hand_out_tokens": True, "concurrency": 1, "queue": 1}
        app = PageServer(client_of(sandbox, transport=service), allow, **options)
        metrics = asyncio.create_task(post(app, PATH))
        await until(lambda: service.under_way == 1)
        asked = [asyncio.create_task(post(app, "/token/control", {})) for _ in range(3)]
        await until(lambda: sum(task.done() for task in asked) == 2)
        service.answers.set()
        assert (await metrics).status_code == 200
        statuses = [response.status_code for response in await asyncio.gather(*asked)]
        assert sorted(statuses) == [200, 503, 503]

    run(test)


def test_requests_for_tokens_fail_at_once_after_a_refusal(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        client = client_of(sandbox, client_secret="wrong")
        app = PageServer(client, allow, hand_out_tokens=True)
        for _ in range(3):
            answer = await post(app, "/token/control", {})
            assert answer.json()["code"] == "token_refused"
            # Like a query, a request for a token sends nothing for ten seconds after a refusal.
            assert sandbox.stats["control_token"] == 1

    run(test)


def test_large_answers_are_compressed() -> None:
    async def test() -> None:
        seeded = tallyfold.Sandbox(seed=1)
        app = PageServer(client_of(seeded), allow)
        body = {**QUERY, "dimensions": ["event_name", "integration", "reason"]}
        plain = await post(app, PATH, body, {**JSON, "accept-encoding": "identity"})
        packed = await post(app, PATH, body, {**JSON, "accept-encoding": "br, gzip"})
        for coding in ("gzip;q=0.000", "GZIP; Q=0"):
            refused = await post(app, PATH, body, {**JSON, "accept-encoding": coding})
            assert "content-encoding" not in refused.headers
        refused = await post(app, PATH, body, {**JSON, "accept-encoding": "gzip;q=0"})
        assert "content-encoding" not in plain.headers
        assert "content-encoding" not in refused.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
        assert packed.content == plain.content == refused.content
        assert int(packed.headers["content-length"]) < len(plain.content) / 4
        # A page of the library reads it, too.
        page = page_of(Starlette(routes=[Mount("/tallyfold", app)]))
        assert len(await page.event_delivery(START, END, ["event_name", "integration"])) > 9

    run(test)


@pytest.mark.parametrize("is_large", [True, False])
def test_work_with_large_bodies_runs_in_threads(
    is_large: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    to_thread, names = asyncio.to_thread, set[str]()

    async def watched(work: Any, *arguments: Any) -> Any:
        names.add(getattr(work, "func", work).__name__)
        return await to_thread(work, *arguments)

    monkeypatch.setattr(asyncio, "to_thread", watched)
    monkeypatch.setattr("tallyfold.asgi.LEAST_IN_THREAD", 100 if is_large else 1_000_000)

    async def test() -> None:
        app = PageServer(client_of(tallyfold.Sandbox(seed=1)), lambda _: {"write_key": "web"})
        response = await get(app, ranged())
        assert response.headers["content-encoding"] == "gzip"
        assert names == ({"narrow", "_packed"} if is_large else set())

    run(test)


def test_the_loop_gets_its_turn_between_windows() -> None:
    async def test() -> None:
        app = PageServer(client_of(tallyfold.Sandbox(seed=1)), allow)
        await get(app, ranged())
        path, _, query = ranged().partition("?")
        scope = {**scope_of(path, query=query), "method": "GET"}
        turns = 0
        seen: list[int] = []

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        request = iter([{"type": "http.request"}])

        async def receive() -> Any:
            return next(request, None) or await asyncio.Event().wait()

        async def send(message: Any) -> None:
            if message.get("more_body"):
                seen.append(turns)

        counting = asyncio.create_task(count())
        await app(scope, receive, send)
        counting.cancel()
        assert len(seen) == 97
        assert len(set(seen)) == 97

    run(test)


def test_what_went_wrong_inside_stays_inside(
    sandbox: tallyfold.Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        for status in (403, 418, 500):
            caplog.clear()
            sandbox.inject("status", endpoint="event_delivery", status=status)
            response = await post(PageServer(client_of(sandbox), allow), PATH)
            text = response.json()["message"]
            assert "sandbox.example" not in text
            assert "(status" not in text
            reference = text.rsplit(" ", 1)[1]
            (record,) = [each for each in caplog.records if each.name == "tallyfold"]
            assert reference in record.getMessage()
            assert f"status {status}" in record.getMessage()

    run(test)


def test_the_path_that_authorize_sees_is_the_one_that_is_answered(
    sandbox: tallyfold.Sandbox,
) -> None:
    seen = []

    def authorize(request: PageRequest) -> bool:
        seen.append(request.path)
        return not request.path.endswith("event_delivery")

    async def test() -> None:
        app = PageServer(client_of(sandbox), authorize)
        for path in (f"{PATH}?", f"{PATH}?/public", f"{PATH}#", f"{PATH}%"):
            start, _ = await ask_as(app, scope_of(path))
            assert (seen[-1], start["status"]) == (path, 400)
        assert sandbox.stats["event_delivery"] == 0

    run(test)


def test_cookies_of_several_headers_are_all_read(sandbox: tallyfold.Sandbox) -> None:
    seen: list[dict[str, str]] = []

    def authorize(request: PageRequest) -> bool:
        seen.append(request.cookies)
        return True

    async def test() -> None:
        cookies = [
            ("cookie", "theme=dark; a b=[1,2]"),
            ("cookie", 'session="abc"'),
            ("cookie", "x"),
        ]
        await ask_as(PageServer(client_of(sandbox), authorize), scope_of(PATH, *cookies))
        assert seen == [{"theme": "dark", "a b": "[1,2]", "session": "abc", "x": ""}]

    run(test)


def test_a_request_that_is_shown_keeps_its_secrets() -> None:
    headers = {"cookie": "session=hunter2", "authorization": "Bearer hunter2"}
    scope = scope_of(PATH, *headers.items(), query="token=hunter2")
    request = PageRequest("POST", PATH, headers, scope)
    assert "hunter2" not in repr(request)
    assert PATH in repr(request)


def test_a_request_can_be_a_key() -> None:
    one, same = (PageRequest("POST", PATH, {"cookie": "a=b"}, scope_of(PATH)) for _ in range(2))
    assert {one: "found"}[same] == "found"
    assert PageRequest("POST", PATH, {}, {}) not in {one}


def test_a_server_that_never_waits_for_the_visitor_blocks_nobody(
    sandbox: tallyfold.Sandbox,
) -> None:
    async def test() -> None:
        app = PageServer(client_of(sandbox), allow)
        received = 0
        statuses: list[int] = []

        async def receive() -> Any:
            nonlocal received
            received += 1
            assert received < 10_000
            body = json.dumps(QUERY).encode() if received == 1 else b""
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        await app(scope_of(PATH), receive, send)
        assert statuses == [200]

    run(test)


def test_a_path_that_is_no_text_is_refused(sandbox: tallyfold.Sandbox) -> None:
    async def test() -> None:
        scope = {**scope_of(PATH), "path": "/\udc80"}
        app = PageServer(client_of(sandbox), allow)
        assert (await ask_as(app, scope))[0]["status"] == 400

    run(test)


DAY = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z", "window": "15m"}


def ranged(path: str = PATH, **query: str) -> str:
    given = {**DAY, "dimensions": "integration,reason", **query}
    return f"{path}/windows?{httpx2.QueryParams(given)}"


async def get(app: Any, target: str, headers: dict[str, str] | None = None) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=SITE) as plain:
        return await plain.get(target, headers=headers)


def test_a_visitor_who_does_not_read_holds_only_a_few_large_windows() -> None:
    async def test() -> None:
        sandbox = tallyfold.Sandbox()
        # A megabyte in each window.
        names = [letter * 65_000 for letter in "abcdefghijklmnop"]
        for window in tallyfold.Plan(DAY["start"], DAY["end"], "15m"):
            for name in names:
                sandbox.record(
                    window.start, "success", event_name=name, write_key="", integration="warehouse"
                )
        app = PageServer(client_of(sandbox), allow)
        path, _, query = ranged(dimensions="event_name").partition("?")
        scope = {**scope_of(path, query=query), "method": "GET"}
        request = iter([{"type": "http.request"}])
        sent = 0

        async def receive() -> Any:
            return next(request, None) or await asyncio.Event().wait()

        async def send(message: Any) -> None:
            nonlocal sent
            sent += message.get("more_body", False)
            if sent == 3:
                await asyncio.Event().wait()

        answering = asyncio.create_task(app(scope, receive, send))
        calls, idle = 0, 0
        while sent < 3 or idle < 1_000:
            await asyncio.sleep(0)
            before, calls = calls, sandbox.stats["event_delivery"]
            idle = idle + 1 if calls == before else 0
        assert 3 <= calls <= 12
        answering.cancel()

    run(test)


def test_a_day_in_one_request_has_the_same_counts_as_its_windows() -> None:
    async def test() -> None:
        sandbox = tallyfold.Sandbox(seed=1)
        app = PageServer(client_of(sandbox), allow)
        response = await get(app, ranged())
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/x-ndjson"
        assert response.headers["cache-control"] == "private, no-cache"
        assert response.headers["content-encoding"] == "gzip"
        lines = [json.loads(line) for line in response.text.splitlines()]
        assert lines.pop() == {"done": True}
        windows = list(tallyfold.Plan(DAY["start"], DAY["end"], "15m"))
        assert len(lines) == 2 * len(windows) == 192
        assert [line["settled"] for line in lines[::2]] == [True] * 96
        assert sandbox.stats["event_delivery"] == 96
        direct = await client_of(sandbox).event_delivery(DAY["start"], DAY["end"], ["integration"])
        assert sum(int(body["totalErrors"]) for body in lines[1::2]) == direct.totals.errors
        # Windows of ranges and single requests share what is kept.
        body = {
            "start": lines[0]["start"],
            "end": lines[0]["end"],
            "dimensions": ["integration", "reason"],
        }
        assert (await post(app, PATH, body)).json() == lines[1]
        calls = sandbox.stats["event_delivery"]
        etag = {"if-none-match": response.headers["etag"]}
        again = await get(app, ranged(), etag)
        assert (again.status_code, again.content) == (304, b"")
        plain = await get(app, ranged(), {"accept-encoding": "identity"})
        assert plain.text == response.text
        assert (await get(app, ranged(window="1h"), etag)).status_code == 200
        assert sandbox.stats["event_delivery"] == calls + 24

    run(test)


def test_a_window_of_a_range_that_fails_has_a_line_and_is_asked_for_again() -> None:
    async def test() -> None:
        sandbox = tallyfold.Sandbox(seed=1)
        sandbox.inject("status", status=503, endpoint="event_delivery")
        app = PageServer(client_of(sandbox), allow)
        response = await get(app, ranged())
        lines = [json.loads(line) for line in response.text.splitlines()]
        failed = [line["error"] for line in lines if "error" in line]
        assert [(one["code"], one["kind"], one["status"]) for one in failed] == [
            ("server_error", "service", 503)
        ]
        assert "injected" not in response.text
        assert len(lines) == 2 * 95 + 2
        again = await get(app, ranged(), {"if-none-match": response.headers["etag"]})
        assert again.status_code == 200
        assert len(again.text.splitlines()) == 2 * 96 + 1

    run(test)


class _Cache(dict[str, bytes]):
    set = dict.__setitem__


class _Down(httpx2.AsyncBaseTransport):
    """A sandbox whose endpoints can't be reached while it is down."""

    def __init__(self, sandbox: tallyfold.Sandbox, path: str) -> None:
        self.is_down = True
        self.requests = 0
        self._path = path
        self._up = sandbox.async_transport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self.is_down or self._path not in request.url.path:
            return await self._up.handle_async_request(request)
        self.requests += 1
        message = "connection refused"
        raise httpx2.ConnectError(message)


@pytest.mark.parametrize("path", ["analytics", "token"])
def test_a_range_of_a_service_that_is_down_ends_at_once(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        sandbox = tallyfold.Sandbox(seed=1)
        store = _Cache()
        morning = {**DAY, "end": "2026-01-01T12:00:00Z"}
        await get(PageServer(client_of(sandbox), allow, store=store), ranged(**morning))
        transport = _Down(sandbox, path)
        app = PageServer(client_of(sandbox, transport=transport, max_retries=3), allow, store=store)
        begun = time.monotonic()
        response = await get(app, ranged())
        # If each window waited between its retries, it would be more than ten.
        assert time.monotonic() - begun < 8
        lines = [json.loads(line) for line in response.text.splitlines()]
        failed = [line["error"] for line in lines if "error" in line]
        assert sum("settled" in line for line in lines) == len(failed) == 48
        assert {error["code"] for error in failed} == {"network_failed"}
        assert transport.requests <= 16
        # They are one line of the log.
        (record,) = [each for each in caplog.records if each.name == "tallyfold"]
        references = {error["message"].rsplit(" ", 1)[1] for error in failed}
        assert len(references) == 1
        assert references.pop() in record.getMessage()
        transport.is_down = False
        again = await get(app, ranged())
        assert len(again.text.splitlines()) == 193
        assert '"error":' not in again.text

    run(test)


def test_refused_credentials_cost_one_token_request_in_ten_seconds(
    sandbox: tallyfold.Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(1_767_312_000_000)
    monkeypatch.setattr(tallyfold.Now, "read", clock.now)

    async def test() -> None:
        app = PageServer(client_of(sandbox, client_secret="revoked"), allow)
        for requests in (1, 2):
            for window in tallyfold.Plan(DAY["start"], DAY["end"], "15m"):
                edges = {"start": window.start.isoformat(), "end": window.end.isoformat()}
                answer = await post(app, PATH, {**QUERY, **edges})
                assert answer.json()["code"] == "token_refused"
            assert sandbox.stats["control_token"] == requests
            clock.wait(10)

    run(test)


def test_an_outage_is_a_line_of_the_log_in_ten_seconds(
    sandbox: tallyfold.Sandbox, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(1_767_312_000_000)
    monkeypatch.setattr(tallyfold.Now, "read", clock.now)

    async def test() -> None:
        app = PageServer(client_of(sandbox, transport=_Down(sandbox, "analytics")), allow)
        for seconds, line in [
            (0, r"reference (\w+)\): network_failed: [^;]+$"),
            (9.9, None),
            (0.1, r"reference (\w+)\): .+; 2 equal errors since the last line$"),
        ]:
            clock.wait(seconds)
            caplog.clear()
            references = set()
            for _ in range(2 if line else 1):
                message = (await post(app, PATH)).json()["message"]
                references.add(message.rsplit(" ", 1)[1])
            texts = [each.getMessage() for each in caplog.records if each.name == "tallyfold"]
            found = [re.search(line, text) for text in texts] if line else texts
            assert [each and each[1] for each in found] == (list(references) if line else [])

    run(test)


def test_a_user_sees_some_rows_only_whatever_the_page_asks() -> None:
    async def test() -> None:
        sandbox = tallyfold.Sandbox(seed=1)
        client = client_of(sandbox)
        both: list[tallyfold.DimensionName] = ["integration", "write_key"]
        truth = await client.collect("event_delivery", DAY["start"], DAY["end"], both, window="15m")
        keys = [row.dimensions["write_key"] for row in truth.group_by("write_key")]
        assert len(keys) > 2
        visible: dict[str, Any] = {"a": keys[:1], "b": keys[1:], "all": keys, "none": []}

        async def authorize(request: PageRequest) -> Permission:
            user = request.headers.get("user", "")
            return {"write_key": visible[user]} if user in visible else user == "root"

        store: dict[str, bytes] = {}

        class Store:
            get = store.get
            set = store.__setitem__

        app = PageServer(client, authorize, store=Store())
        etags = []
        for user, own in visible.items():
            expected = truth.filter(write_key=own).group_by("integration")
            response = await get(app, ranged(dimensions="integration"), {"user": user})
            bodies = [json.loads(line) for line in response.text.splitlines()][1:-1:2]
            counts = [row for body in bodies for row in body["counts"]]
            assert all(list(row["dimensions"]) == ["integration"] for row in counts)
            for name in ("success", "errors", "filtered"):
                assert sum(int(row[name]) for row in counts) == getattr(expected.totals, name)
            assert sum(int(body["totalErrors"]) for body in bodies) == expected.totals.errors
            others = set(keys) - set(own)
            assert not any(key in response.text for key in others)
            etags.append(response.headers["etag"])
            # A single request, and one for the very dimension that tells rows apart.
            for dimensions in (["write_key"], ["integration"], ["reason", "write_key"]):
                query = {**QUERY, "dimensions": dimensions}
                single = await post(app, PATH, query, {**JSON, "user": user})
                assert single.status_code == 200
                assert not any(key in single.text for key in others)
        assert len(set(etags)) == len(visible)
        # What another user's browser has kept is not confirmed to this one.
        again = await get(
            app, ranged(dimensions="integration"), {"user": "a", "if-none-match": etags[1]}
        )
        assert again.status_code == 200
        # All users, and the one who sees everything, share the calls to the service.
        calls = sandbox.stats["event_delivery"]
        await get(app, ranged(dimensions="integration,write_key"), {"user": "root"})
        assert sandbox.stats["event_delivery"] == calls
        assert (await get(app, ranged(), {"user": "nobody"})).status_code == 403

    run(test)


def test_permissions_that_are_wrong_answer_nothing() -> None:
    async def test() -> None:
        sandbox = tallyfold.Sandbox(seed=1)

        def server(allowed: Any) -> PageServer:
            return PageServer(client_of(sandbox), lambda _: allowed)

        wrong: list[Any] = [{}, {"colour": "red"}, {"write_key": None}, {"write_key": 7}]
        for allowed in wrong:
            with pytest.raises(tallyfold.ConfigError):
                await post(server(allowed), PATH)
        for truthy in (1, "yes", ["write_key"], object()):
            assert (await post(server(truthy), PATH)).status_code == 403
        app = PageServer(
            client_of(sandbox),
            lambda _: {"write_key": "web"},
            hand_out_tokens=True,
            audit_logs=True,
        )
        assert (await post(app, "/token/control")).status_code == 403
        assert (await get(app, "/api/v1/audit-logs")).status_code == 403
        ingestion = PATH.replace("delivery", "ingestion")
        assert (await post(server({"reason": "consent"}), ingestion)).status_code == 403
        assert set(sandbox.stats.values()) == {0}

    run(test)


def test_a_range_that_is_wrong_or_not_allowed_is_refused() -> None:
    async def test() -> None:
        sandbox = tallyfold.Sandbox(seed=1)
        app = PageServer(client_of(sandbox), allow)
        for query, headers, status, word in [
            ({"window": "7m"}, {}, 400, "window"),
            ({"window": "1s"}, {}, 400, "window"),
            ({"end": DAY["start"]}, {}, 400, "start"),
            ({}, {"sec-fetch-site": "cross-site"}, 403, "origin"),
        ]:
            response = await get(app, ranged(**query), headers)
            assert response.status_code == status
            assert word in response.text
        closed = PageServer(client_of(sandbox), lambda _: False)
        assert (await get(closed, ranged())).status_code == 403
        assert sandbox.stats["event_delivery"] == 0

    run(test)


def test_work_for_a_range_ends_when_its_visitor_leaves() -> None:
    async def test() -> None:
        sandbox = tallyfold.Sandbox(seed=1)
        own = sandbox.async_transport()
        hanging = 0
        most = 0
        three = asyncio.Event()

        class Hanging(httpx2.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
                nonlocal hanging, most
                if "analytics" not in str(request.url):
                    return await own.handle_async_request(request)
                hanging += 1
                most = max(most, hanging)
                if hanging == 3:
                    three.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    hanging -= 1
                raise AssertionError

        client = client_of(sandbox, transport=Hanging())
        app = PageServer(client, allow, concurrency=3)
        path, _, query = ranged().partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [],
        }
        left = asyncio.Event()
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b""}
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(_message: Any) -> None:
            pass

        task = asyncio.create_task(app(scope, receive, send))
        await three.wait()
        left.set()
        await task
        assert (hanging, most) == (0, 3)

    run(test)


class Counted(httpx2.AsyncBaseTransport):
    """A service that answers one call each time that `answers` is released."""

    def __init__(self, sandbox: tallyfold.Sandbox) -> None:
        self._inner = sandbox.async_transport()
        self.answers = asyncio.Semaphore(0)
        self.starts: list[str] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if "analytics" in str(request.url):
            self.starts.append(json.loads(request.content)["start"][:16])
            await self.answers.acquire()
        return await self._inner.handle_async_request(request)

    async def calls_before(self, task: "asyncio.Task[Any]") -> int:
        """Answers one call after the other until a task ends, and gives how many that were."""
        for calls in range(1000):
            # Nothing waits for time, so this is long enough for whatever can happen.
            for _ in range(300):
                await asyncio.sleep(0)
            if task.done():
                return calls
            self.answers.release()
        raise AssertionError


def hours(day: int) -> str:
    return ranged(start=f"2026-01-{day:02}T00:00:00Z", end=f"2026-01-{day + 1:02}T00:00:00Z")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-02-01T00:00:00Z", "2026-02-01T00:15:00Z"),
        # The eighth window of a range, which waits for it, too.
        ("2026-01-25T01:45:00Z", "2026-01-25T02:00:00Z"),
    ],
)
def test_ranges_do_not_delay_a_single_request_however_many_there_are(start: str, end: str) -> None:
    async def test() -> None:
        service = Counted(tallyfold.Sandbox(seed=1))
        client = client_of(tallyfold.Sandbox(seed=1), transport=service)
        app = PageServer(client, allow, concurrency=2, queue=1)
        ranges = [asyncio.create_task(get(app, hours(day))) for day in range(1, 26)]
        await until(lambda: len(service.starts) == 2)
        for _ in range(300):
            await asyncio.sleep(0)
        body = {"start": start, "end": end, "dimensions": ["integration", "reason"]}
        single = asyncio.create_task(post(app, PATH, body))
        # Two calls were under way, two of ranges were in line, and one is its own.
        assert await service.calls_before(single) <= 5
        assert single.result().status_code == 200
        for task in ranges:
            task.cancel()
        await asyncio.gather(*ranges, return_exceptions=True)

    run(test)


def test_a_range_waits_for_one_window_of_each_other_range() -> None:
    async def test() -> None:
        service = Counted(tallyfold.Sandbox(seed=1))
        client = client_of(tallyfold.Sandbox(seed=1), transport=service)
        app = PageServer(client, allow, concurrency=4)
        ranges = [asyncio.create_task(get(app, hours(day))) for day in range(1, 6)]
        await until(lambda: len(service.starts) == 4)
        ranges.append(asyncio.create_task(get(app, hours(6))))
        for _ in range(40):
            service.answers.release()
        await until(lambda: len(service.starts) >= 40)
        for task in ranges:
            task.cancel()
        await asyncio.gather(*ranges, return_exceptions=True)
        # Four calls were under way, four were in line, and each of the five ranges sent one more.
        assert service.starts.index("2026-01-06T00:00") <= 4 + 4 + 5

    run(test)
