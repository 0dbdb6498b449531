"""Writes tests/vectors/*.json: `python3 tests/make_vectors.py`, or `--check` to compare only.

Every expectation is written here by hand. The only thing computed is a byte offset, from the
mark ‹› that stands in a body just before the byte at fault and is taken out again.
"""

import itertools
import json
import sys
import zlib
from datetime import datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent / "vectors"
MARK = "‹›".encode()

START, MID, END = "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"
SECRET, TOKEN = "canary-secret", "canary-token"
JSON_HEAD = [["content-type", "application/json"]]
ASKED = ["accept-encoding", "gzip"]
CLUSTER = "https://cluster.example"


def error(code, *, argument=None, status=None, path=None, offset=None, retry_after=None, excerpt=None):
    return {
        "code": code,
        "kind": KINDS[code],
        "argument": argument,
        "status": status,
        "path": path,
        "offset": offset,
        "retry_after": retry_after,
        "excerpt": excerpt,
    }


KINDS = {
    code: kind
    for kind, codes in {
        "config": "missing_argument unknown_argument invalid_argument invalid_base_address insecure_base_address"
        " secret_in_browser invalid_timestamp invalid_window unknown_dimension repeated_dimension"
        " no_dimensions invalid_page overlapping_coverage unaligned_window incompatible_tables"
        " invalid_checkpoint memory_limit unsupported_by_format out_of_order",
        "auth": "token_refused invalid_token_response invalid_token_lifetime token_rejected token_provider_failed",
        "service": "redirected forbidden rate_limited retry_later server_error unexpected_status network_failed timed_out deadline_exceeded",
        "response": "wrong_content_type wrong_content_encoding html_response empty_body truncated_body invalid_json"
        " invalid_utf8 lone_surrogate byte_order_mark trailing_bytes duplicate_key missing_field"
        " wrong_type invalid_count count_overflow inexact_count sum_overflow window_mismatch dimension_mismatch"
        " repeated_combination depth_limit string_limit key_limit body_limit group_limit"
        " out_of_memory crashed"
        " invalid_table windows_not_additive",
    }.items()
    for code in codes.split()
}


# --- bodies -----------------------------------------------------------------------------------


def counts(success, errors, filtered):
    return {"success": str(success), "errors": str(errors), "filtered": str(filtered)}


def entry(success=1, errors=2, filtered=3, **dimensions):
    fields = ", ".join(f'"{name}": {json.dumps(text, ensure_ascii=False)}' for name, text in dimensions.items())
    return f'{{"success": "{success}", "errors": "{errors}", "filtered": "{filtered}", "dimensions": {{{fields}}}}}'


def result(*entries, start=START, end=MID, totals=(1, 2, 3), extra=""):
    delivered, errors, filtered = totals
    return (
        f'{{"start": "{start}", "end": "{end}", "totalDelivered": "{delivered}", '
        f'"totalErrors": "{errors}", "totalFiltered": "{filtered}"{extra}, '
        f'"counts": [{", ".join(entries)}]}}'
    )


A = entry(integration="a")


def window(rows, *, reported, start=START, end=MID, repeated=0, null=0):
    rows = [{"values": values, **counts(*numbers)} for values, numbers in rows]
    notes = {"repeated_combinations": repeated, "null_dimensions": null}
    reported = counts(*reported) if reported else None
    return {"start": start, "end": end, "reported": reported, "notes": notes, "rows": rows}


def table(dimensions, *windows, totals, metric=None, **filtered_by):
    content = {
        "metric": metric,
        "dimensions": dimensions,
        "filter": [{"dimension": name, "values": values} for name, values in filtered_by.items()],
        "totals": counts(*totals),
        "windows": list(windows),
    }
    return with_digest(content)


def with_digest(content):
    """A table as it is saved: with the checksum of what it is without one."""
    plain = without_digest(content)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return {**plain, "format": "tallyfold-table/2", "digest": checksum(text)}


def provisional(saved, *starts, unfinished=False):
    """The same table with windows that may still change, or had not even ended: those with these starts, or all."""
    marks = {"provisional": True} | ({"unfinished": True} if unfinished else {})

    def marked(of):
        if starts and of["start"] not in starts:
            return of
        return {"start": of["start"], "end": of["end"], **marks} | of

    content = {name: value for name, value in saved.items() if name not in ("format", "digest")}
    return with_digest({**content, "windows": [marked(of) for of in saved["windows"]]})


def identified(saved, identity):
    """The same table, of counts of a known cluster and client."""
    content = {}
    for name, value in saved.items():
        if name == "totals":
            content["identity"] = identity
        if name not in ("format", "digest"):
            content[name] = value
    return with_digest(content)


def without_digest(saved):
    """A table as it is in a checkpoint."""
    content = {name: value for name, value in saved.items() if name not in ("format", "digest")}
    return {"format": "tallyfold-table/1", **content}


def checksum(text):
    return f"{zlib.crc32(text.encode()):08x}"


def one_row(metric=None):
    rows = window([(["a"], (1, 2, 3))], reported=(1, 2, 3))
    return table(["integration"], rows, totals=(1, 2, 3), metric=metric)


# --- responses: bytes into an Aggregator --------------------------------------------------------

responses = []


def response(name, body, expected, *, dimensions=("integration",), **options):
    raw = body if isinstance(body, bytes) else body.encode()
    offset = raw.find(MARK)
    raw = raw.replace(MARK, b"")
    case = {"name": name, "dimensions": list(dimensions), **options}
    try:
        case["body"] = raw.decode()
    except UnicodeDecodeError:
        case["body_hex"] = raw.hex()
    if "code" in expected:
        expected = {**expected, "offset": offset if offset >= 0 else expected["offset"]}
        case["error"] = expected
    else:
        case["table"] = expected
    responses.append(case)


def response_vectors():
    two = ("write_key", "integration")
    response("one entry", result(A), one_row())
    empty = table(["integration"], window([], reported=(0, 0, 0)), totals=(0, 0, 0))
    response("no entries", result(totals=(0, 0, 0)), empty)
    response("white space everywhere", " \n\t\r" + result(A).replace(",", " ,\r\n\t") + "\n \t\r", one_row())
    response("without white space", json.dumps(json.loads(result(A)), separators=(",", ":")), one_row())
    reverse = json.dumps(dict(reversed(json.loads(result(A)).items())))
    response("counts before the window", reverse, one_row())
    response("echo in another spelling", result(A, start="2026-01-01T00:00:00.000Z"), one_row(), window=[START, MID])
    response("requested window", result(A), one_row(), window=[START, MID])
    response(
        "rows are sorted by the requested order of dimensions, by bytes",
        result(
            entry(1, 0, 0, integration="b", write_key="k"),
            entry(2, 0, 0, write_key="é", integration="a"),
            entry(3, 0, 0, write_key="k", integration="a"),
            entry(4, 0, 0, write_key="", integration="😀"),
            entry(5, 0, 0, write_key="", integration="\uffff"),
            totals=(15, 0, 0),
        ),
        table(
            list(two),
            window(
                [
                    (["", "\uffff"], (5, 0, 0)),
                    (["", "😀"], (4, 0, 0)),
                    (["k", "a"], (3, 0, 0)),
                    (["k", "b"], (1, 0, 0)),
                    (["é", "a"], (2, 0, 0)),
                ],
                reported=(15, 0, 0),
            ),
            totals=(15, 0, 0),
        ),
        dimensions=two,
    )
    abc = result(
        entry(1, 0, 5, write_key="k", integration="a"),
        entry(2, 0, 0, write_key="l", integration="a"),
        entry(3, 1, 0, write_key="k", integration="b"),
        totals=(6, 1, 5),
    )
    rows = [(["a"], (3, 0, 5)), (["b"], (3, 1, 0))]
    response(
        "group_by keeps one dimension",
        abc,
        table(["integration"], window(rows, reported=(6, 1, 5)), totals=(6, 1, 5)),
        dimensions=two,
        group_by=["integration"],
    )
    rows = [(["a", "k"], (1, 0, 5)), (["a", "l"], (2, 0, 0)), (["b", "k"], (3, 1, 0))]
    response(
        "group_by in another order",
        abc,
        table(["integration", "write_key"], window(rows, reported=(6, 1, 5)), totals=(6, 1, 5)),
        dimensions=two,
        group_by=["integration", "write_key"],
    )
    response(
        "group_by nothing is one grand total",
        abc,
        table([], window([([], (6, 1, 5))], reported=(6, 1, 5)), totals=(6, 1, 5)),
        dimensions=two,
        group_by=[],
    )
    response(
        "escapes and raw characters are the same value",
        result(
            entry(1, 0, 0, integration="x").replace('"x"', r'"\u0061\/\"\\\b\f\n\r\t\uD83D\uDE00\u00e9"'),
            totals=(1, 0, 0),
        ),
        table(
            ["integration"],
            window([(['a/"\\\b\f\n\r\t😀é'], (1, 0, 0))], reported=(1, 0, 0)),
            totals=(1, 0, 0),
        ),
    )
    extra = ', "beta": {"a": [1, -2.5e+3, true, false, null, {"b": {}}, []], "c": "\\ud83d\\ude00"}'
    more = A[:-1] + ', "latency": 1e9}'
    response("unknown fields are ignored", result(more, extra=extra), one_row())
    most = 2**64 - 1
    rows = [(["a"], (most, most, most))]
    response(
        "leading zeros, and the largest counts",
        result(entry("000", "0" * 40 + str(most), most, integration="b").replace('"000"', f'"{"0" * 30}7"'), totals=(7, most, most)),
        table(
            ["integration"],
            window([(["b"], (7, most, most))], reported=(7, most, most)),
            totals=(7, most, most),
        ),
    )
    big = 2**53 + 1
    response(
        "counts above 2^53 are exact",
        result(entry(big, 0, 0, integration="a"), entry(big, 0, 0, integration="b"), totals=(2 * big, 0, 0)),
        table(
            ["integration"],
            window([(["a"], (big, 0, 0)), (["b"], (big, 0, 0))], reported=(2 * big, 0, 0)),
            totals=(2 * big, 0, 0),
        ),
    )
    most = 2**64 - 1
    for name, left, right in [("2^53 + 1", 2**53, 1), ("2^64 - 1", most - 1, 1)]:
        pair = [entry(left, 0, right, integration="a", reason="x"), entry(right, 0, left, integration="a", reason="y")]
        response(
            f"a sum of {name}",
            result(*pair, totals=(left + right, 0, left + right)),
            table(
                ["integration"],
                window([(["a"], (left + right, 0, left + right))], reported=(left + right, 0, left + right)),
                totals=(left + right, 0, left + right),
            ),
            dimensions=["integration", "reason"],
            group_by=["integration"],
        )
    response(
        "a wrong total is no error",
        result(A, totals=(9, 0, 3)),
        table(["integration"], window([(["a"], (1, 2, 3))], reported=(9, 0, 3)), totals=(1, 2, 3)),
    )
    response(
        "a repeated combination, tolerated",
        result(A, A, totals=(2, 4, 6)),
        table(
            ["integration"],
            window([(["a"], (2, 4, 6))], reported=(2, 4, 6), repeated=1),
            totals=(2, 4, 6),
        ),
        tolerate=["repeated_combination"],
    )
    response(
        "a null dimension, tolerated",
        result(entry(integration=None)),
        table(["integration"], window([([""], (1, 2, 3))], reported=(1, 2, 3), null=1), totals=(1, 2, 3)),
        tolerate=["null_dimension"],
    )

    both = [entry(reason=""), entry(reason=None)]
    for name, entries in [("after", both), ("before", both[::-1])]:
        response(
            f"a null {name} an empty string, tolerated",
            result(*entries),
            table(["reason"], window([([""], (2, 4, 6))], reported=(1, 2, 3), repeated=1, null=1), totals=(2, 4, 6)),
            dimensions=["reason"],
            tolerate=["null_dimension"],
        )
    twice = [entry(reason=None), entry(reason="x"), entry(reason="x")[:-1] + "‹›}"]
    response(
        "a repeated combination beside a tolerated null",
        result(*twice),
        error("repeated_combination", path="$.counts[2]"),
        dimensions=["reason"],
        tolerate=["null_dimension"],
    )

    # Counts.
    for name, digits, code in [
        ("a sign", "+5", "invalid_count"),
        ("a minus", "-5", "invalid_count"),
        ("a space before", " 5", "invalid_count"),
        ("a space after", "5 ", "invalid_count"),
        ("an underscore", "1_000", "invalid_count"),
        ("an exponent", "1e3", "invalid_count"),
        ("a point", "5.0", "invalid_count"),
        ("a comma", "1,000", "invalid_count"),
        ("hexadecimal", "0x10", "invalid_count"),
        ("Arabic digits", "٣", "invalid_count"),
        ("full-width digits", "５", "invalid_count"),
        ("empty", "", "invalid_count"),
        ("NaN", "NaN", "invalid_count"),
        ("2^64", str(2**64), "count_overflow"),
        ("forty nines", "9" * 40, "count_overflow"),
    ]:
        broken = entry("‹›", integration="a").replace('"‹›"', f'‹›"{digits}"')
        response(f"a count with {name}", result(broken), error(code, path="$.counts[0].success"))
    for name, value in [("number", "5"), ("float", "5.0"), ("null", "null"), ("bool", "true"), ("array", "[]"), ("object", "{}")]:
        broken = entry("‹›", integration="a").replace('"‹›"', f"‹›{value}")
        response(f"a count that is a {name}", result(broken), error("wrong_type", path="$.counts[0].success"))
    response(
        "a total with a sign",
        result(A).replace('"totalErrors": "2"', '"totalErrors": ‹›"+2"'),
        error("invalid_count", path="$.totalErrors"),
    )
    response(
        "a sum one past the largest",
        result(entry(most, 0, 0, integration="a"), entry(1, 0, 0, integration="b")[:-1] + "‹›}"),
        error("sum_overflow", path="$.counts[1]"),
    )

    # Shape.
    for field in ("success", "errors", "filtered"):
        fields = json.loads(A)
        del fields[field]
        broken = json.dumps(fields)[:-1] + "‹›}"
        response(f"an entry without {field}", result(broken), error("missing_field", path="$.counts[0]"))
    response(
        "an entry without dimensions",
        result('{"success": "1", "errors": "2", "filtered": "3"‹›}'),
        error("missing_field", path="$.counts[0]"),
    )
    for field in ("start", "end", "totalDelivered", "totalErrors", "totalFiltered", "counts"):
        fields = json.loads(result(A))
        del fields[field]
        response(f"a result without {field}", json.dumps(fields)[:-1] + "‹›}", error("missing_field", path="$"))
    response("an array", "‹›[]", error("wrong_type", path="$"))
    response("a string", '‹›"counts"', error("wrong_type", path="$"))
    response("null", "‹›null", error("wrong_type", path="$"))
    response("counts that is an object", result().replace("[]", "‹›{}"), error("wrong_type", path="$.counts"))
    response("an entry that is null", result("‹›null"), error("wrong_type", path="$.counts[0]"))
    response("a second entry that is an array", result(A, "‹›[]"), error("wrong_type", path="$.counts[1]"))
    response(
        "dimensions that is an array",
        result(A.replace('{"integration": "a"}', "‹›[]")),
        error("wrong_type", path="$.counts[0].dimensions"),
    )
    response(
        "a dimension that is a number",
        result(A.replace('"a"', "‹›7")),
        error("wrong_type", path="$.counts[0].dimensions.integration"),
    )
    response(
        "a null dimension",
        result(A.replace('"a"', "‹›null")),
        error("wrong_type", path="$.counts[0].dimensions.integration"),
    )
    response(
        "a dimension too many",
        result(A.replace('"a"}', '"a", ‹›"reason": ""}')),
        error("dimension_mismatch", path="$.counts[0].dimensions.reason"),
    )
    response(
        "an unknown dimension",
        result(A.replace('"a"}', '"a", ‹›"write key": ""}')),
        error("dimension_mismatch", path='$.counts[0].dimensions["write key"]'),
    )
    response(
        "a dimension too few",
        result(A.replace('"a"}', '"a"‹›}')),
        error("dimension_mismatch", path="$.counts[0].dimensions"),
        dimensions=two,
    )
    response("no dimension", result(A.replace('{"integration": "a"}', "{‹›}")), error("dimension_mismatch", path="$.counts[0].dimensions"))
    response(
        "a repeated combination",
        result(A, A[:-1] + "‹›}"),
        error("repeated_combination", path="$.counts[1]"),
    )

    # The window.
    for name, start in [
        ("another instant", MID),
        ("another instant by its offset", "2026-01-01T00:00:00+01:00"),
        ("an offset without its colon", "2026-01-01T00:00:00+0000"),
        ("no zone", "2026-01-01T00:00:00"),
        ("a date", "2026-01-01"),
        ("no time", ""),
    ]:
        body = result(A, start="@").replace('"@"', f'‹›"{start}"')
        response(f"start echoes {name}", body, error("window_mismatch", path="$.start"), window=[START, MID])
    for start in ["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00-00:00", "2025-12-31T19:00:00.000-05:00", "2026-01-01T05:45:00+05:45"]:
        response(f"start echoes the instant as {start}", result(A, start=start), one_row(), window=[START, MID])
    body = result(A, end="@").replace('"@"', f'‹›"{END}"')
    response("end echoes another instant", body, error("window_mismatch", path="$.end"), window=[START, MID])
    response("start is a number", result(A, start="@").replace('"@"', "‹›0"), error("wrong_type", path="$.start"))
    response("a window that ends before it starts", result(A, start=END)[:-1] + "‹›}", error("window_mismatch", path="$"))

    # JSON.
    response("nothing", "‹›", error("empty_body", path="$"))
    response("white space", " \n‹›", error("empty_body", path="$"))
    response("HTML", "  ‹›<!doctype html>", error("html_response", path="$"))
    response("a byte order mark", MARK + b"\xef\xbb\xbf" + result(A).encode(), error("byte_order_mark", path="$"))
    response("UTF-16", MARK + result(A).encode("utf-16"), error("byte_order_mark", path="$"))
    response("bytes after the end", result(A) + " ‹›{}", error("trailing_bytes", path="$"))
    response("a NUL after the end", result(A) + "‹›\0", error("trailing_bytes", path="$"))
    response("two documents", result(A) + "\n‹›" + result(A), error("trailing_bytes", path="$"))
    response("cut in a key", result(A)[:4] + "‹›", error("truncated_body", path="$"))
    response("cut in a count", result(A).split('"2", "filtered"')[0] + '"2‹›', error("truncated_body", path="$.counts[0].errors"))
    response("cut after an entry", result(A, A).split("}}, ")[0] + "}}, ‹›", error("truncated_body", path="$.counts[1]"))
    response("cut in a later key", '{"ok": 1, "b‹›', error("truncated_body", path="$"))
    response("cut before the last brace", result(A)[:-1] + "‹›", error("truncated_body", path="$.counts"))
    for name, body, path in [
        ("a comma too many", '{"x": "",‹›}', "$"),
        ("a comma first", "{‹›,}", "$"),
        ("a colon missing", '{"x" ‹›"y"}', "$.x"),
        ("a key without quotes", "{‹›start: 1}", "$"),
        ("single quotes", "{‹›'start': 1}", "$"),
        ("a comment", "‹›/* */ {}", "$"),
        ("a wrong bracket", '{"x": [1‹›}', "$.x[0]"),
        ("NaN", '{"x": ‹›NaN}', "$.x"),
        ("a capital literal", '{"x": ‹›True}', "$.x"),
        ("half a literal", '{"x": nul‹›, "y": 1}', "$.x"),
        ("a leading zero", '{"x": 0‹›1}', "$.x"),
        ("a leading plus", '{"x": ‹›+1}', "$.x"),
        ("a leading point", '{"x": ‹›.5}', "$.x"),
        ("a trailing point", '{"x": 5.‹›}', "$.x"),
        ("an empty exponent", '{"x": 5e‹›}', "$.x"),
        ("an unknown escape", '{"x": "\\‹›x"}', "$.x"),
        ("a short unicode escape", '{"x": "\\u12‹›"}', "$.x"),
        ("a raw newline in a string", '{"x": "a‹›\nb"}', "$.x"),
        ("a raw NUL in a later key", '{"ok": 1, "a‹›\0": 1}', "$"),
        ("a raw NUL in a key", '{"a‹›\0": 1}', "$"),
        ("a no-break space", '{"x":‹›\u00a01}', "$.x"),
    ]:
        response(f"not JSON: {name}", body, error("invalid_json", path=path))
    for name, raw in [
        ("a lone continuation", b"a\xc2\xa9" + MARK + b"\x80"),
        ("an overlong slash", MARK + b"\xc0\xaf"),
        ("a raw surrogate", b"a" + MARK + b"\xed\xa0\x80"),
        ("past the last character", MARK + b"\xf4\x90\x80\x80"),
        ("a cut character", b"a" + MARK + b"\xe2\x82"),
        ("a cut character after an escape", b"\\n" + MARK + b"\xf0\x9f\x98"),
        ("latin-1", b"caf" + MARK + b"\xe9"),
    ]:
        body = result(A).encode().replace(b'"a"', b'"' + raw + b'"')
        response(f"not UTF-8: {name}", body, error("invalid_utf8", path="$.counts[0].dimensions.integration"))
    response("not UTF-8: in a later key", b'{"ok": 1, "' + MARK + b'\xff": 1}', error("invalid_utf8", path="$"))
    response("not UTF-8: first", MARK + "é{}".encode("latin-1"), error("invalid_json", path="$"))
    response("not UTF-8: half a byte order mark", MARK + b"\xff{}", error("invalid_json", path="$"))
    response("cut in a byte order mark", b"\xef\xbb" + MARK, error("truncated_body", path="$"))
    response("a full-width sign first", "‹›！", error("invalid_json", path="$"))
    response("not UTF-8: in a key", b'{"' + MARK + b'\xff": 1}', error("invalid_utf8", path="$"))
    for name, text in [
        ("a high half", r"a‹›\ud800"),
        ("a low half", r"‹›\uDC00"),
        ("two high halves", r"‹›\ud800\ud800"),
        ("halves apart", r"‹›\ud83d \ude00"),
        ("a half before another escape", r"‹›\ud83d\n"),
        ("the wrong order", r"‹›\ude00\ud83d"),
    ]:
        body = result(A).replace('"a"', f'"{text}"')
        response(f"a lone surrogate: {name}", body, error("lone_surrogate", path="$.counts[0].dimensions.integration"))
    response("a duplicate key in the result", result(A, extra=', ‹›"start": ""'), error("duplicate_key", path="$.start"))
    response("a duplicate key in an entry", result(A[:-1] + ', ‹›"success": "1"}'), error("duplicate_key", path="$.counts[0].success"))
    response(
        "a duplicate key in dimensions, escaped",
        result(A.replace('"a"}', '"a", ‹›"\\u0069ntegration": "a"}')),
        error("duplicate_key", path="$.counts[0].dimensions.integration"),
    )
    response("a duplicate key in an unknown field", result(A, extra=', "x": {"y": 1, ‹›"y": 2}'), error("duplicate_key", path="$.x.y"))
    response("the same key in two objects", result(A, extra=', "x": {"y": 1}, "z": [{"y": 1}, {"y": 2}]'), one_row())

    # Limits.
    response("as deep as the limit", result(A, extra=', "x": [[[]]]'), one_row(), limits={"depth": 4})
    response("deeper than the limit", result(A, extra=', "x": [[[‹›[]]]]'), error("depth_limit", path="$.x[0][0][0]"), limits={"depth": 4})
    response(
        "a string as long as the limit",
        result(entry(integration="x" * 20)),
        table(["integration"], window([(["x" * 20], (1, 2, 3))], reported=(1, 2, 3)), totals=(1, 2, 3)),
        limits={"string_bytes": 20},
    )
    response(
        "a string longer than the limit",
        result(entry(integration="x" * 20 + "‹›x")),
        error("string_limit", path="$.counts[0].dimensions.integration"),
        limits={"string_bytes": 20},
    )
    many = [entry(integration=name) for name in "abcdef"]
    long_one = entry(integration="x" * 20 + "‹›x")
    response(
        "a string longer than the limit in a later entry",
        result(*many, long_one, entry(integration="g")),
        error("string_limit", path="$.counts[6].dimensions.integration"),
        limits={"string_bytes": 20},
    )
    response(
        "a string longer than the limit by an escape",
        result(A).replace('"a"', '"' + "x" * 20 + '‹›\\n"'),
        error("string_limit", path="$.counts[0].dimensions.integration"),
        limits={"string_bytes": 20},
    )
    response("more keys than the limit", result(A, extra=', "a": 0, "b": 0, ‹›"c": 0'), error("key_limit", path="$.c"), limits={"keys": 7})
    response("a body as long as the limit", result(A), one_row(), limits={"body_bytes": len(result(A))})
    response("a body longer than the limit", result(A) + "‹›\n", error("body_limit", path="$"), limits={"body_bytes": len(result(A))})
    three = [entry(integration=name) for name in "abc"]
    response("more groups than the limit", result(*three[:2], three[2][:-1] + "‹›}"), error("group_limit", path="$.counts[2]"), limits={"groups": 2})
    # Each group counts 64 bytes, each distinct value 32 and its own.
    response("a table as large as the limit", result(A), one_row(), limits={"table_bytes": 64 + 32 + len("a")})
    response(
        "a table larger than the limit",
        result(*three[:2], three[2][:-1] + "‹›}"),
        error("group_limit", path="$.counts[2]"),
        limits={"table_bytes": 2 * (64 + 32 + len("a"))},
    )
    response(
        "a table larger than the limit, found by an entry that was read ahead",
        result(*(entry(integration=name) for name in "abc"), entry(integration="d" * 100)[:-1] + "‹›}", *(entry(integration=name) for name in "efgh")),
        error("group_limit", path="$.counts[3]"),
        limits={"table_bytes": 4 * (64 + 32 + len("a"))},
    )
    response("finishing twice", result(A), error("out_of_order"), finish_twice=True)

    # Arguments.
    for name, code, argument, options in [
        ("no dimensions", "no_dimensions", "dimensions", {"dimensions": ()}),
        ("an unknown name", "unknown_dimension", "dimensions", {"dimensions": ("user",)}),
        ("a name in capitals", "unknown_dimension", "dimensions", {"dimensions": ("Reason",)}),
        ("a name twice", "repeated_dimension", "dimensions", {"dimensions": ("reason", "reason")}),
        ("group_by what was not requested", "unknown_dimension", "group_by", {"group_by": ["reason"]}),
        ("group_by twice", "repeated_dimension", "group_by", {"group_by": ["integration", "integration"]}),
        ("an unknown tolerance", "invalid_argument", "tolerate", {"tolerate": ["everything"]}),
    ]:
        response(f"arguments: {name}", "", error(code, argument=argument), **options)


