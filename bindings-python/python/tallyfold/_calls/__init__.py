"""Drives single calls of the core: tokens, requests, responses and waits."""
