"""Long ranges: collect, and follow."""
