"""What runs of tests/faults are made of: bytes on the wire, endpoints, and the exchanges around a fault."""

import json
import struct
import zlib
from dataclasses import dataclass

from make_vectors import KINDS, entry, identified, provisional, result, table, window

SECRET = "canary-secret"
DIMENSIONS = ["event_name", "integration"]

# One wait is as good as another where it is not the wait that is looked at.
OPTIONS = {"max_retries": 1, "longest_retry_wait_ms": 10, "timeout_ms": 20_000}
IMPATIENT = {"timeout_ms": 3_000, "max_retries": 0}


# --- the wire -----------------------------------------------------------------------------------


def head(status="200 OK", content_type="application/json", headers=(), connection="close"):
    content = [("Content-Type", content_type)] if content_type is not None else []
    lines = [f"{name}: {value}\r\n" for name, value in [*content, *headers, ("Connection", connection)]]
    return f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode()


def sized(body, length=None, headers=(), **of_head):
    """A response that says how long it is."""
    length = len(body) if length is None else length
    return head(headers=[*headers, ("Content-Length", length)], **of_head) + body


def chunked(body, *, whole=True, connection="keep-alive"):
    """A response in chunks of seven bytes; the last one says that it is over.

    Where the connection was to be closed, some take its end for that of the last chunk. Where it was not, some
    send their next request on it."""
    chunks = [body[at : at + 7] for at in range(0, len(body), 7)]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return head(headers=[("Transfer-Encoding", "chunked")], connection=connection) + framed + (b"0\r\n\r\n" if whole else b"")


def until_closed(body):
    """A response whose end is that of the connection."""
    return head() + body


def gzipped(body):
    """Gzip without compression, so that the bytes are the same whatever zlib writes them."""
    block = b"\x01" + struct.pack("<HH", len(body), len(body) ^ 0xFFFF) + body
    return bytes.fromhex("1f8b08000000000000ff") + block + struct.pack("<II", zlib.crc32(body), len(body))


def sends(data):
    try:
        return ["send", data.decode()]
    except UnicodeDecodeError:
        return ["send_hex", data.hex()]


def plain(data):
    return [sends(data)]


STALL, RESET = ["stall"], ["reset"]
# A reset overtakes what was sent just before it; after a moment, it doesn't.
MOMENT = ["pause", 30]


# --- endpoints ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Endpoint:
    name: str
    api: str
    group: str
    request: str

    @property
    def good(self):
        """The body that it should have sent."""
        return {"token": self.token, "metrics": counts, "audit_logs": lambda: AUDIT_LOGS}[self.group]()

    def token(self, number=1):
        fields = {"access_token": canary(self.api, number), "expires_in": 86400, "token_type": "Bearer"}
        return json.dumps(fields).encode()

    @property
    def token_endpoint(self):
        return TOKEN_ENDPOINTS[self.api]

    @property
    def called(self):
        """What is called to have a request sent there."""
        return {"control": DELIVERY, "orchestration": LOGS}[self.api] if self.group == "token" else self


def canary(api, number=1):
    return f"canary-{api}-{number}"


# 2^53 + 1, which no float holds.
PUSH = entry(2**53 + 1, 2, 3, event_name="Order", integration="push")
EMAIL = entry(5, 0, 1, event_name="Order", integration="email")
TOTALS = (2**53 + 6, 2, 4)
ROWS = [(["Order", "email"], (5, 0, 1)), (["Order", "push"], (2**53 + 1, 2, 3))]


def counts(*entries, totals=TOTALS, **changes):
    return result(*(entries or (PUSH, EMAIL)), totals=totals, **changes).encode()


def counted(rows=ROWS, totals=TOTALS, *, reported=TOTALS, verdict="balanced", **notes):
    """What is made of a good result."""
    return {"table": table(DIMENSIONS, window(rows, reported=reported, **notes), totals=totals), "verdict": verdict}


AUDIT_LOGS = b'{"page": 1, "auditLogs": [{"id": "7", "actor": "someone", "action": "login"}]}'

CONTROL = Endpoint("control_token", "control", "token", "POST /v1.1/oauth/token")
ORCHESTRATION = Endpoint("orchestration_token", "orchestration", "token", "POST /oauth/token")
DELIVERY = Endpoint("event_delivery", "control", "metrics", "POST /v1.1/analytics/event_delivery")
INGESTION = Endpoint("event_ingestion", "control", "metrics", "POST /v1.1/analytics/event_ingestion")
# The port of a server differs from run to run.
IDENTITY = "a faulty service"

