"""Fewer nodes, the same numbers."""
