"""Inputs for a check: generated within what the graph allows, equal for equal seeds, or read from files."""
