"""follower.py FORMAT URL OUTBOX WINDOWS OPTIONS [REVISIONS SECONDS]: follows a service, and pushes its revisions by way of an outbox.

It goes on from the outbox on disk: a process that is killed at any moment is replaced by the next one. With REVISIONS, the system
kills it so many SECONDS after it has stored so many revisions, however busy the machine is.
"""

import json
import signal
import sys
from typing import Any

import httpx2
import tallyfold
import week

SEED = 3


def main(form: tallyfold.ExportFormat, url: str, path: str, windows: int, options: dict[str, Any], revisions: int = -1, seconds: float = 0) -> None:
    """Pushes everything, unless it is killed."""
    outbox = tallyfold.Outbox(path, form)
    service = week.Service(week.events(SEED, windows))
    with httpx2.HTTPTransport(trust_env=False) as transport:
        # A line for what was left, and one for each revision.
        print(outbox.is_pending, flush=True)
        kill_after(seconds if revisions == 0 else 0)
        outbox.push(url, transport=transport, **options)
        for number, (revision, state) in enumerate(week.follow(service, windows=windows, state=outbox.state), 1):
            outbox.put(revision, state)
            print(flush=True)
            kill_after(seconds if revisions == number else 0)
            outbox.push(url, transport=transport, **options)


def kill_after(seconds: float) -> None:
    """Lets the system kill this process after so many seconds, if there are any."""
    if seconds > 0:
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    form, url, path, windows, options, *kill = sys.argv[1:]
    given = (int(kill[0]), float(kill[1])) if kill else ()
    main(form, url, path, int(windows), json.loads(options), *given)  # type: ignore[arg-type]