# --- exchanges: calls of one client, step by step -----------------------------------------------

exchanges = []

CONTROL = {"cluster_endpoint": CLUSTER, "client_id": "id", "client_secret": SECRET, "control_audience": "control"}
ORCHESTRATION = {
    "base_url": "https://api.example",
    "auth_url": "https://auth.example",
    "client_id": "id",
    "client_secret": SECRET,
    "orchestration_audience": "orchestration",
}
# For what is about an error, and not about trying again.
ONCE = {**CONTROL, "max_retries": 0}
HOST = {"cluster_endpoint": CLUSTER, "base_url": "https://api.example", "host_tokens": True}
DELIVERY = {"method": "event_delivery", "start": START, "end": MID, "dimensions": ["integration"]}
LOGS = {"method": "audit_logs"}


def ok(body, headers=JSON_HEAD, status=200):
    return {"status": status, "headers": headers, "body": body}


def status(code, body="", headers=JSON_HEAD):
    return ok(body, headers, code)


def control_request(base=CLUSTER):
    body = f'{{"client_id":"id","client_secret":"{SECRET}","audience":"control"}}'
    return {"method": "POST", "url": f"{base}/v1.1/oauth/token", "headers": [*JSON_HEAD, ASKED], "body": body}


def orchestration_request():
    body = f'{{"grant_type":"client_credentials","client_id":"id","client_secret":"{SECRET}","audience":"orchestration"}}'
    return {"method": "POST", "url": "https://auth.example/oauth/token", "headers": [*JSON_HEAD, ASKED], "body": body}


def metrics_request(token=TOKEN, base=CLUSTER, name="event_delivery", start=START, end=MID, dimensions='["integration"]'):
    return {
        "method": "POST",
        "url": f"{base}/v1.1/analytics/{name}",
        "headers": [["authorization", f"Bearer {token}"], *JSON_HEAD, ASKED],
        "body": f'{{"start":"{start}","end":"{end}","dimensions":{dimensions}}}',
    }


def logs_request(token=TOKEN, query=""):
    url = f"https://api.example/api/v1/audit-logs{query}"
    return {"method": "GET", "url": url, "headers": [["authorization", f"Bearer {token}"], ASKED], "body": None}


def token(value=TOKEN, expires_in=86400, **extra):
    fields = {"access_token": value, "expires_in": expires_in, "token_type": "Bearer", **extra}
    return ok(json.dumps(fields))


def send(request, respond, **more):
    return {"send": request, "respond": respond, **more}


def quoted(steps):
    """What the error of a call quotes, if its last step is a refusal by an API in plain text."""
    last = steps[-1] if steps else {}
    response = last.get("respond", {"status": 200})
    if response["status"] == 200 or last["send"]["url"].endswith("/oauth/token"):
        return None
    line = " ".join(response["body"].split())
    if not line or line.startswith("<"):
        return None
    return f"{line[:200]}…" if len(line) > 200 else line


def exchange(name, options, *calls):
    """Each call: (call, steps, expected), with expected an error, a table or a JSON document."""
    case = {"name": name, "options": options, "calls": []}
    for call, steps, expected in calls:
        if "code" in expected:
            outcome = {"error": {**expected, "excerpt": expected["excerpt"] or quoted(steps)}}
        elif "format" in expected:
            # Most clocks say that the window has just begun. It ends after 15 minutes, and is settled an hour later.
            minute = max([step.get("wall", step.get("at", 0)) for step in steps], default=0)
            early = provisional(expected, unfinished=minute < 15)
            of = next(step["send"]["url"].split("/v1.1/")[0] for step in reversed(steps) if "send" in step)
            identity = options.get("identity") or of + (", client id" if "client_id" in options else "")
            outcome = {"table": identified(expected if minute >= 75 else early, identity)}
        else:
            outcome = expected
        case["calls"].append({"call": call, "steps": steps, **outcome})
    exchanges.append(case)


def broken_token(name, respond, expected):
    exchange(f"token response: {name}", ONCE, (DELIVERY, [send(control_request(), respond)], expected))


def options_error(name, options, code, argument):
    exchange(f"options: {name}", options, (DELIVERY, [], error(code, argument=argument)))


