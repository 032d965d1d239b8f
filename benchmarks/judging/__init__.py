"""Suites of `judge.py`: planted faults, equivalent pairs, valid models, shape computations, cost."""
