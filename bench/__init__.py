"""Promises with numbers, measured: ratios between two ways of doing the same, taken in turn in one process."""
