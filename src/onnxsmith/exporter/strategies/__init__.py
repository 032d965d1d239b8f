"""Strategies: ways to capture a torch module as a graph. `exporter/graph/program_capture.py` sorts them by `rank`, and
a problem of an earlier one decides whether a strategy is tried (`tried_after`)."""
