"""Measures of the difference between two arrays, a class for each."""
