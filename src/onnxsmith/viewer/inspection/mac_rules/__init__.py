"""Counts the multiply-accumulates of operators. Each family of operators is a class."""
