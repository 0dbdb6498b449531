"""totals.py FORMAT URL LEDGER WINDOWS: follows a service, and pushes the running totals of a ledger.

It goes on from the ledger on disk: a process that is killed at any moment is replaced by the next one.
"""

import sys

import httpx2
import tallyfold
import week

SEED = 11
LABELS = {"cluster": 'eu "1"'}


def main(form: tallyfold.ExportFormat, url: str, path: str, windows: int) -> None:
    """Pushes the totals whenever they have changed."""
    ledger = tallyfold.Ledger(path)
    service = week.Service(week.events(SEED, windows))
    with httpx2.HTTPTransport(trust_env=False) as transport:
        # What an earlier process did not send, or did not see arrive.
        ledger.push(form, url, LABELS, transport=transport)
        for revision, state in week.follow(service, windows=windows, state=ledger.state):
            ledger.add(revision, state)
            if revision.settled:
                # Whoever kills it knows by these lines how far it is.
                print(flush=True)
                report = ledger.push(form, url, LABELS, transport=transport)
                assert (report.unsure, report.rejected) == (0, [])


if __name__ == "__main__":
    form, url, path, windows = sys.argv[1:]
    main(form, url, path, int(windows))  # type: ignore[arg-type]
