"""Checks for `reduce`: ways in which a model can fail, a class for each."""
