"""Writes tests/faults/faults.json: `python3 tests/make_faults.py`, or `--check` to compare only.

What a server does on the wire, and what must come of it, written by hand for each fault. A fault that every
endpoint may have is written once, and multiplied in fault_runs.py; so a runner has to know nothing but
tests/faults/README.md.
"""

import json
import re
import sys
from collections import Counter
from functools import partial
from pathlib import Path

from fault_runs import (
    APIS,
    DIMENSIONS,
    EMAIL,
    GOOD,
    HTML,
    IDENTITY,
    IMPATIENT,
    LOGS,
    METRICS,
    MOMENT,
    PUSH,
    RESET,
    ROWS,
    SECRET,
    STALL,
    TOKEN_ENDPOINTS,
    TOKENS,
    ByGroup,
    answers,
    asked,
    canary,
    chunked,
    counted,
    counts,
    error,
    fault,
    granted,
    gzipped,
    head,
    outcomes,
    plain,
    refusal,
    run,
    runs,
    sends,
    sized,
    until_closed,
)
from make_vectors import MID, START, entry, result

HERE = Path(__file__).parent / "faults"
NOW = "2026-01-01T00:00:00Z"


# --- statuses -----------------------------------------------------------------------------------

PASSING = {
    "408 Request Timeout": "unexpected_status",
    "429 Too Many Requests": "rate_limited",
    "500 Internal Server Error": "server_error",
    "502 Bad Gateway": "server_error",
    "503 Service Unavailable": "server_error",
    "504 Gateway Timeout": "server_error",
}
FINAL = {
    "404 Not Found": "unexpected_status",
    "418 canary-secret": "unexpected_status",
    "501 Not Implemented": "server_error",
    "505 HTTP Version Not Supported": "server_error",
}


def statuses():
    for status, code in PASSING.items():
        number = int(status[:3])
        fault(f"{number} once", [refusal(status), GOOD], GOOD)
        fault(f"{number} always", [refusal(status)] * 2, error(code, status=number))
    for status, code in FINAL.items():
        fault(status[:3], [refusal(status)], error(code, status=int(status[:3])))
    for status, otherwise in [("400 Bad Request", "unexpected_status"), ("403 Forbidden", "forbidden")]:
        number = int(status[:3])
        expected = ByGroup(token=error("token_refused", status=number), api=error(otherwise, status=number))
        fault(status[:3], [refusal(status)], expected)
    fault("403 with a Retry-After, which means nothing there", [refusal("403 Forbidden", [("Retry-After", "1")])], error("forbidden", status=403), APIS)
    fault("204 without a body", [plain(head("204 No Content", None))], error("unexpected_status", status=204))
    fault("206 with a whole body", [lambda of: plain(sized(of.good, status="206 Partial Content"))], error("unexpected_status", status=206))
    fault("103 before the response", [lambda of: plain(b"HTTP/1.1 103 Early Hints\r\n\r\n" + sized(of.good))], GOOD)


def unauthorized():
    """401, which only an API may answer with another token (service reference 5.1)."""
    no = refusal("401 Unauthorized")
    fault("401 at the token endpoint", [no], error("token_refused", status=401), TOKENS)
    rejected = error("token_rejected", status=401)
    for of in APIS:
        once = [granted(of), asked(of, no), granted(of, 2), asked(of, number=2)]
        run("401 once", of, once, [GOOD])
        refused_twice = [granted(of), asked(of, no), granted(of, 2), asked(of, no, number=2)]
        run("401 always", of, refused_twice, [rejected])
        midway = [granted(of), asked(of), asked(of), asked(of, no), granted(of, 2), asked(of, number=2), asked(of, number=2)]
        run("401 midway", of, midway, [GOOD] * 4)
        of_the_other = plain(sized(TOKEN_ENDPOINTS[other(of.api)].token()))
        wrong = {"request": of.token_endpoint.request, "bearer": None, "answer": of_the_other}
        not_that = refusal("401 Unauthorized", api=other(of.api))
        sent = {**asked(of, not_that), "bearer": canary(other(of.api))}
        run("401 to a token for the wrong audience", of, [wrong, sent, wrong, sent], [rejected])
        page = plain(sized(HTML, status="401 Unauthorized", content_type="text/html"))
        run("401 as a page of HTML", of, [granted(of), asked(of, page), granted(of, 2), asked(of, number=2)], [GOOD])
        later = refusal("401 Unauthorized", [("Retry-After", "3600")])
        run("401 with a Retry-After, which means nothing there", of, [granted(of), asked(of, later), granted(of, 2), asked(of, number=2)], [GOOD])
        no_token = [granted(of), asked(of, no), asked(of.token_endpoint, refusal("403 Forbidden"))]
        run("401, and no other token", of, no_token, [error("token_refused", status=403)])
        busy = refusal("503 Service Unavailable")
        both = [granted(of), asked(of, no), granted(of, 2), asked(of, busy, number=2), asked(of, number=2)]
        run("401, then 503 to the new token", of, both, [GOOD])


