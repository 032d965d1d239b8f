"""Measures of the difference between two arrays, one in each file."""
