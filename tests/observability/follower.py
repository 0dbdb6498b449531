"""follower.py FORMAT URL OUTBOX WINDOWS OPTIONS: follows a service, and pushes its revisions by way of an outbox.

It goes on from the outbox on disk: a process that is killed at any moment is replaced by the next one.
"""

import json
import sys
from typing import Any

import httpx2
import tallyfold
import week

SEED = 3


def main(form: tallyfold.ExportFormat, url: str, path: str, windows: int, options: dict[str, Any]) -> None:
    """Pushes everything."""
    outbox = tallyfold.Outbox(path, form)
    service = week.Service(week.events(SEED, windows))
    with httpx2.HTTPTransport(trust_env=False) as transport:
        # Whoever kills it knows by these lines how far it is.
        print(outbox.is_pending, flush=True)
        outbox.push(url, transport=transport, **options)
        for revision, state in week.follow(service, windows=windows, state=outbox.state):
            outbox.put(revision, state)
            print(flush=True)
            outbox.push(url, transport=transport, **options)


if __name__ == "__main__":
    form, url, path, windows, options = sys.argv[1:]
    main(form, url, path, int(windows), json.loads(options))  # type: ignore[arg-type]