def other(api):
    return {"control": "orchestration", "orchestration": "control"}[api]


# The port of a server that nothing may be sent to; runners put it in.
ELSEWHERE = "localhost:ELSEWHERE_PORT"


def redirects():
    """None is followed: the one at the other end must not see a connection."""
    ways = {
        "301 to another path": ("301 Moved Permanently", "/elsewhere?canary-secret"),
        "302 to another host": ("302 Found", f"http://{ELSEWHERE}/"),
        "303 to another host": ("303 See Other", f"//{ELSEWHERE}/"),
        "307 to another host by http": ("307 Temporary Redirect", f"http://{ELSEWHERE}/"),
        "308 to another host by https": ("308 Permanent Redirect", f"https://{ELSEWHERE}/"),
        "302 to no address": ("302 Found", "http://[canary-secret"),
    }
    for name, (status, location) in ways.items():
        answer = refusal(status, [("Location", location)])
        fault(name, [answer], error("redirected", status=int(status[:3])))
    fault("307 without an address", [refusal("307 Temporary Redirect")], error("redirected", status=307))
    fault("304", [plain(head("304 Not Modified", None))], error("redirected", status=304))


# --- Retry-After --------------------------------------------------------------------------------


def retry_after():
    """The forms of Retry-After, by a client whose wall clock stands still at `NOW`."""

    def asks(*values, status="429 Too Many Requests", **named):
        return refusal(status, [*(("Retry-After", value) for value in values), *named.items()])

    def later(seconds, status=429):
        return error("retry_later", status=status, retry_after=seconds)

    waited = {"longest_retry_wait_ms": 1_000, "waits_ms": 1_000}
    fault("Retry-After: a second", [asks("1"), GOOD], GOOD, **waited)
    fault("Retry-After: a date in a second", [asks("Thu, 01 Jan 2026 00:00:01 GMT"), GOOD], GOOD, **waited)
    fault("Retry-After: a second, for all calls", [asks("1")], error("rate_limited", status=429, retry_after=1), max_retries=0, **waited)
    fault("Retry-After: 0", [asks("0"), GOOD], GOOD)
    fault("Retry-After: a date that is over", [asks("Wed, 31 Dec 2025 23:59:59 GMT"), GOOD], GOOD)
    for what, value in {"negative": "-5", "a fraction": "1.5", "a word": "soon", "empty": "", "no digits": "１２０"}.items():
        fault(f"Retry-After: {what}, as if it were not there", [asks(value), GOOD], GOOD)

    fault("Retry-After: an hour", [asks("3600")], later(3600))
    fault("Retry-After: an hour, with 503", [asks("3600", status="503 Service Unavailable")], later(3600, 503))
    fault("Retry-After: a date (RFC 9110)", [asks("Thu, 01 Jan 2026 00:01:40 GMT")], later(100))
    fault("Retry-After: a date (RFC 850)", [asks("Thursday, 01-Jan-26 00:01:40 GMT")], later(100))
    fault("Retry-After: a date (asctime)", [asks("Thu Jan  1 00:01:40 2026")], later(100))
    fault("Retry-After: a date, by the service's own", [asks("Thu, 01 Jan 2026 00:01:40 GMT", Date="Thu, 01 Jan 2026 00:01:00 GMT")], later(40))
    fault("Retry-After: two headers", [asks("5", "7200")], later(7200))
    fault("Retry-After: two headers, one of them a date", [asks("Thu, 01 Jan 2026 00:01:40 GMT", "5")], later(100))
    fault("Retry-After: a list", [asks("7200, -1, 5")], later(7200))
    fault("Retry-After: thirty digits", [asks("9" * 30)], later(2**53 - 1))


