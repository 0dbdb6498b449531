"""Shows tables in notebooks: a widget with the elements of the dashboard and the counts."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tallyfold._errors import ConfigError, invalid, wrong_type
from tallyfold._names import DimensionName
from tallyfold._tallyfold import CountTable

if TYPE_CHECKING:
    import anywidget

__all__ = ["show"]

MOST = 100_000
"""The maximum number of rows of all windows in a widget: about 10 MB."""

ORDER: list[DimensionName] = ["integration", "reason", "write_key", "event_name"]
"""The dimensions to keep longest, in order. If there are too many groups, the last goes first."""


def show(delivery: CountTable, ingestion: CountTable | None = None) -> "anywidget.AnyWidget":
    """Shows counts in a notebook with the elements of the dashboard, without a server.

    The widget needs `pip install 'tallyfold[notebook]'`. It contains the exact counts. In a saved
    notebook without the widget's state, and in programs that show no widgets, the same output is a
    plain table.

    If there are more than 100,000 rows in all windows, the widget adds up dimensions until there
    are fewer: first `event_name`, then `write_key`, then `reason`. It then shows a note.

    Args:
        delivery: counts of event delivery.
        ingestion: counts of event ingestion of the same time, for the pipeline.

    Returns:
        The widget, which a cell shows if it is the cell's last value.

    Raises:
        ConfigError: for a table with too many windows and groups, and for a build of this package
            without the widget.
        ModuleNotFoundError: if anywidget is not installed.

    >>> tallyfold.show(table.group_by("integration"))
    <CountTable: event_delivery by ('integration',), 2 rows, success=7, errors=1, filtered=2>
    """
    for name, table in (("delivery", delivery), ("ingestion", ingestion)):
        if table is not None and not isinstance(table, CountTable):
            raise wrong_type(name, "want a CountTable", table)
    fitted, left_out = _fitted("delivery", delivery)
    came_in = "" if ingestion is None else _fitted("ingestion", ingestion)[0].to_json()
    views: anywidget.AnyWidget = _widget()(
        table=delivery,
        delivery=fitted.to_json(),
        ingestion=came_in,
        left_out=left_out,
    )
    return views


def _fitted(name: str, table: CountTable) -> tuple[CountTable, str]:
    """Leaves out dimensions if the table is too large. Returns the table, and a note about them."""
    kept = sorted(table.dimensions, key=ORDER.index)
    dropped: list[str] = []
    while _rows(fitted := table.group_by(*kept) if dropped else table) > MOST:
        if len(kept) < 2:
            want = f"want a table of fewer windows or groups: at most {MOST:,} rows of all windows"
            raise invalid(ConfigError, name, f"{want}; see between and filter")
        dropped.insert(0, kept.pop())
    if not dropped:
        return table, ""
    names = " and ".join(dropped)
    return fitted, f"Added up over {names}: there are too many groups to show each."


def _rows(table: CountTable) -> int:
    """Returns how many rows the windows have together."""
    windows = len(table.windows)
    # A table of one window needs no series.
    return len(table) if windows < 2 else len(table.by_window())


@cache
def _widget() -> type[Any]:
    """The class of the widget; anywidget is imported when it is first used."""
    try:
        import anywidget
        import traitlets
    except ModuleNotFoundError as error:
        message = "the widget of notebooks needs anywidget: pip install 'tallyfold[notebook]'"
        raise ModuleNotFoundError(message, name=error.name) from error
    module = files(__name__) / "widget.js"
    if not module.is_file():
        message = (
            "invalid_argument: this build of tallyfold has no widget of notebooks; "
            "install a released wheel, or run `make npm wheel`"
        )
        raise ConfigError(message, code="invalid_argument")

    class Views(anywidget.AnyWidget):
        """The views of counts."""

        _esm = module.read_text(encoding="utf-8")
        delivery = traitlets.Unicode().tag(sync=True)
        ingestion = traitlets.Unicode().tag(sync=True)
        left_out = traitlets.Unicode().tag(sync=True)

        def __init__(self, table: CountTable, **counts: str) -> None:
            super().__init__(**counts)
            self._table = table

        def __repr__(self) -> str:
            return repr(self._table)

        def _repr_mimebundle_(self, **given: Any) -> Any:  # noqa: ANN401 - as anywidget has it
            bundle = super()._repr_mimebundle_(**given)
            plain = {"text/plain": repr(self._table), "text/html": self._table._repr_html_()}
            if isinstance(bundle, tuple):
                return {**bundle[0], **plain}, bundle[1]
            return {**(bundle or {}), **plain}

    return Views
