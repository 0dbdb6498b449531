"""Clients whose arguments come from the environment."""

import asyncio
import os
import traceback
from typing import Any

import pytest
from support import ADDRESS, END, START

import tallyfold

Clients = type[tallyfold.Client] | type[tallyfold.AsyncClient]
both = pytest.mark.parametrize("kind", [tallyfold.Client, tallyfold.AsyncClient])


def variables(sandbox: tallyfold.Sandbox) -> dict[str, str]:
    addresses = dict.fromkeys(["cluster_endpoint", "base_url", "auth_url"], ADDRESS)
    given = {**addresses, **sandbox.credentials}
    return {f"TALLYFOLD_{name.upper()}": str(value) for name, value in given.items()}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("TALLYFOLD_"):
            monkeypatch.delenv(name)


def test_all_of_it(sandbox: tallyfold.Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables(sandbox).items():
        monkeypatch.setenv(name, value)
    with tallyfold.Client.from_env(transport=sandbox.transport()) as client:
        assert client.event_delivery(START, END, ["integration"]).totals.success == 12
        assert isinstance(client.audit_logs(), dict)

    async def ask() -> tallyfold.CountTable:
        transport = sandbox.async_transport()
        async with tallyfold.AsyncClient.from_env(transport=transport) as client:
            return await client.event_delivery(START, END, ["integration"])

    assert asyncio.run(ask()).totals.success == 12


@both
def test_arguments_are_used_in_place_of_variables(
    kind: Clients, sandbox: tallyfold.Sandbox
) -> None:
    env = variables(sandbox)
    client = kind.from_env(env, cluster_endpoint="https://other.example", client_id=None)
    assert "https://other.example" in repr(client)
    with pytest.raises(tallyfold.ConfigError, match="timeout"):
        kind.from_env(env, timeout=-1)
    only = {"TALLYFOLD_CLUSTER_ENDPOINT": ADDRESS, "TALLYFOLD_CLIENT_SECRET": "unused"}
    kind.from_env(only, access_token=lambda _: ("token", 60))


@both
def test_all_that_is_missing_is_named_at_once(kind: Clients) -> None:
    with pytest.raises(tallyfold.ConfigError) as missing:
        kind.from_env({"TALLYFOLD_CLIENT_ID": "me", "TALLYFOLD_CLIENT_SECRET": ""})
    assert str(missing.value) == (
        "missing_argument: cluster_endpoint: not set in the environment, or empty: "
        "TALLYFOLD_CLUSTER_ENDPOINT, TALLYFOLD_CLIENT_SECRET, TALLYFOLD_CONTROL_AUDIENCE"
    )
    assert missing.value.code == "missing_argument"
    logs = {"TALLYFOLD_BASE_URL": ADDRESS, "TALLYFOLD_CLIENT_ID": "me"}
    with pytest.raises(tallyfold.ConfigError) as missing:
        kind.from_env({**logs, "TALLYFOLD_CLIENT_SECRT": "hunter2"})
    assert str(missing.value).endswith(
        ": TALLYFOLD_AUTH_URL, TALLYFOLD_CLIENT_SECRET, TALLYFOLD_ORCHESTRATION_AUDIENCE; "
        "these are set, but unknown: TALLYFOLD_CLIENT_SECRT"
    )


@both
def test_a_variable_that_cannot_be_used_is_named(kind: Clients, sandbox: tallyfold.Sandbox) -> None:
    env = variables(sandbox)
    for name, value, text in [
        ("client_secret", "hunter2\n", "this ends with a line break; was it read from a file?"),
        ("client_id", " me", "this begins or ends with white space"),
        ("cluster_endpoint", "ftp://cluster.example", ""),
    ]:
        variable = f"TALLYFOLD_{name.upper()}"
        with pytest.raises(tallyfold.ConfigError) as refused:
            kind.from_env({**env, variable: value})
        code = refused.value.code
        assert str(refused.value).startswith(f"{code}: {variable}: {text}")
        assert refused.value.argument == name
        assert "hunter2" not in str(refused.value)
        # A value that the caller has passed isn't that of the variable.
        passed: dict[str, Any] = {name: value}
        with pytest.raises(tallyfold.ConfigError) as refused:
            kind.from_env(env, **passed)
        assert str(refused.value).startswith(f"{code}: {name}: {text}")


@both
@pytest.mark.parametrize("env", [{1: 2}, {b"TALLYFOLD_CLIENT_ID": "me"}])
def test_an_environment_has_names(kind: Clients, env: Any) -> None:
    with pytest.raises(tallyfold.ConfigError) as refused:
        kind.from_env(env)
    assert (refused.value.code, refused.value.argument) == ("invalid_argument", "env")
    assert isinstance(refused.value, TypeError)


@both
def test_no_traceback_shows_the_secret(kind: Clients, sandbox: tallyfold.Sandbox) -> None:
    env = {**variables(sandbox), "TALLYFOLD_CLIENT_SECRET": "hunter2"}
    with pytest.raises(tallyfold.ConfigError) as refused:
        kind.from_env(env, timeout=-1)
    own = [
        frame
        for frame in traceback.StackSummary.extract(
            traceback.walk_tb(refused.value.__traceback__), capture_locals=True
        )
        if "tallyfold" in frame.filename and "tests" not in frame.filename
    ]
    assert own
    assert "hunter2" not in str([frame.locals for frame in own])