LOGS = Endpoint("audit_logs", "orchestration", "audit_logs", "GET /api/v1/audit-logs")

TOKEN_ENDPOINTS = {"control": CONTROL, "orchestration": ORCHESTRATION}
TOKENS, METRICS = [CONTROL, ORCHESTRATION], [DELIVERY, INGESTION]
APIS = [*METRICS, LOGS]
ALL = [*TOKENS, *APIS]


# --- runs ---------------------------------------------------------------------------------------

runs = []
GOOD = "good"

# What most runs have in common stands in the file once, under a name.
answers = {f"good {endpoint.name}": plain(sized(endpoint.good)) for endpoint in ALL}
answers |= {f"good {endpoint.name} 2": plain(sized(endpoint.token(2))) for endpoint in TOKENS}
outcomes = {"good audit_logs": {"json": json.loads(AUDIT_LOGS)}}


def outcome_at(endpoint, outcome):
    """The outcome as the file has it."""
    if outcome == GOOD and endpoint.group == "metrics":
        outcomes.setdefault(f"good {endpoint.name}", outcome_at(endpoint, counted()))
    if outcome == GOOD:
        return f"good {endpoint.name}"
    if "table" in outcome:
        found = provisional({**outcome["table"], "metric": endpoint.name}, unfinished=True)
        return {**outcome, "table": identified(found, IDENTITY)}
    return outcome


def error(code, *, status=None, retry_after=None):
    return {"error": {"code": code, "kind": KINDS[code], "status": status, "retry_after": retry_after}}


def granted(endpoint, number=1):
    """A token request that goes well."""
    suffix = f" {number}" if number > 1 else ""
    return asked(endpoint.token_endpoint, f"good {endpoint.token_endpoint.name}{suffix}")


def asked(endpoint, answer=None, number=1):
    """A request, with the token of its own API if it is one that needs a token, and the answer."""
    bearer = None if endpoint.group == "token" else canary(endpoint.api, number)
    answer = f"good {endpoint.name}" if answer is None else answer
    answer = answer(endpoint) if callable(answer) else answer
    return {"request": endpoint.request, "bearer": bearer, "answer": answer}


def run(name, endpoint, exchanges, expected, *, waits_ms=0, **options):
    called = endpoint.called
    runs.append(
        {
            "fault": name,
            "endpoint": endpoint.name,
            "call": called.name,
            "options": {**OPTIONS, **options},
            "exchanges": exchanges,
            "outcomes": [outcome_at(called, outcome) for outcome in expected],
            "waits_ms": waits_ms,
        }
    )


def fault(name, given, expected, on=ALL, **options):
    """Each endpoint gives the answers in turn, and its call ends as expected. After an error the same client
    is asked once more, and its counts are whole: nothing is left of what went wrong.

    An answer is a list of what to do on the wire, `GOOD`, or a function that makes one for an endpoint.
    What is expected may differ by the endpoint's group."""
    for endpoint in on:
        called = endpoint.called
        outcome = expected
        if isinstance(expected, ByGroup):
            outcome = expected.get(endpoint.group) or expected["api"]
        exchanges = [asked(endpoint, None if answer == GOOD else answer) for answer in given]
        if endpoint.group != "token":
            exchanges.insert(0, granted(endpoint))
        fails = outcome != GOOD and "error" in outcome
        if endpoint.group == "token":
            exchanges += [granted(endpoint), asked(called)] if fails else [asked(called)]
        elif fails:
            exchanges.append(asked(called))
        run(name, endpoint, exchanges, [outcome, GOOD] if fails else [outcome], **options)


class ByGroup(dict):
    """An outcome for each group of endpoints; `api` is both that are no token endpoints."""


def quote(endpoint, api=None):
    """What a server says with a refusal quotes all that nobody may see. An API quotes what it was sent, and the
    secret; its error may tell the rest of that."""
    apis = ["control", "orchestration"] if endpoint.group == "token" else [api or endpoint.api]
    return json.dumps({"error": " ".join([SECRET, *map(canary, apis)])}).encode()


HTML = f"<!doctype html><html><body>{SECRET} {canary('control')} {canary('orchestration')}</body></html>".encode()


def refusal(status, headers=(), api=None):
    return lambda endpoint: plain(sized(quote(endpoint, api), status=status, headers=headers))
