"""`tallyfold mcp` with the official clients: their answers are the command's, and a cancelled call holds up no other."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters  # type: ignore[import-not-found, unused-ignore]
from mcp.types import TextContent  # type: ignore[import-not-found, unused-ignore]
from places import good, program, run

TOOLS = {"delivery", "ingestion", "compare", "explain", "check", "incidents", "audit_logs", "clusters"}
QUESTION = {"from": "2026-01-05T00:00:00Z", "to": "2026-01-05T06:00:00Z", "by": "integration", "top": 3}
FLAGS = [f"--{name}={value}" for name, value in QUESTION.items()]


@pytest.fixture
def environment(binary: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Gives the settings of a simulated service."""
    service = subprocess.Popen([binary, "sandbox", "--port", "0"], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert service.stdout is not None
    exports = [line.split("export ", 1)[1].strip() for line in iter(service.stdout.readline, "Ctrl-C stops it.\n") if "export " in line]
    yield {**os.environ, **dict(export.split("=", 1) for export in exports)}
    service.terminate()
    service.communicate()


def printed(binary: Path, environment: dict[str, str], folder: Path) -> Any:
    """Gives what the command prints for the question."""
    done = run([binary, "delivery", *FLAGS, "--format=json"], env=environment, cwd=folder)
    return json.loads(good(done))["clusters"]


def of(clusters: Any) -> Any:
    """Gives the names and counts in a document."""
    return [[cluster["cluster"], cluster["totals"], cluster["rows"]] for cluster in clusters]


def test_the_python_client(binary: Path, environment: dict[str, str], tmp_path: Path) -> None:
    async def ask() -> None:
        server = StdioServerParameters(command=str(binary), args=["mcp"], env=environment, cwd=tmp_path)
        async with Client(server) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            answer = await client.call_tool("delivery", QUESTION)
            assert answer.structured_content is not None
            assert of(answer.structured_content["clusters"]) == of(printed(binary, environment, tmp_path))
            wrong = await client.call_tool("delivery", {"since": "6x"})
            (content,) = wrong.content
            assert wrong.is_error
            assert isinstance(content, TextContent)
            assert json.loads(content.text)["argument"] == "since"
            with pytest.raises(MCPError, match="unknown tool"):
                await client.call_tool("push", {})
            # A first check reads weeks of history.
            check = asyncio.create_task(client.call_tool("check", {}))
            await asyncio.sleep(0.2)
            check.cancel()
            with pytest.raises(asyncio.CancelledError):
                await check
            found = await asyncio.wait_for(client.call_tool("clusters", {}), 60)
            assert found.structured_content == {"clusters": [{"cluster": "default", "labels": {}}]}

    asyncio.run(ask())


def test_the_typescript_client(binary: Path, environment: dict[str, str], tmp_path: Path) -> None:
    script = Path(__file__).with_name("mcp_client.mjs")
    done = run([program("node"), script, binary, json.dumps(QUESTION)], env=environment, cwd=tmp_path)
    found = json.loads(good(done))
    assert set(found["tools"]) == TOOLS
    assert of(found["delivery"]["clusters"]) == of(printed(binary, environment, tmp_path))
    assert found["cancelled"]
    assert found["clusters"] == {"clusters": [{"cluster": "default", "labels": {}}]}
    assert "unknown format" not in done.stderr