def exchange_vectors():
    table_one = one_row("event_delivery")
    fetch = send(control_request(), token())
    query = send(metrics_request(), ok(result(A)))
    exchange("delivery", CONTROL, (DELIVERY, [fetch, query], table_one))
    exchange(
        "one token serves many calls",
        CONTROL,
        (DELIVERY, [fetch, query], table_one),
        ({**DELIVERY, "method": "event_ingestion"}, [send(metrics_request(name="event_ingestion"), ok(result(A)))], one_row("event_ingestion")),
    )
    for start, end in [("2026-01-01T00:00:00+00:00", "2026-01-01T00:15:00-00:00"), ("2025-12-31T18:30:00.000-05:30", "2026-01-01T23:59:00+23:44")]:
        called = {**DELIVERY, "start": start, "end": end}
        exchange(f"what is sent for {start} and {end}", CONTROL, (called, [fetch, query], table_one))
    every = {**DELIVERY, "dimensions": ["reason", "event_name", "integration", "write_key"], "group_by": ["integration"]}
    body = result(entry(reason="", event_name="e", integration="a", write_key="k"))
    request = metrics_request(dimensions='["reason","event_name","integration","write_key"]')
    exchange("dimensions in the caller's order", CONTROL, (every, [fetch, send(request, ok(body))], table_one))
    precise = {**DELIVERY, "start": "2026-01-01T00:00:00.250Z"}
    body = result(A, start="2026-01-01T00:00:00.250000Z")
    rows = window([(["a"], (1, 2, 3))], reported=(1, 2, 3), start="2026-01-01T00:00:00.250Z")
    exchange(
        "fractions of a second",
        CONTROL,
        (
            precise,
            [fetch, send(metrics_request(start="2026-01-01T00:00:00.250Z"), ok(body))],
            table(["integration"], rows, totals=(1, 2, 3), metric="event_delivery"),
        ),
    )
    fetch_logs = send(orchestration_request(), token())
    for query_text, arguments in [("", {}), ("?page=2", {"page": 2}), ("?perPage=50", {"per_page": 50}), ("?page=1&perPage=1", {"page": 1, "per_page": 1})]:
        exchange(
            f"audit logs {query_text}",
            ORCHESTRATION,
            ({**LOGS, **arguments}, [fetch_logs, send(logs_request(query=query_text), ok('{"anything": [1, "ü"]}'))], {"json": '{"anything": [1, "ü"]}'}),
        )
    both = {**CONTROL, **ORCHESTRATION}
    exchange(
        "each API has its own token",
        both,
        (DELIVERY, [send(control_request(), token("control-token")), send(metrics_request("control-token"), ok(result(A)))], table_one),
        (LOGS, [send(orchestration_request(), token("orchestration-token")), send(logs_request("orchestration-token"), ok("[]"))], {"json": "[]"}),
        (DELIVERY, [send(metrics_request("control-token"), ok(result(A)))], table_one),
    )
    for address, base in [
        ("https://cluster.example/", CLUSTER),
        ("https://cluster.example:8443/a/b//", "https://cluster.example:8443/a/b"),
        ("https://Cluster.EXAMPLE", CLUSTER),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://127.0.0.1:1/x/", "http://127.0.0.1:1/x"),
        ("http://[::1]:65535", "http://[::1]:65535"),
        ("https://10.0.0.7", "https://10.0.0.7"),
        ("https://[2001:DB8::7]/a%2Fb/~c;d=1", "https://[2001:db8::7]/a%2Fb/~c;d=1"),
        ("HTTPS://my_cluster-1.xn--mnchen-3ya.example", "https://my_cluster-1.xn--mnchen-3ya.example"),
    ]:
        exchange(
            f"base address {address}",
            {**CONTROL, "cluster_endpoint": address},
            (DELIVERY, [send(control_request(base), token()), send(metrics_request(base=base), ok(result(A)))], table_one),
        )
    exchange(
        "plain http, by an option",
        {**CONTROL, "cluster_endpoint": "http://cluster.example", "dangerously_allow_http": True},
        (DELIVERY, [send(control_request("http://cluster.example"), token()), send(metrics_request(base="http://cluster.example"), ok(result(A)))], table_one),
    )

    # Options.
    for address in ["http://cluster.example", "http://localhost.example", "http://127.0.0.2", "http://127.0.0.1.example", "http://0.0.0.0", "http://[::2]"]:
        options_error(f"plain http to {address}", {**CONTROL, "cluster_endpoint": address}, "insecure_base_address", "cluster_endpoint")
    for address in [
        "",
        "cluster.example",
        "/v1",
        "ftp://cluster.example",
        "https://",
        "https://user@cluster.example",
        "https://user:pw@cluster.example",
        "https://cluster.example?x=1",
        "https://cluster.example/#x",
        "https://cluster.example:99999",
        "https://cluster.example/a/../b",
        "https://cluster.example/%2e%2E/b",
        "https:// cluster.example",
        "http://localhost@evil.example",
        "javascript:alert(1)",
        "https://cluster.example:",
        "https://cluster.example:0",
        "https://cluster.example:+80",
        "https://cluster.example:0443",
        "http://localhost:+80",
        "https://cluster.example/a\\..\\b",
        "https://cluster.example/ä",
        "https://cluster.example/%zz",
        "https://cluster.example/a b",
        "https://cluster.example/<x>",
        "https://[]",
        "https://[zzz]",
        "https://[v1.x]",
        "https://a[b]c",
        "https://.",
        "https://a..b",
        "https://cluster.example.",
        "https://-a.example",
        "https://*",
        "https://a,b",
        "https://0x7f.1",
        "https://1.2.3",
        "https://1.2.3.256",
        "https://münchen.example",
        "https://%6c.example",
        "http://2130706433",
    ]:
        options_error(f"the address {address!r}", {**CONTROL, "cluster_endpoint": address}, "invalid_base_address", "cluster_endpoint")
    options_error("a bad auth_url", {**ORCHESTRATION, "auth_url": "auth.example"}, "invalid_base_address", "auth_url")
    options_error("a bad base_url", {**ORCHESTRATION, "base_url": "api.example"}, "invalid_base_address", "base_url")
    options_error("nothing", {}, "missing_argument", "cluster_endpoint")
    for name in ("client_id", "client_secret", "control_audience"):
        options = {key: value for key, value in CONTROL.items() if key != name}
        options_error(f"no {name}", options, "missing_argument", name)
        options_error(f"an empty {name}", {**CONTROL, name: ""}, "invalid_argument", name)
    for name in ("auth_url", "orchestration_audience"):
        options = {key: value for key, value in ORCHESTRATION.items() if key != name}
        options_error(f"no {name}", options, "missing_argument", name)
    options_error("metrics without their address", ORCHESTRATION, "missing_argument", "cluster_endpoint")
    exchange("audit logs without their address", CONTROL, (LOGS, [], error("missing_argument", argument="base_url")))
    options_error("secret and host tokens", {**CONTROL, "host_tokens": True}, "invalid_argument", "access_token")
    options_error("a secret in a browser", {**CONTROL, "in_browser": True}, "secret_in_browser", "client_secret")
    options_error("no default lifetime", {**CONTROL, "default_token_lifetime": 0}, "invalid_argument", "default_token_lifetime")
    exchange("a secret in a browser, by an option", {**CONTROL, "in_browser": True, "dangerously_allow_browser": True}, (DELIVERY, [fetch, query], table_one))

    # Arguments.
    for name, changes, code, argument in [
        ("start is end", {"end": START}, "invalid_window", "start"),
        ("start after end", {"start": END}, "invalid_window", "start"),
        ("start without a zone", {"start": "2026-01-01T00:00:00"}, "invalid_timestamp", "start"),
        ("end before start by its offset", {"end": "2026-01-01T00:15:00+01:00"}, "invalid_window", "start"),
        ("an offset without minutes", {"end": "2026-01-01T01:15:00+01"}, "invalid_timestamp", "end"),
        ("an offset without a colon", {"end": "2026-01-01T01:15:00+0100"}, "invalid_timestamp", "end"),
        ("an offset of a day", {"end": "2026-01-02T00:15:00+24:00"}, "invalid_timestamp", "end"),
        ("an offset of 60 minutes", {"end": "2026-01-01T01:15:00+00:60"}, "invalid_timestamp", "end"),
        ("an offset with a true minus", {"end": "2025-12-31T23:15:00\u221201:00"}, "invalid_timestamp", "end"),
        ("an offset and a Z", {"end": "2026-01-01T01:15:00+01:00Z"}, "invalid_timestamp", "end"),
        ("a named zone", {"end": "2026-01-01T01:15:00+01:00[Europe/Paris]"}, "invalid_timestamp", "end"),
        ("an offset that leads out of the years", {"start": "0000-01-01T00:00:00+00:01"}, "invalid_timestamp", "start"),
        ("a small z", {"end": "2026-01-01T00:15:00z"}, "invalid_timestamp", "end"),
        ("a space for T", {"start": "2026-01-01 00:00:00Z"}, "invalid_timestamp", "start"),
        ("a date", {"start": "2026-01-01Z"}, "invalid_timestamp", "start"),
        ("February 30", {"start": "2026-02-30T00:00:00Z"}, "invalid_timestamp", "start"),
        ("hour 24", {"start": "2026-01-01T24:00:00Z"}, "invalid_timestamp", "start"),
        ("a leap second", {"start": "2016-12-31T23:59:60Z"}, "invalid_timestamp", "start"),
        ("ten digits of a fraction", {"start": "2026-01-01T00:00:00.0000000001Z"}, "invalid_timestamp", "start"),
        ("an empty fraction", {"start": "2026-01-01T00:00:00.Z"}, "invalid_timestamp", "start"),
        ("a five-digit year", {"end": "+12026-01-01T00:00:00Z"}, "invalid_timestamp", "end"),
        ("nothing", {"start": ""}, "invalid_timestamp", "start"),
        ("no dimensions", {"dimensions": []}, "no_dimensions", "dimensions"),
        ("an unknown dimension", {"dimensions": ["user"]}, "unknown_dimension", "dimensions"),
        ("a dimension twice", {"dimensions": ["reason", "integration", "reason"]}, "repeated_dimension", "dimensions"),
        ("reason of ingestion", {"method": "event_ingestion", "dimensions": ["integration", "reason"]}, "unknown_dimension", "dimensions"),
        ("group_by what was not requested", {"group_by": ["reason"]}, "unknown_dimension", "group_by"),
    ]:
        exchange(f"arguments: {name}", CONTROL, ({**DELIVERY, **changes}, [], error(code, argument=argument)))
    for name, value in [("page", 0), ("page", -1), ("per_page", 0)]:
        exchange(f"arguments: {name} {value}", ORCHESTRATION, ({**LOGS, name: value}, [], error("invalid_page", argument=name)))

    # Token responses.
    for code in (400, 401, 403):
        broken_token(f"status {code}", status(code, SECRET), error("token_refused", status=code))
    for code, name in [
        (301, "redirected"),
        (302, "redirected"),
        (308, "redirected"),
        (404, "unexpected_status"),
        (204, "unexpected_status"),
        (429, "rate_limited"),
        (500, "server_error"),
        (503, "server_error"),
    ]:
        broken_token(f"status {code}", status(code, SECRET), error(name, status=code))
    broken_token("HTML", ok("<html>", [["content-type", "text/html; charset=utf-8"]]), error("html_response", status=200))
    coded = [*JSON_HEAD, ["content-encoding", "br"]]
    broken_token("another coding", ok(SECRET, coded), error("wrong_content_encoding", status=200))
    broken_token("plain text", ok(SECRET, [["content-type", "text/plain"]]), error("wrong_content_type", status=200))
    broken_token("empty", ok(""), error("empty_body", path="$", offset=0))
    broken_token("text", ok(SECRET), error("invalid_json", path="$", offset=0))
    broken_token("cut", ok('{"access_token": "x'), error("truncated_body", path="$.access_token", offset=19))
    broken_token("a secret key in the path", ok(f'{{"{SECRET}": tru }}'), error("invalid_json", path="$.*", offset=21))
    broken_token("an array", ok("[]"), error("invalid_token_response", path="$", offset=0))
    broken_token("no access_token", ok("{}"), error("invalid_token_response", path="$"))
    broken_token("access_token null", ok('{"access_token": null}'), error("invalid_token_response", path="$.access_token", offset=17))
    broken_token("access_token empty", token(""), error("invalid_token_response"))
    broken_token("access_token with a line break", token("a\r\nb"), error("invalid_token_response"))
    broken_token("access_token not ASCII", token("tökén"), error("invalid_token_response"))
    broken_token("another token_type", ok('{"access_token": "x", "token_type": "mac"}'), error("invalid_token_response", path="$.token_type", offset=36))
    broken_token("access_token twice", ok('{"access_token": "x", "access_token": "y"}'), error("duplicate_key", path="$.access_token", offset=22))
    for value in ["0", "-1", "-0", "3600.5", "3600.0", "1e308", "1e3", '"3600"', '"60abc"', '""', "null", "true", "[]", str(2**64), "9" * 400]:
        body = f'{{"access_token": "x", "expires_in": {value}}}'
        broken_token(f"expires_in {value[:30]}", ok(body), error("invalid_token_lifetime", path="$.expires_in", offset=36))
    plain = send(metrics_request("x"), ok(result(A)))
    for name, fields in [
        ("no expires_in", {"access_token": "x"}),
        ("token_type in small letters", {"access_token": "x", "token_type": "bearer", "expires_in": 1}),
        ("unknown fields", {"scope": {"a": [None]}, "access_token": "x", "expires_in": 60}),
    ]:
        exchange(f"token response: {name}", CONTROL, (DELIVERY, [send(control_request(), ok(json.dumps(fields))), plain], table_one))
    exchange("token response: no content type", CONTROL, (DELIVERY, [send(control_request(), ok(token()["body"], [])), query], table_one))

    # Token life. `at` is minutes on both clocks, `wall` on the wall clock alone.
    def later(minutes, token_name, *, new):
        steps = [send(control_request(), token(token_name), at=minutes)] if new else []
        return (DELIVERY, [*steps, send(metrics_request(token_name), ok(result(A)), at=minutes)], table_one)

    exchange(
        "life: 24 hours less the margin of 5 minutes",
        CONTROL,
        later(0, "a", new=True),
        later(1434, "a", new=False),
        later(1435, "b", new=True),
        later(1436, "b", new=False),
    )
    exchange("life: two days asleep", CONTROL, later(0, "a", new=True), later(2880, "b", new=True))
    stale = [send(control_request(), status(503), at=1436), send(metrics_request("a"), ok(result(A)), at=1436)]
    exchange("life: in the margin the old token still serves", CONTROL, later(0, "a", new=True), (DELIVERY, stale, table_one), later(1438, "b", new=True))
    late = [send(control_request(), status(503), at=1441)]
    exchange("life: past its end it does not", ONCE, later(0, "a", new=True), (DELIVERY, late, error("server_error", status=503)))
    default = ok('{"access_token": "x"}')
    exchange(
        "life: an hour when expires_in is missing",
        CONTROL,
        (DELIVERY, [send(control_request(), default, at=0), send(metrics_request("x"), ok(result(A)), at=0)], table_one),
        (DELIVERY, [send(metrics_request("x"), ok(result(A)), at=54)], table_one),
        later(60, "b", new=True),
    )
    exchange(
        "life: the option for a missing expires_in",
        {**CONTROL, "default_token_lifetime": 600},
        (DELIVERY, [send(control_request(), default, at=0), send(metrics_request("x"), ok(result(A)), at=0)], table_one),
        later(10, "b", new=True),
    )
    exchange(
        "life: more than 24 hours counts as 24 hours",
        CONTROL,
        (DELIVERY, [send(control_request(), token("a", 10**12), at=0), send(metrics_request("a"), ok(result(A)), at=0)], table_one),
        later(1440, "b", new=True),
    )
    back = {"send": metrics_request("a"), "respond": ok(result(A)), "at": 10, "wall": -100_000}
    exchange("life: a wall clock set back is harmless", CONTROL, later(0, "a", new=True), (DELIVERY, [back], table_one))
    forward = [
        {"send": control_request(), "respond": token("b"), "at": 10, "wall": 1500},
        {"send": metrics_request("b"), "respond": ok(result(A)), "at": 10, "wall": 1500},
    ]
    exchange("life: 25 hours of suspend that only the wall clock saw", CONTROL, later(0, "a", new=True), (DELIVERY, forward, table_one))

    # 401 of an API.
    refused = send(metrics_request("a"), status(401, "who is it"))
    again = [send(control_request(), token("a")), refused, send(control_request(), token("b")), send(metrics_request("b"), ok(result(A)))]
    exchange("401 once", CONTROL, (DELIVERY, again, table_one), later(1, "b", new=False))
    always = [*again[:3], send(metrics_request("b"), status(401))]
    exchange("401 twice", CONTROL, (DELIVERY, always, error("token_rejected", status=401)), later(0, "c", new=True))
    exchange("401, and no new token", CONTROL, (DELIVERY, [*again[:2], send(control_request(), status(403))], error("token_refused", status=403)))
    logs_again = [
        send(orchestration_request(), token("a")),
        send(logs_request("a"), status(401)),
        send(orchestration_request(), token("b")),
        send(logs_request("b"), ok("{}")),
    ]
    exchange("401 of the audit logs", ORCHESTRATION, (LOGS, logs_again, {"json": "{}"}))

    # Other answers of an API.
    def answer(name, respond, expected):
        exchange(f"answer: {name}", ONCE, (DELIVERY, [fetch, send(metrics_request(), respond)], expected))

    for code, name in [
        (301, "redirected"),
        (302, "redirected"),
        (303, "redirected"),
        (304, "redirected"),
        (307, "redirected"),
        (308, "redirected"),
        (403, "forbidden"),
        (429, "rate_limited"),
        (500, "server_error"),
        (502, "server_error"),
        (503, "server_error"),
        (504, "server_error"),
        (599, "server_error"),
        (100, "unexpected_status"),
        (201, "unexpected_status"),
        (204, "unexpected_status"),
        (206, "unexpected_status"),
        (400, "unexpected_status"),
        (404, "unexpected_status"),
        (418, "unexpected_status"),
        (600, "unexpected_status"),
    ]:
        answer(f"status {code}", status(code, result(A)), error(name, status=code))
    answer("HTML by its type", ok("<html>", [["Content-Type", "text/html"]]), error("html_response", status=200))
    answer("HTML by its text", ok("<html>"), error("html_response", path="$", offset=0))
    answer("HTML without a type", ok("<html>", []), error("html_response", path="$", offset=0))
    answer("another type", ok(result(A), [["content-type", "text/plain"]]), error("wrong_content_type", status=200))
    answer("an empty type", ok(result(A), [["content-type", ""]]), error("wrong_content_type", status=200))
    answer("two types", ok(result(A), [*JSON_HEAD, ["content-type", "text/html"]]), error("html_response", status=200))
    answer("no type", ok(result(A), []), table_one)
    answer("a type with a charset", ok(result(A), [["CONTENT-TYPE", "Application/JSON; charset=utf-8"]]), table_one)
    for coding in ["", "identity", "gzip", "GZip ", "x-gzip"]:
        # The host decodes: what the call is given is the text.
        answer(f"the coding {coding!r}", ok(result(A), [*JSON_HEAD, ["Content-Encoding", coding]]), table_one)
    for coding in ["br", "deflate", "zstd", "gzip, gzip", "gzip,identity", "identity, gzip", "gzip;q=1"]:
        answer(
            f"the coding {coding!r}",
            ok(result(A), [*JSON_HEAD, ["content-encoding", coding]]),
            error("wrong_content_encoding", status=200),
        )
    two = [*JSON_HEAD, ["content-encoding", "gzip"], ["content-encoding", "gzip"]]
    answer("two headers that name a coding", ok(result(A), two), error("wrong_content_encoding", status=200))
    answer("a type of the JSON family", ok(result(A), [["content-type", "application/problem+json"]]), table_one)
    answer("empty", ok(""), error("empty_body", path="$", offset=0))
    answer("another window", ok(result(A, end=END)), error("window_mismatch", path="$.end", offset=41))
    body = result(A)[:-2]
    answer("cut", ok(body), error("truncated_body", path="$.counts[0]", offset=len(body)))
    # What the service quotes of a request is quoted in no error.
    for echoed in (TOKEN, SECRET):
        body = result(A, extra=f', "x": {{"{echoed}": [tru ]}}')
        wrong = error("invalid_json", path="$.*.*[0]", offset=body.index("tru ") + 3)
        answer(f"a field named {echoed}", ok(body), wrong)
        body = f'{{"{echoed}": [{{"{echoed}": tru }}]}}'
        wrong = error("invalid_json", path="$.*[0].*", offset=body.index("tru ") + 3)
        exchange(f"audit logs: a field named {echoed}", ORCHESTRATION, (LOGS, [fetch_logs, send(logs_request(), ok(body))], wrong))
    body = result(A).replace('"a"}', f'"a", "{TOKEN}"')
    offset = body.index(f'"{TOKEN}"')
    answer("a dimension that is the token", ok(body), error("dimension_mismatch", path="$.counts[0].dimensions.*", offset=offset))
    # Hosts read a page of audit logs into numbers of their own.
    largest = "17976931348623157" + "0" * 292
    numbers = (
        f"[{largest}, -{largest}, 1.7976931348623157e308, 0.0179769313486231579e+0310, 1e-999999999999999999999, -0e999999999999999999999, 9007199254740993]"
    )
    listing = [fetch_logs, send(logs_request(), ok(numbers))]
    exchange("audit logs: numbers as large as a double holds", ORCHESTRATION, (LOGS, listing, {"json": numbers}))
    for number in ["1e309", "-1e400", "1.7976931348623158e308", "17976931348623158" + "0" * 292, "9" * 5000, "0.001e312", "1e999999999999999999999"]:
        wrong = error("invalid_json", path="$.*", offset=6)
        listing = [fetch_logs, send(logs_request(), ok(f'{{"a": {number}}}'))]
        exchange(f"audit logs: {number[:24]}, of {len(number)} characters", ORCHESTRATION, (LOGS, listing, wrong))
    exchange("audit logs: not JSON", ORCHESTRATION, (LOGS, [fetch_logs, send(logs_request(), ok("{]"))], error("invalid_json", path="$", offset=1)))

    # What a refusal says, and what of it is quoted.
    def refuses(name, code, body, excerpt, kind="unexpected_status", query=DELIVERY, where=None):
        where, got = where or (metrics_request(), fetch)
        failed = error(kind, status=code, excerpt=excerpt)
        exchange(f"refusal: {name}", ONCE if query == DELIVERY else ORCHESTRATION, (query, [got, send(where, status(code, body, []))], failed))

    refuses("a line", 400, "window longer than 24h", "window longer than 24h")
    refuses("of audit logs", 404, '{"error": "no such page"}', '{"error": "no such page"}', query=LOGS, where=(logs_request(), fetch_logs))
    refuses("white space and control characters", 500, " a\r\n\tb\u001b[1mc\u0000 ", "a b [1mc", kind="server_error")
    refuses("long", 403, "ä" * 5000, "ä" * 200 + "…", kind="forbidden")
    refuses("HTML", 502, "\n<html><body>no</body></html>", None, kind="server_error")
    refuses("nothing", 418, "", None)
    refuses("the token and the secret", 400, f"{SECRET}, {TOKEN} and {TOKEN[:-1]}", "***, *** and ***")
    refuses("the token, cut at the end of what is read", 400, " " * 1010 + TOKEN, "***")

    # The way there.
    def breaks(name, where, code):
        broken = {"send": where, "fail": name, "detail": "ECONNRESET"}
        steps = [broken] if where == control_request() else [fetch, broken]
        exchange(f"{name} failure of {where['url']}", ONCE, (DELIVERY, steps, error(code)))

    for where in (control_request(), metrics_request()):
        breaks("network", where, "network_failed")
        breaks("timeout", where, "timed_out")

    # Connections that the server has closed since they were last used: at once, and for nothing; but not for ever.
    for where in (control_request(), metrics_request()):
        stale = {"send": where, "fail": "stale", "detail": "ECONNRESET"}
        before = [] if where == control_request() else [fetch]
        after = [fetch, query] if where == control_request() else [query]
        exchange(f"stale connection to {where['url']}", ONCE, (DELIVERY, [*before, stale, *after], table_one))
        exchange(f"16 stale connections to {where['url']}", ONCE, (DELIVERY, [*before, *[stale] * 16, *after], table_one))
        exchange(f"17 stale connections to {where['url']}", ONCE, (DELIVERY, [*before, *[stale] * 17], error("network_failed")))

    # The end of a call.
    late = {"send": metrics_request(), "fail": "timeout", "detail": "TimeoutError"}
    busy = send(metrics_request(), status(503, headers=[*JSON_HEAD, ["retry-after", "30"]]))
    for name, ms, steps in [
        ("an exchange", 5000, [fetch, late]),
        ("a token request", 5000, [{**late, "send": control_request()}]),
        ("a wait", 5000, [fetch, busy, {"wait": {"at_least": 5000, "at_most": 5000}}]),
        ("the first step", 0, []),
    ]:
        exchange(f"deadline: {name}", CONTROL, ({**DELIVERY, "deadline_ms": ms}, steps, error("deadline_exceeded")))

    retry_vectors(fetch, query, table_one)

    # Tokens of the host.
    def provide(api="control", value=TOKEN, lifetime="3600", **more):
        return {"provide_token": api, "token": value, "lifetime": lifetime, **more}

    exchange(
        "host tokens, one for each API",
        HOST,
        (DELIVERY, [provide(), query], table_one),
        (LOGS, [provide("orchestration", "other"), send(logs_request("other"), ok("[]"))], {"json": "[]"}),
        (DELIVERY, [query], table_one),
    )
    exchange("host tokens in a browser", {**HOST, "in_browser": True}, (DELIVERY, [provide(), query], table_one))
    exchange("host tokens without a lifetime", HOST, (DELIVERY, [provide(lifetime=None), query], table_one))
    exchange("host tokens: 401 once", HOST, (DELIVERY, [provide(value="a"), refused, provide(value="b"), send(metrics_request("b"), ok(result(A)))], table_one))
    exchange("host tokens: 401 twice", HOST, (DELIVERY, [provide(value="a"), refused, provide(value="a"), refused], error("token_rejected", status=401)))
    exchange("host tokens: none to be had", HOST, (DELIVERY, [{"provide_token": "control", "token": None, "lifetime": None}], error("token_provider_failed")))
    for lifetime in ["0", "-5", "3600.5", "1e308", "inf", "nan", "60abc", ""]:
        exchange(f"host tokens: lifetime {lifetime!r}", HOST, (DELIVERY, [provide(lifetime=lifetime)], error("invalid_token_lifetime")))
    exchange("host tokens: an empty one", HOST, (DELIVERY, [provide(value="")], error("invalid_token_response")))
    exchange("host tokens: a line break", HOST, (DELIVERY, [provide(value="a\nb")], error("invalid_token_response")))


