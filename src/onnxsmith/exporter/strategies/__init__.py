"""Strategies: ways to capture a torch module as a graph. `exporter/strategy_choice.py` sorts them by `rank`, and
a problem of an earlier one decides whether a strategy is tried (`tried_after`)."""
