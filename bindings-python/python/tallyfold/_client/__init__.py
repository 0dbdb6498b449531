"""The clients, and the loops that drive their calls."""
