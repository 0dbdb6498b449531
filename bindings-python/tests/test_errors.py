"""Errors: their classes, their codes and what they carry."""

import copy
import pathlib
import pickle
import pydoc
import traceback
import typing
from collections.abc import Callable

import pytest
from support import END, START

import tallyfold
from tallyfold import _tallyfold

KINDS: dict[str, type[tallyfold.TallyfoldError]] = {
    "config": tallyfold.ConfigError,
    "auth": tallyfold.AuthError,
    "service": tallyfold.ServiceError,
    "response": tallyfold.ResponseError,
}


def test_the_codes_are_those_of_the_core() -> None:
    codes = _tallyfold.error_codes()
    assert list(typing.get_args(tallyfold.ErrorCode)) == list(codes)
    assert set(codes.values()) == set(typing.get_args(tallyfold.ErrorKind)) == set(KINDS)


def test_every_code_is_explained_where_it_is_installed_and_in_the_docs() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs/errors.md").read_text(encoding="utf-8")
    shown = pydoc.getdoc(tallyfold.codes)
    assert list(tallyfold.codes.MEANINGS) == list(_tallyfold.error_codes())
    for code, meaning in tallyfold.codes.MEANINGS.items():
        assert f"`{code}`: " in shown
        assert f"| `{code}` | {meaning} |" in page


def test_each_kind_has_a_class() -> None:
    for kind, error_class in KINDS.items():
        assert error_class.kind == kind
        assert error_class.__bases__ == (tallyfold.TallyfoldError,)


def test_an_error_says_where(client: tallyfold.Client, sandbox: tallyfold.Sandbox) -> None:
    with pytest.raises(tallyfold.ConfigError) as config:
        client.event_ingestion(START, END, ["reason"])
    assert (config.value.code, config.value.argument) == ("unknown_dimension", "dimensions")
    assert config.value.status is None

    sandbox.inject("status", endpoint="event_delivery", status=503)
    with pytest.raises(tallyfold.ServiceError) as service:
        client.event_delivery(START, END, ["reason"])
    assert (service.value.code, service.value.status) == ("server_error", 503)

    sandbox.inject("body", endpoint="event_delivery", body='{"start": 1}')
    with pytest.raises(tallyfold.ResponseError) as response:
        client.event_delivery(START, END, ["reason"])
    assert (response.value.code, response.value.path) == ("wrong_type", "$.start")
    assert response.value.offset == 10
    assert str(response.value).startswith("wrong_type: ")


def test_an_error_travels() -> None:
    error = tallyfold.ResponseError(
        "wrong_type: …",
        code="wrong_type",
        status=200,
        path="$.start",
        offset=10,
        retry_after=7,
        excerpt="no",
        argument="a",
    )
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is tallyfold.ResponseError
        assert (str(other), vars(other)) == (str(error), vars(error))
    assert "tallyfold.ResponseError: wrong_type" in traceback.format_exception_only(error)[0]


@pytest.mark.parametrize(
    ("fault", "error_class", "code"),
    [
        ({"kind": "status", "status": 302}, tallyfold.ServiceError, "redirected"),
        ({"kind": "status", "status": 403}, tallyfold.ServiceError, "forbidden"),
        ({"kind": "status", "status": 429}, tallyfold.ServiceError, "rate_limited"),
        ({"kind": "status", "status": 500}, tallyfold.ServiceError, "server_error"),
        ({"kind": "status", "status": 418}, tallyfold.ServiceError, "unexpected_status"),
        ({"kind": "truncate", "bytes": 99}, tallyfold.ServiceError, "network_failed"),
        (
            {"kind": "content_type", "content_type": "text/plain"},
            tallyfold.ResponseError,
            "wrong_content_type",
        ),
        (
            {"kind": "content_type", "content_type": "text/html"},
            tallyfold.ResponseError,
            "html_response",
        ),
        ({"kind": "body", "body": ""}, tallyfold.ResponseError, "empty_body"),
        ({"kind": "body", "body": "{"}, tallyfold.ResponseError, "truncated_body"),
        ({"kind": "body", "body": "<!doctype html>"}, tallyfold.ResponseError, "html_response"),
        ({"kind": "body", "body": "{} {}"}, tallyfold.ResponseError, "missing_field"),
    ],
)
def test_faults_of_the_service(
    client: tallyfold.Client,
    sandbox: tallyfold.Sandbox,
    fault: dict[str, typing.Any],
    error_class: type[tallyfold.TallyfoldError],
    code: str,
) -> None:
    sandbox.inject(**fault, endpoint="event_delivery")
    with pytest.raises(error_class) as caught:
        client.event_delivery(START, END, ["integration"])
    assert caught.value.code == code
    assert type(caught.value) is error_class
    # One failure leaves nothing behind.
    assert client.event_delivery(START, END, ["integration"]).totals.success == 12


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("depth", lambda: tallyfold.Limits(depth=-1)),
        ("body_bytes", lambda: tallyfold.Limits(body_bytes=2**64)),
        ("seed", lambda: tallyfold.Sandbox(seed=-1)),
        ("token_lifetime", lambda: tallyfold.Sandbox(token_lifetime=2**70)),
    ],
)
def test_an_int_that_does_not_fit_names_its_argument(
    argument: str, call: Callable[[], object]
) -> None:
    with pytest.raises(tallyfold.ConfigError) as caught:
        call()
    assert (caught.value.code, caught.value.argument) == ("invalid_argument", argument)
