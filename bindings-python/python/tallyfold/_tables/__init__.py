"""The values that tables, series and comparisons are made of."""
