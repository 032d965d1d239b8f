"""Checks for `reduce`: ways in which a model can fail, one in each file."""
