"""Logs outages of the service with the logger `tallyfold`."""

import logging

__all__ = ["LOGGER", "OutageLog"]

LOGGER = logging.getLogger("tallyfold")
"""The logger of the package."""


class OutageLog:
    """Logs when a range begins to wait for the service, each try, and when the service is back."""

    def __init__(self) -> None:
        """Knows of no outage yet."""
        self._is_on = False

    def note(self, waiting: float | None, failure: BaseException | None) -> None:
        """Logs a change.

        Args:
            waiting: how many seconds the range waits before its next try; `None` if it does not
                wait.
            failure: what the last call raised.
        """
        if waiting is not None and failure is not None:
            level = logging.INFO if self._is_on else logging.WARNING
            LOGGER.log(level, "the service is down, next try in %.1f s: %s", waiting, failure)
            self._is_on = True
        elif waiting is None and failure is None and self._is_on:
            LOGGER.warning("the service is back")
            self._is_on = False