# --- bodies that are not what they should be ----------------------------------------------------


def content():
    """What every endpoint may send in place of its JSON."""
    page = sized(HTML, content_type="text/html; charset=utf-8")
    fault("HTML with 200", [plain(page)], error("html_response", status=200))
    fault("HTML with 200, called JSON", [plain(sized(HTML))], error("html_response"))
    failed = plain(sized(HTML, status="502 Bad Gateway", content_type="text/html"))
    fault("HTML with 502", [failed] * 2, error("server_error", status=502))
    fault("HTML with 502 once", [failed, GOOD], GOOD)

    for kind in ["text/plain", "application/octet-stream", "canary-secret", ""]:
        wrong = [lambda of, kind=kind: plain(sized(of.good, content_type=kind))]
        fault(f"content type {kind or 'empty'}", wrong, error("wrong_content_type", status=200))
    for kind in [None, "application/json; charset=utf-8", "application/problem+json"]:
        fine = [lambda of, kind=kind: plain(sized(of.good, content_type=kind))]
        fault(f"content type {kind or 'missing'}", fine, GOOD)

    fault("an empty body", [plain(sized(b""))], error("empty_body"))
    fault("only white space", [plain(sized(b" \r\n\t"))], error("empty_body"))
    fault("a byte order mark", [lambda of: plain(sized(b"\xef\xbb\xbf" + of.good))], error("byte_order_mark"))
    fault("UTF-16", [lambda of: plain(sized(of.good.decode().encode("utf-16")))], error("byte_order_mark"))
    fault("no JSON", [plain(sized(SECRET.encode()))], error("invalid_json"))
    fault("JSON twice", [lambda of: plain(sized(of.good + of.good))], error("trailing_bytes"))
    fault("a key twice", [lambda of: plain(sized(of.good[:-1] + b', "more": 1, "more": 2}'))], error("duplicate_key"))
    echo = [lambda of: plain(sized(of.good[:-1] + f', "{SECRET}": {{"canary-control-1": tru }}}}'.encode()))]
    fault("the secret and the token as keys", echo, error("invalid_json"), [*TOKENS, *METRICS])
    invalid = [lambda of: plain(sized(of.good[:-1] + b', "more": "\xff"}'))]
    fault("a string that is not UTF-8", invalid, error("invalid_utf8"))
    half = [lambda of: plain(sized(of.good[:-1] + rb', "more": "\ud83d"}'))]
    fault("half of a surrogate pair", half, error("lone_surrogate"))
    deep = [lambda of: plain(sized(of.good[:-1] + b', "more": ' + b"[" * 40 + b"]" * 40 + b"}"))]
    fault("nested too deep", deep, error("depth_limit"))
    extra = [lambda of: plain(sized(of.good[:-1] + b', "more": [{"a": null}, 1.5e3, "\\u00e9", true]}'))]
    fault("unknown fields", extra, GOOD, [*TOKENS, *METRICS])
    not_an_object = ByGroup(token=error("invalid_token_response"), metrics=error("wrong_type"))
    for what, body in {"a list": b"[]", "null": b"null", "a string": b'"canary-secret"'}.items():
        fault(f"{what} in place of an object", [plain(sized(body))], not_an_object, [*TOKENS, *METRICS])

    packed = [("Content-Encoding", "gzip")]
    fault("gzip", [lambda of: plain(sized(gzipped(of.good), headers=packed))], GOOD)
    fault("gzip that is none", [lambda of: plain(sized(of.good, headers=packed))], error("network_failed"), max_retries=0)


