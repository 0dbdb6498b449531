"""Requests and responses: transports, time limits, proxies, and what their errors mean."""
