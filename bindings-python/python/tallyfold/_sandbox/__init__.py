"""The sandbox, and its server."""