def cuts():
    """A body that ends too early: where HTTP tells, the exchange broke; where it doesn't, the JSON does."""
    places = {"after a byte": lambda body: 1, "in the middle": lambda body: len(body) // 2, "before its last byte": lambda body: len(body) - 1}
    once = {"max_retries": 0}
    for where, place in places.items():
        too_long = [lambda of, place=place: plain(sized(of.good[: place(of.good)], length=len(of.good)))]
        fault(f"cut {where}, with its length", too_long, error("network_failed"), **once)
        chunks = [lambda of, place=place: plain(chunked(of.good[: place(of.good)], whole=False))]
        fault(f"cut {where}, in chunks", chunks, error("network_failed"), **once)
        ended = [lambda of, place=place: plain(chunked(of.good[: place(of.good)], connection="close"))]
        fault(f"cut {where}, in chunks that end well", ended, error("truncated_body"), **once)
        closed = [lambda of, place=place: plain(until_closed(of.good[: place(of.good)]))]
        fault(f"cut {where}, and closed", closed, error("truncated_body"), **once)
        fault(f"cut {where} once, in chunks that end well", [*ended, GOOD], GOOD)
        fault(f"cut {where} once, and closed", [*closed, GOOD], GOOD)
        fault(f"cut {where} always", closed * 2, error("truncated_body"))
    fault("whole, but without the last chunk", [lambda of: plain(chunked(of.good, whole=False))], error("network_failed"), **once)
    fault("cut in a chunk once", [lambda of: plain(chunked(of.good, whole=False)[:-9]), GOOD], GOOD)
    fault("cut once", [lambda of: plain(sized(of.good, length=len(of.good) + 1)), GOOD], GOOD)
    fault("whole in chunks", [lambda of: plain(chunked(of.good))], GOOD)
    fault("whole, and closed", [lambda of: plain(until_closed(of.good))], GOOD)


def connections():
    """Connections that break or come to a halt."""
    network, late = error("network_failed"), error("timed_out")
    once = {"max_retries": 0}

    def part(of, length):
        return sends(sized(of.good)[:length])

    def half(of):
        return sends(sized(of.good)[: -len(of.good) // 2])

    fault("reset before the head", [[RESET]], network, **once)
    fault("reset in the head", [lambda of: [part(of, 30), MOMENT, RESET]], network, **once)
    fault("reset in the body", [lambda of: [half(of), MOMENT, RESET]], network, **once)
    fault("reset once", [[RESET], GOOD], GOOD)
    fault("reset in the body always", [lambda of: [half(of), MOMENT, RESET]] * 2, network)
    fault("closed before the head", [[]], network, **once)
    fault("closed in the head", [lambda of: [part(of, 30)]], network, **once)
    fault("no HTTP", [plain(b"canary-secret\r\n\r\n")], network, **once)
    fault("stalled before the head", [[STALL]], late, **IMPATIENT)
    fault("stalled in the head", [lambda of: [part(of, 30), STALL]], late, **IMPATIENT)
    fault("stalled in the body", [lambda of: [half(of), STALL]], late, **IMPATIENT)
    fault("stalled before the last byte", [lambda of: [part(of, -1), STALL]], late, **IMPATIENT)
    fault("stalled once", [[STALL], GOOD], GOOD, **{**IMPATIENT, "max_retries": 1})
    fault("a slow drip", [lambda of: [["drip", sized(of.good).decode(), 60]]], late, **IMPATIENT)
    slow_body = [lambda of: [sends(head()), ["drip", of.good.decode(), 60]]]
    fault("a slow drip after the head", slow_body, late, **IMPATIENT)
    fault("byte by byte in time", [lambda of: [["drip", sized(of.good).decode(), 0]]], GOOD)
    in_two = [lambda of: [half(of), MOMENT, sends(sized(of.good)[-len(of.good) // 2 :])]]
    fault("a pause in the body", in_two, GOOD)


# --- what only tokens, and only counts, may get wrong -------------------------------------------


def tokens():
    def answering(expected, name, **fields):
        def make(of):
            body = {**json.loads(of.good), **fields}
            return plain(sized(json.dumps({key: value for key, value in body.items() if value != ABSENT}).encode()))

        fault(name, [make], expected, TOKENS)

    response, lifetime = error("invalid_token_response"), error("invalid_token_lifetime")
    answering(response, "no access_token", access_token=ABSENT)
    answering(response, "an empty token", access_token="")
    answering(response, "a token with a line break", access_token="canary-control-1\r\nx: canary")
    answering(response, "a token that is a number", access_token=12)
    answering(response, "a token of another type", token_type="canary-secret")
    answering(GOOD, "a token type in lower case", token_type="bearer")
    answering(GOOD, "a token without type", token_type=ABSENT)
    answering(GOOD, "a token without lifetime", expires_in=ABSENT)
    answering(GOOD, "a lifetime beyond a day", expires_in=2**63)
    for name, seconds in {"negative": -1, "0": 0, "a fraction": 86400.5, "text": "86400", "null": None}.items():
        answering(lifetime, f"a lifetime that is {name}", expires_in=seconds)


ABSENT = "absent"


def metrics():
    def answering(expected, name, body, **options):
        fault(name, [plain(sized(body))], expected, METRICS, **options)

    mismatch = error("window_mismatch")
    answering(mismatch, "another start", counts(start="2026-01-01T00:00:01Z"))
    answering(mismatch, "another end", counts(end="2026-01-01T00:30:00Z"))
    answering(mismatch, "a window with another offset", counts(end="2026-01-01T00:15:00+01:00"))
    answering(GOOD, "a window with an offset", counts(end="2026-01-01T01:15:00+01:00"))
    answering(GOOD, "the window in another spelling", counts(start="2026-01-01T00:00:00.000Z"))

    entries_of = {
        "a dimension missing": entry(event_name="Order"),
        "a dimension too many": entry(event_name="Order", integration="a", reason=""),
        "another dimension": entry(event_name="Order", write_key="a"),
        "a dimension that is null": PUSH.replace('"push"', "null"),
    }
    for name, wrong in entries_of.items():
        code = "wrong_type" if "null" in name else "dimension_mismatch"
        answering(error(code), name, counts(EMAIL, wrong))
    answering(error("repeated_combination"), "a combination twice", counts(EMAIL, PUSH, EMAIL))
    twice = [(["Order", "email"], (10, 0, 2)), ROWS[1]]
    totals = (2**53 + 11, 2, 5)
    added = counted(twice, totals, reported=totals, repeated=1)
    answering(added, "a combination twice, tolerated", counts(EMAIL, PUSH, EMAIL, totals=totals), tolerate=["repeated_combination"])
    without = counted([(["Order", ""], (2**53 + 1, 2, 3)), ROWS[0]], null=1)
    nulls = counts(EMAIL, PUSH.replace('"push"', "null"))
    answering(without, "a dimension that is null, tolerated", nulls, tolerate=["null_dimension"])
    answering(counted(reported=(1, 2, 3), verdict="unbalanced"), "wrong totals", counts(totals=(1, 2, 3)))
    answering(counted([], (0, 0, 0), reported=(0, 0, 0)), "no entries", result(totals=(0, 0, 0)).encode())

    email = partial(entry, errors=0, filtered=1, event_name="Order", integration="email")
    largest = 2**64 - 1
    whole = [(["Order", "email"], (largest, 0, 1))]
    exact = counted(whole, (largest, 0, 1), reported=(largest, 0, 1))
    answering(exact, "the largest count", counts(email(largest), totals=(largest, 0, 1)))
    answering(error("count_overflow"), "a count of 2^64", counts(email(2**64)))
    answering(error("sum_overflow"), "a sum of 2^64", counts(email(largest), entry(1, event_name="b", integration="")))
    for name, text in {"a fraction": "1.5", "negative": "-5", "signed": "+5", "empty": "", "hexadecimal": "0x5", "no ASCII": "５", "a word": "canary"}.items():
        answering(error("invalid_count"), f"a count that is {name}", counts(PUSH, email(text)))
    answering(error("invalid_count"), "a total that is a fraction", counts(totals=("1.0", 2, 3)))
    for name, value in {"a number": "5", "a float": "5.0", "null": "null"}.items():
        number = counts().replace(b'"success": "5"', f'"success": {value}'.encode())
        answering(error("wrong_type"), f"a count that is {name}", number)

    answering(error("duplicate_key"), "a key twice in an entry", counts(PUSH.replace("{", '{"success": "1", ', 1)))
    answering(error("duplicate_key"), "a dimension twice in an entry", counts(PUSH.replace('{"event', '{"integration": "a", "event')))
    for field in ["start", "end", "totalDelivered", "counts"]:
        answering(error("missing_field"), f"{field} missing", counts().replace(f'"{field}"'.encode(), b'"x"'))
    for field in ["success", "errors", "filtered", "dimensions"]:
        answering(error("missing_field"), f"{field} missing in an entry", counts(EMAIL.replace(f'"{field}"', '"x"')))
    answering(GOOD, "unknown fields in an entry", counts(PUSH.replace("{", '{"more": {"a": [1]}, ', 1), EMAIL))
    between = [lambda of: plain(until_closed(of.good.split(b", {")[0]))]
    fault("cut between two entries, and closed", between, error("truncated_body"), METRICS, max_retries=0)
    fault("cut between two entries once, and closed", [*between, GOOD], GOOD, METRICS)


def audit_logs():
    """Any JSON is a listing: the reference does not show its shape."""
    for name, document in {"a list": [], "null": None, "a string": "é", "an empty object": {}, "numbers": [0, -1.5, 1e3]}.items():
        answer = plain(sized(json.dumps(document, ensure_ascii=False).encode()))
        fault(f"{name} as audit logs", [answer], {"json": document}, [LOGS])
    echo = [plain(sized(f'{{"{SECRET}": [{{"canary-orchestration-1": tru }}]}}'.encode()))]
    fault("the secret and the token as keys of audit logs", echo, error("invalid_json"), [LOGS])
    for name, number in {"an integer": "9" * 400, "a float": "-1e400"}.items():
        fault(f"{name} that no double holds, as audit logs", [plain(sized(f'{{"a": {number}}}'.encode()))], error("invalid_json"), [LOGS])


# --- the file -----------------------------------------------------------------------------------


def main():
    for write in [statuses, unauthorized, redirects, retry_after, content, cuts, connections, tokens, metrics, audit_logs]:
        write()
    names = Counter((run["fault"], run["endpoint"]) for run in runs)
    assert max(names.values()) == 1, names.most_common(1)
    faults = len({run["fault"] for run in runs})
    shared = {
        "faults": faults,
        "count": len(runs),
        "now": NOW,
        "client": {
            "client_id": "an-id",
            "client_secret": SECRET,
            "control_audience": "control",
            "orchestration_audience": "orchestration",
            "identity": IDENTITY,
        },
        "query": {"start": START, "end": MID, "dimensions": DIMENSIONS},
        "answers": answers,
        "outcomes": outcomes,
    }
    lines = ",\n".join(json.dumps(run, ensure_ascii=False) for run in runs)
    text = json.dumps(shared, ensure_ascii=False, indent=1).removesuffix("\n}") + f',\n "runs": [\n{lines}\n ]\n}}\n'
    assert json.loads(text)["runs"] == runs
    path, readme = HERE / "faults.json", HERE / "README.md"
    if "--check" not in sys.argv:
        path.write_text(text, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != text:
        sys.exit(f"out of date: {path}; run python3 tests/make_faults.py")
    said = re.search(r"\*\*(\d+) faults, (\d+) runs\*\*", readme.read_text(encoding="utf-8"))
    if said is None or said.groups() != (str(faults), str(len(runs))):
        sys.exit(f"{readme} is to say **{faults} faults, {len(runs)} runs**")


if __name__ == "__main__":
    main()