def retry_vectors(fetch, query, table_one):
    def waits(least, most=None):
        """A wait whose random part is up to half of the first backoff, unless `most` is given."""
        return {"wait": {"at_least": least, "at_most": least + 250 if most is None else most}}

    def retried(name, respond, wait):
        exchange(f"retry: {name}", CONTROL, (DELIVERY, [fetch, send(metrics_request(), respond), wait, query], table_one))

    def asking(*values, date=None, code=503):
        headers = [["Retry-After", value] for value in values]
        return status(code, "<html>", [*headers, *([["Date", date]] if date else [])])

    # What is tried again.
    for code in (408, 429, 500, 502, 503, 504):
        retried(f"status {code}", status(code, "<html>", [["content-type", "text/html"]]), waits(250))
        steps = [send(control_request(), status(code)), waits(250), fetch, query]
        exchange(f"retry: status {code} of the token endpoint", CONTROL, (DELIVERY, steps, table_one))
    for way in ("network", "timeout"):
        broken = {"fail": way, "detail": "ECONNRESET"}
        steps = [fetch, {"send": metrics_request(), **broken}, waits(250), query]
        exchange(f"retry: {way} failure", CONTROL, (DELIVERY, steps, table_one))
        steps = [{"send": control_request(), **broken}, waits(250), fetch, query]
        exchange(f"retry: {way} failure of the token endpoint", CONTROL, (DELIVERY, steps, table_one))
    cut = result(A)[:-2]
    retried("a body that was cut", ok(cut), waits(250))
    granted = token()["body"]
    steps = [send(control_request(), ok(granted[:-1])), waits(250), fetch, query]
    exchange("retry: a token response that was cut", CONTROL, (DELIVERY, steps, table_one))
    fails = send(metrics_request(), ok(cut))
    always = [fetch, fails, waits(250), fails, waits(500, 1000), fails, waits(1000, 2000), fails]
    end = error("truncated_body", path="$.counts[0]", offset=len(cut))
    exchange("retry: a body that is cut always", CONTROL, (DELIVERY, always, end))
    # And what is not: all of these are errors at the first answer.
    for code, name in [
        (302, "redirected"),
        (403, "forbidden"),
        (404, "unexpected_status"),
        (501, "server_error"),
        (505, "server_error"),
        (599, "server_error"),
    ]:
        answer = asking("1", code=code)
        exchange(f"no retry: status {code}", CONTROL, (DELIVERY, [fetch, send(metrics_request(), answer)], error(name, status=code)))
    steps = [fetch, send(metrics_request(), ok("<html>"))]
    exchange("no retry: a wrong body", CONTROL, (DELIVERY, steps, error("html_response", path="$", offset=0)))

    # How often, and after how long.
    fails = send(metrics_request(), status(500))
    thrice = [fetch, fails, waits(250), fails, waits(500, 1000), fails, waits(1000, 2000), fails]
    exchange("retry: three times at most", CONTROL, (DELIVERY, thrice, error("server_error", status=500)))
    once = {**CONTROL, "max_retries": 1}
    exchange("retry: once at most", once, (DELIVERY, [fetch, fails, waits(250), fails], error("server_error", status=500)))
    short = {**CONTROL, "longest_retry_wait_ms": 100}
    exchange("retry: no wait of our own above the longest", short, (DELIVERY, [fetch, fails, waits(50, 100), query], table_one))
    both = [send(control_request(), status(500)), waits(250), fetch, fails, waits(500, 1000), fails, waits(1000, 2000), query]
    exchange("retry: a call has one number of retries", CONTROL, (DELIVERY, both, table_one))
    tired = [fetch, *[fails, waits(0, 30_000)] * 10, fails]
    exchange("retry: until the budget is used up", {**CONTROL, "max_retries": 100}, (DELIVERY, tired, error("server_error", status=500)))

    # Retry-After. The clocks of these calls start at 2026-01-01T00:00:00Z, a Thursday.
    for name, values, least in [
        ("seconds", ["7"], 7_000),
        ("seconds with zeros and spaces", [" 007 "], 7_000),
        ("0", ["0"], 250),
        ("0 twice", ["0", "0"], 250),
        ("two headers", ["3", "9"], 9_000),
        ("a list", ["9, 3"], 9_000),
        ("a list with garbage", ["soon, 3, -5"], 3_000),
        ("as long as it may be", ["60"], 60_000),
        ("nothing", [""], 250),
        ("negative", ["-30"], 250),
        ("with a plus", ["+30"], 250),
        ("a decimal", ["30.0"], 250),
        ("an exponent", ["3e1"], 250),
        ("hexadecimal", ["0x10"], 250),
        ("a word", ["tomorrow"], 250),
        ("ISO 8601", ["2026-01-01T00:00:30Z"], 250),
        ("IMF-fixdate", ["Thu, 01 Jan 2026 00:00:30 GMT"], 30_000),
        ("RFC 850", ["Thursday, 01-Jan-26 00:00:30 GMT"], 30_000),
        ("asctime", ["Thu Jan  1 00:00:30 2026"], 30_000),
        ("a date in the past", ["Wed, 31 Dec 2025 23:59:59 GMT"], 250),
        ("a date of the last century", ["Sunday, 06-Nov-94 08:49:37 GMT"], 250),
        ("two dates", ["Thu, 01 Jan 2026 00:00:30 GMT, Thu, 01 Jan 2026 00:00:40 GMT"], 40_000),
        ("a date and seconds", ["Thu, 01 Jan 2026 00:00:30 GMT", "40"], 40_000),
        ("a date of no month", ["Thu, 01 Foo 2026 00:00:30 GMT"], 250),
        ("a date of no day", ["Thu, 32 Jan 2026 00:00:30 GMT"], 250),
        ("a date elsewhere", ["Thu, 01 Jan 2026 00:00:30 CET"], 250),
    ]:
        retried(f"Retry-After {name}", asking(*values), waits(least))
    retried("Retry-After by the service's own clock", asking("Sun, 06 Nov 1994 08:50:07 GMT", date="Sun, 06 Nov 1994 08:49:37 GMT"), waits(30_000))
    retried("Retry-After by a clock that is none", asking("Thu, 01 Jan 2026 00:00:30 GMT", date="now"), waits(30_000))
    for name, values, date, seconds in [
        ("seconds", ["61"], None, 61),
        ("a list", ["1, 3600"], None, 3600),
        ("absurd", ["9" * 30], None, 2**53 - 1),
        ("a date", ["Thu, 01 Jan 2026 01:00:00 GMT"], None, 3600),
        ("a date by the service's clock", ["Sun, 06 Nov 1994 08:51:37 GMT"], "Sun, 06 Nov 1994 08:49:37 GMT", 120),
    ]:
        for code in (429, 503):
            later = error("retry_later", status=code, retry_after=seconds)
            steps = [fetch, send(metrics_request(), asking(*values, date=date, code=code))]
            exchange(f"retry later: {name}, status {code}", CONTROL, (DELIVERY, steps, later))
    steps = [send(control_request(), asking("3600", code=429))]
    exchange("retry later: the token endpoint", CONTROL, (DELIVERY, steps, error("retry_later", status=429, retry_after=3600)))
    steps = [fetch, send(metrics_request(), asking("5"))]
    exchange("retry later: an error says so in any case", ONCE, (DELIVERY, steps, error("server_error", status=503, retry_after=5)))

    # The wait that the service asks for is every call's.
    asked = [fetch, send(metrics_request(), asking("5"))]
    held = [waits(5_000, 5_000), query]
    exchange("retry: the next call waits, too", ONCE, (DELIVERY, asked, error("server_error", status=503, retry_after=5)), (DELIVERY, held, table_one))
    asked = [send(control_request(), asking("5"))]
    held = [waits(5_000, 5_000), fetch, query]
    exchange(
        "retry: the next call for a token waits, too", ONCE, (DELIVERY, asked, error("server_error", status=503, retry_after=5)), (DELIVERY, held, table_one)
    )


# --- tables: what a CountTable does -------------------------------------------------------------

tables = []


def operation(name, start, op, expected):
    if "code" in expected:
        outcome = {"error": expected}
    elif "format" in expected:
        outcome = {"table": expected}
    else:
        outcome = expected
    tables.append({"name": name, "given": start, **op, **outcome})


