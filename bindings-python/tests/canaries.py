"""Looks for canaries, secrets and tokens whose names begin so, wherever text can come out."""

import contextlib
import json
import pickle
import traceback


def search(*texts: str) -> None:
    for text in texts:
        assert "canary" not in text


def search_object(value: object) -> None:
    """Searches what can be printed of a value, of its attributes and of its pickle."""
    search(repr(value), str(value), format(value))
    search(*(repr(getattr(value, name, None)) for name in dir(value)))
    with contextlib.suppress(TypeError):
        search(repr(vars(value)))
    with contextlib.suppress(TypeError, pickle.PicklingError, AttributeError):
        search(pickle.dumps(value).decode("latin-1"))
    with contextlib.suppress(TypeError):
        search(json.dumps(value))


def search_error(error: BaseException) -> None:
    """Searches an error, all that hangs on it, and a traceback that shows locals."""
    search_object(error)
    seen: list[BaseException] = []
    pending: list[BaseException | None] = [error]
    while pending:
        link = pending.pop()
        if link is None or link in seen:
            continue
        seen.append(link)
        search(repr(vars(link)), str(link), repr(link))
        pending += [link.__cause__, link.__context__]
        for frame, _ in traceback.walk_tb(link.__traceback__):
            # A test's own frame holds its parameters, which may be canaries.
            if not frame.f_code.co_name.startswith("test_"):
                search(*(repr(value) for value in frame.f_locals.values()))
