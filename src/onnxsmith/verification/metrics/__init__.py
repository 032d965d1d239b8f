"""Measures the difference between two arrays, with one class for each metric."""
