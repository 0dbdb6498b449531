"""A sandbox on loopback, with its address and credentials in the environment that each program reads."""

from collections.abc import Iterator

import pytest
import tallyfold


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[tallyfold.Sandbox]:
    """A sandbox that `Client.from_env()` reaches, in this process and in those that it starts."""
    names = ("client_id", "client_secret", "control_audience", "orchestration_audience")
    values = {name: f"engines {name}" for name in names}
    sandbox = tallyfold.Sandbox(seed=7, **values)
    with tallyfold.serve(sandbox) as server:
        for name in ("CLUSTER_ENDPOINT", "BASE_URL", "AUTH_URL"):
            monkeypatch.setenv(f"TALLYFOLD_{name}", server.url)
        for name, value in values.items():
            monkeypatch.setenv(f"TALLYFOLD_{name.upper()}", value)
        yield sandbox