def table_vectors():
    rows = [(["a", "x"], (5, 1, 0)), (["a", "y"], (1, 1, 0)), (["b", "x"], (3, 0, 7)), (["c", ""], (0, 1, 2))]
    dims = ["integration", "reason"]
    base = table(dims, window(rows, reported=(9, 3, 9)), totals=(9, 3, 9), metric="event_delivery")

    def same(rows, *, dims=dims, reported=(9, 3, 9), totals=(9, 3, 9), **filtered_by):
        return table(dims, window(rows, reported=reported), totals=totals, metric="event_delivery", **filtered_by)

    operation(
        "group by the first", base, {"group_by": ["integration"]}, same([(["a"], (6, 2, 0)), (["b"], (3, 0, 7)), (["c"], (0, 1, 2))], dims=["integration"])
    )
    operation("group by the second", base, {"group_by": ["reason"]}, same([([""], (0, 1, 2)), (["x"], (8, 1, 7)), (["y"], (1, 1, 0))], dims=["reason"]))
    turned = [(["", "c"], (0, 1, 2)), (["x", "a"], (5, 1, 0)), (["x", "b"], (3, 0, 7)), (["y", "a"], (1, 1, 0))]
    operation("group by both, turned", base, {"group_by": ["reason", "integration"]}, same(turned, dims=["reason", "integration"]))
    operation("group by none", base, {"group_by": []}, same([([], (9, 3, 9))], dims=[]))
    operation("group by another", base, {"group_by": ["write_key"]}, error("unknown_dimension", argument="group_by"))
    operation("group by no dimension", base, {"group_by": ["integrations"]}, error("unknown_dimension", argument="group_by"))
    operation("group by one twice", base, {"group_by": ["reason", "reason"]}, error("repeated_dimension", argument="group_by"))
    operation("filter one value", base, {"filter": {"integration": ["a"]}}, same(rows[:2], reported=None, totals=(6, 2, 0), integration=["a"]))
    operation("filter two values", base, {"filter": {"integration": ["c", "b"]}}, same(rows[2:], reported=None, totals=(3, 1, 9), integration=["b", "c"]))
    operation(
        "filter both",
        base,
        {"filter": {"integration": ["a"], "reason": ["x", ""]}},
        same(rows[:1], reported=None, totals=(5, 1, 0), integration=["a"], reason=["", "x"]),
    )
    operation("filter what is not there", base, {"filter": {"reason": ["z"]}}, same([], reported=None, totals=(0, 0, 0), reason=["z"]))
    operation("filter by no value", base, {"filter": {"reason": []}}, same([], reported=None, totals=(0, 0, 0), reason=[]))
    operation("filter another dimension", base, {"filter": {"write_key": ["k"]}}, error("unknown_dimension", argument="filter"))
    operation("filter by nothing", base, {"filter": {}}, base)
    of_a = same(rows[:2], reported=None, totals=(6, 2, 0), integration=["a"])
    operation(
        "filter what was filtered",
        of_a,
        {"filter": {"integration": ["b", "a"], "reason": ["y"]}},
        same(rows[1:2], reported=None, totals=(1, 1, 0), integration=["a"], reason=["y"]),
    )
    operation(
        "a filter outlives its dimension",
        of_a,
        {"group_by": ["reason"]},
        same([(["x"], (5, 1, 0)), (["y"], (1, 1, 0))], dims=["reason"], reported=None, totals=(6, 2, 0), integration=["a"]),
    )
    ranked = [("errors", [0, 1, 3]), ("success", [0, 2, 1]), ("filtered", [2, 3, 0])]
    ranked += [("undelivered", [2, 3, 0]), ("error_rate", [3, 1, 0]), ("filtered_rate", [2, 3, 0])]
    for by, order in ranked:
        operation(f"top 3 by {by}", base, {"top": {"n": 3, "by": by}}, {"rows": order})
    operation("top 0", base, {"top": {"n": 0, "by": "errors"}}, {"rows": []})
    operation("top of more than there are", base, {"top": {"n": 100, "by": "errors"}}, {"rows": [0, 1, 3, 2]})
    operation("top by a slip", base, {"top": {"n": 1, "bye": "errors"}}, error("unknown_argument", argument="bye"))
    operation("top by no count", base, {"top": {"n": 1, "by": "total"}}, error("invalid_argument", argument="by"))

    def part(name, number, start=START, end=MID):
        return window([([name], (number, 0, 0))], reported=(number, 0, 0), start=start, end=end)

    def of(*windows, total, dims=("integration",), metric=None):
        return table(list(dims), *windows, totals=(total, 0, 0), metric=metric)

    first, second = of(part("a", 1), total=1), of(part("b", 2, MID, END), total=2)
    merged = of(part("a", 1), part("b", 2, MID, END), total=3)
    operation("merge with the next", first, {"merge": second}, merged)
    operation("merge with the one before", second, {"merge": first}, merged)
    operation("merge with itself", first, {"merge": first}, error("overlapping_coverage", argument="other"))
    operation("merge over a part", merged, {"merge": first}, error("overlapping_coverage", argument="other"))
    operation("replace a part", merged, {"merge": of(part("c", 9), total=9), "replace": True}, of(part("c", 9), part("b", 2, MID, END), total=11))
    operation("replace everything", merged, {"merge": of(part("c", 9, START, END), total=9), "replace": True}, of(part("c", 9, START, END), total=9))
    operation(
        "replace half a window", of(part("c", 9, START, END), total=9), {"merge": first, "replace": True}, error("overlapping_coverage", argument="other")
    )
    other = of(part("x", 1, MID, END), total=1, dims=["reason"])
    operation("merge other dimensions", first, {"merge": other}, error("incompatible_tables", argument="other"))
    delivery = of(part("a", 1, MID, END), total=1, metric="event_delivery")
    operation("merge another metric", first, {"merge": delivery}, error("incompatible_tables", argument="other"))
    part_of_next = table(["integration"], part("b", 2, MID, END) | {"reported": None}, totals=(2, 0, 0), integration=["b"])
    operation("merge with what was filtered", first, {"merge": part_of_next}, error("incompatible_tables", argument="other"))
    operation("replace by what was filtered", merged, {"merge": part_of_next, "replace": True}, error("incompatible_tables", argument="other"))
    most = 2**64 - 1
    huge = {"reported": counts(most, 0, 0)}
    operation(
        "merge reported totals past the largest",
        of(part("a", 1) | huge, total=1),
        {"merge": of(part("b", 2, MID, END) | huge, total=2)},
        of(part("a", 1) | huge, part("b", 2, MID, END) | huge, total=3),
    )
    for name, left, right in [("2^53 + 1", 2**53, 1), ("2^64 - 1", most - 1, 1)]:
        before, after = part("a", left), part("a", right, MID, END)
        operation(
            f"merge to {name}",
            of(before, total=left),
            {"merge": of(after, total=right)},
            of(before, after, total=left + right),
        )
    operation("merge past the largest", of(part("a", most), total=most), {"merge": of(part("a", 1, MID, END), total=1)}, error("sum_overflow"))
    operation("reconciliation: balanced", base, {"reconciliation": None}, {"verdict": "balanced"})
    off = table(["integration"], window([(["a"], (1, 2, 3))], reported=(0, most, 3)), totals=(1, 2, 3))
    differences = {"success": "-1", "errors": str(most - 2), "filtered": "0"}
    operation("reconciliation: off", off, {"reconciliation": None}, {"verdict": "unbalanced", "differences": differences})
    operation("reconciliation: unavailable", same(rows, reported=None), {"reconciliation": None}, {"verdict": "unavailable"})
    operation("coverage joins windows that meet", merged, {"coverage": None}, {"windows": [[START, END]]})
    apart = of(part("a", 1), part("b", 2, END, "2026-01-01T00:45:00Z"), total=3)
    operation("coverage shows a gap", apart, {"coverage": None}, {"windows": [[START, MID], [END, "2026-01-01T00:45:00Z"]]})

    def load(name, change, path):
        saved = json.loads(json.dumps(base))
        change(saved)
        operation(f"from JSON: {name}", saved, {"load": None}, error("invalid_table", path=path))

    def assign(*keys, value):
        def change(saved):
            for key in keys[:-1]:
                saved = saved[key]
            saved[keys[-1]] = value

        return change

    load("another format", assign("format", value="tallyfold-table/3"), "$.format")
    load("a changed count", assign("windows", 0, "rows", 0, "success", value="6"), "$.totals")
    load("a changed total", assign("totals", "errors", value="4"), "$.totals")
    load("a sign", assign("windows", 0, "rows", 0, "success", value="+5"), "$.windows[0].rows[0].success")
    load("a repeated row", lambda saved: saved["windows"][0]["rows"].append(saved["windows"][0]["rows"][0]), "$.windows[0].rows[4]")
    load("a value too few", assign("windows", 0, "rows", 1, "values", value=["a"]), "$.windows[0].rows[1]")
    load("no windows", assign("windows", value=[]), "$.windows")
    load("windows that overlap", lambda saved: saved["windows"].append(saved["windows"][0]), "$.windows[1].start")
    load("a window without a zone", assign("windows", 0, "end", value="2026-01-01T00:15:00"), "$.windows[0]")
    load("an unknown dimension", assign("dimensions", 0, value="user"), "$.dimensions")
    load("a reason of ingestion", assign("metric", value="event_ingestion"), "$.dimensions")
    load("a filter that is not sorted", assign("filter", value=[{"dimension": "reason", "values": ["b", "a"]}]), "$.filter[0]")
    load("a filter of an unknown dimension", assign("filter", value=[{"dimension": "user", "values": []}]), "$.filter[0].dimension")
    load("an unknown metric", assign("metric", value="event_delivered"), "$.metric")


# --- series: a table's counts by window ---------------------------------------------------------

series = []


def by_window(name, tables, step, expected, **more):
    outcome = {"error": expected} if "code" in expected else {"series": expected}
    series.append({"name": name, "tables": tables, **more, "step": step, **outcome})


def at(clock, day="2026-01-01"):
    return f"{day}T{clock}Z"


def covering(start, end, *rows, dims=("integration",), metric=None, **filtered_by):
    """A saved table of one window. Rows are pairs of values and counts."""
    totals = [sum(numbers[count] for _, numbers in rows) for count in range(3)]
    rows = window(rows, reported=None if filtered_by else totals, start=start, end=end)
    return table(list(dims), rows, totals=totals, metric=metric, **filtered_by)


def bucket(start, end, *rows, complete=True, provisional=False):
    rows = [{"values": values, **counts(*numbers)} for values, numbers in rows]
    marks = {"complete": complete} | ({"provisional": True} if provisional else {})
    return {"start": start, "end": end, **marks, "rows": rows}


def of_series(step, *windows, totals, dims=("integration",), metric=None, zone=None, **filtered_by):
    return {
        "format": "tallyfold-series/1",
        "metric": metric,
        "dimensions": list(dims),
        "filter": [{"dimension": name, "values": values} for name, values in filtered_by.items()],
        "step": step,
        **({"zone": zone} if zone else {}),
        "totals": counts(*totals),
        "windows": list(windows),
    }


