"""Compares two computations: chooses inputs and tolerances, measures differences, gives a verdict."""
