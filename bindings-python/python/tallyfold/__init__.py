"""Exact, grouped counts from an event router's metrics API."""

from tallyfold._tallyfold import __version__

__all__ = ["__version__"]