def series_vectors():
    most = 2**64 - 1
    t9, t915, t930, t945, t10 = (at(clock) for clock in ("09:00:00", "09:15:00", "09:30:00", "09:45:00", "10:00:00"))
    first = covering(t9, t915, (["a"], (5, 1, 0)), (["b"], (3, 0, 7)))
    second = covering(t915, t930, (["b"], (1, 1, 1)), (["c"], (2, 0, 0)))
    third = covering(t930, t945)
    fourth = covering(t945, t10, (["a"], (10, 0, 0)))
    hour = [first, second, third, fourth]
    quarters = [
        bucket(t9, t915, (["a"], (5, 1, 0)), (["b"], (3, 0, 7))),
        bucket(t915, t930, (["b"], (1, 1, 1)), (["c"], (2, 0, 0))),
        bucket(t930, t945),
        bucket(t945, t10, (["a"], (10, 0, 0))),
    ]
    all_rows = [(["a"], (15, 1, 0)), (["b"], (4, 1, 8)), (["c"], (2, 0, 0))]
    totals = (21, 2, 8)
    by_window("one response", [first], None, of_series(None, quarters[0], totals=(8, 1, 7)))
    by_window("the windows of the responses, one without rows", hour, None, of_series(None, *quarters, totals=totals))
    by_window("a step as long as the windows", hour, "15m", of_series("15m", *quarters, totals=totals))
    by_window("merged out of order", [hour[at] for at in (2, 0, 3, 1)], "15m", of_series("15m", *quarters, totals=totals))
    late = [first, second, third, provisional(fourth)]
    last = bucket(t945, t10, (["a"], (10, 0, 0)), provisional=True)
    by_window("a window that may still change", late, None, of_series(None, *quarters[:3], last, totals=totals))
    by_window("an hour with a window that may still change", late, "1h", of_series("1h", bucket(t9, t10, *all_rows, provisional=True), totals=totals))
    by_window(
        "grouped, and half an hour that may still change",
        late,
        "30m",
        of_series("30m", bucket(t9, t930, ([], (11, 2, 8))), bucket(t930, t10, ([], (10, 0, 0)), provisional=True), totals=totals, dims=()),
        group_by=[],
    )
    by_window("an hour of quarters", hour, "1h", of_series("1h", bucket(t9, t10, *all_rows), totals=totals))
    by_window("the same hour in minutes", hour, "60m", of_series("1h", bucket(t9, t10, *all_rows), totals=totals))
    by_window("the same hour in seconds, merged out of order", hour[::-1], "3600s", of_series("1h", bucket(t9, t10, *all_rows), totals=totals))
    halves = [
        bucket(t9, t930, (["a"], (5, 1, 0)), (["b"], (4, 1, 8)), (["c"], (2, 0, 0))),
        bucket(t930, t10, (["a"], (10, 0, 0))),
    ]
    by_window("windows that meet at the edge of a step", hour, "30m", of_series("30m", *halves, totals=totals))
    part = bucket(at("00:00:00"), at("00:00:00", "2026-01-02"), *all_rows, complete=False)
    by_window("a day of which an hour is covered", hour, "1d", of_series("1d", part, totals=totals))
    by_window("24 hours are a day", hour, "24h", of_series("1d", part, totals=totals))
    by_window(
        "90 minutes stay minutes",
        [first],
        "90m",
        of_series("90m", bucket(t9, at("10:30:00"), *[(["a"], (5, 1, 0)), (["b"], (3, 0, 7))], complete=False), totals=(8, 1, 7)),
    )
    by_window(
        "an hour with a hole",
        [first, fourth],
        "1h",
        of_series("1h", bucket(t9, t10, (["a"], (15, 1, 0)), (["b"], (3, 0, 7)), complete=False), totals=(18, 1, 7)),
    )
    by_window(
        "hours apart: what nothing is known of is no window",
        [first, covering(at("11:00:00"), at("12:00:00"), (["a"], (1, 0, 0)))],
        "1h",
        of_series(
            "1h",
            bucket(t9, t10, (["a"], (5, 1, 0)), (["b"], (3, 0, 7)), complete=False),
            bucket(at("11:00:00"), at("12:00:00"), (["a"], (1, 0, 0))),
            totals=(9, 1, 7),
        ),
    )
    fives = [covering(at(f"09:{minute:02}:00"), at(f"09:{minute + 5:02}:00"), (["a"], (minute, 1, 0))) for minute in (0, 5, 10, 15)]
    by_window(
        "5 minutes",
        fives,
        "5m",
        of_series(
            "5m",
            bucket(t9, at("09:05:00"), (["a"], (0, 1, 0))),
            bucket(at("09:05:00"), at("09:10:00"), (["a"], (5, 1, 0))),
            bucket(at("09:10:00"), t915, (["a"], (10, 1, 0))),
            bucket(t915, at("09:20:00"), (["a"], (15, 1, 0))),
            totals=(30, 4, 0),
        ),
    )
    by_window(
        "quarters of 5 minutes, the last one not whole",
        fives,
        "15m",
        of_series("15m", bucket(t9, t915, (["a"], (15, 3, 0))), bucket(t915, t930, (["a"], (15, 1, 0)), complete=False), totals=(30, 4, 0)),
    )
    new_year, day = at("00:00:00"), "2026-01-02"
    by_window(
        "days that meet at midnight",
        [covering(at("23:00:00", "2025-12-31"), new_year, (["a"], (1, 0, 0))), covering(new_year, at("00:00:00", day), (["a"], (2, 0, 0)))],
        "1d",
        of_series(
            "1d",
            bucket(at("00:00:00", "2025-12-31"), new_year, (["a"], (1, 0, 0)), complete=False),
            bucket(new_year, at("00:00:00", day), (["a"], (2, 0, 0))),
            totals=(3, 0, 0),
        ),
    )
    before_1970 = covering(at("23:59:59.999999999", "1969-12-31"), at("00:00:00", "1970-01-01"), (["a"], (1, 0, 0)))
    by_window(
        "the last nanosecond before 1970",
        [before_1970],
        "15m",
        of_series("15m", bucket(at("23:45:00", "1969-12-31"), at("00:00:00", "1970-01-01"), (["a"], (1, 0, 0)), complete=False), totals=(1, 0, 0)),
    )
    by_window("a response without rows", [third], None, of_series(None, bucket(t930, t945), totals=(0, 0, 0)))
    by_window("a step without rows", [third], "1h", of_series("1h", bucket(t9, t10, complete=False), totals=(0, 0, 0)))
    zeros = covering(t9, t915, (["a"], (0, 0, 0)))
    by_window("a row of zeros is a row", [zeros], "15m", of_series("15m", bucket(t9, t915, (["a"], (0, 0, 0))), totals=(0, 0, 0)))

    # Windows that can't be cut.
    unaligned = error("unaligned_window", argument="step")
    by_window("a window longer than the step", [covering(t9, t10)], "15m", unaligned)
    by_window("a window over the edge of the step", [covering(at("09:10:00"), at("09:20:00"))], "15m", unaligned)
    by_window("a nanosecond over the edge", [covering(t9, at("09:15:00.000000001"))], "15m", unaligned)
    by_window("a second window over the edge", [first, covering(t945, at("10:00:00.500"))], "1h", unaligned)
    by_window("a window over midnight", [covering(at("23:00:00", "2025-12-31"), at("01:00:00"))], "1d", unaligned)
    last = covering(at("23:00:00", "9999-12-31"), at("23:30:00", "9999-12-31"))
    by_window("a step that ends after the year 9999", [last], "1h", unaligned)
    by_window("the last step but one", [last], "30m", of_series("30m", bucket(at("23:00:00", "9999-12-31"), at("23:30:00", "9999-12-31")), totals=(0, 0, 0)))

    # Steps.
    for step in [
        "",
        "m",
        "5",
        "0m",
        "7m",
        "25h",
        "2d",
        "-5m",
        "+5m",
        "5 m",
        "5M",
        "5min",
        "1.5h",
        "1h30m",
        "١m",
        f"{2**64}s",
        "922337203685477581m",
        "16012798675095097d",
    ]:
        by_window(f"no step: {step!r}", [first], step, error("invalid_argument", argument="step"))

    # What was done to the table before.
    by_window(
        "filtered",
        hour,
        "1h",
        of_series("1h", bucket(t9, t10, (["b"], (4, 1, 8)), (["c"], (2, 0, 0))), totals=(6, 1, 8), integration=["b", "c"]),
        filter={"integration": ["c", "b"]},
    )
    by_window(
        "filtered, and a window without any of it",
        hour[:2],
        None,
        of_series(None, bucket(t9, t915), bucket(t915, t930, (["c"], (2, 0, 0))), totals=(2, 0, 0), integration=["c"]),
        filter={"integration": ["c"]},
    )
    dims = ("write_key", "integration")
    two = [
        covering(t9, t915, (["k", "z"], (1, 2, 3)), (["l", "a"], (1, 0, 0)), (["l", "z"], (4, 0, 0)), dims=dims, metric="event_delivery"),
        covering(t915, t930, (["k", "a"], (5, 0, 0)), (["k", "z"], (10, 20, 30)), dims=dims, metric="event_delivery"),
    ]
    both = bucket(t9, t930, (["k", "a"], (5, 0, 0)), (["k", "z"], (11, 22, 33)), (["l", "a"], (1, 0, 0)), (["l", "z"], (4, 0, 0)))
    of_two = {"totals": (21, 22, 33), "metric": "event_delivery"}
    by_window("two dimensions", two, "30m", of_series("30m", both, dims=dims, **of_two))
    grouped = [bucket(t9, t915, (["a"], (1, 0, 0)), (["z"], (5, 2, 3))), bucket(t915, t930, (["a"], (5, 0, 0)), (["z"], (10, 20, 30)))]
    by_window("grouped by one", two, None, of_series(None, *grouped, **of_two), group_by=["integration"])
    turned = bucket(t9, t930, (["a", "k"], (5, 0, 0)), (["a", "l"], (1, 0, 0)), (["z", "k"], (11, 22, 33)), (["z", "l"], (4, 0, 0)))
    by_window("grouped by both, turned", two, "30m", of_series("30m", turned, dims=dims[::-1], **of_two), group_by=list(dims[::-1]))
    alone = [bucket(t9, t915, ([], (6, 2, 3))), bucket(t915, t930, ([], (15, 20, 30)))]
    by_window("grouped by none", two, "15m", of_series("15m", *alone, dims=(), **of_two), group_by=[])
    together = bucket(t9, t930, ([], (21, 22, 33)))
    by_window("grouped by none, in one step", two, "30m", of_series("30m", together, dims=(), **of_two), group_by=[])
    letters = [
        covering(t9, t915, (["é"], (1, 0, 0)), (["日本"], (2, 0, 0)), (["😀"], (3, 0, 0))),
        covering(t915, t930, ([""], (4, 0, 0)), (["日本"], (5, 0, 0))),
    ]
    by_window(
        "values are sorted by their bytes in every window",
        letters,
        "1h",
        of_series("1h", bucket(t9, t10, ([""], (4, 0, 0)), (["é"], (1, 0, 0)), (["日本"], (7, 0, 0)), (["😀"], (3, 0, 0)), complete=False), totals=(15, 0, 0)),
    )

    # Large sums.
    for name, left, right in [("2^53 + 1", 2**53, 1), ("2^64 - 1", most - 1, 1)]:
        by_window(
            f"a sum of {name}",
            [covering(t9, t915, (["a"], (left, 0, 0))), covering(t915, t930, (["a"], (right, 0, 0)))],
            "30m",
            of_series("30m", bucket(t9, t930, (["a"], (left + right, 0, 0))), totals=(left + right, 0, 0)),
        )
    by_window(
        "the largest of each",
        [covering(t9, t915, (["a"], (most, 0, 0))), covering(t915, t930, (["a"], (0, most, 0)), (["b"], (0, 0, most)))],
        "1h",
        of_series("1h", bucket(t9, t10, (["a"], (most, most, 0)), (["b"], (0, 0, most)), complete=False), totals=(most, most, most)),
    )
    by_window(
        "a sum past the largest fails as the tables are merged",
        [covering(t9, t915, (["a"], (most, 0, 0))), covering(t915, t930, (["a"], (1, 0, 0)))],
        None,
        error("sum_overflow"),
    )


# --- series of the days of time zones ---------------------------------------------------------------


