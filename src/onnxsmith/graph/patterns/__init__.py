"""Patterns of operators, and where a model has them."""
