"""Measures of what a user wants of a model, one a file."""
