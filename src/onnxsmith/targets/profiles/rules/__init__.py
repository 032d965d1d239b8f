"""Holds the named conditions that a profile lists under `[[rules]]`, with a class for each condition."""
