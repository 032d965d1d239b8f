"""Describes patterns of operators, and finds them in models."""
