"""The query of both examples: one day of counts. Spark divides it into parts for its workers.

Reads the address and the credentials of the service from the environment:
TALLYFOLD_CLUSTER_ENDPOINT, TALLYFOLD_CLIENT_ID, TALLYFOLD_CLIENT_SECRET,
TALLYFOLD_CONTROL_AUDIENCE.
"""

import os

import tallyfold

START = "2026-01-01T00:00:00Z"
END = "2026-01-02T00:00:00Z"
DIMENSIONS: list[tallyfold.DimensionName] = ["write_key", "integration", "reason"]
PARTS = 12


def collect(part: tuple[int, int] | None = None) -> tallyfold.CountTable:
    """Collects one part of the day, or the whole day. Runs in any process, as it shares nothing."""
    with tallyfold.Client(
        cluster_endpoint=os.environ["TALLYFOLD_CLUSTER_ENDPOINT"],
        client_id=os.environ["TALLYFOLD_CLIENT_ID"],
        client_secret=os.environ["TALLYFOLD_CLIENT_SECRET"],
        control_audience=os.environ["TALLYFOLD_CONTROL_AUDIENCE"],
    ) as client:
        return client.collect("event_delivery", START, END, DIMENSIONS, window="15m", concurrency=2, part=part)