def zone_vectors():
    def days_of(zone, name, *midnights, windows=None):
        """Days of a zone. The table has the first and the last second of each, or `windows`."""
        pairs = list(itertools.pairwise(midnights))
        ends = [[(start, later(start, 1)), (later(end, -1), end)] for start, end in pairs]
        windows = windows or [window for pair in ends for window in pair]
        tables = [covering(*window, ([str(number)], (number, 1, 0))) for number, window in enumerate(windows)]
        days = []
        for start, end in pairs:
            inside = [number for number, window in enumerate(windows) if start <= window[0] < end]
            rows = [([str(number)], (number, 1, 0)) for number in inside]
            days.append(bucket(start, end, *rows, complete=[windows[number] for number in inside] == [(start, end)]))
        totals = (sum(range(len(windows))), len(windows), 0)
        expected = of_series("1d", *days, totals=totals, zone=zone)
        by_window(f"{zone}: {name}", tables, "1d", expected, zone=zone, midnights=list(midnights))

    def later(text, seconds):
        return (datetime.fromisoformat(text) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    new_york = "America/New_York"
    spring = [at("05:00:00", "2026-03-08"), at("04:00:00", "2026-03-09"), at("04:00:00", "2026-03-10")]
    days_of(new_york, "a day of 23 hours", *spring)
    days_of(new_york, "a day of 25 hours", at("04:00:00", "2026-11-01"), at("05:00:00", "2026-11-02"), at("05:00:00", "2026-11-03"))
    days_of(new_york, "a whole day of 23 hours", *spring[:2], windows=[tuple(spring[:2])])
    kolkata = [at("18:30:00", f"2026-03-0{day}") for day in (1, 2, 3)]
    days_of("Asia/Kolkata", "days that begin at half past", *kolkata)
    days_of("Asia/Kathmandu", "days that begin at a quarter past", at("18:15:00", "2026-03-01"), at("18:15:00", "2026-03-02"))
    lord_howe = "Australia/Lord_Howe"
    days_of(lord_howe, "a day of 24 and a half hours", at("13:00:00", "2026-04-04"), at("13:30:00", "2026-04-05"), at("13:30:00", "2026-04-06"))
    days_of(lord_howe, "a day of 23 and a half hours", at("13:30:00", "2026-10-03"), at("13:00:00", "2026-10-04"), at("13:00:00", "2026-10-05"))
    santiago = "America/Santiago"
    days_of(santiago, "a midnight that does not exist", at("04:00:00", "2026-09-05"), at("04:00:00", "2026-09-06"), at("03:00:00", "2026-09-07"))
    days_of(santiago, "the hour before midnight twice", at("03:00:00", "2026-04-04"), at("04:00:00", "2026-04-05"), at("04:00:00", "2026-04-06"))
    days_of("America/Havana", "a midnight that exists twice", at("04:00:00", "2026-11-01"), at("05:00:00", "2026-11-02"))
    days_of(
        "America/Toronto",
        "a midnight within an hour that does not exist",
        at("05:00:00", "1919-03-30"),
        at("04:30:00", "1919-03-31"),
        at("04:00:00", "1919-04-01"),
    )
    days_of(
        "America/St_Johns",
        "the clocks go back a minute after midnight",
        at("02:30:00", "2010-11-06"),
        at("02:30:00", "2010-11-07"),
        at("03:30:00", "2010-11-08"),
    )
    days_of("Pacific/Apia", "a date that does not exist", *(at("10:00:00", f"2011-12-{day}") for day in (29, 30, 31)))
    days_of("Pacific/Kiritimati", "14 hours ahead", at("10:00:00", "2026-03-01"), at("10:00:00", "2026-03-02"))
    days_of("Pacific/Pago_Pago", "11 hours behind", at("11:00:00", "2026-03-01"), at("11:00:00", "2026-03-02"))
    days_of("UTC", "its days", at("00:00:00", "2026-03-01"), at("00:00:00", "2026-03-02"))
    days_of("Africa/Cairo", "before 1970", at("22:00:00", "1969-12-30"), at("22:00:00", "1969-12-31"), at("22:00:00", "1970-01-01"))
    tokyo = [at("15:00:00", f"2026-01-0{day}") for day in (1, 2, 3)]
    days_of("Asia/Tokyo", "part of a day", *tokyo[:2], windows=[(at("20:00:00"), at("21:00:00.000000001"))])
    days_of("Asia/Tokyo", "a nanosecond of a day", *tokyo, windows=[(at("20:00:00"), at("21:00:00")), (tokyo[1], at("15:00:00.000000001", "2026-01-02"))])

    hour = covering(at("12:00:00", "2026-03-02"), at("13:00:00", "2026-03-02"), (["a"], (7, 0, 0)))
    part = bucket(*kolkata[:2], (["a"], (7, 0, 0)), complete=False)
    of_kolkata = {"zone": "Asia/Kolkata", "midnights": kolkata}
    by_window("24 hours are a day of a zone, too", [hour], "24h", of_series("1d", part, totals=(7, 0, 0), zone="Asia/Kolkata"), **of_kolkata)
    cut = covering(at("18:00:00", "2026-03-02"), at("19:00:00", "2026-03-02"))
    by_window("an hour over the midnight of a zone", [hour, cut], "1d", error("unaligned_window", argument="zone"), **of_kolkata)
    by_window("hours of a zone", [hour], "1h", error("invalid_argument", argument="zone"), **of_kolkata)
    by_window("windows of a zone", [hour], None, error("invalid_argument", argument="zone"), **of_kolkata)


# --- slices of time --------------------------------------------------------------------------------


def slice_vectors():
    t9, t915, t930, t945, t10 = (at(clock) for clock in ("09:00:00", "09:15:00", "09:30:00", "09:45:00", "10:00:00"))
    edges = (t9, t915, t930, t945, t10)
    rows = [[(["a"], (5, 1, 0)), (["b"], (3, 0, 7))], [(["b"], (1, 1, 1)), (["c"], (2, 0, 0))], [], [(["a"], (10, 0, 0))]]
    quarters = [covering(*edges[number : number + 2], *rows[number]) for number in range(4)]

    def of(*numbers):
        """The table of some of the quarters."""
        windows = [quarters[number]["windows"][0] for number in numbers]
        totals = [sum(int(row[count]) for one in windows for row in one["rows"]) for count in ("success", "errors", "filtered")]
        return table(["integration"], *windows, totals=totals)

    hour = of(0, 1, 2, 3)

    def between(name, start, end, expected, given=hour):
        operation(f"between: {name}", given, {"between": [start, end]}, expected)

    between("all", t9, t10, hour)
    between("more than all", at("00:00:00"), at("00:00:00", "2026-01-02"), hour)
    between("the first half", t9, t930, of(0, 1))
    between("a quarter without rows", t930, t945, of(2))
    between("offsets from UTC", "2026-01-01T10:30:00+01:00", "2026-01-01T11:00:00+01:00", of(2, 3))
    between("a gap counts for nothing", t9, t945, of(0), given=of(0, 3))
    marked = provisional(of(2, 3), t945)
    between("marks stay", t945, t10, provisional(of(3)), given=marked)
    filtered = table(["integration"], *({**one, "reported": None} for one in of(0, 3)["windows"]), totals=(18, 1, 7), integration=["a", "b"])
    kept = table(["integration"], {**of(3)["windows"][0], "reported": None}, totals=(10, 0, 0), integration=["a", "b"])
    between("filters stay", t930, t10, kept, given=filtered)
    between("a window over the start", at("09:10:00"), t10, error("unaligned_window", argument="start"))
    between("a window over the end", t9, at("09:40:00"), error("unaligned_window", argument="end"))
    between("a nanosecond less", t9, at("09:59:59.999999999"), error("unaligned_window", argument="end"))
    between("a window over both", at("09:05:00"), at("09:10:00"), error("unaligned_window", argument="start"))
    between("nothing of it", t10, at("11:00:00"), error("invalid_window", argument="start"))
    between("a gap", t915, t945, error("invalid_window", argument="start"), given=of(0, 3))
    between("no range", t10, t9, error("invalid_window", argument="start"))
    between("no time", "9:00", t10, error("invalid_timestamp", argument="start"))
    between("no end", t9, "soon", error("invalid_timestamp", argument="end"))

    first, second, third, fourth = (bucket(*edges[number : number + 2], *rows[number]) for number in range(4))

    def sliced(name, start, end, expected, step=None, tables=quarters, **more):
        by_window(f"between: {name}", tables, step, expected, between=[start, end], **more)

    sliced("all windows", t9, t10, of_series(None, first, second, third, fourth, totals=(21, 2, 8)))
    sliced("two windows", t915, t945, of_series(None, second, third, totals=(3, 1, 1)))
    sliced("a window without rows", t930, t945, of_series(None, third, totals=(0, 0, 0)))
    half = bucket(t930, t10, (["a"], (10, 0, 0)))
    sliced("the second of two halves", t930, at("10:15:00"), of_series("30m", half, totals=(10, 0, 0)), step="30m")
    part = bucket(t9, t10, *rows[0], complete=False)
    sliced("a part of a step", t9, t915, of_series("1h", part, totals=(8, 1, 7)), step="1h")
    filled = [bucket(t9, t915, *rows[0], (["c"], (0, 0, 0))), bucket(t915, t930, (["a"], (0, 0, 0)), *rows[1])]
    sliced("filled", t9, t930, of_series(None, *filled, totals=(11, 2, 8)), filled=True)
    sliced("filled with what the slice has", t9, t915, of_series(None, first, totals=(8, 1, 7)), filled=True)
    sliced("a window over the end", t9, at("09:40:00"), error("unaligned_window", argument="end"), step="30m")
    sliced("nothing", t10, at("11:00:00"), error("invalid_window", argument="start"))
    kolkata = [at("18:30:00", f"2026-03-0{day}") for day in (1, 2, 3)]
    days = [covering(*pair, (["a"], (1, 0, 0))) for pair in itertools.pairwise(kolkata)]
    day = of_series("1d", bucket(*kolkata[1:], (["a"], (1, 0, 0))), totals=(1, 0, 0), zone="Asia/Kolkata")
    sliced("a day of a zone", *kolkata[1:], day, step="1d", tables=days, zone="Asia/Kolkata", midnights=kolkata)


# --- rates --------------------------------------------------------------------------------------

rates = []


def rated(name, *rows, totals):
    """Each row: its counts and its three rates, as the shortest decimals of the nearest floats."""
    names = ("delivery", "error", "filter")
    for (success, errors, filtered), texts in rows:
        # Python divides whole numbers exactly and rounds once: a second opinion.
        wholes = (success + errors, success + errors, success + errors + filtered)
        for part, whole, text in zip((success, errors, filtered), wholes, texts, strict=True):
            assert (part / whole if whole else None) == (text and float(text)), (name, text)
    given = covering(START, MID, *(([f"{place:02}"], numbers) for place, (numbers, _) in enumerate(rows)))
    of_rows = [dict(zip(names, texts, strict=True)) for _, texts in rows]
    rates.append({"name": name, "given": given, "rates": of_rows, "totals": dict(zip(names, totals, strict=True))})


def rate_vectors():
    most = 2**64 - 1
    nothing = (None, None, None)
    rated("no rows have no rates", totals=nothing)
    rated("zeros have no rates", ((0, 0, 0), nothing), totals=nothing)
    rated("filtered events alone", ((0, 0, 9), (None, None, "1")), totals=(None, None, "1"))
    rated("all delivered", ((5, 0, 0), ("1", "0", "0")), totals=("1", "0", "0"))
    rated("all failed", ((0, 5, 0), ("0", "1", "0")), totals=("0", "1", "0"))
    rated("filtered events do not count as sent", ((3, 1, 4), ("0.75", "0.25", "0.5")), totals=("0.75", "0.25", "0.5"))
    rated(
        "totals have their own",
        ((1, 0, 0), ("1", "0", "0")),
        ((0, 2, 0), ("0", "1", "0")),
        ((0, 0, 3), (None, None, "1")),
        totals=("0.3333333333333333", "0.6666666666666666", "0.5"),
    )
    rated("tenths", ((1, 9, 90), ("0.1", "0.9", "0.9")), totals=("0.1", "0.9", "0.9"))
    tiny = "5.421010862427522e-20"
    rated("the largest counts", ((most, 0, 0), ("1", "0", "0")), totals=("1", "0", "0"))
    rated("all the largest", ((most, most, most), ("0.5", "0.5", "0.3333333333333333")), totals=("0.5", "0.5", "0.3333333333333333"))
    rated("one of the most", ((1, most, 0), (tiny, "1", "0")), totals=(tiny, "1", "0"))
    below_one, one_in = "0.9999999999999999", "1.1102230246251565e-16"
    rated("one in 2^53 is seen", ((2**53 - 1, 1, 0), (below_one, one_in, "0")), totals=(below_one, one_in, "0"))
    rated("one in 2^54 is half of what can be seen", ((2**54 - 1, 1, 0), ("1", "5.551115123125783e-17", "0")), totals=("1", "5.551115123125783e-17", "0"))
    rated("two in 2^54 are seen", ((2**54 - 2, 2, 0), (below_one, one_in, "0")), totals=(below_one, one_in, "0"))
    # Rounded to floats first, the counts would give 0.9999999999999996 and 0.3333333333333333.
    rated(
        "three in 2^53, rounded once",
        ((2**53 + 1, 3, 0), ("0.9999999999999997", "3.330669073875468e-16", "0")),
        totals=("0.9999999999999997", "3.330669073875468e-16", "0"),
    )
    third = ("0.33333333333333337", "0.6666666666666666", "0")
    rated("a third, rounded once", ((2**53 + 1, 2**54 + 1, 0), third), totals=third)


# --- comparisons: two tables side by side ---------------------------------------------------------

comparisons = []


def compared(name, before, after, rows, *, shares, totals, coverage=None, dims=("integration",), metric=None, **filtered_by):
    """Each row: its values, and the counts before and after, either of which may be None."""
    nothing = (0, 0, 0)
    deltas = [[new - old for old, new in zip(old or nothing, new or nothing, strict=True)] for _, old, new in rows]
    total = [new - old for old, new in zip(*totals, strict=True)]
    for delta, texts in zip(deltas, shares, strict=True):
        for part, whole, text in zip(delta, total, texts, strict=True):
            assert (part / whole if whole else None) == (text and float(text)), (name, text)
    sides = [
        {"coverage": [{"start": start, "end": end} for start, end in windows], "totals": counts(*numbers)}
        for windows, numbers in zip(coverage or ([(START, MID)], [(MID, END)]), totals, strict=True)
    ]
    presence = {(True, True): "both", (False, True): "new", (True, False): "vanished"}
    shown = [
        {
            "values": values,
            "presence": presence[old is not None, new is not None],
            "before": counts(*old) if old else None,
            "after": counts(*new) if new else None,
            "delta": counts(*delta),
        }
        for (values, old, new), delta in zip(rows, deltas, strict=True)
    ]
    comparison = {
        "format": "tallyfold-comparison/1",
        "metric": metric,
        "dimensions": list(dims),
        "filter": [{"dimension": dimension, "values": values} for dimension, values in filtered_by.items()],
        "before": sides[0],
        "after": sides[1],
        "delta": counts(*total),
        "rows": shown,
    }
    shares = [dict(zip(("success", "errors", "filtered"), texts, strict=True)) for texts in shares]
    comparisons.append({"name": name, "before": before, "after": after, "comparison": comparison, "shares": shares})


def comparison_vectors():
    most = 2**64 - 1
    none = (None, None, None)

    def old(*rows, **more):
        return covering(START, MID, *rows, **more)

    def new(*rows, **more):
        return covering(MID, END, *rows, **more)

    compared(
        "a group of both, a vanished one and a new one",
        old((["a"], (5, 1, 0)), (["b"], (3, 0, 7))),
        new((["b"], (7, 2, 7)), (["c"], (6, 0, 3))),
        [(["a"], (5, 1, 0), None), (["b"], (3, 0, 7), (7, 2, 7)), (["c"], None, (6, 0, 3))],
        totals=[(8, 1, 7), (13, 2, 10)],
        shares=[("-1", "-1", "0"), ("0.8", "2", "0"), ("1.2", "0", "1")],
    )
    same = [(["a"], (5, 1, 0)), (["b"], (3, 0, 7))]
    compared(
        "no change: no shares",
        old(*same),
        new(*same),
        [(values, numbers, numbers) for values, numbers in same],
        totals=[(8, 1, 7), (8, 1, 7)],
        shares=[none, none],
    )
    compared(
        "changes that make up for each other have no shares",
        old((["a"], (5, 1, 0)), (["b"], (0, 2, 0))),
        new((["a"], (0, 2, 0)), (["b"], (5, 1, 0))),
        [(["a"], (5, 1, 0), (0, 2, 0)), (["b"], (0, 2, 0), (5, 1, 0))],
        totals=[(5, 3, 0), (5, 3, 0)],
        shares=[none, none],
    )
    compared(
        "a group that moves against the total",
        old((["a"], (10, 0, 0)), (["b"], (10, 0, 0)), (["c"], (1, 0, 0))),
        new((["a"], (25, 0, 0)), (["b"], (5, 0, 0)), (["c"], (1, 0, 0))),
        [(["a"], (10, 0, 0), (25, 0, 0)), (["b"], (10, 0, 0), (5, 0, 0)), (["c"], (1, 0, 0), (1, 0, 0))],
        totals=[(21, 0, 0), (31, 0, 0)],
        shares=[("1.5", None, None), ("-0.5", None, None), ("0", None, None)],
    )
    compared(
        "a total that falls: a share of it is positive, and none is -0",
        old((["a"], (10, 4, 0)), (["b"], (10, 4, 0)), (["c"], (10, 4, 0)), (["d"], (1, 0, 0))),
        new((["a"], (9, 3, 0)), (["b"], (9, 3, 0)), (["c"], (9, 3, 0)), (["d"], (1, 1, 0))),
        [
            (["a"], (10, 4, 0), (9, 3, 0)),
            (["b"], (10, 4, 0), (9, 3, 0)),
            (["c"], (10, 4, 0), (9, 3, 0)),
            (["d"], (1, 0, 0), (1, 1, 0)),
        ],
        totals=[(31, 12, 0), (28, 10, 0)],
        shares=[("0.3333333333333333", "0.5", None)] * 3 + [("0", "-0.5", None)],
    )
    compared("two empty tables", old(), new(), [], totals=[(0, 0, 0)] * 2, shares=[])
    compared("everything is new", old(), new((["a"], (1, 2, 3))), [(["a"], None, (1, 2, 3))], totals=[(0, 0, 0), (1, 2, 3)], shares=[("1", "1", "1")])
    compared("everything has vanished", old((["a"], (1, 2, 3))), new(), [(["a"], (1, 2, 3), None)], totals=[(1, 2, 3), (0, 0, 0)], shares=[("1", "1", "1")])
    compared(
        "a group of zeros is there",
        old((["a"], (0, 0, 0)), (["b"], (0, 0, 0))),
        new((["b"], (0, 0, 0)), (["c"], (0, 0, 0)), (["d"], (0, 0, 4))),
        [(["a"], (0, 0, 0), None), (["b"], (0, 0, 0), (0, 0, 0)), (["c"], None, (0, 0, 0)), (["d"], None, (0, 0, 4))],
        totals=[(0, 0, 0), (0, 0, 4)],
        shares=[(None, None, "0")] * 3 + [(None, None, "1")],
    )

    # Large changes.
    nothing, all_of_it = (0, 0, 0), (most, most, most)
    compared(
        "from 0 to 2^64 - 1", old((["a"], nothing)), new((["a"], all_of_it)), [(["a"], nothing, all_of_it)], totals=[nothing, all_of_it], shares=[("1",) * 3]
    )
    compared("and back", old((["a"], all_of_it)), new((["a"], nothing)), [(["a"], all_of_it, nothing)], totals=[all_of_it, nothing], shares=[("1",) * 3])
    compared(
        "2^64 - 1 goes from one group to another, and one event comes",
        old((["a"], (most - 1, 0, 0)), (["c"], (0, most, 0))),
        new((["b"], (most, 0, 0)), (["d"], (0, most, 0))),
        [
            (["a"], (most - 1, 0, 0), None),
            (["b"], None, (most, 0, 0)),
            (["c"], (0, most, 0), None),
            (["d"], None, (0, most, 0)),
        ],
        totals=[(most - 1, most, 0), (most, most, 0)],
        shares=[("-18446744073709552000", None, None), ("18446744073709552000", None, None), ("0", None, None), ("0", None, None)],
    )
    # Rounded to floats first, the deltas would give 0.3333333333333333.
    compared(
        "deltas around 2^53 are exact, and shares rounded once",
        old((["a"], (1, 0, 0)), (["b"], (2**54 + 1, 0, 0))),
        new((["a"], (2**53 + 2, 0, 0)), (["b"], (2**55 + 2, 0, 0))),
        [(["a"], (1, 0, 0), (2**53 + 2, 0, 0)), (["b"], (2**54 + 1, 0, 0), (2**55 + 2, 0, 0))],
        totals=[(2**54 + 2, 0, 0), (2**55 + 2**53 + 4, 0, 0)],
        shares=[("0.33333333333333337", None, None), ("0.6666666666666666", None, None)],
    )

    # Time.
    hour = "2026-01-01T01:00:00Z"
    one = [(["a"], (1, 0, 0), (4, 0, 0))]
    plain = {"totals": [(1, 0, 0), (4, 0, 0)], "shares": [("1", None, None)]}
    compared(
        "windows of other lengths", old((["a"], (1, 0, 0))), covering(MID, hour, (["a"], (4, 0, 0))), one, coverage=([(START, MID)], [(MID, hour)]), **plain
    )
    compared(
        "windows that overlap",
        old((["a"], (1, 0, 0))),
        covering(START, hour, (["a"], (4, 0, 0))),
        one,
        coverage=([(START, MID)], [(START, hour)]),
        **plain,
    )
    compared("the same time twice", old((["a"], (1, 0, 0))), old((["a"], (4, 0, 0))), one, coverage=([(START, MID)], [(START, MID)]), **plain)
    several = [window([(["a"], (2, 0, 0))], reported=None, start=start, end=end) for start, end in ((START, MID), (END, hour))]
    compared(
        "windows with a hole between them",
        old((["a"], (1, 0, 0))),
        table(["integration"], *several, totals=(4, 0, 0)),
        one,
        coverage=([(START, MID)], [(START, MID), (END, hour)]),
        **plain,
    )

    # Dimensions.
    dims = ("write_key", "integration")
    more = {"dims": dims, "metric": "event_delivery"}
    compared(
        "two dimensions with other values in each table",
        old((["k", "b"], (1, 0, 0)), (["k", "d"], (2, 0, 0)), (["m", "b"], (3, 0, 0)), **more),
        new((["j", "d"], (4, 0, 0)), (["k", "a"], (5, 0, 0)), (["k", "d"], (6, 0, 0)), (["m", "c"], (7, 0, 0)), **more),
        [
            (["j", "d"], None, (4, 0, 0)),
            (["k", "a"], None, (5, 0, 0)),
            (["k", "b"], (1, 0, 0), None),
            (["k", "d"], (2, 0, 0), (6, 0, 0)),
            (["m", "b"], (3, 0, 0), None),
            (["m", "c"], None, (7, 0, 0)),
        ],
        totals=[(6, 0, 0), (22, 0, 0)],
        shares=[(text, None, None) for text in ("0.25", "0.3125", "-0.0625", "0.25", "-0.1875", "0.4375")],
        **more,
    )
    compared(
        "values are sorted by their bytes",
        old((["é"], (1, 0, 0)), (["😀"], (1, 0, 0))),
        new(([""], (1, 0, 0)), (["\uffee"], (1, 0, 0)), (["😀"], (3, 0, 0))),
        [([""], None, (1, 0, 0)), (["é"], (1, 0, 0), None), (["\uffee"], None, (1, 0, 0)), (["😀"], (1, 0, 0), (3, 0, 0))],
        totals=[(2, 0, 0), (5, 0, 0)],
        shares=[(text, None, None) for text in ("0.3333333333333333", "-0.3333333333333333", "0.3333333333333333", "0.6666666666666666")],
    )
    compared(
        "grouped by none",
        old(([], (1, 2, 3)), dims=()),
        new(([], (2, 2, 2)), dims=()),
        [([], (1, 2, 3), (2, 2, 2))],
        totals=[(1, 2, 3), (2, 2, 2)],
        shares=[("1", None, "1")],
        dims=(),
    )
    compared(
        "filtered alike",
        old((["a"], (1, 0, 0)), integration=["a", "b"]),
        new((["b"], (3, 0, 0)), integration=["a", "b"]),
        [(["a"], (1, 0, 0), None), (["b"], None, (3, 0, 0))],
        totals=[(1, 0, 0), (3, 0, 0)],
        shares=[("-0.5", None, None), ("1.5", None, None)],
        integration=["a", "b"],
    )

    def refused(name, before, after):
        comparisons.append({"name": name, "before": before, "after": after, "error": error("incompatible_tables", argument="after")})

    plain, of_delivery = old((["a"], (1, 0, 0))), {"metric": "event_delivery"}
    refused("other dimensions", plain, new((["a"], (1, 0, 0)), dims=["reason"]))
    refused("the same dimensions in another order", old(dims=dims), new(dims=dims[::-1]))
    refused("another metric", old(**of_delivery), new(metric="event_ingestion"))
    refused("an unknown metric", plain, new(**of_delivery))
    refused("only the one after is filtered", plain, new((["a"], (1, 0, 0)), integration=["a"]))
    refused("only the one before is filtered", old((["a"], (1, 0, 0)), integration=["a"]), new((["a"], (1, 0, 0))))
    refused("filtered by other values", old(integration=["a"]), new(integration=["b"]))

    before = old((["a"], (5, 0, 0)), (["b"], (5, most, 0)), (["c"], (0, 0, 0)), (["d"], (9, 0, 0)))
    after = new((["b"], (9, 0, 0)), (["c"], (4, 1, 0)), (["d"], (0, 3, 0)), (["e"], (5, 0, 0)))

    def top(n, by, expected):
        outcome = {"error": expected} if isinstance(expected, dict) else {"rows": expected}
        comparisons.append({"name": f"top {n} by {by}", "before": before, "after": after, "top": {"n": n, "by": by}, **outcome})

    # The deltas of success are -5, 4, 4, -9 and 5; of errors 0, -(2^64 - 1), 1, 3 and 0.
    top(0, "success", [])
    top(3, "success", [3, 0, 4])
    top(100, "success", [3, 0, 4, 1, 2])
    top(3, "errors", [1, 3, 2])
    top(2, "filtered", [0, 1])
    top(3, "undelivered", [1, 3, 2])
    # The rate of b falls from (2^64 - 1) / (2^64 + 4) to 0, and that of d rises from 0 to 1: nearest floats are equal.
    top(3, "error_rate", [3, 1, 2])
    top(1, "total", error("invalid_argument", argument="by"))


# --- collects: long ranges, window by window ------------------------------------------------------

collects = []
error_log = []
HOUR = ["2026-01-01T00:00:00Z", MID, END, "2026-01-01T00:45:00Z", "2026-01-01T01:00:00Z"]


def collected(name, expected, *, answers=None, asked=None, **case):
    """A collect of one hour in four windows, of which the answers say what each request gets."""
    query = {"metric": "event_delivery", "start": HOUR[0], "end": HOUR[4], "dimensions": ["integration"], "window": "15m"}
    query |= case.pop("query", {})
    answers = usual_answers() if answers is None else answers
    asked = sorted(answers) if asked is None else asked
    expected = {key: value and identified(value, CLUSTER) if key in ("table", "partial") else value for key, value in expected.items()}
    collects.append(
        {
            "name": name,
            "query": query,
            "segments": case.pop("segments", []),
            "answers": [{"window": list(window), **answer} for window, answer in answers.items()],
            "asked": [list(window) for window in asked],
            **case,
            **expected,
        }
    )


def answered(start, end, *rows):
    """What the service answers of a window, with rows of an integration and a count of deliveries."""
    entries = [entry(success, 0, 0, integration=name) for name, success in rows]
    totals = (sum(success for _, success in rows), 0, 0)
    return {"respond": {"status": 200, "headers": JSON_HEAD, "body": result(*entries, start=start, end=end, totals=totals)}}


def quarter(index):
    return HOUR[index], HOUR[index + 1]


def usual_answers(*but):
    return {quarter(index): answered(*quarter(index), ("a", index + 1)) for index in range(4) if index not in but}


def dated(answers, dates):
    """The same answers, some of them with a `Date`."""
    headers = {quarter(index): [*JSON_HEAD, ["Date", date]] for index, date in dates.items()}
    return {key: {"respond": {**answer["respond"], "headers": headers.get(key, JSON_HEAD)}} for key, answer in answers.items()}


def quarters(*indexes, start=HOUR):
    """The table of those quarters of the hour."""
    windows = [window([(["a"], (index + 1, 0, 0))], reported=(index + 1, 0, 0), start=start[index], end=start[index + 1]) for index in indexes]
    return table(["integration"], *windows, totals=(sum(index + 1 for index in indexes), 0, 0), metric="event_delivery")


def fingerprint(address):
    """What segments of earlier versions tell of an address: 64 bits of FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in address.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def segment(number, saved, *, form="tallyfold-checkpoint/3", parts=(), **query):
    """A segment as it is written, byte for byte."""
    query = {
        "cluster": CLUSTER,
        "metric": "event_delivery",
        "start": HOUR[0],
        "end": HOUR[4],
        "dimensions": ["integration"],
        "group_by": ["integration"],
        "window": "15m",
        "keep": "windows",
        "part": None,
    } | query
    document = {
        "format": form,
        "query": query,
        "segment": number,
        "parts": list(parts),
        "table": saved and without_digest(identified(saved, CLUSTER)),
    }
    text = json.dumps(document, separators=(",", ":"))
    # The checksum is that of the document without the value of `digest`.
    start = text.index('"query"')
    head, rest = text[:start] + '"digest":', "," + text[start:]
    return f'{head}"{checksum(head + rest)}"{rest}'


def missing(code, gaps, partial=None, **places):
    return {"error": error(code, **places), "gaps": gaps, "partial": partial}


def collect_vectors():
    collected("an hour in four windows", {"table": quarters(0, 1, 2, 3)}, stored=segment(0, quarters(0, 1, 2, 3)))
    part = {(quarter(1)): usual_answers()[quarter(1)], (quarter(3)): usual_answers()[quarter(3)]}
    collected("the second of two parts", {"table": quarters(1, 3)}, answers=part, query={"part": [1, 2]}, stored=segment(0, quarters(1, 3), part=[1, 2]))

    gone = usual_answers() | {quarter(1): {"respond": status(500)}, quarter(2): {"fail": "network"}}
    both = [[HOUR[1], HOUR[3]]]
    collected("two failures, of which the first is told", missing("server_error", both, quarters(0, 3), status=500), answers=gone)
    collected("what is there is not read again", {"table": quarters(0, 1, 2, 3)}, have=quarters(0, 3), answers=usual_answers(0, 3))
    refused = {quarter(0): usual_answers()[quarter(0)], quarter(1): {"respond": status(403)}}
    rest = [[HOUR[1], HOUR[4]]]
    collected("a refusal ends it", missing("forbidden", rest, quarters(0), status=403), answers=refused)

    middle = "2026-01-01T00:07:00Z"
    halves = {
        quarter(0): {"respond": status(504)},
        (HOUR[0], middle): answered(HOUR[0], middle, ("a", 1)),
        (middle, HOUR[1]): answered(middle, HOUR[1], ("b", 2)),
    }
    halved = table(
        ["integration"],
        window([(["a"], (1, 0, 0))], reported=(1, 0, 0), start=HOUR[0], end=middle),
        window([(["b"], (2, 0, 0))], reported=(2, 0, 0), start=middle, end=HOUR[1]),
        totals=(3, 0, 0),
        metric="event_delivery",
    )
    collected("a window that takes too long is halved at a minute", {"table": halved}, answers=halves, asked=list(halves), query={"end": HOUR[1]})
    slow = {quarter(0): {"respond": status(504)}}
    gap = [[HOUR[0], HOUR[1]]]
    collected("but not below the finest step", missing("server_error", gap, status=504), answers=slow, query={"end": HOUR[1], "finest": "15m"})
    silent = {quarter(0): {"fail": "timeout"}}
    collected("a window to which no answer begins is not halved", missing("timed_out", gap), answers=silent, query={"end": HOUR[1]})

    first = segment(0, quarters(0, 1))
    collected(
        "a stored segment is not read again", {"table": quarters(0, 1, 2, 3)}, segments=[first], answers=usual_answers(0, 1), stored=segment(1, quarters(2, 3))
    )
    collected(
        "provisional windows are",
        {"table": quarters(0, 1, 2, 3)},
        segments=[segment(0, provisional(quarters(0, 1), HOUR[1])), segment(1, quarters(2, 3))],
        answers=usual_answers(0, 2, 3),
        stored=segment(2, quarters(1)),
    )
    had = provisional(quarters(0, 1, 3), HOUR[1])
    collected("provisional windows of what is there are read again", {"table": quarters(0, 1, 2, 3)}, have=had, answers=usual_answers(0, 3))
    # A `Date` has whole seconds, so the last second of the settle time is not surely over.
    just = dated(usual_answers(), {2: "Thu, 01 Jan 2026 01:45:00 GMT", 3: "Thu, 01 Jan 2026 01:59:59 GMT"})
    collected("a window settles when its settle time is surely over by Date", {"table": provisional(quarters(0, 1, 2, 3), HOUR[3])}, answers=just)
    collected(
        "a time that was stored twice is used once",
        {"table": quarters(0, 1, 2, 3)},
        segments=[first, segment(1, quarters(1, 2))],
        answers=usual_answers(0, 1, 2),
    )
    later = {"start": HOUR[1], "end": "2026-01-01T01:15:00Z"}
    fifth = (HOUR[4], later["end"])
    moved = quarters(1, 2, 3, 4, start=[*HOUR, later["end"]])
    all_stored = segment(0, quarters(0, 1, 2, 3))
    collected(
        "a range that has moved uses what is stored of it",
        {"table": moved},
        segments=[all_stored],
        answers={fifth: answered(*fifth, ("a", 5))},
        query=later,
        stored=segment(1, quarters(4, start=[*HOUR, later["end"]]), **later),
    )
    early = {"start": "2025-12-31T23:45:00Z", "end": HOUR[0]}
    hour_before = table(
        ["integration"], window([(["a"], (9, 0, 0))], reported=(9, 0, 0), start=early["start"], end=early["end"]), totals=(9, 0, 0), metric="event_delivery"
    )
    collected(
        "what is older than the range is dropped if that is wanted",
        {"table": quarters(0, 1, 2, 3)},
        segments=[segment(0, hour_before, **early), segment(1, quarters(0, 1, 2, 3))],
        answers={},
        query={"drop_old": True},
        stored=segment(0, None),
    )
    collected(
        "a window that reaches out of the range is not used",
        {"table": quarters(1, 2, 3)},
        have=table(["integration"], window([(["a"], (3, 0, 0))], reported=(3, 0, 0), start=HOUR[0], end=HOUR[2]), totals=(3, 0, 0), metric="event_delivery"),
        answers=usual_answers(0),
        query={"start": HOUR[1]},
    )

    def sums(*edges):
        windows = []
        for start, end in itertools.pairwise(edges):
            total = sum(range(start + 1, end + 1))
            windows.append(window([(["a"], (total, 0, 0))], reported=(total, 0, 0), start=HOUR[start], end=HOUR[end]))
        return table(["integration"], *windows, totals=(10, 0, 0), metric="event_delivery")

    collected("only the sum is kept", {"table": sums(0, 4)}, query={"keep": "total"}, stored=segment(0, sums(0, 4), keep="total"))
    collected("half hours are kept", {"table": sums(0, 2, 4)}, query={"keep": "30m"})
    half = table(["integration"], window([(["a"], (3, 0, 0))], reported=(3, 0, 0), start=HOUR[0], end=HOUR[2]), totals=(3, 0, 0), metric="event_delivery")
    collected(
        "a stored sum goes on",
        {"table": sums(0, 4)},
        segments=[segment(0, half, keep="total")],
        answers=usual_answers(0, 1),
        query={"keep": "total"},
        stored=segment(0, sums(0, 4), keep="total"),
    )
    collected("a step that cuts windows", {"error": error("invalid_argument", argument="keep")}, answers={}, query={"keep": "10m"})
    collected("neither a step nor a word", {"error": error("invalid_argument", argument="keep")}, answers={}, query={"keep": "all"})
    rest = [[HOUR[1], HOUR[4]]]
    collected("more memory than allowed", missing("memory_limit", rest, quarters(0)), asked=[quarter(0)], query={"memory_limit": 1})

    def invalid(name, *segments, path=None, offset=None, after=None, **query):
        offset = segments[-1].index(after) + len(after) if after else offset
        broken = {"error": error("invalid_checkpoint", path=path, offset=offset)}
        collected(name, broken, segments=list(segments), answers={}, query=query)

    invalid("torn in the query", first[:150], path="$", offset=149)
    invalid("torn in the table", first[:429], path="$", offset=428)
    invalid("torn before its last byte", first[:-1], path="$", offset=len(first) - 2)
    invalid("more than a segment", first + "}", path="$", offset=len(first))
    invalid("no JSON", "<html>", path="$", offset=0)
    saved = json.dumps(quarters(0), separators=(",", ":"))
    invalid("a saved table", saved, path="$.format", after='{"format":')
    invalid("another format", segment(0, quarters(0), form="tallyfold-checkpoint/2"), path="$.format", after='{"format":')
    invalid("another number", segment(1, quarters(0)), path="$.segment", after='"segment":')
    invalid("changed totals", first.replace('"totals":{"success":"3"', '"totals":{"success":"4"'), path="$.table.totals")
    invalid("a window outside of the part", segment(0, quarters(0, 1), part=[0, 2]), path="$.table.windows[1]", part=[0, 2])
    invalid("parts that are not there", segment(0, quarters(0), parts=[HOUR[3]]), path="$.parts")
    invalid("parts of another kind", first.replace('"parts":[]', '"parts":[1]'), path="$.parts", after='"parts":')
    invalid(
        "a window provisional or what",
        first.replace('"end":"2026-01-01T00:15:00Z",', '"end":"2026-01-01T00:15:00Z","provisional":1,'),
        path="$.table.windows[0].provisional",
    )
    invalid("half an hour where windows are kept", segment(0, half), path="$.table.windows[0]")
    invalid("a range that ends before it starts", segment(0, quarters(0), end=HOUR[0]), path="$.query.start", after='"start":')
    invalid("a table of another metric", first.replace('"metric":"event_delivery","dimensions"', '"metric":null,"dimensions"'), path="$.table")
    invalid("another cluster", segment(0, quarters(0), cluster="https://other.example"), path="$.query.cluster", after='"cluster":')
    invalid("another metric", first, path="$.query.metric", after='"metric":', metric="event_ingestion")
    invalid("other dimensions", first, path="$.query.dimensions", after='"dimensions":', dimensions=["write_key"])
    invalid("other groups", first, path="$.query.group_by", after='"group_by":', group_by=[])
    invalid("another window", first, path="$.query.window", after='"window":', window="5m")
    invalid("another keep", first, path="$.query.keep", after='"keep":', keep="total")
    invalid("another part", first, path="$.query.part", after='"part":', part=[0, 2])

    def probed(whole):
        return {(HOUR[0], HOUR[2]): answered(HOUR[0], HOUR[2], ("a", whole)), **usual_answers()}

    collected("a probe of windows that add up", {"table": quarters(0, 1, 2, 3)}, answers=probed(3), asked=list(probed(3)), query={"probe": True})
    doubled = missing("windows_not_additive", [[HOUR[0], HOUR[4]]])
    collected("a probe of windows that do not", doubled, answers=probed(2), asked=list(probed(2))[:3], query={"probe": True})


def noted(name, *notes):
    """Each note is a text, the milliseconds, and what is expected: the number of the note whose reference it gets if the log has a line
    already, or the end of its own line."""
    references = [f"{number:016x}" for number in range(len(notes))]
    case = {"name": name, "notes": []}
    for (text, at_ms, expected), own in zip(notes, references):
        is_new = isinstance(expected, str)
        reference = own if is_new else references[expected]
        line = f"(reference {own}): {text}{expected}" if is_new else None
        case["notes"].append({"text": text, "at_ms": at_ms, "random": own, "reference": reference, "line": line})
    error_log.append(case)


def error_log_vectors():
    noted(
        "equal errors within ten seconds are one line",
        ("down", 0, ""),
        ("down", 9_999, 0),
        ("down", 9_999, 0),
        ("down", 10_000, "; 2 equal errors since the last line"),
        ("down", 10_001, 3),
        ("down", 20_000, "; 1 equal error since the last line"),
        ("down", 30_000, ""),
    )
    noted("the ten seconds begin with the line", ("down", 5_000, ""), ("down", 12_000, 0), ("down", 15_000, "; 1 equal error since the last line"))
    noted("each error has lines of its own", ("down", 0, ""), ("denied", 1, ""), ("down", 2, 0), ("denied", 3, 1), ("Down", 4, ""))
    noted("a clock that stands still or runs backwards", ("down", 5_000, ""), ("down", 5_000, 0), ("down", 0, 0))
    hundred = [(f"error {number}", number, "") for number in range(100)]
    noted(
        "the lines of a hundred errors are remembered",
        *hundred,
        ("error 0", 100, 0),
        ("error 99", 101, 99),
        ("one more", 102, ""),
        ("error 1", 103, 1),
        ("error 0", 104, ""),
    )
    noted(
        "the oldest line is forgotten first",
        *hundred,
        ("error 1", 100, 1),
        ("error 0", 10_000, ""),
        ("one more", 10_001, ""),
        ("error 2", 10_001, 2),
        ("error 0", 10_002, 101),
        ("error 1", 10_003, ""),
    )


def main():
    response_vectors()
    exchange_vectors()
    table_vectors()
    series_vectors()
    zone_vectors()
    slice_vectors()
    rate_vectors()
    comparison_vectors()
    collect_vectors()
    error_log_vectors()
    files = {
        "responses": responses,
        "exchanges": exchanges,
        "tables": tables,
        "series": series,
        "rates": rates,
        "comparisons": comparisons,
        "collects": collects,
        "error_log": error_log,
    }
    stale = []
    for name, cases in files.items():
        names = [case["name"] for case in cases]
        assert len(set(names)) == len(names), f"{name}: {sorted(n for n in names if names.count(n) > 1)}"
        text = json.dumps({"count": len(cases), "cases": cases}, ensure_ascii=False, indent=1) + "\n"
        path = HERE / f"{name}.json"
        if "--check" in sys.argv:
            stale += [path] if path.read_text(encoding="utf-8") != text else []
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"out of date: {', '.join(map(str, stale))}; run python3 tests/make_vectors.py")


if __name__ == "__main__":
    main()
