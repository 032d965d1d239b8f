"""Makes inputs for a check: generated from a seed within the graph's limits, or read from files."""
