"""Operators as Python functions: each call makes a checked node at one place of a graph."""
