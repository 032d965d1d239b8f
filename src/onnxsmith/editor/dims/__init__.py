"""Symbolic dimensions of a model: opens frozen sizes, fixes symbolic ones, and compares the result row by row."""
