"""Inputs for a check: of sizes and values that the graph allows, the same for the same seed, or read from files."""
