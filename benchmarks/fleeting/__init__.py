"""Cells that stand for work in the benchmark of fleets."""
