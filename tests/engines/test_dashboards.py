"""The ready-made dashboards fit the published schemas of Grafana and Datadog."""

import json
from pathlib import Path
from typing import Any

import pytest
from datadog_api_client.configuration import Configuration
from datadog_api_client.model_utils import validate_and_convert_types
from datadog_api_client.v1.model.dashboard import Dashboard as DatadogDashboard
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

DASHBOARDS = Path(__file__).parents[2] / "dashboards"


def lost(given: Any, read: Any, path: str = "") -> list[str]:
    """Gives the paths of what the schema does not know, or reads in another way."""
    if isinstance(given, dict) and isinstance(read, dict):
        return [one for name, value in given.items() for one in lost(value, read.get(name), f"{path}.{name}")]
    if isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        return [one for at, (value, other) in enumerate(zip(given, read, strict=True)) for one in lost(value, other, f"{path}[{at}]")]
    return [] if given == read else [path]


def read_by_grafana(given: dict[str, Any]) -> Any:
    return json.loads(JSONEncoder().encode(GrafanaDashboard.from_json(given)))


@pytest.mark.parametrize("name", ["grafana-counters", "grafana-windows"])
def test_grafana_knows_each_field(name: str) -> None:
    plugins.register_default_plugins()
    given = json.loads((DASHBOARDS / f"{name}.json").read_text())
    assert lost(given, read_by_grafana(given)) == []
    # A field that is misspelt is found.
    given["panels"][0]["options"]["reduceOption"] = given["panels"][0]["options"].pop("reduceOptions")
    assert lost(given, read_by_grafana(given)) == [".panels[0].options.reduceOption"]


def unread(read: Any, seen: set[int]) -> int:
    """Counts what Datadog's model could not read."""
    if id(read) in seen:
        return 0
    seen.add(id(read))
    own = getattr(read, "__dict__", {})
    parts = read if isinstance(read, list) else [*own.get("_data_store", {}).values(), *own.get("_composed_instances", [])]
    return int(own.get("_unparsed", False)) + sum(unread(part, seen) for part in parts)


def read_by_datadog(given: dict[str, Any]) -> Any:
    return validate_and_convert_types(given, (DatadogDashboard,), ["dashboard"], False, True, Configuration())


def test_datadog_knows_each_field() -> None:
    given = json.loads((DASHBOARDS / "datadog-windows.json").read_text())
    assert unread(read_by_datadog(given), set()) == 0
    given["widgets"][3]["definition"]["requests"][0]["display_type"] = "towers"
    assert unread(read_by_datadog(given), set()) > 0
