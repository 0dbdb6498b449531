"""Exports, and their ways to other systems."""
