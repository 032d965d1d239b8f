"""Measures of what a user wants of a model, a class for each."""
