"""Tables as widgets of notebooks."""

import json
import sys
from typing import Any

import nbclient
import nbformat
import pytest
from support import END, HAS_WIDGET, START

import tallyfold
from tallyfold._notebook import _widget

needs_widget = pytest.mark.skipif(not HAS_WIDGET, reason="the npm package was not built")
LARGE = 2**53 + 1
HOSTILE = '<img src=x onerror="alert(1)">\u202e'


def body(*rows: tuple[dict[str, str], int]) -> bytes:
    counts = [
        {"success": str(count), "errors": "0", "filtered": "0", "dimensions": dimensions}
        for dimensions, count in rows
    ]
    total = str(sum(count for _, count in rows))
    totals = {"totalDelivered": total, "totalErrors": "0", "totalFiltered": "0"}
    return json.dumps({"start": START, "end": END, **totals, "counts": counts}).encode()


def table(*rows: tuple[dict[str, str], int]) -> tallyfold.CountTable:
    names: list[Any] = list(rows[0][0])
    aggregator = tallyfold.Aggregator(names, metric="event_delivery", window=(START, END))
    aggregator.push(body(*rows))
    return aggregator.finish()


@needs_widget
def test_a_widget_has_the_counts_digit_for_digit_and_a_plain_table() -> None:
    counts = table(({"integration": HOSTILE}, LARGE), ({"integration": "crm"}, 7))
    widget: Any = counts.show()
    assert tallyfold.CountTable.from_json(widget.delivery) == counts
    assert (widget.ingestion, widget.left_out) == ("", "")
    bundle = widget._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/html"] == counts._repr_html_()
    assert data["text/plain"] == repr(counts) == repr(widget)
    assert "<img" not in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data


@needs_widget
def test_the_pipeline_has_both_endpoints() -> None:
    counts = table(({"integration": "crm"}, 7))
    widget: Any = tallyfold.show(counts, counts)
    assert widget.ingestion == counts.to_json()


@needs_widget
def test_too_many_groups_are_added_up_and_none_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tallyfold._notebook.MOST", 10)
    rows = [
        ({"event_name": f"e{number}", "integration": f"i{number % 5}"}, number + 1)
        for number in range(40)
    ]
    counts = table(*rows)
    widget: Any = counts.show()
    shown = tallyfold.CountTable.from_json(widget.delivery)
    assert shown == counts.group_by("integration")
    assert shown.totals == counts.totals
    assert "event_name" in widget.left_out
    with pytest.raises(tallyfold.ConfigError, match="at most 10 rows") as caught:
        counts.group_by("event_name").show()
    assert caught.value.argument == "delivery"


def test_only_tables_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = table(({"integration": "crm"}, 7))
    wrong: Any = "a table"
    with pytest.raises(tallyfold.ConfigError, match="ingestion"):
        counts.show(wrong)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    _widget.cache_clear()
    with pytest.raises(ModuleNotFoundError, match=r"tallyfold\[notebook\]"):
        counts.show()
    _widget.cache_clear()


@needs_widget
def test_a_notebook_keeps_the_plain_table() -> None:
    counts = table(({"integration": "crm"}, LARGE)).to_json()
    program = f"import tallyfold\ntallyfold.CountTable.from_json({counts!r}).show()"
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "source": program,
        "outputs": [],
        "execution_count": None,
    }
    notebook: Any = nbformat.from_dict(  # type: ignore[no-untyped-call]
        {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    )
    nbclient.NotebookClient(
        notebook, timeout=120, startup_timeout=120, kernel_name="python3"
    ).execute()
    (output,) = notebook.cells[0].outputs
    data = output["data"]
    assert str(LARGE) in data["text/html"]
    assert "crm" in data["text/html"]
    (model,) = [
        state["state"]
        for state in notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"][
            "state"
        ].values()
        if "delivery" in state["state"]
    ]
    assert str(LARGE) in model["delivery"]
